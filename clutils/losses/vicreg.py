"""VICReg: variance, invariance and covariance, each in a term of its own; no negatives."""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss
from clutils.settings import SWITCH, setting
from clutils.similarities import Batch

ADDED = 1e-4  # to a variance before its root is taken


class VICReg(Loss):
    r"""Variance-invariance-covariance regularisation, on vectors that are not normalised.

    $$\ell = \lambda \frac1B\sum_b \|z^1_b - z^2_b\|^2 + \mu\,[v(z^1) + v(z^2)] + \nu\,[c(z^1) + c(z^2)]$$
    $$v(z) = \frac1D\sum_f \max\Bigl(0,\, 1 - \sqrt{C_{ff} + \varepsilon}\Bigr), \qquad
      c(z) = \frac1D\sum_{f \ne g} C_{fg}^2$$

    with C the (unbiased) covariance of one view's features over the batch, ε = 1e-4. It has no anchors and no
    negatives (level "batch"). The first term pulls two views together by 2λ(z1 - z2)/B; the second pushes
    each feature's spread to at least 1, and is silent beyond; the third drives C_fg to 0 by 2νC_fg/D.
    It sees two moments: four points (±1, ±1) for all images, or a ring, satisfy both v and c.

    That is what the paper prints (`printed=True`). Its code, and lightly, take the *mean* over the B·D
    entries for the first term and half of v(z1) + v(z2); so does this loss by default. The two differ at the
    same numbers: (λ, μ, ν) by default are (λ/D, μ/2, ν) as printed. 25, 25 and 1 as printed pull the views
    together D times as strongly, and a head of 128 outputs collapses within some sixty steps. solo-learn has
    the mean and the whole of v(z1) + v(z2): (25, 50, 1) here.

    - invariance, variance, covariance (λ, μ, ν): defaults 25, 25 and 1, the authors'
    - printed: the sums of the paper's equations instead of the means of its code

    Bardes et al. 2022, "VICReg" (arXiv 2105.04906), eq. 1 to 6 as notes on it give them (the sum over D in
    the first term from memory); the code's means were read in copies of it.
    """

    level = "batch"
    input_note = "variances and covariances of features over the whole batch: it has no anchors"
    comparison = "whole batch"
    normalised = False
    accepts = frozenset()
    paper, year, equation = "VICReg (Bardes et al.)", 2022, "eq. 6"
    invariance: float = setting(
        0, 1e6, "λ", dial=(0, 50, "even"), default=25.0, about="weight of the distance between views"
    )
    variance: float = setting(
        0, 1e6, "μ", dial=(0, 50, "even"), default=25.0, about="weight of the variance's hinge"
    )
    covariance: float = setting(
        0, 1e6, "ν", dial=(0, 10, "even"), default=1.0, about="weight of the covariances"
    )
    printed: bool = setting(SWITCH, default=False, about="the paper's sums, not its code's means")
    before: ClassVar[Mapping[str, Any]] = {"printed": True}

    @staticmethod
    def as_written(
        z1: Tensor, z2: Tensor, invariance: float, variance: float, covariance: float, printed: bool
    ) -> Tensor:
        """Eq. 6, literally, or with the code's means: (B, D), (B, D) -> scalar."""
        if not printed:
            invariance, variance = invariance / z1.shape[1], variance / 2
        value = invariance * ((z1 - z2) ** 2).sum(dim=1).mean()
        for z in (z1, z2):
            C = torch.cov(z.T).view(z.shape[1], z.shape[1])
            value = value + variance * (1 - (C.diagonal() + ADDED).sqrt()).clamp(min=0).mean()
            value = value + covariance * ((C**2).sum() - (C.diagonal() ** 2).sum()) / len(C)
        return value

    def pair_up(self, batch: Batch) -> tuple[Tensor, Tensor]:
        return batch.first, batch.second

    def formula(self, views: tuple[Tensor, Tensor]) -> Tensor:
        """Two views (B, D) -> the loss, a scalar."""
        z1, z2 = views
        value = self.invariance * F.mse_loss(z1, z2) * (z1.shape[1] if self.printed else 1)
        variance = self.variance if self.printed else self.variance / 2
        for z in views:
            centred = z - z.mean(dim=0)
            v, c = moments(centred.T @ centred / (len(z) - 1))
            value = value + variance * v + self.covariance * c
        return value


def moments(C: Tensor) -> tuple[Tensor, Tensor]:
    """v and c of a covariance matrix (D, D)."""
    same = torch.eye(len(C), dtype=torch.bool, device=C.device)
    lacking = (1 - (C.diagonal() + ADDED).sqrt()).clamp(min=0)
    return lacking.mean(), C.masked_fill(same, 0.0).square().sum() / len(C)
