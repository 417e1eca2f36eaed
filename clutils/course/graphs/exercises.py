"""Exercises of notebook 14: a graph convolution, and GraphCL's loss."""

import torch
from torch import Tensor

from clutils.course.exercise import value_and_gradients, written

exercise = written(__file__)

# ---- 1: one propagation --------------------------------------------------------------------------


def propagate(h: Tensor, adjacency: Tensor) -> Tensor:
    looped = adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)
    root = looped.sum(dim=1).rsqrt()
    return (root[:, None] * looped * root[None, :]) @ h


def _networks() -> list[tuple[Tensor, Tensor]]:
    dice = torch.Generator().manual_seed(14)
    cases = []
    for nodes, width in ((4, 3), (7, 2), (12, 5)):
        upper = (torch.rand(nodes, nodes, generator=dice, dtype=torch.float64) < 0.4).double().triu(1)
        upper[0, 1:] = 1.0  # nobody is alone, and one node has many neighbours
        cases.append((torch.randn(nodes, width, generator=dice, dtype=torch.float64), upper + upper.T))
    alone = torch.zeros(3, 3, dtype=torch.float64)
    alone[0, 1] = alone[1, 0] = 1.0  # and the third has no neighbour
    return [*cases, (torch.randn(3, 2, generator=dice, dtype=torch.float64), alone)]


def _looped(adjacency: Tensor) -> Tensor:
    return adjacency + torch.eye(len(adjacency), dtype=adjacency.dtype)


def _without_loops(h: Tensor, adjacency: Tensor) -> Tensor:
    root = adjacency.sum(dim=1).rsqrt()
    return (root[:, None] * adjacency * root[None, :]) @ h


def _degrees_before(h: Tensor, adjacency: Tensor) -> Tensor:
    root = adjacency.sum(dim=1).rsqrt()
    return (root[:, None] * _looped(adjacency) * root[None, :]) @ h


PROPAGATE = exercise(
    name="propagate",
    answer=propagate,
    wrong={
        "without the node itself": _without_loops,
        "degrees of A, not of A + I": _degrees_before,
        "the node itself after the division": lambda h, a: _without_loops(h, a) + h,
        "the node itself undivided": lambda h, a: (
            propagate(h, a) + h - h / _looped(a).sum(dim=1, keepdim=True)
        ),
        "the mean over neighbours": lambda h, a: _looped(a) @ h / _looped(a).sum(dim=1, keepdim=True),
        "the sum": lambda h, a: _looped(a) @ h,
        "the senders' degrees alone": lambda h, a: _looped(a) @ (h / _looped(a).sum(dim=1, keepdim=True)),
        "the product of the degrees, without the root": lambda h, a: (
            (_looped(a) / _looped(a).sum(dim=1)[:, None] / _looped(a).sum(dim=1)[None, :]) @ h
        ),
    },
    cases=_networks,
)


# ---- 2: GraphCL's loss ---------------------------------------------------------------------------


def other_view_loss(similarities: Tensor, temperature: float) -> Tensor:
    logits = similarities / temperature
    own = torch.eye(len(logits), dtype=torch.bool)
    others = logits.masked_fill(own, -torch.inf)
    return (others.logsumexp(dim=1) - logits.diagonal()).mean()


def _tables() -> list[tuple[Tensor, float]]:
    dice = torch.Generator().manual_seed(15)
    cases = [
        (2 * torch.rand(B, B, generator=dice, dtype=torch.float64) - 1, t)
        for B, t in ((4, 0.2), (9, 0.5), (6, 2))
    ]
    learned = torch.full((5, 5), -0.3, dtype=torch.float64).fill_diagonal_(0.9)
    return [*cases, (learned + 0.1 * cases[1][0][:5, :5], 0.2)]  # a loss below 0


def _with_positive(s: Tensor, t: float) -> Tensor:
    return ((s / t).logsumexp(dim=1) - s.diagonal() / t).mean()


OTHER_VIEW_LOSS = exercise(
    name="other_view_loss",
    answer=other_view_loss,
    wrong={
        "the positive in the sum": _with_positive,
        "both ways": lambda s, t: (other_view_loss(s, t) + other_view_loss(s.T, t)) / 2,
        "the columns' sums": lambda s, t: other_view_loss(s.T, t),
        "the mean over the negatives": lambda s, t: other_view_loss(s, t) - torch.tensor(len(s) - 1.0).log(),
        "the temperature left out of the positive": lambda s, t: (
            other_view_loss(s, t) + (s.diagonal() / t - s.diagonal()).mean()
        ),
        "never below zero": lambda s, t: other_view_loss(s, t).clamp(min=0),
        "a sum over graphs": lambda s, t: other_view_loss(s, t) * len(s),
    },
    cases=_tables,
    observe=value_and_gradients("similarities"),
    by_hand=(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), 0.5),
)

EXERCISES = [PROPAGATE, OTHER_VIEW_LOSS]
