"""Barlow Twins: decorrelated features, by the cross-correlation matrix of two views."""

from collections.abc import Sequence

import torch
from torch import Tensor

from clutils import similarities
from clutils.losses.base import Loss
from clutils.settings import setting
from clutils.similarities import Batch


class BarlowTwins(Loss):
    r"""The correlations of one view's features with the other's should be the identity matrix.

    $$\ell = \sum_f (1 - C_{ff})^2 + \lambda \sum_f \sum_{g \ne f} C_{fg}^2, \qquad
      C_{fg} = \frac{\sum_b z^1_{bf} z^2_{bg}}{\sqrt{\sum_b (z^1_{bf})^2}\sqrt{\sum_b (z^2_{bg})^2}}$$

    with each feature centred over the batch. It has no anchors and no negatives (level "batch"): C_ff is
    pulled by 2 (1 - C_ff), C_fg driven to 0 by 2 λ C_fg. The loss is a sum over D² entries, so it grows with
    the dimension; chance means nothing.

    A correlation is the same whatever the standard deviation's denominator, B or B - 1, as long as C's own
    goes with it. The authors' code divides by the biased one (BatchNorm, with 1e-5 added to the variance);
    the paper's pseudocode takes the unbiased one but divides C by B, so its C_ff is at most (B - 1)/B. Here:
    the biased one, nothing added, which is eq. 2. A feature that is constant over the batch has no
    correlation: ValueError (with check_inputs=False it counts as correlated with nothing).

    - off_diagonal: default 0.0051, that of the authors' command for ImageNet at D = 8192. Their first release
      also multiplied the whole loss, by 0.024 in that command (`--scale-loss`), later ones did not; not done
      here.

    Zbontar et al. 2021, "Barlow Twins" (arXiv 2103.03230), eq. 1 and 2.
    """

    level = "batch"
    input_note = "correlations of features over the whole batch: it has no anchors"
    comparison = "features"
    accepts = frozenset()
    paper, year, equation = "Barlow Twins (Zbontar et al.)", 2021, "eq. 1"
    off_diagonal: float = setting(
        0,
        1e6,
        "λ",
        dial=(0.0001, 1, "log"),
        default=0.0051,
        about="weight of the correlations between features",
    )

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor, off_diagonal: float) -> Tensor:
        """Eq. 1 and 2, literally: (B, D), (B, D) -> scalar."""
        z1, z2 = ((z - z.mean(dim=0)) / z.std(dim=0, correction=0) for z in (z1, z2))
        C = z1.T @ z2 / len(z1)
        squares = (C - torch.eye(len(C)).to(C)) ** 2
        on_diagonal = squares.diagonal().sum()
        return on_diagonal + off_diagonal * (squares.sum() - on_diagonal)

    def prepare(self, *views: Tensor, names: Sequence[str] = ("z1", "z2")) -> Sequence[Tensor]:
        """Features of each view centred and of unit length over the batch."""
        views = tuple(map(similarities.widen, views))
        if self.check_inputs:
            similarities.check_rows(views, names, self.name)
        named = zip(views, names, strict=True)
        return [similarities.standardise(z, name, self.name, self.check_inputs) for z, name in named]

    def pair_up(self, batch: Batch) -> Tensor:
        return batch.first.T @ batch.second  # (D, D)

    def formula(self, correlations: Tensor) -> Tensor:
        """(D, D) correlations -> the loss, a scalar."""
        same = torch.eye(len(correlations), dtype=torch.bool, device=correlations.device)
        on_diagonal = (1 - correlations.diagonal()) ** 2
        return on_diagonal.sum() + self.off_diagonal * (correlations.masked_fill(same, 0.0) ** 2).sum()
