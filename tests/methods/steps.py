"""A step in float64, with views that are given and not drawn, to compare with equations and loops."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils import data, encoders, methods, similarities
from tests.losses import oracles

VECTORS = data.load("vectors:digits", limit=96).vectors.double()


class Fixed:
    """An augmentation that gives these views, whatever it is asked for."""

    def __init__(self, *views):
        self.views = views

    def several_views(self, images, generator, number):
        return list(self.views[:number])


def views_of(x, number, seed=0):
    """Noisy copies of x (B, D), as `Fixed` takes them."""
    draw = torch.Generator().manual_seed(seed)
    return [x + torch.rand(x.shape, generator=draw, dtype=x.dtype) for _ in range(number)]


def built(kind, loss=None, **settings):
    """A method on vectors of 64 numbers, in float64 throughout, with an encoder without batch statistics."""
    torch.manual_seed(0)
    made = kind(encoders.MLP(64, 32, 16), kind.default_loss() if loss is None else loss, **settings)

    def features_of(views, encoder=None):  # the method's own rounds to float32
        return (made.encoder if encoder is None else encoder)(views)

    assert isinstance(made, methods.Method)
    made.features_of = features_of
    return made.double().train()


def moved(weights, by: float = 0.02):
    """The weights of a target, in place, as after some steps."""
    with torch.no_grad():
        for weight in weights:
            weight += by * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)).to(weight)


def joined(method, views):
    """Embeddings of views that go through the networks as one batch."""
    return method.head(method.encoder(torch.cat(views))).chunk(len(views))


def apart(method, views):
    """Embeddings of views, each a batch of its own."""
    return [method.head(method.encoder(view)) for view in views]


def predictions_and_targets(method, views):
    """What a method with a predictor says of each view, and what its target makes of it."""
    predictions = [method.predictor(z) for z in apart(method, views)]
    return predictions, [method.target_head(method.target_encoder(view)) for view in views]


def by_loops(loss, z1, z2, labels=None, one_way=False) -> float:
    """A loss as its paper writes it: its mean over both views' anchors, or one way over z1's, against z2."""
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), labels, other_view=one_way)
    rows = rows[: len(z1)] if one_way else rows
    return float(oracles.written(loss, rows).mean())


def in_loops(loss, z1, z2, labels=None, one_way=False) -> Tensor:
    """The package's own loss, for its gradient; its value is that of `by_loops`."""
    if labels is None:
        views = [similarities.normalise(z) for z in (z1, z2)]
        pairs = similarities.two_views(*views, comparison="one way" if one_way else "both views")
        own = loss.per_anchor(pairs).mean()
    else:
        own = loss(z1, z2, labels=torch.tensor(labels))
    assert abs(own.item() - by_loops(loss, z1, z2, labels, one_way)) < 1e-9
    return own


def slopes_of_views(method) -> list[Tensor]:
    """The step's gradient by each view that it asks for, (64,), summed over the batch; zeros: none."""
    shifts = []

    class Shifted:
        def several_views(self, images, generator, number):
            own = [torch.zeros(64, dtype=images.dtype, requires_grad=True) for _ in range(number)]
            shifts.extend(own)
            drawn = views_of(images, number)
            return [view + shift for view, shift in zip(drawn, own, strict=True)]

    labels, index = torch.arange(9) // 3, torch.arange(9)
    method(VECTORS[:9], Shifted(), torch.Generator().manual_seed(0), labels, index)[0].backward()
    return [torch.zeros(64) if shift.grad is None else shift.grad for shift in shifts]
