"""HCL: the debiased loss with its negatives weighted by how hard they are."""

import math

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, counted, log_sum, mean_over_positives, softplus
from clutils.losses.debiased import Debiased, debiased
from clutils.settings import setting
from clutils.similarities import Pairs


class HardNegative(Loss):
    r"""Contrastive learning with hard negative samples (HCL), both views as anchors.

    $$\ell = -\log \frac{E^+}{E^+ + N_g}, \qquad
      N_g = \max\Bigl(\frac{\sum_j w_j E_j - N\tau^+ E^+}{1-\tau^+},\; N e^{-1/\tau}\Bigr), \qquad
      w_j = \frac{E_j^\beta}{\frac1N\sum_i E_i^\beta}$$

    The weights have mean one; β = 0 is `Debiased`, and with τ+ = 0 too it is NT-Xent. They are part of the
    function that is differentiated, as in the authors' code: with S = Σ w_j E_j and q^(b) the softmax of
    b s-/τ, the pull is S / ((1-τ+) τ Z) and

    $$\mathrm{push}_j = \frac{S}{(1-\tau^+)\,\tau Z}\,
      \bigl((1+\beta)\,q^{(1+\beta)}_j - \beta\, q^{(\beta)}_j\bigr)$$

    whose bracket sums to one and is negative for easy negatives: they are drawn in, to spare the weight of
    the hard ones. Where the clamp acts the pull is Ng/(τ Z) and no negative is pushed.

    - temperature, class_prior, beta: defaults 0.5, 0.1 and 1.0, the authors' for CIFAR-10; with CIFAR-100 and
      TinyImageNet SSCL's table 2 has a class prior of 0.05, and with MoCo v2 it has β = 0.2 and no debiasing.
      Far beyond the largest β the hardest negative is all there is.

    The authors' code calls the clamp optional; it is kept here. Robinson et al. 2021, "Contrastive learning
    with hard negative samples" (arXiv 2010.04592), with the estimator of `Debiased`.
    """

    paper, year, equation = "HCL (Robinson et al.)", 2021, "L with q_β"
    temperature: float = setting(TEMPERATURE, default=0.5)
    class_prior: float = setting(Debiased.ranges["class_prior"], default=0.1)
    beta: float = setting(
        0, 100, "β", dial=(0, 5, "even"), default=1.0, about="weight of hard negatives, 0 = none"
    )

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, temperature: float, class_prior: float, beta: float
    ) -> Tensor:
        """The estimator with weights, in InfoNCE, literally: (A, P), (A, K) -> (A,)."""
        N = negatives.shape[1]
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        w = E_minus**beta / (E_minus**beta).mean(dim=1, keepdim=True)
        estimate = ((w * E_minus).sum(dim=1, keepdim=True) - N * class_prior * E_plus) / (1 - class_prior)
        Ng = estimate.clamp(min=N * math.exp(-1 / temperature))
        return -torch.log(E_plus / (E_plus + Ng)).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        harder = log_sum(pairs, self.temperature / (1 + self.beta))
        weights = log_sum(pairs, self.temperature / self.beta) if self.beta else counted(pairs).log()
        # log Σ w E = log ΣE^(1+β) - log ΣE^β + log N
        c = harder - weights + counted(pairs).log() - pairs.positives / self.temperature
        values = softplus(debiased(c, pairs, self.temperature, self.class_prior))
        return mean_over_positives(values, pairs)
