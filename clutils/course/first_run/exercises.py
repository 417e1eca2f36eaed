"""Exercises of notebook 03."""

from collections.abc import Sequence

import torch
from torch import Tensor

from clutils.course.exercise import written

exercise = written(__file__)

Runs = Sequence[float]


def _verdict(arm: Runs, other: Runs, untrained: Runs, ceiling: Runs) -> str:
    if min(ceiling) <= max(untrained) or min(len(arm), len(other)) < 3:
        return "not decided"
    if min(arm) > max(other):
        return "supported"
    return "contradicted" if max(arm) < min(other) else "not decided"


def _tests() -> list[tuple[Runs, Runs, Runs, Runs]]:
    """Apart both ways, by little and by much, level, overlapping, too few seeds, blind measures.

    Neither arm need lie between the controls; more seeds are as good as three, and one run of a control
    will do.
    """
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
        (good, bad, (0.93, 0.94), (0.9, 0.92)),
        (good, (0.9, 0.8, 0.85), low, high),
        ((0.9, 0.8, 0.85), good, low, high),
        ((*good, 0.95), (*bad, 0.7), low, high),
        ((*good, 0.95), bad[:2], low, high),
        ((*good, 0.83), bad, low, high),  # a fourth seed counts as well
        (good, (*bad, 0.905), low, high),
        (bad, (*good, 0.95), low, high),
        ((0.8, 0.9, 0.99), (0.75, 0.78, 0.79), low, high),
        ((0.2, 0.25, 0.22), (0.1, 0.12, 0.11), low, high),
        ((0.1, 0.12, 0.11), (0.2, 0.25, 0.22), low, high),
        ((0.98, 0.99, 0.985), good, low, high),
        (good, bad, low[:1], high[:1]),
        ((0.9, 0.8, 0.85), (0.88, 0.78, 0.83), low, high),  # apart seed by seed, and yet they overlap
        ((0.8, 0.85, 0.82), (0.83, 0.88, 0.84), low, high),
        ((0.8805, 0.9, 0.89), (0.88, 0.87, 0.86), low, high),  # apart by very little
        (good, bad, (0.9, 0.91), (0.92, 0.95)),
        (good, bad, (0.96, 0.3), (0.97, 0.95)),
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


def _neighbourhoods() -> list[tuple[Tensor, Tensor, int, float]]:
    """Random similarities in which no two answers, right or wrong, agree on every row.

    Rows in which two classes have the same number of neighbours are left out: without weights, either of
    them may win.
    """
    dice, cases = torch.Generator().manual_seed(3), []
    for n, k, t in ((30, 7, 0.1), (60, 11, 0.2), (60, 41, 0.2), (30, 7, 4.0)):
        labels = torch.tensor([0, 2, 3, 5])[
            torch.randint(4, (n,), generator=dice)
        ]  # some classes are not here
        drawn = 2 * torch.rand(100, n, generator=dice, dtype=torch.float64) - 1
        votes = torch.nn.functional.one_hot(labels[drawn.topk(k, dim=1).indices]).sum(dim=1).topk(2).values
        cases.append((drawn[votes[:, 0] > votes[:, 1]][:40], labels, k, t))
    return cases


EXERCISES = [
    exercise(
        name="verdict",
        answer=_verdict,
        wrong={
            "a comparison of means": lambda arm, other, *rest: _verdict(
                *([sum(x) / len(x)] * len(x) for x in (arm, other)), *rest
            ),
            "a comparison of the best seeds": lambda arm, other, *rest: _verdict(
                *([max(x)] * len(x) for x in (arm, other)), *rest
            ),
            "a comparison seed by seed": lambda arm, other, *rest: _verdict(
                *zip(*((a - b, 0.0) for a, b in zip(arm, other, strict=False)), strict=True), *rest
            ),
            "blind to the number of seeds": lambda arm, other, *rest: _verdict(
                [*arm] * 3, [*other] * 3, *rest
            ),
            "arms compared with the controls": lambda arm, other, untrained, ceiling: (
                _verdict(arm, other, untrained, ceiling) if min(arm) > max(untrained) else "not decided"
            ),
            "controls compared by their means": lambda arm, other, *controls: _verdict(
                arm, other, *([sum(x) / len(x)] for x in controls)
            ),
            "without controls": lambda arm, other, *_: _verdict(arm, other, [0.0], [1.0]),
            "absence of evidence taken for evidence": lambda *given: _verdict(*given).replace(
                "not decided", "contradicted"
            ),
            "a test that can't say no": lambda *given: _verdict(*given).replace(
                "contradicted", "not decided"
            ),
            "the other way round": lambda arm, other, *rest: _verdict(other, arm, *rest),
        },
        cases=_tests,
    ),
    exercise(
        name="knn_vote",
        answer=_knn_vote,
        wrong={
            "the farthest neighbours": _farthest,
            "a vote without weights": lambda s, labels, k, t: _knn_vote(s, labels, k, torch.inf),
            "τ forgotten": lambda s, labels, k, t: _knn_vote(s, labels, k, 1.0),
            "everyone's vote": lambda s, labels, k, t: _knn_vote(s, labels, len(labels), t),
            "the nearest alone": lambda s, labels, k, t: labels[s.argmax(dim=1)],
            "s times τ": lambda s, labels, k, t: _knn_vote(s, labels, k, 1 / t),
            "a position": lambda s, *_: s.argmax(dim=1),
        },
        cases=_neighbourhoods,
    ),
    exercise(
        name="ailments",
        answer=("pairs", "none", "temperature", "push"),
        wrong={
            "the two collapsed runs exchanged": ("push", "none", "temperature", "pairs"),
            "the warm run and the run without push exchanged": ("pairs", "none", "push", "temperature"),
            "the warm run and the run with wrong pairs exchanged": ("temperature", "none", "pairs", "push"),
            "the healthy run among the ill": ("pairs", "temperature", "none", "push"),
        },
    ),
]
