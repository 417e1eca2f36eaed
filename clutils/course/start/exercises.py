"""Exercises of notebook 00."""

import torch
from torch import Tensor

from clutils.course.exercise import written

exercise = written(__file__)


def _cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum() / (a.norm() * b.norm())


def _vectors() -> list[tuple[Tensor, ...]]:
    dice = torch.Generator().manual_seed(0)
    return [tuple(torch.randn(2, n, generator=dice, dtype=torch.float64)) for n in (2, 3, 8)]


EXERCISES = [
    exercise(
        name="cosine",
        answer=_cosine,
        wrong={
            "the dot product": lambda a, b: (a * b).sum(),
            "half normalised": lambda a, b: (a * b).sum() / a.norm(),
            "divided by the squared lengths": lambda a, b: (a * b).sum() / ((a * a).sum() * (b * b).sum()),
            "the distance": lambda a, b: (a - b).norm(),
        },
        cases=_vectors,
    ),
    exercise(
        name="what_tau_changes",
        answer=("no", "yes"),
        wrong={
            "a chance level with a temperature": ("yes", "yes"),
            "a map without a temperature": ("no", "no"),
            "the two the wrong way round": ("yes", "no"),
        },
    ),
]
