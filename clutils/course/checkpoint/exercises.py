"""Exercises of notebook 13: how far positives lead, which line of a page is first, what ails three runs."""

from typing import Any

import torch
from torch import Tensor

from clutils.course.exercise import spelled, written

exercise = written(__file__)

# ---- 1: the lead ---------------------------------------------------------------------------------


def _lead(positives: Tensor, negatives: Tensor) -> Tensor:
    return (positives.mean() - negatives.mean()) / (1 - negatives.mean())


def _similarities() -> list[tuple[Tensor, Tensor]]:
    draw = torch.Generator().manual_seed(11)
    return [
        (
            low + 0.4 * torch.rand(n, 1, generator=draw, dtype=torch.float64),
            0.6 * torch.rand(n, k, generator=draw, dtype=torch.float64) - below,
        )
        for n, k, low, below in ((6, 10, 0.5, 0.0), (20, 38, 0.5, 0.0), (6, 10, 0.4, 0.5), (6, 10, -0.2, 0.0))
    ]  # the third's mean negative is below 0; in the last a positive is farther off than a negative


def _by_anchor(positives: Tensor, negatives: Tensor) -> Tensor:
    own = negatives.mean(dim=1, keepdim=True)
    return ((positives - own) / (1 - own)).mean()


LEAD = exercise(
    name="lead",
    answer=_lead,
    wrong={
        "the mean of each anchor's own lead": _by_anchor,
        "the plain difference": lambda p, n: p.mean() - n.mean(),
        "a lead that cannot be negative": lambda p, n: ((p.mean() - n.mean()) / (1 - n.mean())).clamp(min=0),
        "the ratio": lambda p, n: p.mean() / n.mean(),
        "against the hardest": lambda p, n: (p.mean() - n.max()) / (1 - n.max()),
        "against each anchor's hardest": lambda p, n: ((p - n.amax(1, True)) / (1 - n.amax(1, True))).mean(),
        "divided by the positives' room": lambda p, n: (p.mean() - n.mean()) / (1 - p.mean()),
    },
    cases=_similarities,
)


# ---- 2: which line first -------------------------------------------------------------------------

REPORTS = """\
                                     A          B          C        usual
input, nats away                    0.01       7.1        0.02     near 0
spread                              0.74       0.76       0.71     above 0.3
effective rank, of 128              38         36         1.3      above 8
share of negatives with the push    99 %       46 %       44 %     6 to 85 %
kNN (raw pixels 28 %, chance 10 %)  31 %       55 %       40 %"""
ORDER = ["B", "C", "A"]

WHERE_TO_LOOK_FIRST = exercise(
    name="where_to_look_first",
    answer=ORDER,
    wrong={
        "the lowest accuracy first": list("ACB"),
        "the temperature before the collapse": list("BAC"),
        "the collapse before the input": list("CBA"),
        "the input at the end": list("CAB"),
        "the temperature first": list("ABC"),
    },
)


# ---- 3: three pages ------------------------------------------------------------------------------

WORDS = ("collapse", "temperature", "colour", "labels", "normalisation", "too few steps")
AILMENTS = ["colour", "temperature", "collapse"]  # of `runs.ill_runs`, in their order


def _taken(letter: str, word: str) -> str:
    return f"page {letter} taken for {word}"


def _instead(letter: str, word: str) -> list[str]:
    return [word if own == letter else right for own, right in zip("ABC", AILMENTS, strict=True)]


def _judge_pages(answer: Any) -> str | None:
    words = [spelled(str(word)) for word in answer] if isinstance(answer, list | tuple) else []
    if len(words) != 3 or not set(words) <= set(WORDS):
        return f"three of these words are asked for, for A, B and C: {', '.join(WORDS)}"
    given = zip("ABC", words, AILMENTS, strict=True)
    return next((_taken(letter, word) for letter, word, right in given if word != right), None)


WHAT_HAPPENED = exercise(
    name="what_happened",
    answer=AILMENTS,
    wrong={
        _taken(letter, word): _instead(letter, word)
        for letter, right in zip("ABC", AILMENTS, strict=True)
        for word in WORDS
        if word != right
    },
    judge=_judge_pages,
)

EXERCISES = [LEAD, WHERE_TO_LOOK_FIRST, WHAT_HAPPENED]
