"""Exercises of notebook 15; their words are in exercises.md."""

import torch
from torch import Tensor

from clutils.course.exercise import written

exercise = written(__file__)


def pooled(states: Tensor, tokens: Tensor) -> Tensor:
    there = (tokens > 0).to(states.dtype).unsqueeze(2)
    return (states * there).sum(dim=1) / there.sum(dim=1)


def floor_at(alpha: float, threshold: float, floor: float) -> float:
    return threshold - (1 - floor) / alpha


def _sentences() -> list[tuple[Tensor, Tensor]]:
    dice = torch.Generator().manual_seed(15)
    cases = []
    for lengths in ((3, 1, 5), (2, 4, 6, 1)):
        tokens = torch.zeros(len(lengths), 6, dtype=torch.int64)
        for row, length in zip(tokens, lengths, strict=True):
            row[:length] = torch.randint(1, 50, (length,), generator=dice)
            row[0] = 1  # a word like any other
        cases.append((torch.randn(len(lengths), 6, 3, generator=dice, dtype=torch.float64), tokens))
    return cases


POOLED = exercise(
    "pooled",
    pooled,
    {
        "all places": lambda states, tokens: states.mean(dim=1),
        "zeros counted": lambda states, tokens: (states * (tokens > 0).unsqueeze(2)).mean(dim=1),
        "the sum": lambda states, tokens: (states * (tokens > 0).unsqueeze(2)).sum(dim=1),
        "the first word": lambda states, tokens: states[:, 0],
        "the maximum": lambda states, tokens: states.masked_fill((tokens == 0).unsqueeze(2), -torch.inf).amax(
            dim=1
        ),
    },
    cases=_sentences,
)

FLOOR_AT = exercise(
    "floor_at",
    floor_at,
    {
        "where it would be 0": lambda alpha, threshold, floor: threshold - 1 / alpha,
        "the wrong sign": lambda alpha, threshold, floor: threshold + (1 - floor) / alpha,
        "no threshold": lambda alpha, threshold, floor: -(1 - floor) / alpha,
        "α itself": lambda alpha, threshold, floor: threshold - (1 - floor) * alpha,
        "τ0 left out": lambda alpha, threshold, floor: threshold + floor / alpha,
        "both added": lambda alpha, threshold, floor: threshold - (1 + floor) / alpha,
    },
    cases=lambda: [(2.0, 0.8, 0.1), (0.5, 0.0, 0.25), (1.0, 0.6, 0.05), (4.0, -0.2, 0.5)],
)

EXERCISES = [POOLED, FLOOR_AT]
