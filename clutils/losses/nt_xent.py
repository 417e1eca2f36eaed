"""InfoNCE with both views as anchors and all other views as negatives: NT-Xent."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, mean_over_positives, softplus
from clutils.settings import setting
from clutils.similarities import Pairs


class NTXent(Loss):
    r"""The normalised, temperature-scaled cross-entropy of SimCLR; InfoNCE in a batch.

    $$\ell = -\log \frac{e^{s^+/\tau}}{e^{s^+/\tau} + \sum_j e^{s^-_j/\tau}} = \mathrm{softplus}(c)$$

    c = log Σ_j exp(s⁻_j/τ) - s⁺/τ (`base.contrast`). Pull W/τ, push (W/τ) p̂_j, where W = sigmoid(c) and p̂ is
    the softmax of s⁻/τ over the negatives.

    - temperature: default 0.5, SimCLR's for CIFAR-10 (appendix B.9); AttentionNCE's table 5 has 0.5 for
      CIFAR-10, MACL's appendix B.3 has 0.1 for it, MoCo has 0.07 for ImageNet.

    Chen et al. 2020, "A simple framework for contrastive learning of visual representations", eq. 1;
    van den Oord et al. 2018, eq. 4.
    """

    paper, year, equation = "SimCLR (Chen et al.)", 2020, "eq. 1"
    temperature: float = setting(TEMPERATURE, default=0.5)

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        """Eq. 1, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        p = E_plus / (E_plus + E_minus.sum(dim=1, keepdim=True))
        return -torch.log(p).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        return mean_over_positives(softplus(contrast(pairs, self.temperature)), pairs)
