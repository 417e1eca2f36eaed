"""ADNCE: InfoNCE with a Gaussian weight on each negative, by its similarity."""

import math

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, counted, masked, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs


class ADNCE(Loss):
    r"""Adjusted InfoNCE: negatives of middling hardness count most, both views as anchors.

    $$\ell = -\log \frac{E^+}{E^+ + \sum_j w_j E_j}, \qquad
      w_j = \frac{K\, e^{-(s^-_j - \mu)^2/2\sigma^2}}{\sum_i e^{-(s^-_i - \mu)^2/2\sigma^2}}$$

    with no gradient through w. Pull W/τ, push_j (W/τ) times the softmax of s-/τ + log w, where W is the
    sigmoid of the contrast so weighted. The easiest negatives weigh little, and so do those beyond μ, which
    may be false; InfoNCE's weights grow with the similarity without end, the worst case of a
    Kullback-Leibler ball, and the paper calls that too pessimistic. σ → ∞ is `NTXent`.

    - temperature, mean, deviation (τ, μ, σ): defaults 0.4, 0.7 and 0.5, the authors' command for CIFAR-10;
      theirs for CIFAR-100 is (0.3, 0.5, 1.0), for STL-10 (0.2, 0.8, 1.0).

    The README's pseudo-code puts exp(s/τ) into the Gaussian; the code that ran puts s there, as here.

    Wu et al. 2023, "Understanding contrastive learning via distributionally robust optimization" (NeurIPS;
    arXiv 2310.11048), as in the authors' code (junkangwu/ADNCE, image/model.py).
    """

    paper, year, equation = "ADNCE (Wu et al.)", 2023, "authors' code"
    temperature: float = setting(TEMPERATURE, default=0.4)
    mean: float = setting(
        -2, 2, "μ", dial=(-1, 1, "even"), default=0.7, about="similarity of the negatives that weigh most"
    )
    deviation: float = setting(
        1e-6,
        1e12,
        "σ",
        dial=(0.01, 10, "log"),
        also=(math.inf,),
        default=0.5,
        about="width of the weights around it",
    )

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, temperature: float, mean: float, deviation: float
    ) -> Tensor:
        """The weighted sum in InfoNCE, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        w = torch.exp(-((negatives - mean) ** 2) / (2 * deviation**2)) / (deviation * math.sqrt(2 * math.pi))
        w = (w / w.mean(dim=1, keepdim=True)).detach()
        return -torch.log(E_plus / (E_plus + (w * E_minus).sum(dim=1, keepdim=True))).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        density = -((pairs.negatives.detach() - self.mean) / self.deviation).square() / 2
        log_w = masked(density, pairs.negative_mask, -torch.inf).log_softmax(dim=1) + counted(pairs).log()
        logits = pairs.negatives + self.temperature * masked(log_w, pairs.negative_mask, 0.0)
        weighed = Pairs(pairs.positives, logits, pairs.positive_mask, pairs.negative_mask)
        return mean_over_positives(softplus(contrast(weighed, self.temperature)), pairs)
