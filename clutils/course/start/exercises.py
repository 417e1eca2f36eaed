"""Exercises of notebook 00."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.norm() * b.norm())


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum()


def _half_normalised(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / a.norm()


def _squared_lengths(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / ((a * a).sum() * (b * b).sum())


def _distance(a: Tensor, b: Tensor) -> Tensor:
    return (a - b).norm()


def _vectors() -> list[tuple[Tensor, ...]]:
    dice = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(2, n, generator=dice, dtype=torch.float64)) for n in (2, 3, 8)]


EXERCISES = [
    Exercise(
        name="cosine",
        question="The cosine of the angle between two vectors a and b.",
        answer=_cosine,
        hints=[
            "Multiply entry by entry and add up: that is the dot product, |a| |b| cos(angle).",
            "`a.norm()` is the length of a vector. Divide the dot product by both lengths.",
        ],
        wrong=[
            Wrong("the dot product", _dot, "a longer vector would be more similar. Divide by both lengths."),
            Wrong("half normalised", _half_normalised, "you divided by the length of a only; b has one too."),
            Wrong(
                "divided by the squared lengths",
                _squared_lengths,
                "the length is the square root of the sum of squares: `a.norm()`.",
            ),
            Wrong("the distance", _distance, "it is small for similar vectors; similarity should be large."),
        ],
        cases=_vectors,
    ),
    Exercise(
        name="what_sscl_calls_tau",
        question='"temperature" or "class prior"?',
        answer="class prior",
        hints=["In SSCL's column of the table: which row holds τ? It is not that of the temperature."],
        wrong=[
            Wrong(
                "the other papers' τ",
                "temperature",
                "SSCL's temperature is r; its τ is the chance that a negative has the anchor's class.",
            )
        ],
    ),
]
