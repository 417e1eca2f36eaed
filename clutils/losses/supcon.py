"""SupCon: all images of the anchor's class are its positives."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, masked, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs


class SupCon(Loss):
    r"""Supervised contrastive learning, the mean over the positives outside the logarithm (L_out).

    $$\ell = \frac1P \sum_p -\log \frac{e^{s^+_p/\tau}}{\sum_{p'} e^{s^+_{p'}/\tau} + \sum_j e^{s^-_j/\tau}}$$

    All other views stand in the denominator, the positives too. With q the softmax over all of them,
    pull_p = (1/P - q_p)/τ and push_j = q_j/τ: a positive that has more than its share is pushed away, so the
    optimum is P equal positives and a loss of log P, not 0. Without labels there is one positive, and it is
    NT-Xent. An anchor without negatives (a batch of one class) is legal: its positives are only made equal.

    The inside form (eq. 3, and some libraries' 'SupCon') has -log of the positives' mean share: there the
    positives share the pull by their own softmax, so a near one is pulled most and a far one hardly. By
    Jensen's inequality it never exceeds this one; the paper finds it worse.

    - temperature: default 0.1, that of the authors' command for CIFAR-10 and -100; their loss's own default
      is 0.07. Their code multiplies the loss by τ/0.07, so that at τ = 0.1 it and its gradient are 1.43 times
      these; not done here.

    Khosla et al. 2020, "Supervised contrastive learning" (arXiv 2004.11362), eq. 2.
    """

    paper, year, equation = "SupCon (Khosla et al.)", 2020, "eq. 2"
    temperature: float = setting(TEMPERATURE, default=0.1)
    accepts = frozenset({"queue", "labels"})
    needs_negatives = False

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        """Eq. 2, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        everyone = E_plus.sum(dim=1, keepdim=True) + E_minus.sum(dim=1, keepdim=True)
        return -torch.log(E_plus / everyone).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        if pairs.positives.shape[1] == 1 and pairs.negative_mask is None:
            return softplus(contrast(pairs, self.temperature))[:, 0]  # the same, without cancellation
        positives, either = pairs.positives / self.temperature, pairs.positive_mask
        everyone = masked(positives, either, -torch.inf)
        if pairs.positives is pairs.negatives and either is not None and pairs.negative_mask is not None:
            everyone = masked(positives, either | pairs.negative_mask, -torch.inf)  # one table of a batch
        else:
            negatives = masked(pairs.negatives / self.temperature, pairs.negative_mask, -torch.inf)
            everyone = torch.cat([everyone, negatives], dim=1)
        return everyone.logsumexp(dim=1) - mean_over_positives(positives, pairs)
