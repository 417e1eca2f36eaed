"""Exercises of notebook 05: hard negatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

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
            "that is the margin of step 5; the clamp is a floor above 0, and is reached a little earlier.",
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


# ---- 2: at which temperature the plain loss shares alike --------------------------------------------------


def as_cold_as(gap: float, temperature: float, beta: float) -> float:
    def share(b: float) -> float:  # of the harder of two, by the softmax of b s⁻/τ
        return 1 / (1 + math.exp(-b * gap / temperature))

    harder = (1 + beta) * share(1 + beta) - beta * share(beta)
    return gap / math.log(harder / (1 - harder))


def _of_two_softmaxes(gap: float, temperature: float, *factors: tuple[float, float]) -> float:
    harder = sum(f / (1 + math.exp(-b * gap / temperature)) for f, b in factors)
    return gap / math.log(harder / (1 - harder))


AS_COLD_AS = Exercise(
    name="as_cold_as",
    question="The τ′ at which NT-Xent splits its push between two negatives, `gap` apart, as HCL does.",
    answer=as_cold_as,
    hints=[
        "Of two negatives the harder has the share σ(b·gap/τ) of the softmax q^(b).",
        "Put HCL's share (1 + β) σ((1 + β) gap/τ) - β σ(β gap/τ) equal to NT-Xent's σ(gap/τ′), and solve.",
    ],
    wrong=[
        Wrong(
            "the weights taken for constants",
            lambda gap, t, b: t / (1 + b),
            "that is HCL with detached weights; here the gradient goes through them, too.",
        ),
        Wrong(
            "the limit of a small spread",
            lambda gap, t, b: t / (1 + 2 * b),
            "step 9's limit is only the beginning of a series; here the gap is given, and the answer exact.",
        ),
        Wrong(
            "the factors 1 + β and β left out",
            lambda gap, t, b: _of_two_softmaxes(gap, t, (1, 1 + b), (-1, b)),
            "(1 + β) and β stand before the two softmaxes; without them the shares do not add up to one.",
        ),
        Wrong(
            "the logarithm of the share",
            lambda gap, t, b: gap / math.log1p(math.exp(-gap / as_cold_as(gap, t, b))),
            "the share is σ(gap/τ′): its inverse is log(share/(1 - share)).",
        ),
        Wrong(
            "the softmaxes at βτ and (1 + β)τ",
            lambda gap, t, b: _of_two_softmaxes(gap, t, (1 + b, 1 / (1 + b)), (-b, 1 / b)),
            "E^b/ΣE^b is the softmax at τ/b: a power makes it colder, not warmer.",
        ),
    ],
    cases=lambda: [(0.3, 0.5, 1.0), (0.15, 0.5, 2.0), (0.1, 0.2, 0.5), (0.02, 0.1, 1.0)],
    tolerance=1e-5,
)


# ---- 3: the test of a claim --------------------------------------------------------------------------------


def spares_false_negatives(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    pushing = push.sum(dim=1) > 0
    if not bool(pushing.any()):
        return False
    ours, theirs = ((f * false).sum(dim=1)[pushing] / f.sum(dim=1)[pushing] for f in (push, plain))
    return bool(ours.mean() < theirs.mean() - 1e-9)


def _shares(f: Tensor, false: Tensor) -> Tensor:
    return (f * false).sum(dim=1) / f.sum(dim=1)


def _silent_as_zero(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    return bool(_shares(push, false).nan_to_num(0).mean() < _shares(plain, false).mean() - 1e-9)


def _of_the_batch(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    ours, theirs = ((f * false).sum() / f.sum() for f in (push, plain))
    return bool(ours < theirs - 1e-9)


def _other_anchors(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    return bool(_shares(push, false).nanmean() < _shares(plain, false).mean() - 1e-9)


def _no_room(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    pushing = push.sum(dim=1) > 0
    return bool(_shares(push, false)[pushing].mean() < _shares(plain, false)[pushing].mean())


def _made_up() -> list[tuple[Tensor, bool]]:
    """Pushes of losses whose answer is known, in the order of the exercise's wrong answers."""
    plain, false = _plain()
    share = _shares(plain, false)[:, None]
    spared = plain * torch.where(false, 0.5, 1.0)
    most = share >= share.median()
    return [
        (0.5 * plain, False),
        (0 * plain, False),
        (plain * torch.exp(-20 * share), False),
        (plain * ~most, False),
        (plain * (1 - 1e-12 * false.double()), False),
        (spared, True),
        (2 * spared, True),
        (spared * most, True),
    ]


def _plain() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(2)
    plain = torch.softmax(5 * toys.random_similarities(6, 1, 20, draw)[1], dim=1)
    return plain, torch.rand(6, 20, generator=draw) < 0.3


def _tells(answer: Callable[..., Any]) -> str | None:
    """None for a test that is right about all of them, else the name of the first that it is wrong about."""
    for (push, expected), wrong in zip(_made_up(), SPARES_FALSE_NEGATIVES.wrong, strict=True):
        try:
            said = answer(push, *_plain())
            if said is None or said is Ellipsis:
                return "your function returned nothing yet."
            if bool(said) != expected:
                return wrong.name
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return f"your code raised {type(error).__name__}: {error}"
    return None


SPARES_FALSE_NEGATIVES = Exercise(
    name="spares_false_negatives",
    question="Does a loss take push off false negatives? push, plain, false, each (A, K) -> True or False.",
    answer=spares_false_negatives,
    hints=[
        "Compare shares, not pushes: a loss may be weaker as a whole. And compare anchor by anchor.",
        "An anchor that pushes nothing has no share: leave it out, of the loss's mean and of NT-Xent's.",
        "Differences below 1e-9 are rounding. Then try your test on a loss that does spare them.",
    ],
    wrong=[
        Wrong(
            "a test that any weaker loss passes",
            lambda push, plain, false: bool((push * false).sum() < (plain * false).sum()),
            "a loss that pushes everything half as hard spares no one in particular. Compare shares.",
        ),
        Wrong(
            "a test that silence passes",
            _silent_as_zero,
            "where nothing is pushed, no share was taken off: an anchor without a push says nothing.",
        ),
        Wrong(
            "one share for the whole batch",
            _of_the_batch,
            "a factor per anchor, as debiasing's, changes it although no anchor shares its push otherwise.",
        ),
        Wrong(
            "a comparison of different anchors",
            _other_anchors,
            "a loss that silences the anchors with the most false push, and changes no other, would pass. "
            "Take both means over the anchors that push.",
        ),
        Wrong(
            "a test without room for rounding",
            _no_room,
            "shares that agree to twelve digits were called different; leave 1e-9.",
        ),
        Wrong(
            "a test that nothing can pass",
            lambda push, plain, false: False,
            "a loss that halves the push on each false negative must pass: that is its positive control.",
        ),
        Wrong(
            "a test that asks for a weaker push, too",
            lambda push, plain, false: (
                spares_false_negatives(push, plain, false) and bool(push.sum() < 1.5 * plain.sum())
            ),
            "a loss may push harder as a whole and yet put a smaller part of it on false negatives.",
        ),
        Wrong(
            "a test that one silent anchor spoils",
            lambda push, plain, false: bool(
                _shares(push, false).mean() < _shares(plain, false).mean() - 1e-9
            ),
            "where some anchors are silent and all others spare them, it should say yes; 0/0 is NaN.",
        ),
    ],
    judge=_tells,
)

EXERCISES = [SILENT_FROM, AS_COLD_AS, SPARES_FALSE_NEGATIVES]
