"""The triplet loss: the positive must be nearer than the negative, by a margin."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss, counted, masked, mean_over_positives
from clutils.settings import SWITCH, setting
from clutils.similarities import Pairs

NEVER = -8.0  # in place of a negative that does not count: below every threshold


class Triplet(Loss):
    r"""Triplet loss with its hinge, on squared distances of unit vectors.

    $$\ell = \frac{1}{PK}\sum_{p,j} \max\bigl(0,\; d_p^2 - d_j^2 + m\bigr), \qquad d^2 = 2 - 2s$$

    Without the hinge (some decks drop it) the loss falls for ever by pushing negatives that are far already.
    A triplet in order by the margin has no gradient; among the others all have the same.
    `batch_hard=True` keeps, for each anchor, only its farthest positive and its nearest negative; here on
    squared distances as well, where Hermans et al. take, and argue for, the plain Euclidean ones.
    `semi_hard=True` keeps, for each positive, the nearest of the negatives that lie farther than it (with the
    hardest FaceNet could collapse early); a positive without such counts 0, where TensorFlow's semi-hard loss
    takes the farthest negative in its place.

    - margin: in squared distance; default 0.2, FaceNet's

    Schroff et al. 2015, "FaceNet", eq. 1, 2 and (from memory) 4; batch-hard: Hermans et al. 2017, eq. 5.
    """

    paper, year, equation = "FaceNet (Schroff et al.)", 2015, "eq. 2"
    margin: float = setting(
        0, 4, "m", dial=(0, 2, "even"), default=0.2, about="how much farther a negative has to be"
    )
    batch_hard: bool = setting(SWITCH, default=False, about="hardest positive and negative alone")
    semi_hard: bool = setting(SWITCH, default=False, about="nearest negative beyond the positive alone")
    accepts = frozenset({"queue", "labels"})

    def check_hyperparameters(self) -> None:
        super().check_hyperparameters()
        if self.batch_hard and self.semi_hard:
            raise ValueError("Triplet: batch_hard and semi_hard are both True: each chooses the negatives")

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, margin: float, batch_hard: bool, semi_hard: bool = False
    ) -> Tensor:
        """Eq. 2, literally: (A, P), (A, K) -> (A,), by a table of all triplets."""
        d_plus, d_minus = 2 - 2 * positives, 2 - 2 * negatives  # squared distances
        hinges = (d_plus[:, :, None] - d_minus[:, None, :] + margin).clamp(min=0)  # (A, P, K)
        if semi_hard:  # those of negatives farther than the positive, the largest of them
            return hinges.masked_fill(d_minus[:, None, :] <= d_plus[:, :, None], 0).amax(dim=2).mean(dim=1)
        return hinges.amax(dim=(1, 2)) if batch_hard else hinges.mean(dim=(1, 2))

    def formula(self, pairs: Pairs) -> Tensor:
        positives, negatives = pairs.positives, pairs.negatives
        if self.batch_hard:
            hardest_positive = masked(positives, pairs.positive_mask, torch.inf).amin(dim=1)
            hardest_negative = masked(negatives, pairs.negative_mask, -torch.inf).amax(dim=1)
            return (self.margin + 2 * hardest_negative - 2 * hardest_positive).clamp(min=0)
        if positives.shape[1] == 1 and not self.semi_hard:
            halves = torch.relu(negatives + (self.margin / 2 - positives))
            return 2 * mean_over_positives(halves, Pairs(halves, halves, pairs.negative_mask))
        # d_p² - d_j² = 2 s-_j - 2 s+_p: a positive is active with the negatives above its own threshold, so
        # with these sorted, their number and sum tell all its hinges: no (A, P, K) table is ever held
        ordered = masked(negatives, pairs.negative_mask, NEVER).sort(dim=1, descending=True).values
        if self.semi_hard:  # behind the last negative stands one that no margin reaches
            nearer = torch.searchsorted(-ordered.detach(), (-positives.detach()).contiguous(), right=True)
            nearest = F.pad(ordered, (0, 1), value=NEVER).gather(1, nearer)
            return mean_over_positives((self.margin + 2 * nearest - 2 * positives).clamp(min=0), pairs)
        sums = torch.cat([torch.zeros_like(ordered[:, :1]), ordered.cumsum(dim=1)], dim=1)
        threshold = (positives - self.margin / 2).detach()
        active = torch.searchsorted(-ordered.detach(), -threshold.contiguous())  # (A, P)
        hinges = active * (self.margin - 2 * positives) + 2 * sums.gather(1, active)
        return mean_over_positives(hinges / counted(pairs), pairs)
