"""The debiased contrastive loss: what false negatives add to the sum is estimated and subtracted."""

import math

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, counted, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs

NOTHING_LEFT = -1e-30  # log of the false negatives' share of the sum, at which nothing else is left of it


class Debiased(Loss):
    r"""Debiased contrastive learning, both views as anchors.

    $$\ell = -\log \frac{E^+}{E^+ + N_g}, \qquad N_g = \max\Bigl(\frac{\sum_j E_j - N\tau^+ E^+}{1-\tau^+},
      \; N e^{-1/\tau}\Bigr), \qquad E = e^{s/\tau}$$

    N negatives are drawn from all images, so a share τ+ of them is of the anchor's own class; the positive
    stands for what those add to the sum. The clamp is the smallest sum that N similarities could have;
    without it the estimate turns negative once the positive is near, and the loss NaN.

    With Z = E+ + Ng the pull is ΣE_j / ((1-τ+) τ Z) and push_j E_j / ((1-τ+) τ Z), more than NT-Xent's, and
    more than 1/τ where the estimate is small. Where the clamp acts the pull is Ng/(τ Z) and no negative is
    pushed.

    - temperature, class_prior: defaults 0.5 and 0.1, the authors' for CIFAR-10 and STL-10; SSCL's table 2 has
      a class prior of 0.05 for CIFAR-100 and TinyImageNet.

    Chuang et al. 2020, "Debiased contrastive learning" (arXiv 2007.00224), its estimator g with M = 1, as in
    the authors' code.
    """

    paper, year, equation = "Debiased (Chuang et al.)", 2020, "L_Debiased"
    temperature: float = setting(TEMPERATURE, default=0.5)
    class_prior: float = setting(
        0,
        1,
        "τ⁺",
        open_above=True,
        dial=(0, 0.9, "even"),
        default=0.1,
        about="share of false negatives that is assumed",
    )

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, class_prior: float) -> Tensor:
        """The estimator g in InfoNCE, literally: (A, P), (A, K) -> (A,)."""
        N = negatives.shape[1]
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        estimate = (E_minus.sum(dim=1, keepdim=True) - N * class_prior * E_plus) / (1 - class_prior)
        Ng = estimate.clamp(min=N * math.exp(-1 / temperature))
        return -torch.log(E_plus / (E_plus + Ng)).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        c = contrast(pairs, self.temperature)
        values = softplus(debiased(c, pairs, self.temperature, self.class_prior))
        return mean_over_positives(values, pairs)


def debiased(c: Tensor, pairs: Pairs, temperature: float, class_prior: float) -> Tensor:
    """log Ng/E+, (A, P), from c = log of the sum over the negatives/E+, (A, P): the contrast, debiased.

    estimate = (Σ E - N τ+ E+)/(1 - τ+), here divided by E+ and in logarithms, so that nothing overflows:
    with share = N τ+ E+/Σ E its logarithm is c + log(1 - share) - log(1 - τ+).
    """
    if class_prior == 0:
        return c  # nothing to subtract; the sum itself never falls below the clamp
    N = counted(pairs)
    share = torch.log(N * class_prior) - c  # log of N τ+ E+ / ΣE: below 0 while something is left
    left = share < NOTHING_LEFT
    # where nothing is left a harmless number stands in, or its infinite slope would reach the gradient
    estimate = c + torch.log(-torch.expm1(share.where(left, -1.0))) - math.log1p(-class_prior)
    smallest = torch.log(N) - (1 + pairs.positives) / temperature
    return torch.where(left & (estimate > smallest), estimate, smallest)
