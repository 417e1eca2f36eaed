"""Exercises of notebook 13."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong


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


EXERCISES = [
    Exercise(
        name="lead",
        question="How far the positives lead: 1 where views coincide, 0 where they are like any other pair.",
        answer=_lead,
        hints=[
            "How far is the mean positive above the mean negative?",
            "And how far could it be above at most? A similarity ends at 1.",
            "(mean s+ - mean s-) / (1 - mean s-).",
        ],
        wrong=[
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
                "divided by the positives' room",
                lambda p, n: (p.mean() - n.mean()) / (1 - p.mean()),
                "the room is what lies above the negatives: 1 - mean s-.",
            ),
        ],
        cases=_similarities,
    ),
    Exercise(
        name="where_to_look_first",
        question='"labels", "normalisation", "temperature" or "collapse".',
        answer="normalisation",
        hints=[
            "Which line is furthest from what is expected? Is it about the encoder, or about what it is fed?",
            "Features vary and use their dimensions. The first batch normalisation meets numbers that it "
            "does not know.",
        ],
        wrong=[
            Wrong(
                "labels",
                "labels",
                "kNN is far above chance, so labels and pictures belong together.",
            ),
            Wrong(
                "temperature",
                "temperature",
                "many negatives share the push, as they should at a τ that suits.",
            ),
            Wrong(
                "collapse",
                "collapse",
                "embeddings differ and use many dimensions: that is no collapse.",
            ),
        ],
    ),
]
