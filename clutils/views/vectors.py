"""Views of vectors (N, D): numbers of other rows, random noise, or the column's mean in the place of some.

What they need to know of the columns (their values, mean and spread) they take from the batch: nothing is
stored, and a batch of a few hundred knows a column's spread to some percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor


@dataclass
class _OfRows:
    """Of the two views of a row, one is the row itself, or both are drawn."""

    def several_views(self, x: Tensor, generator: torch.Generator | None, number: int) -> list[Tensor]:
        """`number` views of x (N, D), each (N, D); the first is x where `both` is False."""
        drawn = [self(x, generator) for _ in range(number)]  # type: ignore[operator]
        return drawn if getattr(self, "both", True) else [x.float(), *drawn[1:]]

    def _checked(self, x: Tensor) -> Tensor:
        for setting in fields(self):
            value, most = getattr(self, setting.name), 1 if setting.name == "rate" else math.inf
            if not 0 <= value <= most or value == math.inf:
                what = "a probability, 0 to 1" if most == 1 else "a number from 0 on"
                raise ValueError(f"{type(self).__name__}: {setting.name} is {value!r}, but must be {what}")
        if not isinstance(x, Tensor) or x.ndim != 2 or not x.is_floating_point():
            shape = (tuple(x.shape), x.dtype) if isinstance(x, Tensor) else type(x).__name__
            raise ValueError(f"{type(self).__name__}: x is {shape}, but must be vectors, floating (N, D)")
        return x.float()


@dataclass
class Corruption(_OfRows):
    r"""SCARF: some numbers of a row are replaced by those of other rows, each drawn for itself.

    $$\tilde x_{ij} = x_{r(i,j)\,j} \text{ with probability } c, \text{ else } x_{ij}$$

    r(i, j) is drawn evenly from the rows of the batch, for each row and column anew: a draw from column j's
    marginal distribution. A replaced number is a possible one, in any unit; that it goes with the others is
    what is destroyed. As in the paper one view alone is corrupted, the other is x.

    - rate: c. Default 0.6, the paper's. (There exactly ⌊cD⌋ columns of a row, here each with probability c.)
    - both: corrupt both views

    Bahri et al. 2022, "SCARF: self-supervised contrastive learning using random feature corruption" (arXiv
    2106.15147), algorithm 1: from memory and from a port, clabrugere/pytorch-scarf; the abstract alone could
    be read.
    """

    rate: float = 0.6
    both: bool = False

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = self._checked(x)
        chosen, rows = _uniform(x, generator), _uniform(x, generator)
        other = x.gather(0, (rows * len(x)).long().clamp(max=len(x) - 1))
        return torch.where(chosen < self.rate, other, x)


@dataclass
class Noise(_OfRows):
    """Gaussian noise in units of each column's standard deviation in the batch.

    - strength: σ, in those units. Default 0.5; `PiNDA` with network "fixed" has the same in units of the data
    """

    strength: float = 0.5

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = self._checked(x)
        spread = x.std(dim=0, correction=0) if len(x) else x.new_zeros(x.shape[1])
        return x + self.strength * spread * _drawn(torch.randn, x, generator)


@dataclass
class Masking(_OfRows):
    """Some numbers of a row are replaced by their column's mean in the batch.

    - rate: the probability of each. Default 0.3
    """

    rate: float = 0.3

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = self._checked(x)
        return torch.where(_uniform(x, generator) < self.rate, x.mean(dim=0), x)


def _uniform(x: Tensor, generator: torch.Generator | None) -> Tensor:
    return _drawn(torch.rand, x, generator)


def _drawn(draw: Callable[..., Tensor], x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Numbers shaped like x, drawn where the generator lives: the same on every device."""
    there = "cpu" if generator is None else generator.device
    return draw(x.shape, generator=generator, device=there).to(x.device)
