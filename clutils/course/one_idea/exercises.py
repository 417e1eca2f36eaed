"""Exercises of notebook 08."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from clutils import maps
from clutils.course import toys
from clutils.course.exercise import Lacks, something, value_and_gradients, written
from clutils.losses.vicreg import moments

exercise = written(__file__)

# ---- 1: the temperature that a number of negatives asks for ------------------------------------------------


def temperature_for(negatives: Tensor, effective: float | Tensor) -> Tensor:
    low, high = torch.full_like(negatives[:, :1], 1e-4), torch.full_like(negatives[:, :1], 1e3)
    for _ in range(60):
        tau = (low * high).sqrt()
        entropy = torch.special.entr(torch.softmax(negatives / tau, dim=1)).sum(dim=1, keepdim=True)
        few = entropy.exp() < effective  # too cold
        low, high = torch.where(few, tau, low), torch.where(few, high, tau)
    return tau[:, 0]


def _by(count: Callable[[Tensor], Tensor], turned: bool = False) -> Callable[[Tensor, float], Tensor]:
    """The answer with another count of weights (A, K) -> (A, 1); turned: the wrong half is kept."""

    def answer(negatives: Tensor, effective: float) -> Tensor:
        low, high = torch.full_like(negatives[:, :1], 1e-4), torch.full_like(negatives[:, :1], 1e3)
        for _ in range(60):
            tau = (low * high).sqrt()
            few = (count(torch.softmax(negatives / tau, dim=1)) < effective) ^ turned
            low, high = torch.where(few, tau, low), torch.where(few, high, tau)
        return tau[:, 0]

    return answer


def _entropy(q: Tensor) -> Tensor:
    return torch.special.entr(q).sum(dim=1, keepdim=True)


def _gaussian(correction: int) -> Callable[[Tensor, float], Tensor]:
    def answer(negatives: Tensor, effective: float) -> Tensor:
        radius = math.log(negatives.shape[1] / effective)
        return negatives.std(dim=1, correction=correction) / math.sqrt(2 * radius)

    return answer


def _tables() -> list[tuple[Tensor, float]]:
    draw = torch.Generator().manual_seed(8)
    spread = torch.tensor([0.2, 0.5, 1.0], dtype=torch.float64)[:, None]
    return [
        (scale * spread * toys.random_similarities(3, 1, K, draw)[1], effective)
        for K, effective, scale in (
            (12, 4.0, 1.0),
            (12, 2.0, 1.0),
            (40, 10.0, 1.0),
            (40, 25.0, 0.1),
            (100, 70.0, 1.0),
        )
    ]


TEMPERATURE_FOR = exercise(
    "temperature_for",
    temperature_for,
    {
        "the bisection keeps the wrong half": _by(lambda q: _entropy(q).exp(), turned=True),
        "one temperature for all anchors": _by(lambda q: _entropy(q).mean().exp().expand(len(q), 1)),
        "the Gaussian rule": _gaussian(0),
        "the Gaussian rule with a sample's deviation": _gaussian(1),
        "another count, 1/Σq²": _by(lambda q: 1 / q.square().sum(dim=1, keepdim=True)),
        "H itself, not e^H": _by(_entropy),
        "a logarithm to base 2": _by(lambda q: (_entropy(q) / math.log(2)).exp()),
        "1/τ": lambda n, k: 1 / temperature_for(n, k),
        "the share that is left out": lambda n, k: temperature_for(n, n.shape[1] - k + 1),
    },
    cases=_tables,
    tolerance=1e-5,
)


# ---- 2: the loss of a map ----------------------------------------------------------------------------------


def map_loss(positions: Tensor, pairs: Tensor, drawn: Tensor, c: float) -> Tensor:
    i, j = pairs
    near = 1 / (1 + (positions[i] - positions[j]).square().sum(dim=1))
    far = 1 / (1 + (positions[i][:, None] - positions[drawn]).square().sum(dim=2))
    return -torch.log(near / (near + c)).sum() - torch.log(c / (far + c)).sum()


def _cauchy(d: Tensor) -> Tensor:
    return 1 / (1 + d)


def _of(
    made: Callable[[Tensor, Tensor, float], Tensor], q: Callable[[Tensor], Tensor] = _cauchy
) -> Callable[..., Tensor]:
    """An answer made of q, a function of d², of each pair, (pairs,), and of those drawn, (pairs, drawn)."""

    def answer(positions: Tensor, pairs: Tensor, drawn: Tensor, c: float) -> Tensor:
        first = positions[pairs[0]]
        near = q((first - positions[pairs[1]]).square().sum(1))
        far = q((first[:, None] - positions[drawn]).square().sum(2))
        return made(near, far, c)

    return answer


def _pull(q: Tensor, c: float) -> Tensor:
    return -torch.log(q / (q + c))


def _push(q: Tensor, c: float) -> Tensor:
    return -torch.log(c / (q + c))


def _both(near: Tensor, far: Tensor, c: float) -> Tensor:
    return _pull(near, c).sum() + _push(far, c).sum()


def _map_cases() -> list[tuple[Tensor, Tensor, Tensor, float]]:
    made = []
    for c in (0.1, 1.0, 3.0):
        draw = torch.Generator().manual_seed(9)
        positions = 2 * torch.randn(10, 2, generator=draw, dtype=torch.float64)
        pairs = maps.neighbour_pairs(torch.randn(10, 4, generator=draw), 2)
        away = torch.randint(1, 10, (pairs.shape[1], 3), generator=draw)
        made.append((positions, pairs, (pairs[0][:, None] + away) % 10, c))
    draw = torch.Generator().manual_seed(10)
    positions = 2 * torch.randn(10, 2, generator=draw, dtype=torch.float64)
    positions[0] *= 40  # far away
    one_way = torch.stack([torch.arange(9), torch.arange(1, 10)])
    drawn = torch.randint(10, (9, 5), generator=draw)
    return [*made, (positions, one_way, drawn, 0.5)]


MAP_LOSS = exercise(
    "map_loss",
    map_loss,
    {
        "d in place of d²": _of(_both, lambda d: 1 / (1 + d.sqrt())),
        "a Gaussian kernel": _of(_both, lambda d: torch.exp(-d)),
        "a Gaussian kernel of d²/2": _of(_both, lambda d: torch.exp(-d / 2)),
        "a mean over the drawn": _of(lambda near, far, c: _pull(near, c).sum() + _push(far, c).mean(1).sum()),
        "a mean over all": _of(lambda near, far, c: _pull(near, c).mean() + _push(far, c).mean()),
        "a mean over the pairs": _of(
            lambda near, far, c: _pull(near, c).mean() + _push(far, c).sum(1).mean()
        ),
        "a push on j": lambda y, pairs, drawn, c: map_loss(y, pairs.flip(0), drawn, c),
        "the other sign": lambda y, pairs, drawn, c: -map_loss(y, pairs, drawn, c),
        "InfoNCE": _of(lambda near, far, c: -torch.log(near / (near + far.sum(dim=1))).sum()),
        "c left out": lambda y, pairs, drawn, c: map_loss(y, pairs, drawn, 1.0),
        "no push": lambda y, pairs, drawn, c: map_loss(y, pairs, drawn[:, :0], c),
        "the two parts exchanged": _of(lambda near, far, c: _push(near, c).sum() + _pull(far, c).sum()),
    },
    cases=_map_cases,
    observe=value_and_gradients("positions"),
    by_hand=(
        torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]),
        torch.tensor([[0], [1]]),
        torch.tensor([[2]]),
        0.5,
    ),
)


def few_points(dimensions: int) -> Tensor:
    axes = dimensions**0.5 * torch.eye(dimensions, dtype=torch.float64)
    return torch.cat([axes, -axes])


SINGLE = torch.finfo(torch.float32).eps


def _lacks(answer: Callable[[int], Tensor]) -> str | None:
    """None for points that fool VICReg's two terms in 2, 3 and 8 dimensions; else what they lack."""
    for D in (2, 3, 8):
        given = something(answer(D))
        try:
            z = torch.as_tensor(given).detach()
        except (TypeError, ValueError, RuntimeError):
            raise Lacks(f"a tensor is asked for, got {given!r:.60}.") from None
        if z.is_complex() or not z.isfinite().all():
            return "a batch with numbers that are none"
        precision = min(torch.finfo(z.dtype).eps, SINGLE) if z.is_floating_point() else 0.0
        z = z.double()
        if z.ndim != 2 or z.shape[1] != D or len(z) < 2:
            return "a batch of another shape"
        if len(torch.unique((z * 1e6).round(), dim=0)) > 2 * D:
            return "a batch of too many embeddings"
        covariance = torch.cov(z.T)
        v, spread = float(moments(covariance)[0]), covariance.diagonal().sqrt()
        rounding = 8 * precision * spread[:, None] * spread  # what long vectors leave, half ones no more
        c = float(moments((covariance.abs() - rounding).clamp(min=0))[1])
        if not v < 1e-4:
            return "a batch that lacks variance"
        if not c < 1e-6:
            return "a batch whose features vary together"
    return None


FEW_POINTS = exercise(
    "few_points",
    few_points,
    {
        "a batch of too many embeddings": lambda D: (
            torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * D) * 1.5
        ),
        "a batch that lacks variance": lambda D: torch.cat([torch.eye(D), -torch.eye(D)]),
        "a batch whose features vary together": lambda D: 2 * D * torch.eye(D),
        "a batch with numbers that are none": lambda D: torch.full((2 * D, D), torch.nan),
        "a batch of another shape": lambda D: torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]]) * 1.5,
    },
    judge=_lacks,
)


EXERCISES = [TEMPERATURE_FOR, MAP_LOSS, FEW_POINTS]
