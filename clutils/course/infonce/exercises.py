"""Exercises of notebook 01."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong


def _nt_xent(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    z = torch.cat([z1, z2])
    z = z / z.norm(dim=1, keepdim=True)
    logits = z @ z.T / temperature
    logits.fill_diagonal_(-torch.inf)
    positive = torch.arange(len(z)).roll(len(z1))
    return -logits.log_softmax(dim=1)[torch.arange(len(z)), positive].mean()


def _variant(
    z1: Tensor,
    z2: Tensor,
    temperature: float,
    normalise: bool = True,
    diagonal: float | None = -torch.inf,
    anchors: int = 2,
    shift: int = 0,
) -> Tensor:
    """NT-Xent, or one of its wrong forms: rows of so many views as anchors, the positive `shift` rows off."""
    z = torch.cat([z1, z2])
    z = F.normalize(z, dim=1) if normalise else z
    logits, rows = z @ z.T / temperature, anchors * len(z1)
    if diagonal is not None:
        logits.fill_diagonal_(diagonal)
    return F.cross_entropy(logits[:rows], torch.arange(len(z)).roll(len(z1) + shift)[:rows])


def _other_view_only(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    cross = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature
    own = torch.arange(len(z1))
    return (F.cross_entropy(cross, own) + F.cross_entropy(cross.T, own)) / 2


def _batches() -> list[tuple[Tensor, Tensor, float]]:
    """Views of different lengths, so that normalising matters."""
    dice = torch.Generator().manual_seed(1)
    found = []
    for batch, dimension, temperature in ((3, 2, 0.2), (5, 8, 0.5), (16, 4, 0.1)):
        z1 = torch.randn(batch, dimension, generator=dice, dtype=torch.float64)
        near = z1 + 0.5 * torch.randn(batch, dimension, generator=dice, dtype=torch.float64)
        found.append((z1, 3 * near, temperature))
    return found


def _negatives_of_an_anchor(batch: int, views: int) -> int:
    return views * (batch - 1)


def _mined_push(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    hardest = negatives == negatives.max(dim=1, keepdim=True).values
    active = 2 * negatives - 2 * positives + margin > 0
    return 2.0 * (hardest & active)


def _all_active(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return 2 / negatives.shape[1] * (2 * negatives - 2 * positives + margin > 0)


def _without_hinge(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return 2.0 * (negatives == negatives.max(dim=1, keepdim=True).values)


def _farthest(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return _mined_push(positives, -negatives, margin)


def _similarity_for_distance(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    hardest = negatives == negatives.max(dim=1, keepdim=True).values
    return 1.0 * (hardest & (negatives - positives + margin > 0))


def _triplets() -> list[tuple[Tensor, Tensor, float]]:
    """Rows in order and rows in disorder in each case."""
    dice = torch.Generator().manual_seed(2)
    return [
        (*toys.random_similarities(12, 1, 6, dice), 0.2),
        (*toys.random_similarities(12, 1, 3, dice), 1.0),
        (torch.tensor([[0.9], [0.2]], dtype=torch.float64), toys.three_points()[1].repeat(2, 1), 0.5),
    ]


EXERCISES = [
    Exercise(
        name="nt_xent",
        question="NT-Xent of two views z1, z2, (B, D) each and of any length: one number.",
        answer=_nt_xent,
        hints=[
            "Put both views into one table z, (2B, D), and divide each row by its length. `z @ z.T` has all "
            "similarities.",
            "An anchor isn't compared with itself: `fill_diagonal_(-torch.inf)` takes it out.",
            "The positive of row i is row i + B, and of row i + B it is row i: "
            "`torch.arange(2 * B).roll(B)`. That is the class for `F.cross_entropy`.",
        ],
        wrong=[
            Wrong(
                "without normalising",
                partial(_variant, normalise=False),
                "similarities are cosines; these rows have lengths.",
            ),
            Wrong(
                "an anchor compared with itself",
                partial(_variant, diagonal=None),
                "similarity 1 stands on the diagonal, harder than any negative. Mask it.",
            ),
            Wrong(
                "a mask of zeros",
                partial(_variant, diagonal=0.0),
                "a logit of 0 still adds e^0 = 1 to the sum; what shall not count is -inf.",
            ),
            Wrong(
                "the other view's negatives alone",
                _other_view_only,
                "that is CLIP's comparison. NT-Xent has the anchor's own view of other pictures, too.",
            ),
            Wrong(
                "one view as anchor",
                partial(_variant, anchors=1),
                "all 2B views are anchors once, those of z2 as well.",
            ),
            Wrong(
                "a positive from the wrong row",
                partial(_variant, shift=1),
                "row i's positive is the same picture's other view, B rows on (or back).",
            ),
            Wrong(
                "the decoupled loss",
                lambda *views: losses.Decoupled(views[2])(*views[:2]),
                "the positive is missing from the denominator. The sum runs over all but the anchor itself.",
            ),
            Wrong(
                "a sum over the anchors",
                lambda *views: 2 * len(views[0]) * _nt_xent(*views),
                "the mean over the 2B anchors is asked for.",
            ),
            Wrong(
                "multiplied by τ",
                lambda z1, z2, t: _nt_xent(z1, z2, 1 / t),
                "similarities are divided by the temperature.",
            ),
            Wrong(
                "NT-Xent at τ = 1",
                lambda z1, z2, t: _nt_xent(z1, z2, 1.0),
                "the temperature acts inside the exponential.",
            ),
            Wrong(
                "log p⁺", lambda *views: -_nt_xent(*views), "a loss is to be made small, so it is -log p⁺."
            ),
        ],
        cases=_batches,
    ),
    Exercise(
        name="negatives_of_an_anchor",
        question="How many negatives has an anchor in a batch of pictures with several views each?",
        answer=_negatives_of_an_anchor,
        hints=[
            "How many views are in the batch? Which of them are no negatives of this anchor?",
            "All views of its own picture are out: itself and its positives.",
        ],
        wrong=[
            Wrong(
                "right for two views alone",
                lambda batch, views: views * batch - 2,
                "with more views an anchor has more than one positive, and those are no negatives.",
            ),
            Wrong(
                "two views of every picture",
                lambda batch, views: 2 * batch - 2,
                "that leaves the further views of other pictures out.",
            ),
            Wrong(
                "its own positives among the negatives",
                lambda batch, views: views * batch - 1,
                "only the anchor itself is taken out; its positives must be as well.",
            ),
            Wrong("all views", lambda batch, views: views * batch, "its own picture's views are none."),
            Wrong(
                "a view of each other picture",
                lambda batch, views: batch - 1,
                "each of the other pictures is there in several views, and all of them count.",
            ),
        ],
        cases=lambda: [(2, 2), (4, 3), (256, 2), (64, 8)],
    ),
    Exercise(
        name="mined_push",
        question="∂ℓ/∂s⁻_j of the triplet loss on each anchor's hardest negative: (A, 1), (A, K) -> (A, K).",
        answer=_mined_push,
        hints=[
            "The loss of one anchor is max(0, 2 s⁻ - 2 s⁺ + m) with the largest s⁻. On which similarities "
            "does it depend?",
            "All negatives but the hardest get 0. The hardest gets the slope of the hinge: while it is open.",
            "There is no mean over K any more, so the slope is not 2/K.",
        ],
        wrong=[
            Wrong("the loss without mining", _all_active, "only the hardest triple counts, and it alone."),
            Wrong(
                "2/K on the hardest",
                lambda s, n, m: _mined_push(s, n, m) / n.shape[1],
                "one triple is left, so nothing is averaged over K.",
            ),
            Wrong(
                "the loss without its hinge",
                _without_hinge,
                "where the hardest triple is in order by the margin, the force is exactly 0.",
            ),
            Wrong("the farthest negative", _farthest, "the hardest negative is the most similar one."),
            Wrong(
                "similarities in place of squared distances",
                _similarity_for_distance,
                "d² = 2 - 2s, so the hinge holds twice the difference of the similarities.",
            ),
            Wrong(
                "the gradient of the mean over the anchors",
                lambda s, n, m: _mined_push(s, n, m) / len(n),
                "for each anchor, before any mean over anchors.",
            ),
            Wrong(
                "the other sign",
                lambda s, n, m: -_mined_push(s, n, m),
                "a push is ∂ℓ/∂s⁻, positive where the loss wants the negative farther.",
            ),
        ],
        cases=_triplets,
    ),
]
