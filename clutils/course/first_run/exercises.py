"""Exercises of notebook 03."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong

Runs = Sequence[float]


def _verdict(arm: Runs, other: Runs, untrained: Runs, ceiling: Runs) -> str:
    if min(ceiling) <= max(untrained) or min(len(arm), len(other)) < 3:
        return "not decided"
    if min(arm) > max(other):
        return "supported"
    return "contradicted" if max(arm) < min(other) else "not decided"


def _tests() -> list[tuple[Runs, Runs, Runs, Runs]]:
    """Apart both ways, overlapping, too few seeds on either side, and a measure that can't tell."""
    good, bad, low, high = (0.9, 0.92, 0.91), (0.8, 0.85, 0.82), (0.3, 0.31), (0.95, 0.97)
    return [
        (good, bad, low, high),
        (bad, good, low, high),
        ((0.8, 0.95, 0.9), (0.82, 0.81, 0.83), low, high),
        ((0.81, 0.82, 0.83), (0.8, 0.95, 0.9), low, high),
        ((0.5, 0.55, 0.99), (0.9, 0.92, 0.91), low, high),
        ((0.9, 0.91), bad, low, high),
        (bad, (0.9,), low, high),
        (good, bad, (0.3, 0.95), (0.94, 0.97)),
        (bad, good, (0.8,), (0.8, 0.9, 0.9)),
    ]


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
    dice = torch.Generator().manual_seed(3)
    return [
        (2 * torch.rand(40, n, generator=dice, dtype=torch.float64) - 1, labels, k, t)
        for n, k, t in ((30, 7, 0.1), (60, 11, 0.2))
        for labels in (torch.randint(4, (n,), generator=dice),)
    ]


EXERCISES = [
    Exercise(
        name="verdict",
        question='What accuracies say of "arm is better than other": one of three words.',
        answer=_verdict,
        hints=[
            "First ask whether the measure could have told a good encoder from a bad one at all: is every "
            "value of `ceiling` above every value of `untrained`?",
            "Then whether there are three seeds of each arm.",
            "Then compare the lowest of one arm with the highest of the other, both ways.",
        ],
        wrong=[
            Wrong(
                "a comparison of means",
                lambda arm, other, *rest: _verdict(
                    *([sum(x) / len(x)] * len(x) for x in (arm, other)), *rest
                ),
                "where seeds overlap, another seed may turn it round.",
            ),
            Wrong(
                "a comparison of the best seeds",
                lambda arm, other, *rest: _verdict(*([max(x)] * len(x) for x in (arm, other)), *rest),
                "the best of several is luck as well.",
            ),
            Wrong(
                "blind to the number of seeds",
                lambda arm, other, *rest: _verdict([*arm] * 3, [*other] * 3, *rest),
                "one or two seeds always look apart; three of each are asked for.",
            ),
            Wrong(
                "without controls",
                lambda arm, other, *_: _verdict(arm, other, [0.0], [1.0]),
                "a measure by which a supervised encoder is no better than an untrained one tells nothing.",
            ),
            Wrong(
                "absence of evidence taken for evidence",
                lambda *given: _verdict(*given).replace("not decided", "contradicted"),
                "what was not seen to be better may still be: overlapping seeds decide nothing.",
            ),
            Wrong(
                "a test that can't say no",
                lambda *given: _verdict(*given).replace("contradicted", "not decided"),
                "where every seed of `other` is above every seed of `arm`, the claim is contradicted.",
            ),
            Wrong(
                "the other way round",
                lambda arm, other, *rest: _verdict(other, arm, *rest),
                "the claim is that `arm` is the better one.",
            ),
        ],
        cases=_tests,
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
        name="ailments",
        question='One of "none", "pairs", "temperature", "push" for each of A, B, C and D, in this order.',
        answer=("pairs", "none", "temperature", "push"),
        hints=[
            "Which run's loss leaves chance for good?",
            "Two runs collapse: alignment and uniformity go to 0, all embeddings become one. One does not.",
            "Compare the first steps of the two that collapse. Whose loss starts above chance, and why?",
        ],
        wrong=[
            Wrong(
                "the two collapsed runs exchanged",
                ("push", "none", "temperature", "pairs"),
                "where the pairs are wrong, positives are no nearer than negatives from the first step, and "
                "the loss begins above chance. Where nothing pushes, it first falls.",
            ),
            Wrong(
                "the warm run and the run without push exchanged",
                ("pairs", "none", "push", "temperature"),
                "without push all embeddings become equal; too high a temperature flattens the loss alone.",
            ),
            Wrong(
                "the warm run and the run with wrong pairs exchanged",
                ("temperature", "none", "pairs", "push"),
                "where views of different pictures are pulled together, alignment falls. In C it does not.",
            ),
            Wrong(
                "the healthy run among the ill",
                ("pairs", "temperature", "none", "push"),
                "the healthy run's loss leaves chance for good.",
            ),
        ],
    ),
]
