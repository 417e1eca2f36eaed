"""Exercises of notebook 02: temperature and gradient scaling."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from clutils import anatomy
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

COLD, HOT = 0.05, 10.0  # between these the counter-example has to turn
HIGH, LOW = 0.9, 0.65
FEWEST = 10


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
            "that is strongest when the positive has won; the brake works the other way round.",
        ),
        Wrong(
            "the gradient in place of the pull",
            lambda s, n, t: -pull(s, n, t),
            "the pull is minus the derivative: downhill.",
        ),
        Wrong(
            "1/τ, the pull without its brake",
            lambda s, n, t: torch.full_like(s[:, 0], 1 / t),
            "that is the decoupled loss's pull; NT-Xent's has the factor W.",
        ),
    ],
    cases=_random_cases,
)


# ---- 2: how many negatives release the brake ------------------------------------------------------


def negatives_to_release(W: float, positive: float, negative: float, temperature: float) -> float:
    return (
        W / (1 - W) * math.exp((positive - negative) / temperature)
    )  # W = sigmoid(c), so c = log(W/(1 - W))


def _turned_round(W: float, positive: float, negative: float, temperature: float) -> float:
    return negatives_to_release(W, negative, positive, temperature)


RELEASE = Exercise(
    name="negatives_to_release",
    question="How many negatives, all at one similarity, bring the brake to W? A number, not rounded.",
    answer=negatives_to_release,
    hints=[
        "With K equal negatives, Σ exp(s⁻/τ) = K exp(s⁻/τ). What is the contrast c then?",
        "W = sigmoid(c) turned round is e^c = W/(1 - W). Solve it for K.",
    ],
    wrong=[
        Wrong(
            "the answer for W = 1/2, whatever W is",
            lambda W, s, n, t: math.exp((s - n) / t),
            "c = 0 is half released; other W need c = log(W/(1 - W)).",
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
            "the nearer the positive, the more negatives it takes to wake the anchor.",
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
            lambda W, s, n, t: math.ceil(negatives_to_release(W, s, n, t)),
            "leave it unrounded here, so that it can be compared.",
        ),
    ],
    cases=lambda: [(0.5, 1.0, -1.0, 0.35), (0.9, 0.8, 0.1, 0.2), (0.2, 0.5, 0.3, 0.5), (0.7, 0.1, 0.2, 1.0)],
)


# ---- 3: a counter-example of one's own -----------------------------------------------------------

ALL_BELOW, ALL_ABOVE = "every negative below the positive", "the negatives' mean above the positive"
TOO_SHALLOW = "a dip that is too shallow"


def turns_deeply(answer: Any) -> str | None:
    """None for (positive, negatives) whose W is above 0.9 at τ = 0.05 and 10 and below 0.65 between."""
    try:
        positive, negatives = answer
        s = torch.as_tensor(positive, dtype=torch.float64).reshape(1)
        n = torch.as_tensor(negatives, dtype=torch.float64).reshape(1, -1)
    except (TypeError, ValueError, RuntimeError):
        return f"expected two things, (positive, [negative, negative, ...]), got {answer!r:.60}."
    if n.shape[1] < FEWEST:
        return f"{n.shape[1]} negatives; at least {FEWEST} are asked for."
    both = torch.cat([s, n[0]])
    if not bool((both.abs() <= 1).all()):
        return f"a similarity lies between -1 and 1, and you have {float(both[~(both.abs() <= 1)][0]):g}."
    if n.max() <= s:
        return ALL_BELOW
    if n.mean() >= s:
        return ALL_ABOVE
    temperatures = torch.logspace(math.log10(COLD), math.log10(HOT), 400, dtype=torch.float64)
    W = anatomy.gradient_scale(s.expand(400), n.expand(400, -1), temperatures[:, None])
    for end, at in ((0, COLD), (-1, HOT)):
        if W[end] <= HIGH:
            return f"W is {float(W[end]):.3f} at τ = {at:g}, and should be above {HIGH:g} there."
    return TOO_SHALLOW if W.min() >= LOW else None


COUNTER_EXAMPLE = Exercise(
    name="counter_example",
    question=f"(positive, [negatives]): W above {HIGH} at τ = {COLD} and {HOT:g}, below {LOW} between.",
    answer=(0.8, [0.95] + 19 * [-1.0]),
    hints=[
        "W turns only when s⁺ lies between the mean of the negatives and the hardest of them.",
        "Cold, the hardest negative decides: how far above s⁺ must it be for W > 0.9? No farther.",
        "Hot, the number decides: W tends to K/(K+1). In between, the easy ones must already be silent.",
    ],
    wrong=[
        Wrong(
            ALL_BELOW,
            (0.5, [0.2] + 20 * [-0.9]),
            "then warming only ever raises W, and cold it is near 0: the claim holds here.",
        ),
        Wrong(
            ALL_ABOVE,
            (-0.5, [0.9] + 20 * [0.1]),
            "then warming only ever lowers W: the claim holds here too.",
        ),
        Wrong(
            TOO_SHALLOW,
            (0.5, [0.9] + 200 * [-0.9]),
            f"W turns, but never falls below {LOW:g}: bring the hardest negative nearer to s⁺, and keep "
            "the easy ones few and far.",
        ),
    ],
    judge=turns_deeply,
)

EXERCISES = [PULL, RELEASE, COUNTER_EXAMPLE]
