"""A step in float64, with views that are given and not drawn, to compare with loops."""

from __future__ import annotations

import torch

from clutils import data, encoders, methods

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
