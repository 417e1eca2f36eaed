"""The decoupled contrastive loss: InfoNCE without the positive in its denominator."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class Decoupled(Loss):
    r"""Decoupled contrastive learning (DCL), both views as anchors.

    $$\ell = -\frac{s^+}{\tau} + \log \sum_j e^{s^-_j/\tau} = c$$

    Pull 1/τ, push p̂_j/τ: NT-Xent's gradient with W set to one. It can be negative, and has no lower bound
    at which learning stops.

    - temperature: default 0.1, the setting of MACL's comparison on CIFAR-10 (appendix B.3).

    Yeh et al. 2022, "Decoupled contrastive learning" (arXiv 2110.06848), L_DC without the weights of DCLW.
    """

    paper, year, equation = "DCL (Yeh et al.)", 2022, "L_DC"
    temperature: float = setting(TEMPERATURE, default=0.1)

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        """L_DC, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        return -torch.log(E_plus / E_minus.sum(dim=1, keepdim=True)).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        return mean_over_positives(contrast(pairs, self.temperature), pairs)
