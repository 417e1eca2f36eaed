"""Exercises of notebook 05: hard negatives."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

# ---- 1: where an anchor falls silent ---------------------------------------------------------------------


def silent_from(negatives: Tensor, temperature: float, class_prior: float) -> Tensor:
    mean = torch.exp(negatives / temperature).mean(dim=1)
    floor = (1 - class_prior) * math.exp(-1 / temperature)
    return temperature * torch.log((mean - floor) / class_prior)


def _margin_alone(n: Tensor, t: float, prior: float) -> Tensor:
    return t * torch.log(torch.exp(n / t).mean(dim=1) / prior)


def _whole_floor(n: Tensor, t: float, prior: float) -> Tensor:
    return t * torch.log((torch.exp(n / t).mean(dim=1) - math.exp(-1 / t)) / prior)


def _sum_over_negatives(n: Tensor, t: float, prior: float) -> Tensor:
    floor = (1 - prior) * math.exp(-1 / t)
    return t * torch.log((torch.exp(n / t).sum(dim=1) - floor) / prior)


def _negative_cases() -> list[Tensor]:
    draw = torch.Generator().manual_seed(6)
    return [toys.three_points()[1], *(toys.random_similarities(4, 1, K, draw)[1] for K in (7, 30))]


SILENT_FROM = Exercise(
    name="silent_from",
    question="The s⁺ from which the debiased loss's clamp acts: negatives (A, N), τ, τ⁺ -> (A,).",
    answer=silent_from,
    hints=[
        "Put the estimate of step 2 equal to the clamp N e^(-1/τ), and divide both sides by N.",
        "Solve for E⁺ = e^(s⁺/τ) first: mean E - τ⁺ E⁺ = (1 - τ⁺) e^(-1/τ).",
    ],
    wrong=[
        Wrong(
            "where the estimate is 0, not the clamp",
            _margin_alone,
            "that is the margin of step 4; the clamp is a floor above 0, and is reached a little earlier.",
        ),
        Wrong(
            "a clamp on what was not yet divided by 1 - τ⁺",
            _whole_floor,
            "the clamp is compared with the estimate, which has the 1/(1 - τ⁺) in it.",
        ),
        Wrong(
            "the sum over the negatives in place of their mean",
            _sum_over_negatives,
            "N stands on both sides, with τ⁺ E⁺ and with the clamp: divide all of it by N.",
        ),
        Wrong(
            "multiplied by τ⁺",
            lambda n, t, p: silent_from(n, t, p) + 2 * t * math.log(p),
            "the smaller the prior, the farther ahead the positive must be: divide by τ⁺.",
        ),
        Wrong(
            "E⁺ in place of s⁺",
            lambda n, t, p: torch.exp(silent_from(n, t, p) / t),
            "take τ times the logarithm to come back to a similarity.",
        ),
        Wrong(
            "the factor τ forgotten",
            lambda n, t, p: silent_from(n, t, p) / t,
            "E⁺ = e^(s⁺/τ), so s⁺ is τ log E⁺.",
        ),
    ],
    cases=lambda: list(zip(_negative_cases(), (0.5, 0.5, 1.0), (0.1, 0.3, 0.4), strict=True)),
)


# ---- 2: who is drawn in ----------------------------------------------------------------------------------


def drawn_in_below(negatives: Tensor, temperature: float, beta: float) -> Tensor:
    harder = torch.logsumexp((1 + beta) * negatives / temperature, dim=1)
    weights = torch.logsumexp(beta * negatives / temperature, dim=1)
    return temperature * (math.log(beta / (1 + beta)) + harder - weights)


def _weighted_mean(n: Tensor, t: float, beta: float) -> Tensor:
    return drawn_in_below(n, t, beta) - t * math.log(beta / (1 + beta))


def _plain_mean(n: Tensor, t: float, beta: float) -> Tensor:
    return t * (math.log(beta / (1 + beta)) + torch.exp(n / t).mean(dim=1).log())


DRAWN_IN_BELOW = Exercise(
    name="drawn_in_below",
    question="The s⁻ below which HCL draws a negative in: negatives (A, K), τ, β above 0 -> (A,).",
    answer=drawn_in_below,
    hints=[
        "The bracket of step 6 changes sign where (1 + β) q^(1+β) equals β q^(β).",
        "Write both q as E^b/ΣE^b. All of E cancels but one power: solve for E, and take τ log of it.",
    ],
    wrong=[
        Wrong(
            "the weighted mean, without β/(1 + β)",
            _weighted_mean,
            "the two terms of the bracket have the factors 1 + β and β; they stay.",
        ),
        Wrong(
            "the factor upside down",
            lambda n, t, b: drawn_in_below(n, t, b) - 2 * t * math.log(b / (1 + b)),
            "E = β/(1 + β) · ΣE^(1+β)/ΣE^β: the threshold lies below the weighted mean, not above it.",
        ),
        Wrong(
            "the plain mean of E",
            _plain_mean,
            "the two sums have the powers 1 + β and β, from the two softmaxes; not 1 and 0.",
        ),
        Wrong(
            "the mean similarity",
            lambda n, t, b: n.mean(dim=1),
            "easy is not the same as below average: solve the bracket for its zero.",
        ),
        Wrong(
            "the factor τ forgotten",
            lambda n, t, b: drawn_in_below(n, t, b) / t,
            "E = e^(s⁻/τ), so s⁻ is τ log E.",
        ),
    ],
    cases=lambda: list(zip(_negative_cases(), (0.5, 0.2, 0.5), (1.0, 0.5, 2.0), strict=True)),
)


# ---- 3: a mix brought back to unit length ----------------------------------------------------------------


def unit_mix(a: float, first: float, second: float, mutual: float) -> float:
    length = math.sqrt(a**2 + (1 - a) ** 2 + 2 * a * (1 - a) * mutual)
    return (a * first + (1 - a) * second) / length


UNIT_MIX = Exercise(
    name="unit_mix",
    question="Similarity of (a zᵢ + (1 - a) zⱼ)/‖·‖ to the anchor, from a, sᵢ, sⱼ and zᵢ·zⱼ. A number.",
    answer=unit_mix,
    hints=[
        "Before it is brought to length one, the mix has similarity a sᵢ + (1 - a) sⱼ.",
        "Its squared length is the product of the mix with itself: multiply out; zᵢ·zᵢ = zⱼ·zⱼ = 1.",
    ],
    wrong=[
        Wrong(
            "the mix left short",
            lambda a, s, r, m: a * s + (1 - a) * r,
            "that is SSCL's own, un-normalised mix; divide by its length.",
        ),
        Wrong(
            "the squared length",
            lambda a, s, r, m: (a * s + (1 - a) * r) / (a**2 + (1 - a) ** 2 + 2 * a * (1 - a) * m),
            "take the square root: length, not squared length.",
        ),
        Wrong(
            "parents taken for orthogonal",
            lambda a, s, r, m: (a * s + (1 - a) * r) / math.hypot(a, 1 - a),
            "2 a (1 - a) zᵢ·zⱼ is missing: the nearer the parents, the longer their mix.",
        ),
        Wrong(
            "each parent counted once in the cross term",
            lambda a, s, r, m: (a * s + (1 - a) * r) / math.sqrt(a**2 + (1 - a) ** 2 + a * (1 - a) * m),
            "(x + y)² has 2xy in it.",
        ),
        Wrong(
            "multiplied by the length",
            lambda a, s, r, m: (a * s + (1 - a) * r) * math.sqrt(a**2 + (1 - a) ** 2 + 2 * a * (1 - a) * m),
            "a mix is shorter than one; bringing it to length one divides by what it has.",
        ),
    ],
    cases=lambda: [(0.5, 0.6, 0.4, 0.1), (0.2, 0.8, -0.1, -0.3), (0.7, 0.3, 0.5, 0.9)],
)

EXERCISES = [SILENT_FROM, DRAWN_IN_BELOW, UNIT_MIX]
