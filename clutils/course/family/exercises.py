"""Exercises of notebook 07."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong
from clutils.course.family.figures import PARALLEL, SAME, angle, difference, gradients

TEMPERATURE = 0.2
EASY = 1.0  # degrees: an effect that anybody would see


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
    return "a negative control of no difference at all" if difference(found[0], found[2]) < SAME else None


def _pushes() -> list[tuple[Tensor]]:
    """Of each a few rows; some negatives are drawn in, and the last anchor of each pushes none."""
    made = []
    for shape in ((2, 3), (5, 7), (20, 5)):
        dice = torch.Generator().manual_seed(shape[0])
        push = torch.rand(*shape, generator=dice, dtype=torch.float64) - 0.3
        push[0, 0], push[0, -1], push[-1] = -0.2, 0.5, 0.0
        made.append((push,))
    return made


EXERCISES = [
    Exercise(
        name="shares_of_the_push",
        question="What share of its anchor's push each negative gets: push (A, K) -> (A, K). One that is "
        "drawn in (push below 0) gets none, and an anchor that pushes none has a row of zeros.",
        answer=_shares_of_the_push,
        hints=[
            "First put 0 in place of every force that is no push: `clamp(min=0)`.",
            "`pushed.sum(dim=1, keepdim=True)` keeps the column, so that a division works row by row.",
            "Where the sum is 0 the division is 0/0: `torch.where` puts a 0 there.",
        ],
        wrong=[
            Wrong(
                "a share of the whole batch",
                lambda push: push.clamp(min=0) / push.clamp(min=0).sum(),
                "each anchor shares out its own push: sum over the row alone.",
            ),
            Wrong(
                "a softmax",
                lambda push: torch.softmax(push, dim=1),
                "the push is a force already, no logit: divide it by its sum.",
            ),
            Wrong(
                "a column's share",
                lambda push: push.clamp(min=0) / push.clamp(min=0).sum(dim=0, keepdim=True).clamp(min=1e-9),
                "rows are anchors: sum over dim=1.",
            ),
            Wrong(
                "a weight ω, below 0 for those drawn in",
                lambda push: push / push.sum(dim=1, keepdim=True).where(push.any(dim=1, keepdim=True), 1.0),
                "a negative that is drawn in gets no push: its share is 0.",
            ),
            Wrong(
                "a share of all forces, whichever way they point",
                lambda push: push.abs() / push.abs().sum(dim=1, keepdim=True).clamp(min=1e-9),
                "to be drawn in is no push, so those negatives have a share of 0.",
            ),
            Wrong(
                "the pushes over the net force",
                lambda push: (
                    push.clamp(min=0)
                    / push.sum(dim=1, keepdim=True).where(push.any(dim=1, keepdim=True), 1.0)
                ),
                "divide by the sum of the pushes alone, or the shares sum to more than 1.",
            ),
        ],
        cases=_pushes,
    ),
    Exercise(
        name="two_controls",
        question="(positive, negative): two losses that show that the angle can say both yes and no.",
        answer=(losses.NTXent(0.2005), losses.Decoupled(TEMPERATURE)),
        hints=[
            "What changes the shares of the push, and how could it change them by very little?",
            "Positive: NT-Xent at a temperature very near. Negative: a loss that the notebook printed under "
            "'one direction', but not under 'one gradient' with NT-Xent.",
        ],
        wrong=[
            Wrong(
                "a positive control that anything would notice",
                (losses.HardNegative(TEMPERATURE), losses.Decoupled(TEMPERATURE)),
                "it shows that the instrument sees a large turn, not that it would have seen a small one. "
                "Take an effect below one degree.",
            ),
            Wrong(
                "a negative control of no difference at all",
                (losses.NTXent(0.2005), losses.SupCon(TEMPERATURE)),
                "its gradient is NT-Xent's own. Show that another length is not taken for another direction.",
            ),
            Wrong(
                "the two the wrong way round",
                (losses.Decoupled(TEMPERATURE), losses.NTXent(0.2005)),
                "the positive control is the one that has the effect: another direction.",
            ),
            Wrong(
                "a positive control without the effect",
                (losses.DualTemperature(TEMPERATURE), losses.Decoupled(TEMPERATURE)),
                "its direction is NT-Xent's, so the angle is right to see nothing.",
            ),
            Wrong(
                "a negative control with the effect",
                (losses.NTXent(0.2005), losses.NTXent(0.5)),
                "another temperature is another direction: of this one the angle must say no.",
            ),
        ],
        judge=_two_controls,
    ),
    Exercise(
        name="inside_the_spread",
        question="Whether the ranges of two losses' seeds share a point: accuracies (n,), (m,) -> a bool.",
        answer=_inside_the_spread,
        hints=[
            "Each loss has a lowest and a highest seed: two intervals. When do two intervals share a point?",
            "They do when each begins before the other ends, or just where it ends.",
        ],
        wrong=[
            Wrong(
                "a comparison of means",
                lambda first, second: bool(first.mean() <= second.mean()),
                "which mean is larger says nothing about the spread.",
            ),
            Wrong(
                "a decision turned round",
                lambda first, second: not _inside_the_spread(first, second),
                "True where they overlap.",
            ),
            Wrong(
                "one side alone",
                lambda first, second: bool(second.min() <= first.max()),
                "that is also so when the first lies above the second altogether.",
            ),
            Wrong(
                "a mean within the sum of the standard deviations",
                lambda first, second: bool(
                    (first.mean() - second.mean()).abs() <= first.std() + second.std()
                ),
                "a standard deviation is another measure of spread: asked is for the ranges.",
            ),
            Wrong(
                "a mean within the larger standard deviation",
                lambda first, second: bool(
                    (first.mean() - second.mean()).abs() <= max(first.std(), second.std())
                ),
                "a standard deviation is another measure of spread: asked is for the ranges.",
            ),
            Wrong(
                "a mean inside the other's range",
                lambda first, second: bool(
                    second.min() <= first.mean() <= second.max()
                    or first.min() <= second.mean() <= first.max()
                ),
                "two ranges can overlap where neither mean lies in the other.",
            ),
            Wrong(
                "an overlap of more than a point",
                lambda first, second: bool(first.min() < second.max() and second.min() < first.max()),
                "ranges that touch share a point.",
            ),
        ],
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
            )
        ],
    ),
]
