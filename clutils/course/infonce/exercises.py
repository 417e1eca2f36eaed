"""Exercises of notebook 01."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong


def _nt_xent_row(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits.logsumexp(dim=1) - logits[:, 0]


def _without_the_positive(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return (negatives / temperature).logsumexp(dim=1) - positives[:, 0] / temperature


def _without_temperature(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return _nt_xent_row(positives, negatives, 1.0)


def _mean_of_negatives(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    up = (positives[:, 0] / temperature).exp()
    return -(up / (up + (negatives / temperature).exp().mean(dim=1))).log()


def _times_temperature(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return _nt_xent_row(positives, negatives, 1 / temperature)


def _no_logarithm(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return (-_nt_xent_row(positives, negatives, temperature)).exp()


def _sign(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return -_nt_xent_row(positives, negatives, temperature)


def _mean_over_anchors(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return _nt_xent_row(positives, negatives, temperature).mean()


def _rows() -> list[tuple[Tensor, Tensor, float]]:
    draw = torch.Generator().manual_seed(1)
    return [
        (*toys.three_points(), 0.2),
        (*toys.random_similarities(4, 1, 6, draw), 0.5),
        (*toys.random_similarities(3, 1, 30, draw), 0.1),
    ]


def _negatives_of_an_anchor(batch: int) -> int:
    return 2 * batch - 2


def _triplet_row(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    near, far = 2 - 2 * positives, 2 - 2 * negatives
    return (near - far + margin).clamp(min=0).mean(dim=1)


def _no_hinge(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return ((2 - 2 * positives) - (2 - 2 * negatives) + margin).mean(dim=1)


def _unsquared(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    near, far = (2 - 2 * positives).sqrt(), (2 - 2 * negatives).sqrt()
    return (near - far + margin).clamp(min=0).mean(dim=1)


def _hinge_on_the_mean(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return _no_hinge(positives, negatives, margin).clamp(min=0)


def _wrong_way_round(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return _triplet_row(-positives, -negatives, margin)


def _similarities_for_distances(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return (negatives - positives + margin).clamp(min=0).mean(dim=1)


def _summed(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return _triplet_row(positives, negatives, margin) * negatives.shape[1]


def _triplets() -> list[tuple[Tensor, Tensor, float]]:
    draw = torch.Generator().manual_seed(2)
    return [
        (*toys.three_points(), 1.2),
        (*toys.random_similarities(4, 1, 6, draw), 0.2),
        (*toys.random_similarities(3, 1, 20, draw), 1.0),
    ]


EXERCISES = [
    Exercise(
        name="nt_xent_row",
        question="NT-Xent of each anchor from its similarities: (A, 1) and (A, K) -> (A,).",
        answer=_nt_xent_row,
        hints=[
            "ℓ = -log(e^(s⁺/τ) / (e^(s⁺/τ) + Σ_j e^(s⁻_j/τ))). The fraction is a softmax over 1 + K logits.",
            "`torch.cat([positives, negatives], dim=1) / temperature` are the logits, the positive's first.",
            "-log softmax at place 0 is `logits.logsumexp(dim=1) - logits[:, 0]`.",
        ],
        wrong=[
            Wrong(
                "the decoupled loss",
                _without_the_positive,
                "the positive is missing from the denominator, so the anchor is never satisfied. The softmax "
                "is over all 1 + K candidates.",
            ),
            Wrong(
                "NT-Xent at τ = 1",
                _without_temperature,
                "the temperature acts on the similarities, inside the exponential; a factor outside cancels "
                "in the fraction.",
            ),
            Wrong(
                "a mean over the negatives",
                _mean_of_negatives,
                "the denominator sums them: each negative is one more candidate to pass for the positive.",
            ),
            Wrong("multiplied by τ", _times_temperature, "similarities are divided by the temperature."),
            Wrong("the probability p⁺", _no_logarithm, "the loss is -log p⁺."),
            Wrong("log p⁺", _sign, "a loss is to be made small, so it is -log p⁺."),
            Wrong(
                "the mean over the anchors",
                _mean_over_anchors,
                "one value for each anchor is asked for, (A,); the mean comes last.",
            ),
        ],
        cases=_rows,
    ),
    Exercise(
        name="negatives_of_an_anchor",
        question="How many negatives does an anchor have in a batch of B pictures with two views each?",
        answer=_negatives_of_an_anchor,
        hints=[
            "How many views are in the batch? Which of them are no negatives of this anchor?",
            "2B views, without the anchor itself and without its positive.",
        ],
        wrong=[
            Wrong("2B - 1", lambda batch: 2 * batch - 1, "that counts the positive among the negatives."),
            Wrong("2B", lambda batch: 2 * batch, "that counts the anchor itself and its positive."),
            Wrong(
                "B - 1",
                lambda batch: batch - 1,
                "that is the other view alone, as CLIP compares; in NT-Xent the anchor's own view of the "
                "other pictures counts as well.",
            ),
        ],
        cases=lambda: [(2,), (4,), (256,)],
    ),
    Exercise(
        name="triplet_row",
        question="The triplet loss of each anchor from its similarities: (A, 1) and (A, K) -> (A,).",
        answer=_triplet_row,
        hints=[
            "On the unit sphere the squared distance is d² = 2 - 2s.",
            "Each negative makes one triple: max(0, d₊² - d_j² + m). The hinge acts on each, then the mean.",
            "`.clamp(min=0)` is the hinge, `.mean(dim=1)` the mean over an anchor's triples.",
        ],
        wrong=[
            Wrong(
                "the loss without its hinge",
                _no_hinge,
                "triples in order by more than the margin count below zero and pay for those in disorder.",
            ),
            Wrong(
                "the distance, not its square",
                _unsquared,
                "FaceNet's loss compares squared distances, 2 - 2s; no root is taken.",
            ),
            Wrong(
                "a hinge on the mean",
                _hinge_on_the_mean,
                "the hinge belongs on each triple; after the mean the easy ones have paid for the hard ones.",
            ),
            Wrong(
                "positive and negative exchanged",
                _wrong_way_round,
                "the loss should grow when the negative is nearer than the positive.",
            ),
            Wrong(
                "similarities in place of squared distances",
                _similarities_for_distances,
                "d² = 2 - 2s, so a difference of squared distances is twice that of the similarities.",
            ),
            Wrong("a sum over the triples", _summed, "the mean over the K triples is asked for."),
        ],
        cases=_triplets,
    ),
]
