"""The contrastive pair loss of siamese nets: every pair on its own."""

import torch
from torch import Tensor

from clutils.losses.base import Loss, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs

NEAREST = 1e-8  # squared distance below which two points count as one, where the hinge has no direction


class PairMargin(Loss):
    r"""The contrastive pair loss: like pairs are drawn together, unlike ones pushed out to a margin.

    $$\ell = \frac1P\sum_p d_p^2 + \frac1K\sum_j \max(0,\; m - d_j)^2, \qquad d = \sqrt{2 - 2s}$$

    d is the distance on the unit sphere (0 to 2). Each pair counts alone: push_j depends on d_j only, not
    on how the anchor's other negatives lie. Positives and negatives are averaged apart, so that both count
    the same whatever their numbers.

    - margin: at most 2, since no two points of the sphere lie farther apart. Default 1.0 (60 degrees), the
      usual choice for unit vectors; the papers' distances are not normalised, so they offer none.

    Chopra, Hadsell, LeCun 2005; in this form Hadsell, Chopra, LeCun 2006, eq. 4 (without its factors 1/2).
    """

    paper, year, equation = "Contrastive pairs (Hadsell et al.)", 2006, "eq. 4"
    margin: float = setting(
        0, 2, "m", dial=(0, 2, "even"), default=1.0, about="distance beyond which negatives are not pushed"
    )
    accepts = frozenset({"queue", "labels"})

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
        """Eq. 4 without its halves, literally: (A, P), (A, K) -> (A,)."""
        d_plus, d_minus = torch.sqrt(2 - 2 * positives), torch.sqrt(2 - 2 * negatives)
        return (d_plus**2).mean(dim=1) + ((margin - d_minus).clamp(min=0) ** 2).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        near = mean_over_positives(2 - 2 * pairs.positives, pairs)
        distances = (2 - 2 * pairs.negatives).clamp(min=NEAREST).sqrt()
        hinge = (self.margin - distances).clamp(min=0) ** 2
        return near + mean_over_positives(hinge, Pairs(hinge, hinge, pairs.negative_mask))
