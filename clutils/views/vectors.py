"""Views of vectors (N, D): numbers of other rows, random noise, or the column's mean in the place of some.

What they need to know of the columns (their values, mean and spread) they take from the batch: nothing is
stored, and a batch of a few hundred knows a column's spread to some percent.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from clutils.settings import SWITCH, OnlyFields, setting
from clutils.views.checks import checked, drawn


@dataclass
class _OfRows(OnlyFields):
    """Two views of a row: one is the row itself, or both are drawn."""

    kind = "vectors"

    def several_views(self, x: Tensor, generator: torch.Generator | None, number: int) -> list[Tensor]:
        """`number` views of x (N, D), each (N, D); the first is x where `both` is False."""
        views = [self(x, generator) for _ in range(number)]  # type: ignore[operator]
        return views if getattr(self, "both", True) else [x.float(), *views[1:]]


@dataclass
class Corruption(_OfRows):
    r"""SCARF: some numbers of a row are replaced by those of other rows, each drawn for itself.

    $$\tilde x_{ij} = x_{r(i,j)\,j} \text{ with probability } c, \text{ else } x_{ij}$$

    r(i, j) is drawn evenly from the rows of the batch, for each row and column again: a draw from column j's
    marginal distribution. A replaced number is a possible one, in any unit; that it goes with the others is
    what is destroyed. As in the paper one view alone is corrupted, the other is x.

    - rate: c. Default 0.6, the paper's. (There exactly ⌊cD⌋ columns of a row, here each with probability c.)
    - both: corrupt both views
    - groups: a number a column; columns of one group, a category's, are replaced together by the same row's.
      () = each column for itself. A run takes those of its data (`data.VectorSet.groups`)

    Bahri et al. 2022, "SCARF: self-supervised contrastive learning using random feature corruption" (arXiv
    2106.15147), algorithm 1: from memory and from a port, clabrugere/pytorch-scarf; the abstract alone could
    be read.
    """

    rate: float = setting(0, 1, default=0.6, about="probability of corrupting a feature")
    both: bool = setting(SWITCH, default=False, about="corrupt both views")
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.groups = tuple(self.groups)

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = checked(self, x).float()
        chosen, rows = drawn(x.shape, x, generator), drawn(x.shape, x, generator)
        if self.groups:
            if len(self.groups) != x.shape[1]:
                came = f"{len(self.groups)} columns"
                raise ValueError(f"Corruption: groups are of {came}, but what came in is {tuple(x.shape)}")
            first = [self.groups.index(group) for group in self.groups]
            chosen, rows = chosen[:, first], rows[:, first]
        other = x.gather(0, (rows * len(x)).long().clamp(max=len(x) - 1))
        return torch.where(chosen < self.rate, other, x)


@dataclass
class Noise(_OfRows):
    """Gaussian noise in units of each column's standard deviation in the batch.

    - strength: σ, in those units. Default 0.5; `PiNDA` with network "fixed" has the same in units of the data
    """

    strength: float = setting(0, default=0.5, about="standard deviation of the noise")

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = checked(self, x).float()
        spread = x.std(dim=0, correction=0) if len(x) else x.new_zeros(x.shape[1])
        return x + self.strength * spread * drawn(x.shape, x, generator, torch.randn)


@dataclass
class Masking(_OfRows):
    """Some numbers of a row are replaced by their column's mean in the batch.

    - rate: the probability of each. Default 0.3
    """

    rate: float = setting(0, 1, default=0.3, about="probability of masking a feature")

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """x (N, D) floating -> (N, D) float32. Raises ValueError on anything else."""
        x = checked(self, x).float()
        return torch.where(drawn(x.shape, x, generator) < self.rate, x.mean(dim=0), x)
