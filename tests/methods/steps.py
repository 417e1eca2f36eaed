"""What a method's step is tested with: vectors, noisy views of them, and views that take a gradient."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from clutils import data

VECTORS = data.load("vectors:digits", limit=64).vectors


def noisy(vectors: Tensor, generator: torch.Generator) -> Tensor:
    return vectors + torch.rand(vectors.shape, generator=generator)


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


def slopes_of_views(method, number: int = 2) -> list[Tensor]:
    """The step's gradient by each view, (64,), summed over the batch; zeros where there is none."""
    shifts = [torch.zeros(64, requires_grad=True) for _ in range(number)]

    class Shifted:
        def several_views(self, images, generator, asked):
            assert asked == number
            drawn = noisy(torch.cat([images] * number), generator).chunk(number)
            return [view + shift for view, shift in zip(drawn, shifts, strict=True)]

    method(VECTORS[:9], Shifted(), torch.Generator().manual_seed(0))[0].backward()
    return [torch.zeros(64) if shift.grad is None else shift.grad for shift in shifts]
