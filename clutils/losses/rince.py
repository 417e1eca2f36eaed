"""RINCE: InfoNCE made robust against positives that are none."""

import math

import torch
from torch import Tensor

from clutils.losses.base import Loss, contrast, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs

VANISHING = 1e-12  # a q below which the limit is as exact as the formula


class RINCE(Loss):
    r"""Robust InfoNCE, both views as anchors: a false positive, whose loss stays high, pulls less.

    $$\ell = -\frac{(E^+)^q}{q} + \frac{\bigl(\lambda\,(E^+ + \sum_j E_j)\bigr)^q}{q}, \qquad E = e^{s/\tau}$$

    With Z = E+ + ΣE_j and p = E/Z the pull is ((E+)^q - (λZ)^q p+)/τ and push_j is (λZ)^q p_j/τ: the pull
    has the factor (E+)^q, which a positive that lies far from its anchor makes small; InfoNCE pulls such a
    pair hardest of all. q → 0 is `NTXent` plus log λ, of the same gradient (so q = 0 is computed);
    at q = 1 the loss is linear in E, symmetric in the paper's sense of noisy labels. It can be negative.

    - temperature, q, weight (τ, q, λ): defaults 0.5, 0.5 and 0.001, the constructor's q and λ in the authors'
      code. On CIFAR-10 their command runs 0.5, 0.1 and 0.01 (in an earlier version 0.5, 0.5 and 0.001). τ
      below 0.02 is refused: near q/τ = 88 (E+)^q leaves float32.

    Chuang et al. 2022, "Robust contrastive learning against noisy views" (arXiv 2201.04309), as in the
    authors' code (chingyaoc/RINCE, README and simclr_module.py).
    """

    paper, year, equation = "RINCE (Chuang et al.)", 2022, "L_RINCE"
    temperature: float = setting(
        0.02, 1e6, "τ", dial=(0.02, 5, "log"), default=0.5, about="similarities are divided by it"
    )
    q: float = setting(0, 1, "q", dial=(0, 1, "even"), default=0.5, about="robustness to false positives")
    weight: float = setting(
        1e-6, 1, "λ", dial=(0.001, 1, "log"), default=0.001, about="weight of the sum over all pairs"
    )

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, temperature: float, q: float, weight: float
    ) -> Tensor:
        """L_RINCE, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        everyone = weight * (E_plus + E_minus.sum(dim=1, keepdim=True))
        return (-(E_plus**q) / q + everyone**q / q).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        match = pairs.positives / self.temperature
        above = softplus(contrast(pairs, self.temperature)) + math.log(self.weight)  # log λZ - log E+
        if self.q < VANISHING:
            return mean_over_positives(above, pairs)
        # e^qb - e^qa = -e^qb expm1(-q (b - a)): nothing cancels as q → 0, and neither factor overflows
        values = -torch.exp(self.q * (match + above)) * torch.expm1(-self.q * above) / self.q
        return mean_over_positives(values, pairs)
