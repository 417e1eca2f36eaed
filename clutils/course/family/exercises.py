"""Exercises of notebook 07."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong

OFFERED = ("NTXent", "FlatNCE", "MACL with alpha = 0", "DualTemperature", "HardNegative", "SupCon")


def _shares_of_the_push(push: Tensor) -> Tensor:
    return push / push.sum(dim=1, keepdim=True)


def _inside_the_spread(first: Tensor, second: Tensor) -> bool:
    return bool(first.min() <= second.max() and second.min() <= first.max())


def _same_as_decoupled(answer: Any) -> str | None:
    try:
        given = set(answer)
    except TypeError:
        return f"expected a set of names, as in {{'SupCon', 'NTXent'}}, got {answer!r}."
    if isinstance(answer, str):
        given = {answer}
    unknown = sorted(str(name) for name in given if name not in OFFERED)
    if unknown:
        return f"{unknown[0]!r} is none of {', '.join(OFFERED)}."
    if given == {"FlatNCE", "MACL with alpha = 0"}:
        return None
    if "NTXent" in given or "SupCon" in given:
        return "a loss with the brake on"
    if "DualTemperature" in given:
        return "a loss with another brake"
    if "HardNegative" in given:
        return "a loss that shares the push out differently"
    return "half of the answer"


EXERCISES = [
    Exercise(
        name="shares_of_the_push",
        question="What share of its anchor's push each negative gets: push (A, K) -> (A, K), rows sum to 1.",
        answer=_shares_of_the_push,
        hints=[
            "The strength of the push on all negatives of an anchor is the sum of its row.",
            "`push.sum(dim=1, keepdim=True)` keeps the column, so that a division works row by row.",
        ],
        wrong=[
            Wrong(
                "a share of the whole batch",
                lambda push: push / push.sum(),
                "each anchor shares out its own push: sum over the row alone.",
            ),
            Wrong(
                "a softmax",
                lambda push: torch.softmax(push, dim=1),
                "the push is a force already, no logit: divide it by its sum.",
            ),
            Wrong(
                "a column's share",
                lambda push: push / push.sum(dim=0, keepdim=True),
                "rows are anchors: sum over dim=1.",
            ),
        ],
        cases=lambda: [
            (torch.rand(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64),)
            for shape in ((1, 3), (4, 7), (20, 5))
        ],
    ),
    Exercise(
        name="same_as_decoupled",
        question=f"A set of names out of {', '.join(OFFERED)}.",
        answer={"FlatNCE", "MACL with alpha = 0"},
        hints=[
            "The decoupled loss pulls with 1/τ, whatever the similarities are. Which of these have a pull "
            "that depends on them?",
            "Look for '=' in the row of the decoupled loss in the table of angles.",
        ],
        wrong=[
            Wrong(
                "a loss with the brake on",
                {"NTXent", "FlatNCE"},
                "its pull is W/τ, with W below 1: the same direction, not the same length.",
            ),
            Wrong(
                "a loss with another brake",
                {"DualTemperature"},
                "its pull is W/τ with the W of a higher temperature, nearly 1 and not 1.",
            ),
            Wrong(
                "a loss that shares the push out differently",
                {"HardNegative", "FlatNCE"},
                "it weighs its negatives by their hardness once more.",
            ),
            Wrong("half of the answer", {"FlatNCE"}, "there is one more among them."),
        ],
        judge=_same_as_decoupled,
    ),
    Exercise(
        name="inside_the_spread",
        question="Whether the seeds of two losses overlap: accuracies (n,), (m,) -> True or False.",
        answer=_inside_the_spread,
        hints=[
            "Each loss has a lowest and a highest seed: two intervals. When do two intervals share a point?",
            "They do when each begins before the other ends.",
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
                "True where they overlap, that is where nothing is decided.",
            ),
            Wrong(
                "one side alone",
                lambda first, second: bool(second.min() <= first.max()),
                "that is also so when the first lies above the second altogether.",
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
            )
        ],
    ),
]
