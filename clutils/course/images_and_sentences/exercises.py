"""Exercises of notebook 17; their words are in exercises.md."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.course.exercise import value_and_gradients, written

exercise = written(__file__)


def symmetric(u: Tensor, v: Tensor, t: Tensor) -> Tensor:
    logits = u @ v.T * t.exp()
    own = torch.arange(len(u))
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2


def start_bias(batch: int) -> float:
    return -math.log(batch - 1)


def recall_at(similarities: Tensor, k: int) -> float:
    own = torch.arange(len(similarities))[:, None]
    return (similarities.topk(k, dim=1).indices == own).any(dim=1).double().mean().item()


def _rows(u: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    return F.cross_entropy(u @ v.T * scale, torch.arange(len(u)))


def _both(u: Tensor, v: Tensor, scale: Tensor) -> Tensor:
    return _rows(u, v, scale) + _rows(v, u, scale)


def _embedded() -> list[tuple[Tensor, Tensor, Tensor]]:
    dice = torch.Generator().manual_seed(17)
    cases = []
    for B, t in ((4, 0.0), (7, 1.5), (3, -0.5)):
        u, v = F.normalize(torch.randn(2, B, 5, generator=dice, dtype=torch.float64), dim=2)
        cases.append((u, v, torch.tensor(t, dtype=torch.float64)))
    return cases


def _tables() -> list[tuple[Tensor, int]]:
    dice = torch.Generator().manual_seed(17)
    tables = (torch.randn(N, N, generator=dice, dtype=torch.float64) for N in (8, 12, 9))
    return [(table + torch.eye(len(table)), k) for table, k in zip(tables, (1, 3, 2), strict=True)]


def _hit(similarities: Tensor, k: int, dim: int) -> Tensor:
    own = torch.arange(len(similarities)).unsqueeze(dim)
    return (similarities.topk(k, dim=dim).indices == own).any(dim=dim).double()


SYMMETRIC = exercise(
    "symmetric",
    symmetric,
    {
        "rows alone": lambda u, v, t: _rows(u, v, t.exp()),
        "columns alone": lambda u, v, t: _rows(v, u, t.exp()),
        "the sum of both": lambda u, v, t: _both(u, v, t.exp()),
        "t as the scale": lambda u, v, t: _both(u, v, t) / 2,
        "t as τ": lambda u, v, t: _both(u, v, 1 / t.exp()) / 2,
        "the scale detached": lambda u, v, t: _both(u, v, t.detach().exp()) / 2,
        "normalised again": lambda u, v, t: _both(F.normalize(u, dim=1), F.normalize(v, dim=1), t.exp()) / 2,
        "summed over the batch": lambda u, v, t: _both(u, v, t.exp()) / 2 * len(u),
    },
    cases=_embedded,
    observe=value_and_gradients("u", "v", "t"),
)

START_BIAS = exercise(
    "start_bias",
    start_bias,
    {
        "the paper's": lambda batch: -10.0,
        "log B": lambda batch: -math.log(batch),
        "the sign": lambda batch: math.log(batch - 1),
        "all pairs": lambda batch: -math.log(batch**2 - 1),
        "a probability": lambda batch: 1 / batch,
    },
    cases=lambda: [(2,), (16,), (64,), (22027,)],
)

RECALL_AT = exercise(
    "recall_at",
    recall_at,
    {
        "the other way": lambda s, k: _hit(s, k, 0).mean().item(),
        "the first alone": lambda s, k: _hit(s, 1, 1).mean().item(),
        "a share of k": lambda s, k: _hit(s, k, 1).mean().item() / k,
        "one too many": lambda s, k: _hit(s, k + 1, 1).mean().item(),
        "the least similar": lambda s, k: _hit(-s, k, 1).mean().item(),
        "a count": lambda s, k: _hit(s, k, 1).sum().item(),
    },
    cases=_tables,
)

EXERCISES = [SYMMETRIC, START_BIAS, RECALL_AT]
