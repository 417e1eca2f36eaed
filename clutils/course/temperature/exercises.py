"""Exercises of notebook 02: temperature and gradient scaling."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

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


PULL = Exercise(
    name="pull",
    question="How hard is each anchor's positive pulled? positives (A, 1), negatives (A, K) -> (A,).",
    answer=pull,
    hints=[
        "Build the contrast c first: `torch.logsumexp` over the negatives, less the positive, both over τ.",
        "W is the sigmoid of c. Is W all of the pull, or did step 2 have another factor?",
    ],
    wrong=[
        Wrong(
            "W without 1/τ",
            lambda s, n, t: t * pull(s, n, t),
            "the chain rule leaves a 1/τ, from ∂c/∂s⁺ = -1/τ.",
        ),
        Wrong(
            "W from the hardest negative alone",
            _hardest_only,
            "all negatives add up in Σ exp(s⁻/τ); the maximum alone is what is left of it as τ → 0.",
        ),
        Wrong(
            "the positive counted among the negatives",
            _positive_among_negatives,
            "c sums over the negatives only; the 1 in 1 + e^c already stands for the positive.",
        ),
        Wrong(
            "the mean over the negatives in place of the sum",
            _mean_of_negatives,
            "a mean would hide K, and with it why large batches help.",
        ),
        Wrong(
            "p⁺/τ in place of (1 - p⁺)/τ",
            lambda s, n, t: 1 / t - pull(s, n, t),
            "that is strongest when the positive has won; the gate works the other way round.",
        ),
        Wrong(
            "the gradient in place of the pull",
            lambda s, n, t: -pull(s, n, t),
            "the pull is minus the derivative: downhill.",
        ),
        Wrong(
            "1/τ, the pull with the gate wide open",
            lambda s, n, t: torch.full_like(s[:, 0], 1 / t),
            "that is the decoupled loss's pull; NT-Xent's has the factor W.",
        ),
    ],
    cases=_random_cases,
)


# ---- 2: how many negatives open the gate ---------------------------------------------------------


def negatives_to_open(W: float, positive: float, negative: float, temperature: float) -> float:
    return (
        W / (1 - W) * math.exp((positive - negative) / temperature)
    )  # W = sigmoid(c), so c = log(W/(1 - W))


def _turned_round(W: float, positive: float, negative: float, temperature: float) -> float:
    return negatives_to_open(W, negative, positive, temperature)


OPEN = Exercise(
    name="negatives_to_open",
    question="How many negatives, all at one similarity, open the gate to W? A number, not rounded.",
    answer=negatives_to_open,
    hints=[
        "With K equal negatives, Σ exp(s⁻/τ) = K exp(s⁻/τ). What is the contrast c then?",
        "W = sigmoid(c) turned round is e^c = W/(1 - W). Solve it for K.",
    ],
    wrong=[
        Wrong(
            "the answer for W = 1/2, whatever W is",
            lambda W, s, n, t: math.exp((s - n) / t),
            "c = 0 is half open; other W need c = log(W/(1 - W)).",
        ),
        Wrong(
            "W in place of its odds W/(1 - W)",
            lambda W, s, n, t: W * math.exp((s - n) / t),
            "p⁺ is 1/(1 + e^c), so e^c is the odds of the negatives against the positive.",
        ),
        Wrong(
            "p⁺ in place of W",
            lambda W, s, n, t: (1 - W) / W * math.exp((s - n) / t),
            "W = 1 - p⁺ is the negatives' share; more of them bring W up.",
        ),
        Wrong(
            "the gap the wrong way round",
            _turned_round,
            "the nearer the positive, the more negatives it takes to open the gate.",
        ),
        Wrong(
            "the exponential forgotten",
            lambda W, s, n, t: math.log(W / (1 - W)) + (s - n) / t,
            "this is log K; exponentiate it.",
        ),
        Wrong(
            "similarities multiplied by τ",
            lambda W, s, n, t: W / (1 - W) * math.exp((s - n) * t),
            "they are divided by it: the colder, the more negatives it takes.",
        ),
        Wrong(
            "the right number rounded up",
            lambda W, s, n, t: math.ceil(negatives_to_open(W, s, n, t)),
            "leave it unrounded here, so that it can be compared.",
        ),
    ],
    cases=lambda: [(0.5, 1.0, -1.0, 0.35), (0.9, 0.8, 0.1, 0.2), (0.2, 0.5, 0.3, 0.5), (0.7, 0.1, 0.2, 1.0)],
)


# ---- 3: the hot limit ----------------------------------------------------------------------------


def hot_limit(positives: Tensor, negatives: Tensor) -> Tensor:
    return (negatives - positives).sum(dim=1) / (negatives.shape[1] + 1)  # log(1 + Σ e^x) at small x


HOT = Exercise(
    name="hot_limit",
    question="τ (ℓ - log(K + 1)) of NT-Xent as τ → ∞: positives (A, 1), negatives (A, K) -> (A,).",
    answer=hot_limit,
    hints=[
        "Write the loss as log(1 + Σ e^x_j) with the small numbers x_j = (s⁻_j - s⁺)/τ.",
        "e^x is 1 + x for small x, and log(K + 1 + y) is log(K + 1) + y/(K + 1) for small y.",
    ],
    wrong=[
        Wrong(
            "the mean over K in place of K + 1",
            lambda s, n: (n - s).mean(dim=1),
            "the denominator of p⁺ has K + 1 terms: the positive's own is the 1 in 1 + Σ e^x.",
        ),
        Wrong(
            "the sum over the negatives",
            lambda s, n: (n - s).sum(dim=1),
            "log(K + 1 + y) grows by y/(K + 1), not by y.",
        ),
        Wrong(
            "the cold limit",
            lambda s, n: (n.amax(dim=1) - s[:, 0]).clamp(min=0),
            "that is the hinge on the hardest negative, the other end: hot, all weigh the same.",
        ),
        Wrong(
            "each gap with a hinge",
            lambda s, n: (n - s).clamp(min=0).sum(dim=1) / (n.shape[1] + 1),
            "e^x is 1 + x on both sides of zero: hot, there is no hinge at all.",
        ),
        Wrong(
            "the gap the wrong way round",
            lambda s, n: (s - n).sum(dim=1) / (n.shape[1] + 1),
            "a nearer negative makes the loss larger, a nearer positive makes it smaller.",
        ),
        Wrong(
            "the negatives' mean without the positive",
            lambda s, n: n.sum(dim=1) / (n.shape[1] + 1),
            "each x_j is a gap, s⁻_j - s⁺: the positive is in all of them.",
        ),
        Wrong(
            "the positive counted once",
            lambda s, n: (n.sum(dim=1) - s[:, 0]) / (n.shape[1] + 1),
            "s⁺ stands in each of the K gaps.",
        ),
    ],
    cases=lambda: [case[:2] for case in _random_cases()],
)

EXERCISES = [PULL, OPEN, HOT]
