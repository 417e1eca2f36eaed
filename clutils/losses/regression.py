"""Negative cosine similarity, the loss of BYOL and SimSiam: positives alone."""

import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss
from clutils.similarities import Batch


class Regression(Loss):
    r"""Mean squared distance of unit vectors: a prediction and its target.

    $$\ell = \frac1B\sum_b \bigl\|\bar z^1_b - \bar z^2_b\bigr\|^2 = \frac1B\sum_b (2 - 2 s_b)$$

    Pull 2/B on every pair, whatever its similarity; no negatives, so nothing here forbids the collapse to one
    point, where the loss is 0. What prevents it is the method's business: the predictor, the stop-gradient on
    the target, and the moving average stand in the method, which calls this once for each direction and adds
    (BYOL) or averages (SimSiam). The loss itself is symmetric and lets gradients flow to both arguments.
    SimSiam's negative cosine is ℓ/2 - 1: the same gradient, halved.

    Grill et al. 2020, "Bootstrap your own latent" (arXiv 2006.07733), eq. 2; Chen & He 2021,
    "Exploring simple siamese representation learning" (arXiv 2011.10566), eq. 1.
    """

    level = "batch"
    input_note = "the two views of each image alone: it has no negatives"
    comparison = "own view"
    accepts = frozenset()
    paper, year, equation = "BYOL (Grill et al.), SimSiam", 2020, "eq. 2"

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor) -> Tensor:
        """Eq. 2, literally: (B, D), (B, D) -> scalar."""
        return (F.normalize(z1, dim=1) - F.normalize(z2, dim=1)).square().sum(dim=1).mean()

    def pair_up(self, batch: Batch) -> Tensor:
        return batch.own_views

    def formula(self, similarities: Tensor) -> Tensor:
        """(B,) similarities of the two views -> (B,)."""
        return 2 - 2 * similarities
