"""FlatNCE: a loss whose value never moves and whose gradient is InfoNCE's with its gate open (W = 1)."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class FlatNCE(Loss):
    r"""FlatNCE, both views as anchors.

    $$\ell = \exp(c - \mathrm{sg}[c]), \qquad c = \log \sum_j e^{(s^-_j - s^+)/\tau}$$

    sg is the stop-gradient, so the value is always 1 and only the gradient ∇c speaks: pull 1/τ, push p̂_j/τ,
    the decoupled loss's to the last digit. Watch NTXent's value beside it; the authors' code (FlatCLR)
    reports that one.

    - temperature: default 0.1, the setting of MACL's comparison on CIFAR-10 (appendix B.3).

    Chen et al. 2021, "Simpler, faster, stronger: breaking the log-K curse on contrastive learners with
    FlatNCE" (arXiv 2107.01152), its objective L_FlatNCE.
    """

    paper, year, equation = "FlatNCE (Chen et al.)", 2021, "L_FlatNCE"
    temperature: float = setting(TEMPERATURE, default=0.1)

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        """L_FlatNCE, literally: (A, P), (A, K) -> (A,)."""
        E_plus, E_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
        ratio = E_minus.sum(dim=1, keepdim=True) / E_plus
        return (ratio / ratio.detach()).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        c = contrast(pairs, self.temperature)
        return mean_over_positives(torch.exp(c - c.detach()), pairs)
