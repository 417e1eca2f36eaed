"""Shared parts of views of vectors, sentences and graphs: checks of settings, and drawing."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from clutils.data.kinds import kind_called
from clutils.settings import check


def checked(view: Any, samples: Tensor) -> Tensor:
    """The samples; ValueError, quoting it, for a setting out of its range, or samples of another kind."""
    who, own = type(view).__name__, kind_called(view.kind)
    check(who, view)
    floating, right = own.dtype.is_floating_point, isinstance(samples, Tensor) and samples.ndim == own.ndim
    if not right or not (samples.is_floating_point() if floating else samples.dtype == own.dtype):
        came = (
            (tuple(samples.shape), samples.dtype) if isinstance(samples, Tensor) else type(samples).__name__
        )
        needed = f"{own.name}, {str(own.dtype).removeprefix('torch.')} {own.shape}"
        raise ValueError(f"{who}: what came in is {came}, but must be {needed}")
    return samples


def drawn(
    shape: Sequence[int],
    like: Tensor,
    generator: torch.Generator | None,
    draw: Callable[..., Tensor] = torch.rand,
) -> Tensor:
    """Random numbers on `like`'s device, drawn where the generator lives: the same on every device."""
    there = "cpu" if generator is None else generator.device
    return draw(shape, generator=generator, device=there).to(like.device)
