"""Exercises of notebook 03."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong


def _chance_level(batch_size: int) -> float:
    return math.log(2 * batch_size - 1)


def _knn_vote(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    s, nearest = similarities.topk(k, dim=1)
    weight = torch.exp(s / temperature)
    votes = torch.zeros(len(s), int(labels.max()) + 1, dtype=weight.dtype)
    votes.scatter_add_(1, labels[nearest], weight)
    return votes.argmax(dim=1)


def _farthest(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    s, nearest = similarities.topk(k, dim=1, largest=False)
    votes = torch.zeros(len(s), int(labels.max()) + 1, dtype=s.dtype)
    return votes.scatter_add_(1, labels[nearest], torch.exp(s / temperature)).argmax(dim=1)


def _unweighted(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    nearest = similarities.topk(k, dim=1).indices
    votes = torch.zeros(len(nearest), int(labels.max()) + 1)
    return votes.scatter_add_(1, labels[nearest], torch.ones(nearest.shape)).argmax(dim=1)


def _everyone_votes(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    return _knn_vote(similarities, labels, len(labels), temperature)


def _nearest_alone(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    return labels[similarities.argmax(dim=1)]


def _times_temperature(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    return _knn_vote(similarities, labels, k, 1 / temperature)


def _positions(similarities: Tensor, labels: Tensor, k: int, temperature: float) -> Tensor:
    return similarities.argmax(dim=1)


def _neighbourhoods() -> list[tuple[Tensor, Tensor, int, float]]:
    """Random similarities in which no two answers, right or wrong, agree on every row."""
    draw = torch.Generator().manual_seed(3)
    return [
        (2 * torch.rand(40, n, generator=draw, dtype=torch.float64) - 1, labels, k, t)
        for n, k, t in ((30, 7, 0.1), (60, 11, 0.2))
        for labels in (torch.randint(4, (n,), generator=draw),)
    ]


EXERCISES = [
    Exercise(
        name="chance_level",
        question="NT-Xent on a batch of B pictures in two views each, when all similarities are equal.",
        answer=_chance_level,
        hints=[
            "How many views does an anchor compare itself with, its positive included?",
            "There are 2B views in all, one of them is the anchor itself. Equal similarities: equal shares.",
        ],
        wrong=[
            Wrong(
                "log B",
                math.log,
                "that is a guess among B pictures, but the candidates are views, of which there are 2B.",
            ),
            Wrong("log 2B", lambda b: math.log(2 * b), "an anchor is not compared with itself."),
            Wrong(
                "log(2B - 2)",
                lambda b: math.log(2 * b - 2),
                "those are the negatives alone; the positive stands in the denominator too.",
            ),
            Wrong("2B - 1", lambda b: 2 * b - 1, "that many candidates; the loss is the logarithm of it."),
            Wrong(
                "minus the logarithm",
                lambda b: -math.log(2 * b - 1),
                "the share is 1/(2B - 1), and the loss is MINUS its logarithm: positive.",
            ),
        ],
        cases=lambda: [(2,), (64,), (256,), (4096,)],
    ),
    Exercise(
        name="knn_vote",
        question="Which class each row is given by its k nearest, a vote weighing exp(s/τ).",
        answer=_knn_vote,
        hints=[
            "`similarities.topk(k, dim=1)` gives the k largest values of every row, and where they stand.",
            "`labels[nearest]` has the class of every neighbour. Add up exp(s/τ) class by class: "
            "`votes.scatter_add_(1, classes, weights)` on a table of zeros, (rows, number of classes).",
            "The class with most votes is `votes.argmax(dim=1)`.",
        ],
        wrong=[
            Wrong(
                "the farthest neighbours",
                _farthest,
                "similarity is large for near rows; `largest=False` (and sorting upwards) takes far ones.",
            ),
            Wrong(
                "a vote without weights", _unweighted, "a near neighbour should count more: exp(s/τ) each."
            ),
            Wrong("everyone's vote", _everyone_votes, "only the k nearest vote, not all training rows."),
            Wrong("the nearest alone", _nearest_alone, "that is k = 1; the others of the k have a vote too."),
            Wrong("s times τ", _times_temperature, "similarities are divided by the temperature."),
            Wrong(
                "a position",
                _positions,
                "that is where the nearest row stands, not its class: `labels[...]`.",
            ),
        ],
        cases=_neighbourhoods,
    ),
    Exercise(
        name="flat_but_not_collapsed",
        question='One letter: "A", "B", "C" or "D".',
        answer="C",
        hints=[
            "Where a run has collapsed, all embeddings are equal. What are alignment and uniformity then?",
            "How far can the loss fall at all? The floor depends on τ: what is it for a large one?",
        ],
        wrong=[
            Wrong(
                "a collapsed run",
                "A",
                "its alignment and uniformity are both near 0: every picture has the same embedding.",
            ),
            Wrong("the healthy run", "B", "its loss is well below chance, so it isn't stuck."),
            Wrong(
                "a run without negatives",
                "D",
                "its alignment and uniformity are both 0: every picture has the same embedding.",
            ),
        ],
    ),
]
