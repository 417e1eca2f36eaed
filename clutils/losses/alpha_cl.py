"""α-CL: the importance of each pair is chosen directly, and no gradient flows through it."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, masked, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class AlphaCL(Loss):
    r"""Contrastive learning as a game: α weighs the pairs, the encoder answers; here α-CL-direct.

    $$\ell = \sum_j \mathrm{sg}[\alpha_j]\,(s^-_j - s^+), \qquad
      \alpha_j = e^{-(1 - s^-_j)^\alpha/\tau}$$

    This is the unnormalised form, "dual" in the authors' code. Their README runs the normalised one ("dual2",
    exponent 2, on CIFAR-100): each α_j divided by Σ_j α_j, so that every anchor's pull is 1. It is not here.

    1 - s is half the squared distance of two unit vectors. Pull Σα_j, push_j α_j: the paper shows that every
    loss of the family has this gradient for some α of its own (InfoNCE's is (1/τ) E_j/Z), so that α may as
    well be chosen and no loss be sought. At exponent 1 the shares are the softmax p̂, and an anchor's
    gradient is parallel to `Decoupled`'s; the normalised form is `Decoupled` times τ there. A larger exponent
    weighs all negatives nearer than 90° about alike and drops the others; τ → ∞ is the plain sum. α does not
    sum to one: where every negative is far nothing moves. The value is 0 where all similarities are equal,
    falls and rises again as negatives recede, and is no measure of progress.

    - temperature: default 0.5, the authors' code's. alpha, the exponent on 1 - s: default 1, that of "dual";
      2 is the paper's p = 4, a power of the distance, by the authors' README

    Tian 2022, "Understanding deep contrastive learning via coordinate-wise optimization" (arXiv
    2201.12680), as in the authors' code (facebookresearch/luckmatters, ssl/real-dataset: README,
    loss/nt_xent.py).
    """

    unbounded = "its value falls and rises again, and is no measure of progress"
    paper, year, equation = "α-CL (Tian)", 2022, "α-CL-direct"
    temperature: float = setting(TEMPERATURE, default=0.5)
    alpha: float = setting(
        0.01,
        100,
        "α",
        dial=(0.5, 4, "even"),
        default=1.0,
        about="exponent of a negative's distance in its weight",
    )

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, alpha: float) -> Tensor:
        """The weighted differences, literally: (A, P), (A, K) -> (A,)."""
        weights = torch.exp(-((1 - negatives) ** alpha) / temperature).detach()
        differences = negatives[:, None, :] - positives[:, :, None]  # (A, P, K)
        return (weights[:, None, :] * differences).sum(dim=2).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        distance = (1 - pairs.negatives.detach()).clamp(min=0)  # rounding may carry a similarity beyond 1
        weights = masked((-(distance**self.alpha) / self.temperature).exp(), pairs.negative_mask, 0.0)
        pushed = (weights * pairs.negatives).sum(dim=1)
        return pushed - weights.sum(dim=1) * mean_over_positives(pairs.positives, pairs)
