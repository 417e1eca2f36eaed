"""Exercises of notebook 13: how far positives lead, which line of a page is first, what ails three runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong

# ---- 1: the lead ---------------------------------------------------------------------------------


def _lead(positives: Tensor, negatives: Tensor) -> Tensor:
    return (positives.mean() - negatives.mean()) / (1 - negatives.mean())


def _similarities() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(11)
    return [
        (
            0.5 + 0.4 * torch.rand(n, 1, generator=draw, dtype=torch.float64),
            0.6 * torch.rand(n, k, generator=draw, dtype=torch.float64),
        )
        for n, k in ((6, 10), (20, 38))
    ]


def _by_anchor(positives: Tensor, negatives: Tensor) -> Tensor:
    own = negatives.mean(dim=1, keepdim=True)
    return ((positives - own) / (1 - own)).mean()


LEAD = Exercise(
    name="lead",
    question=(
        "How far the positives lead: 1 where views coincide, 0 where they are like any other pair. The means "
        "over all positives and over all negatives are taken first."
    ),
    answer=_lead,
    hints=[
        "How far is the mean positive above the mean negative?",
        "And how far could it be above at most? A similarity ends at 1.",
        "(mean s+ - mean s-) / (1 - mean s-).",
    ],
    wrong=[
        Wrong(
            "the mean of each anchor's own lead",
            _by_anchor,
            "a fair measure too, and another one: a mean of ratios. Asked is the ratio of the means.",
        ),
        Wrong(
            "the plain difference",
            lambda p, n: p.mean() - n.mean(),
            "after a ReLU all similarities are high, so that little room is left above the negatives: "
            "divide by that room.",
        ),
        Wrong(
            "the ratio",
            lambda p, n: p.mean() / n.mean(),
            "a ratio of similarities explodes where the negatives are near 0.",
        ),
        Wrong(
            "against the hardest",
            lambda p, n: (p.mean() - n.max()) / (1 - n.max()),
            "that compares with the single hardest pair; the lead is over the mean negative.",
        ),
        Wrong(
            "against each anchor's hardest",
            lambda p, n: ((p - n.amax(1, True)) / (1 - n.amax(1, True))).mean(),
            "the lead is over the mean negative, not over the hardest of each anchor.",
        ),
        Wrong(
            "divided by the positives' room",
            lambda p, n: (p.mean() - n.mean()) / (1 - p.mean()),
            "the room is what lies above the negatives: 1 - mean s-.",
        ),
    ],
    cases=_similarities,
)


# ---- 2: which line first -------------------------------------------------------------------------

REPORTS = """\
                                     A          B          C        usual
what it is fed, nats away           0.01       7.1        0.02     near 0
spread                              0.74       0.76       0.71     above 0.3
effective rank, of 128              38         36         1.3      above 8
share of negatives with the push    99 %       46 %       44 %     5 to 90 %
kNN (raw pixels 28 %, chance 10 %)  31 %       55 %       40 %"""
ORDER = ["B", "C", "A"]
OTHER_ORDERS = {
    "ACB": ("the lowest accuracy first", "accuracy says that something is wrong, and seldom what."),
    "BAC": (
        "the temperature before the collapse",
        "that share is read off the similarities: where all lie on a line, it means little.",
    ),
    "CBA": (
        "the collapse before what it is fed",
        "features of pictures that are fed wrongly may look collapsed. B's page is about other pictures.",
    ),
    "CAB": (
        "what it is fed at the end",
        "an encoder that meets numbers it does not know: every line of B's page is read from its features.",
    ),
    "ABC": (
        "the temperature first",
        "that line tells how the loss shares its push, and no other line rests on it.",
    ),
}

WHERE_TO_LOOK_FIRST = Exercise(
    name="where_to_look_first",
    question='An order of the three reports, as in ["A", "B", "C"].',
    answer=ORDER,
    hints=[
        "Which number is off on each page? And which lines of a page are computed from features?",
        "What it is fed comes before the features, the features before what is read off their similarities.",
    ],
    wrong=[Wrong(name, list(order), why) for order, (name, why) in OTHER_ORDERS.items()],
)


# ---- 3: three pages ------------------------------------------------------------------------------

WORDS = ("collapse", "temperature", "colour", "labels", "normalisation", "too few steps")
AILMENTS = ["colour", "temperature", "collapse"]  # of `runs.ill_runs`, in their order
NOT_FED = "what it is fed is good: the pictures arrive as they did in training."
NOT_LABELS = "raw pixels and fresh weights find the classes above chance, by the same labels."
REASONS: dict[str, dict[str, str]] = {
    "A": {
        "collapse": "its dimensions are in use, and after the head pictures are spread evenly.",
        "temperature": "its push is shared as it should be at a τ that suits.",
        "labels": NOT_LABELS,
        "normalisation": NOT_FED,
        "too few steps": "then no change would stand out. Which one moves a picture far here?",
    },
    "B": {
        "collapse": "its dimensions are in use, and after the head pictures are spread.",
        "colour": "it bears jitter well. Which line is broken that has nothing to do with labels?",
        "labels": NOT_LABELS,
        "normalisation": NOT_FED,
        "too few steps": "training made it worse than fresh weights, and one line says what trained it.",
    },
    "C": {
        "temperature": "its file has no τ: the loss had none. What does one point after the head tell?",
        "colour": "grey moves a picture far, but look at the dimensions and at the space of the loss.",
        "labels": NOT_LABELS,
        "normalisation": NOT_FED,
        "too few steps": "fresh weights do not lie on one line: something brought them there.",
    },
}


def _taken(letter: str, word: str) -> str:
    return f"page {letter} taken for {word}"


def _instead(letter: str, word: str) -> list[str]:
    return [word if own == letter else right for own, right in zip("ABC", AILMENTS, strict=True)]


def _judge_pages(answer: Any) -> str | None:
    if not isinstance(answer, list | tuple) or len(answer) != 3 or not set(answer) <= set(WORDS):
        return f"three of these words are asked for, for A, B and C: {', '.join(WORDS)}"
    given = zip("ABC", answer, AILMENTS, strict=True)
    return next((_taken(letter, word) for letter, word, right in given if word != right), None)


WHAT_HAPPENED = Exercise(
    name="what_happened",
    question=f"What happened to A, B and C: a list of three of {', '.join(WORDS)}.",
    answer=AILMENTS,
    hints=[
        "Look for the line that is broken on one page and good on the two others.",
        "A: which change moves a picture far? B: which line speaks of the loss? C: how many directions?",
    ],
    wrong=[
        Wrong(_taken(letter, word), _instead(letter, word), why)
        for letter, reasons in REASONS.items()
        for word, why in reasons.items()
    ],
    judge=_judge_pages,
)

EXERCISES = [LEAD, WHERE_TO_LOOK_FIRST, WHAT_HAPPENED]
