"""Exercises of notebook 16; their words are in exercises.md."""

import math

import torch
from torch import Tensor

from clutils.course.exercise import written

exercise = written(__file__)


def corrupt(x: Tensor, chosen: Tensor, rows: Tensor) -> Tensor:
    return torch.where(chosen, x.gather(0, rows), x)


def strength_for(c: float) -> float:
    return (1 / (1 - c) ** 2 - 1) ** 0.5


def _in_place(x: Tensor, chosen: Tensor, rows: Tensor) -> Tensor:
    x = x.clone()
    for i, j in chosen.nonzero().tolist():
        x[i, j] = x[rows[i, j], j]
    return x


def _tables() -> list[tuple[Tensor, Tensor, Tensor]]:
    dice = torch.Generator().manual_seed(16)
    return [
        (
            torch.randn(N, D, generator=dice, dtype=torch.float64),
            torch.rand(N, D, generator=dice) < 0.5,
            torch.randint(0, N, (N, D), generator=dice),
        )
        for N, D in ((6, 4), (5, 5), (9, 3))
    ]


CORRUPT = exercise(
    "corrupt",
    corrupt,
    {
        "one row for all": lambda x, chosen, rows: torch.where(chosen, x[rows[:, 0]], x),
        "along the columns": lambda x, chosen, rows: torch.where(chosen, x.gather(1, rows % x.shape[1]), x),
        "the others": lambda x, chosen, rows: torch.where(chosen, x, x.gather(0, rows)),
        "every number": lambda x, chosen, rows: x.gather(0, rows),
        "a row that reads what was replaced": _in_place,
        "zeros": lambda x, chosen, rows: torch.where(chosen, 0.0, x),
        "the column's mean": lambda x, chosen, rows: torch.where(chosen, x.mean(dim=0), x),
    },
    cases=_tables,
)

STRENGTH_FOR = exercise(
    "strength_for",
    strength_for,
    {
        "c itself": lambda c: c,
        "no square": lambda c: 1 / (1 - c) - 1,
        "the variance": lambda c: 1 / (1 - c) ** 2 - 1,
        "twice the square": lambda c: math.sqrt(1 / (1 - c) ** 4 - 1),
        "the other way round": lambda c: math.sqrt(1 / c**2 - 1),
    },
    cases=lambda: [(0.1,), (0.3,), (0.6,), (0.9,)],
)

EXERCISES = [CORRUPT, STRENGTH_FOR]
