"""InfoNCE on 2 artanh(s): no temperature to choose, since it moves with each similarity."""

import torch
from torch import Tensor

from clutils.losses.base import Loss, contrast, mean_over_positives, softplus
from clutils.similarities import Pairs

CLAMP = 1 - 1e-4  # farthest from 0 that a similarity counts: 2 artanh of it is 9.9


class TemperatureFree(Loss):
    r"""InfoNCE whose logits are 2 artanh(s) in place of s/τ, both views as anchors.

    $$\ell = -\log \frac{o^+}{o^+ + \sum_j o^-_j}, \qquad
      o = e^{2 \operatorname{artanh} s} = \frac{1+s}{1-s}$$

    The slope of a logit is 2/(1 - s²), so its local temperature is (1 - s²)/2: 1/2 at s = 0, and cold near
    ±1. Pull 2W/(1 - s⁺²), push 2W p̂_j/(1 - s⁻_j²), with W and the shares p̂ of InfoNCE on these logits.

    s is clamped to ±(1 - 1e-4), where it counts as the end: the value is finite, and what lies beyond has
    gradient 0, so two views that coincide are at rest. It has no hyper-parameters, and so no default.

    Kim & Kim 2025, "Temperature-free loss function for contrastive learning" (arXiv 2501.17683). The clamp
    is ours.
    """

    paper, year, equation = "Temperature-free InfoNCE (Kim & Kim)", 2025, "its InfoNCE on 2 artanh(s)"

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor) -> Tensor:
        """The formula above, literally: (A, P), (A, K) -> (A,)."""
        odds_plus, odds_minus = (1 + positives) / (1 - positives), (1 + negatives) / (1 - negatives)
        p = odds_plus / (odds_plus + odds_minus.sum(dim=1, keepdim=True))
        return -torch.log(p).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        s, n = (2 * torch.atanh(x.clamp(-CLAMP, CLAMP)) for x in (pairs.positives, pairs.negatives))
        c = contrast(Pairs(s, n, pairs.positive_mask, pairs.negative_mask), 1.0)
        return mean_over_positives(softplus(c), pairs)
