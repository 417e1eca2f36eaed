"""Exercises of notebook 07."""

from typing import Any

import torch
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.course.exercise import written
from clutils.course.family.angles import PARALLEL, angle, difference, gradients

exercise = written(__file__)

TEMPERATURE = 0.2
EASY = 1.0  # degrees: an effect that anybody would see
SEEN = 1e-3  # a difference of two gradients that is more than a setting's last digit


def _shares_of_the_push(push: Tensor) -> Tensor:
    pushed = push.clamp(min=0)
    total = pushed.sum(dim=1, keepdim=True)
    return torch.where(total > 0, pushed / total, 0.0)


def _inside_the_spread(first: Tensor, second: Tensor) -> bool:
    return bool(first.min() <= second.max() and second.min() <= first.max())


def _two_controls(answer: Any) -> str | None:
    given = list(answer) if isinstance(answer, tuple | list) else [answer]
    if len(given) != 2 or not all(isinstance(loss, losses.Loss) for loss in given):
        return f"expected two losses, as in (losses.SupCon(0.2), losses.Triplet()), got {answer!r}."
    tables = toys.random_similarities(300, 1, 60, torch.Generator().manual_seed(1))
    try:
        found = gradients(dict(enumerate([losses.NTXent(TEMPERATURE), *given])), *tables)
    except ValueError as error:
        return str(error)
    seen, unseen = (angle(found[0], found[i]) for i in (1, 2))
    if seen < PARALLEL < unseen:
        return "the two the wrong way round"
    if not seen >= PARALLEL:
        return "a positive control without the effect"
    if seen >= EASY:
        return "a positive control that anything would notice"
    if not unseen < PARALLEL:
        return "a negative control with the effect"
    return "a negative control of no difference at all" if difference(found[0], found[2]) < SEEN else None


def _pushes() -> list[tuple[Tensor]]:
    """A few rows of each; some negatives are drawn in, and the last anchor of each pushes none.

    Of one anchor all negatives are drawn in, and of one the pushes are tiny, as an easy anchor's are.
    """
    made = []
    for shape in ((2, 3), (5, 7), (20, 5)):
        dice = torch.Generator().manual_seed(shape[0])
        push = torch.rand(*shape, generator=dice, dtype=torch.float64) - 0.3
        push[0, 0], push[0, -1], push[-1] = -0.2, 0.5, 0.0
        if len(push) > 3:
            push[1], push[2] = -push[1].abs(), 1e-9 * push[2].abs()
        made.append((push,))
    drawn_in_more = torch.tensor([[-0.5, 0.1, 0.2], [0.3, -0.1, 0.1]], dtype=torch.float64)
    return [*made, (drawn_in_more,)]


EXERCISES = [
    exercise(
        name="shares_of_the_push",
        answer=_shares_of_the_push,
        wrong={
            "a share of the whole batch": lambda push: push.clamp(min=0) / push.clamp(min=0).sum(),
            "a softmax": lambda push: torch.softmax(push, dim=1),
            "a column's share": lambda push: (
                push.clamp(min=0) / push.clamp(min=0).sum(dim=0, keepdim=True).clamp(min=1e-9)
            ),
            "a weight ω, below 0 for those drawn in": lambda push: (
                push / push.sum(dim=1, keepdim=True).where(push.any(dim=1, keepdim=True), 1.0)
            ),
            "a share of all forces, whichever way they point": lambda push: (
                push.abs() / push.abs().sum(dim=1, keepdim=True).clamp(min=1e-9)
            ),
            "the pushes over the net force": lambda push: (
                push.clamp(min=0) / push.sum(dim=1, keepdim=True).where(push.any(dim=1, keepdim=True), 1.0)
            ),
            "a floor under the sum": lambda push: (
                push.clamp(min=0) / (push.clamp(min=0).sum(dim=1, keepdim=True) + 1e-8)
            ),
            "a NaN where all negatives are drawn in": lambda push: torch.where(
                push.any(dim=1, keepdim=True),
                push.clamp(min=0) / push.clamp(min=0).sum(dim=1, keepdim=True),
                0.0,
            ),
        },
        cases=_pushes,
        by_hand=(torch.tensor([[0.3, -0.1, 0.1], [0.3, 0.4, 0.4]]),),
    ),
    exercise(
        name="two_controls",
        answer=(losses.NTXent(0.2005), losses.Decoupled(TEMPERATURE)),
        wrong={
            "a positive control that anything would notice": (
                losses.HardNegative(TEMPERATURE),
                losses.Decoupled(TEMPERATURE),
            ),
            "a negative control of no difference at all": (losses.NTXent(0.2005), losses.SupCon(TEMPERATURE)),
            "the two the wrong way round": (losses.Decoupled(TEMPERATURE), losses.NTXent(0.2005)),
            "a positive control without the effect": (
                losses.DualTemperature(TEMPERATURE),
                losses.Decoupled(TEMPERATURE),
            ),
            "a negative control with the effect": (losses.NTXent(0.2005), losses.NTXent(0.5)),
        },
        judge=_two_controls,
    ),
    exercise(
        name="inside_the_spread",
        answer=_inside_the_spread,
        wrong={
            "a comparison of means": lambda first, second: bool(first.mean() <= second.mean()),
            "a decision turned round": lambda first, second: not _inside_the_spread(first, second),
            "one side alone": lambda first, second: bool(second.min() <= first.max()),
            "a mean within the sum of the standard deviations": lambda first, second: bool(
                (first.mean() - second.mean()).abs() <= first.std() + second.std()
            ),
            "a mean within the larger standard deviation": lambda first, second: bool(
                (first.mean() - second.mean()).abs() <= max(first.std(), second.std())
            ),
            "a mean inside the other's range": lambda first, second: bool(
                second.min() <= first.mean() <= second.max() or first.min() <= second.mean() <= first.max()
            ),
            "an overlap of more than a point": lambda first, second: bool(
                first.min() < second.max() and second.min() < first.max()
            ),
            "a comparison of the first and the last seed": lambda first, second: bool(
                first[0] <= second[-1] and second[0] <= first[-1]
            ),
            "a comparison that leaves room": lambda first, second: bool(
                first.min() <= second.max() + 0.005 and second.min() <= first.max() + 0.005
            ),
            "a comparison to two digits": lambda first, second: _inside_the_spread(
                first.round(decimals=2), second.round(decimals=2)
            ),
        },
        cases=lambda: [
            (torch.tensor(a, dtype=torch.float64), torch.tensor(b, dtype=torch.float64))
            for a, b in (
                ([0.80, 0.82, 0.81], [0.83, 0.85]),
                ([0.83, 0.85], [0.80, 0.82, 0.81]),
                ([0.80, 0.84], [0.81, 0.82]),
                ([0.81, 0.82], [0.80, 0.84]),
                ([0.7, 0.9], [0.85, 0.95]),
                ([0.85, 0.95], [0.7, 0.9]),
                ([0.5, 0.9, 0.9], [0.91, 0.92]),  # apart, and nearer than a standard deviation
                ([0.7, 0.7, 0.9], [0.85, 0.95, 0.95]),  # overlapping, with both means outside
                ([0.80, 0.82], [0.82, 0.85]),  # touching
                ([0.82, 0.85], [0.80, 0.82]),
                ([0.84, 0.80, 0.81], [0.83, 0.85, 0.82]),  # overlapping; neither sorted
                ([0.81, 0.79, 0.85, 0.80], [0.84, 0.86, 0.82]),
                ([0.80, 0.84, 0.81], [0.90, 0.86, 0.87]),  # apart
                ([0.81, 0.82, 0.803], [0.823, 0.821, 0.85]),  # apart by a thousandth
                ([0.843, 0.829], [0.812, 0.828]),
                ([0.826, 0.81], [0.834, 0.85]),  # apart, and yet alike to two digits
            )
        ],
    ),
]
