"""Short runs, and how the tests of the loop and of the methods compare two of them."""

from __future__ import annotations

import torch

from clutils import data, training

DIGITS = data.load("digits", limit=100)


def small(**settings) -> training.Run:
    """20 steps of 32 digits: some hundredths of a second each."""
    return training.Run(**{"data": DIGITS, "batch_size": 32, "steps": 20, **settings})


def advance(run: training.Run, steps: int) -> training.Run:
    for _ in range(steps):
        run.step()
    return run


def weights(run: training.Run) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in run.method.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def past(run: training.Run):
    """The history without the clock."""
    return run.history.drop(columns="seconds")
