"""Exercises of notebook 02: temperature and gradient scaling."""

import math
from typing import Any

import torch
from torch import Tensor

from clutils.course import toys
from clutils.course.exercise import written

exercise = written(__file__)

# ---- 1: the pull ---------------------------------------------------------------------------------


def pull(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    c = torch.logsumexp(negatives / temperature, dim=1) - positives[:, 0] / temperature
    return torch.sigmoid(c) / temperature


def _random_cases() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(2)
    return [
        (*toys.three_points(), 0.2),
        (*toys.random_similarities(4, 1, 7, draw), 0.5),
        (*toys.random_similarities(4, 1, 30, draw), 1.5),
    ]


def _hardest_only(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return pull(positives, negatives.amax(dim=1, keepdim=True), temperature)


def _mean_of_negatives(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    c = torch.logsumexp(negatives / temperature, dim=1) - positives[:, 0] / temperature
    return torch.sigmoid(c - math.log(negatives.shape[1])) / temperature


def _positive_among_negatives(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return pull(positives, torch.cat([positives, negatives], dim=1), temperature)


PULL = exercise(
    name="pull",
    answer=pull,
    wrong={
        "W without 1/τ": lambda s, n, t: t * pull(s, n, t),
        "W from the hardest negative alone": _hardest_only,
        "the positive counted among the negatives": _positive_among_negatives,
        "the mean over the negatives in place of the sum": _mean_of_negatives,
        "p⁺/τ in place of (1 - p⁺)/τ": lambda s, n, t: 1 / t - pull(s, n, t),
        "the gradient in place of the pull": lambda s, n, t: -pull(s, n, t),
        "the mean over the anchors' losses": lambda s, n, t: pull(s, n, t) / len(s),
        "1/τ, the pull with the gate wide open": lambda s, n, t: torch.full_like(s[:, 0], 1 / t),
    },
    cases=_random_cases,
)


# ---- 2: how many negatives open the gate ---------------------------------------------------------


def negatives_to_open(W: float, positive: float, negative: float, temperature: float) -> float:
    return (
        W / (1 - W) * math.exp((positive - negative) / temperature)
    )  # W = sigmoid(c), so c = log(W/(1 - W))


def _turned_round(W: float, positive: float, negative: float, temperature: float) -> float:
    return negatives_to_open(W, negative, positive, temperature)


OPEN = exercise(
    name="negatives_to_open",
    answer=negatives_to_open,
    wrong={
        "the answer for W = 1/2, whatever W is": lambda W, s, n, t: math.exp((s - n) / t),
        "W in place of its odds W/(1 - W)": lambda W, s, n, t: W * math.exp((s - n) / t),
        "p⁺ in place of W": lambda W, s, n, t: (1 - W) / W * math.exp((s - n) / t),
        "the gap the wrong way round": _turned_round,
        "the exponential forgotten": lambda W, s, n, t: math.log(W / (1 - W)) + (s - n) / t,
        "similarities multiplied by τ": lambda W, s, n, t: W / (1 - W) * math.exp((s - n) * t),
        "the right number rounded down": lambda W, s, n, t: math.floor(negatives_to_open(W, s, n, t)),
        "the right number rounded": lambda W, s, n, t: round(negatives_to_open(W, s, n, t)),
        "the right number rounded up": lambda W, s, n, t: math.ceil(negatives_to_open(W, s, n, t)),
    },
    cases=lambda: [(0.5, 1.0, -1.0, 0.35), (0.9, 0.8, 0.1, 0.2), (0.2, 0.5, 0.3, 0.5), (0.7, 0.1, 0.2, 1.0)],
)


# ---- 3: the hot limit ----------------------------------------------------------------------------


def hot_limit(positives: Tensor, negatives: Tensor) -> Tensor:
    return (negatives - positives).sum(dim=1) / (negatives.shape[1] + 1)  # log(1 + Σ e^x) at small x


HOT = exercise(
    name="hot_limit",
    answer=hot_limit,
    wrong={
        "the mean over K in place of K + 1": lambda s, n: (n - s).mean(dim=1),
        "the sum over the negatives": lambda s, n: (n - s).sum(dim=1),
        "the cold limit": lambda s, n: (n.amax(dim=1) - s[:, 0]).clamp(min=0),
        "each gap with a hinge": lambda s, n: (n - s).clamp(min=0).sum(dim=1) / (n.shape[1] + 1),
        "the gap the wrong way round": lambda s, n: (s - n).sum(dim=1) / (n.shape[1] + 1),
        "the negatives' mean without the positive": lambda s, n: n.sum(dim=1) / (n.shape[1] + 1),
        "the positive counted once": lambda s, n: (n.sum(dim=1) - s[:, 0]) / (n.shape[1] + 1),
    },
    cases=lambda: [case[:2] for case in _random_cases()],
)

EXERCISES = [PULL, OPEN, HOT]
