"""Short runs, and how the tests of the loop and of the methods compare two of them."""

import torch
from torch import nn

from clutils import data, methods, training

DIGITS = data.load("digits", limit=100)


GRAPHS = data.load("graphs:motifs", limit=100)
NETWORK = data.load("nodes:blocks")


def samples_for(method: str):
    """Samples of a kind that the method takes."""
    kinds = methods.catalogue()[method].cls.sample_kinds
    return DIGITS if "pictures" in kinds else GRAPHS if "graphs" in kinds else NETWORK


class NoChance(nn.Module):
    """A loss of one's own, with nothing but a forward."""

    def forward(self, z1, z2):
        return (z1 - z2).square().mean()


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
