"""SwAV: each view predicts the code of the other, its shares in prototypes that Sinkhorn-Knopp balances."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clutils import losses
from clutils.methods.base import SIMILARITIES, Given, LossAndViews, Method
from clutils.settings import setting


class Prototyped(Method):
    """A method whose views answer with shares in prototypes, each by what the other's answer should be."""

    needs = SIMILARITIES
    prototypes: int = setting(2, symbol="K", whole=True, default=64, about="number of prototypes")

    def swapped(self, scores: Sequence[Tensor], answers: Sequence[Tensor]) -> Tensor:
        """Half the sum of both views' cross-entropies, each with the answers to the other view."""
        return (self.distilled(scores[0], answers[1]) + self.distilled(scores[1], answers[0])) / 2

    def distilled(self, scores: Tensor, answers: Tensor) -> Tensor:
        """Cross-entropy of a view's scores (B, K) and answers (B, K), the mean over the batch."""
        return self.loss.per_anchor((answers * scores).sum(dim=1, keepdim=True), scores).mean()

    def negatives(self, batch_size: int) -> int:
        """All prototypes."""
        return self.prototypes


class SwAV(Prototyped):
    r"""Swapping assignments between views.

    $$\ell = \tfrac12\,[\ell(z_1, q_2) + \ell(z_2, q_1)], \qquad
      \ell(z, q) = -\sum_k q_k \log \frac{e^{z\cdot c_k/\tau}}{\sum_{k'} e^{z\cdot c_{k'}/\tau}}$$

    The prototypes $c_k$ are unit vectors, learned with the encoder. A view's code q is constant: the batch's
    scores through Sinkhorn-Knopp, which leaves each image a sum of 1 and each prototype an equal share of
    the batch, so that not all images take one. Here ℓ is written as a loss of the family: since q sums to
    1, it is `Decoupled` with $z\cdot\sum_k q_k c_k$ for the positive and all prototypes for negatives.

    - prototypes: how many. Default 64; the paper has 3,000 for the 1,000 classes of ImageNet
    - sharpness, rounds: of Sinkhorn-Knopp; ε (live), default 0.05, small for nearly hard codes, and 3
    - loss: one of similarities

    ε and the rounds are the paper's. Its τ is 0.1; here 0.3, for at 0.1 the loss stayed at log K, all codes
    even (40 steps of 32 digits). One run of 200 steps of 32 scenes did not beat the untrained encoder (kNN 19
    against 22 %). The authors set the prototypes to unit length before each step and take the plain gradient;
    here they are normalised within the step, with a gradient through it, so that a free length grows and the
    step shrinks. Not here: multi-crop, the queue for codes of small batches, prototypes held fixed at first.

    Caron et al. 2020, "Unsupervised learning of visual features by contrasting cluster assignments"
    (arXiv 2006.09882), section 3.1, read in the authors' code (facebookresearch/swav, main_swav.py).
    """

    paper, year, equation = "SwAV (Caron et al.)", 2020, "section 3.1"
    usual_loss = losses.Decoupled(temperature=0.3)
    sharpness: float = setting(
        0.003, 1e3, "ε", dial=(0.01, 1, "log"), default=0.05, about="entropy weight of Sinkhorn-Knopp"
    )
    rounds: int = setting(1, 100, whole=True, default=3, about="iterations of Sinkhorn-Knopp")

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.vectors = nn.Parameter(normalize(torch.randn(self.prototypes, self.out), dim=1))

    def objective(self, given: Given) -> LossAndViews:
        z = normalize(self.head(self.features_of(torch.cat(given.views()))), dim=1)
        scores = (z @ normalize(self.vectors, dim=1).T).chunk(2)  # (B, prototypes) each
        codes = [sinkhorn(each.detach(), self.sharpness, self.rounds) for each in scores]
        z1, z2 = z.chunk(2)
        return self.swapped(scores, codes), z1, z2


def sinkhorn(scores: Tensor, sharpness: float, rounds: int) -> Tensor:
    """Codes (B, K): rows sum to 1; columns, after enough rounds, to B/K. Of cosines (B, K), in logarithms."""
    codes = scores / sharpness
    for _ in range(rounds):
        codes = codes - codes.logsumexp(dim=0) + math.log(len(codes) / codes.shape[1])
        codes = codes.log_softmax(dim=1)
    return codes.exp()
