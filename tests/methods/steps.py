"""What a method's step is tested with: vectors, noisy views of them, and views that take a gradient."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from clutils import data, encoders
from tests.losses import oracles

VECTORS = data.load("vectors:digits", limit=64).vectors


def noisy(vectors: Tensor, generator: torch.Generator) -> Tensor:
    return vectors + torch.rand(vectors.shape, generator=generator)


def built(kind, loss=None, **settings):
    """A method of vectors, with a small encoder, in training mode."""
    torch.manual_seed(0)
    loss = kind.default_loss() if loss is None else loss
    return kind(encoders.MLP(64, 32, 16), loss, **settings).train()


def a_step(method, batch: int = 9):
    """The method's step on the first vectors."""
    return method(VECTORS[:batch], noisy, torch.Generator().manual_seed(5))


def views(number: int = 2, batch: int = 9) -> tuple[Tensor, ...]:
    """The views that `a_step` draws, in float64."""
    return (
        noisy(torch.cat([VECTORS[:batch]] * number), torch.Generator().manual_seed(5)).double().chunk(number)
    )


def in_float64(*networks):
    """Copies to compute with: the networks' weights as they are, in float64 and in training mode."""
    return [copy.deepcopy(network).double().train() for network in networks]


def with_a_target_elsewhere(method):
    """The method, its target's encoder moved as after some steps."""
    with torch.no_grad():
        for weight in method.target_encoder.parameters():
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return method


def predictions_and_targets(method):
    """What `a_step` predicts of each view, and what its target makes of it: a batch a view, in float64."""
    encoder, head, predictor = in_float64(method.encoder, method.head, method.predictor)
    target_encoder, target_head = in_float64(method.target_encoder, method.target_head)
    predictions = [predictor(head(encoder(view))).detach() for view in views()]
    return predictions, [target_head(target_encoder(view)).detach() for view in views()]


def by_loops(loss, z1, z2, labels=None, one_way=False) -> float:
    """A loss as its paper writes it: its mean over both views' anchors, or one way over z1's, against z2."""
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), labels, other_view=one_way)
    rows = rows[: len(z1)] if one_way else rows
    return float(oracles.written(loss, rows).mean())


def slopes_of_views(method) -> list[Tensor]:
    """The step's gradient by each view that it asks for, (64,), summed over the batch; zeros: none."""
    shifts = []

    class Shifted:
        def several_views(self, images, generator, number):
            drawn = noisy(torch.cat([images] * number), generator).chunk(number)
            own = [torch.zeros(64, requires_grad=True) for _ in drawn]
            shifts.extend(own)
            return [view + shift for view, shift in zip(drawn, own, strict=True)]

    labels, index = torch.arange(9) // 3, torch.arange(9)
    method(VECTORS[:9], Shifted(), torch.Generator().manual_seed(0), labels, index)[0].backward()
    return [torch.zeros(64) if shift.grad is None else shift.grad for shift in shifts]
