"""Exercises of notebook 11: MoCo's queue, a target with a schedule, SimSiam's stop-gradient."""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from clutils.course.exercise import Lacks, gradients, something, value_and_gradients, written

exercise = written(__file__)


def _kind(x: Any) -> str:
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else repr(x)


# ---- 1: the queue --------------------------------------------------------------------------------


def moco_step(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    keys = keys.detach()  # a constant: the gradient is for the queries alone
    positives = (queries * keys).sum(dim=1, keepdim=True)  # (B, 1)
    logits = torch.cat([positives, queries @ queue.T], dim=1) / temperature  # (B, 1 + K)
    loss = (logits.logsumexp(dim=1) - logits[:, 0]).mean()
    return loss, torch.cat([queue[len(keys) :], keys])


Step = Callable[[Tensor, Tensor, Tensor, float], tuple[Tensor, Tensor]]


def _constant_keys(step: Step) -> Step:
    return lambda queries, keys, queue, temperature: step(queries, keys.detach(), queue, temperature)


def _then(after: Callable[[Tensor, Tensor], Tensor]) -> Step:
    """The right loss, and another queue afterwards."""
    return _constant_keys(lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], after(queue, k)))


def _loss(other: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> Step:
    """Another loss, and the right queue afterwards."""
    return _constant_keys(lambda q, k, queue, t: (other(q, k, queue, t), _enqueue(queue, k)))


def _enqueue(queue: Tensor, keys: Tensor) -> Tensor:
    return torch.cat([queue[len(keys) :], keys])


def _with_gradient(q: Tensor, k: Tensor, queue: Tensor, t: float, among: str = "own") -> Tensor:
    """The loss without its detach; in the denominator stands the own key, the batch's keys, or none."""
    positives = (q * k).sum(dim=1, keepdim=True)
    keys = {"own": positives, "batch": q @ k.T, "none": positives[:, :0]}[among]
    logits = torch.cat([keys, q @ queue.T], dim=1) / t
    return (logits.logsumexp(dim=1) - positives[:, 0] / t).mean()


def _steps() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(10)

    def unit(*shape: int) -> Tensor:
        return F.normalize(torch.randn(shape, generator=draw, dtype=torch.float64), dim=1)

    return [(unit(3, 4), unit(3, 4), unit(K, 4), t) for K, t in ((7, 0.2), (12, 0.07), (3, 0.5))]


def _of_step(
    answer: Step, queries: Tensor, keys: Tensor, queue: Tensor, temperature: float
) -> dict[str, Any]:
    """The loss, the queue afterwards, the loss's gradients, and whether the queue keeps a graph."""
    leaves = [queries.requires_grad_(), keys.requires_grad_()]
    returned = something(answer(*leaves, queue, temperature))
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise Lacks(f"two things are asked for, the loss and the queue; it returned {_kind(returned)}")
    if not all(isinstance(x, Tensor) for x in returned):
        raise Lacks(f"both are to be tensors; it returned {' and '.join(map(_kind, returned))}")
    loss, after = returned
    if loss.ndim:
        raise Lacks(f"the loss is to be one number, the mean over the queries; it is {_kind(loss)}")
    by_queries, by_keys = gradients(loss, leaves)
    # along the sphere: an answer may normalise its unit vectors once more
    along = by_queries - (by_queries * queries).sum(dim=1, keepdim=True) * queries
    found = {"the loss": loss, "the queue": after}
    found |= {"the gradient by the queries": along, "the gradient by the keys": by_keys}
    return {name: x.detach() for name, x in found.items()} | {
        "whether the queue keeps a graph": after.requires_grad
    }


QUEUE_WRONG = {
    "keys with a gradient": lambda q, k, queue, t: (
        _with_gradient(q, k, queue, t),
        _enqueue(queue, k.detach()),
    ),
    "no detach at all": lambda q, k, queue, t: (_with_gradient(q, k, queue, t), _enqueue(queue, k)),
    "a queue that keeps the keys' graph": lambda q, k, queue, t: (
        moco_step(q, k, queue, t)[0],
        _enqueue(queue, k),
    ),
    "a loss that is detached from everything": lambda q, k, queue, t: tuple(
        x.detach() for x in moco_step(q, k, queue, t)
    ),
    "the detach on the queries": lambda q, k, queue, t: (
        _with_gradient(q.detach(), k, queue, t),
        _enqueue(queue, k.detach()),
    ),
    "keys that enter before the loss": _loss(
        lambda q, k, queue, t: moco_step(q, k, _enqueue(queue, k), t)[0]
    ),
    "the batch's other keys as negatives, too": _loss(functools.partial(_with_gradient, among="batch")),
    "the positive left out of the denominator": _loss(functools.partial(_with_gradient, among="none")),
    "the newest keys thrown away": _then(lambda queue, k: torch.cat([queue[: -len(k)], k])),
    "the new keys put in front": _then(lambda queue, k: torch.cat([k, queue[: -len(k)]])),
    "no temperature": _loss(lambda q, k, queue, t: moco_step(q, k, queue, 1.0)[0]),
    "the temperature on the negatives alone": _loss(lambda q, k, queue, t: moco_step(q, k * t, queue, t)[0]),
    "a sum over the queries": _loss(lambda q, k, queue, t: len(q) * moco_step(q, k, queue, t)[0]),
    "the sign turned": _loss(lambda q, k, queue, t: -moco_step(q, k, queue, t)[0]),
    "a queue that grows": _then(lambda queue, k: torch.cat([queue, k])),
    "the queries in the queue": lambda q, k, queue, t: (
        moco_step(q, k, queue, t)[0],
        _enqueue(queue, q.detach()),
    ),
    "one key that leaves": _then(lambda queue, k: torch.cat([queue[1:], k])),
    "keys that never enter": _then(lambda queue, k: queue),
}

QUEUE = exercise("moco_step", moco_step, QUEUE_WRONG, cases=_steps, observe=_of_step)


# ---- 2: a target with a schedule -----------------------------------------------------------------


def follow(target: Tensor, online: Tensor, step: int, steps: int, base: float) -> Tensor:
    momentum = 1 - (1 - base) * (1 + math.cos(math.pi * step / steps)) / 2
    return momentum * target + (1 - momentum) * online


def _following(schedule: Callable[[float, float], float]) -> Callable[..., Tensor]:
    """The right mean, by another momentum: of the share of the steps done, and its start."""

    def answer(target: Tensor, online: Tensor, step: int, steps: int, base: float) -> Tensor:
        m = schedule(step / steps, base)
        return m * target + (1 - m) * online

    return answer


def _half_cosine(x: float) -> float:
    return (1 + math.cos(math.pi * x)) / 2


def _weights() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(9)
    cases = []
    given = (((3,), 0, 100, 0.99), ((2, 4), 30, 100, 0.9), ((5,), 500, 1000, 0.5), ((5,), 7, 7, 0.8))
    for shape, step, steps, base in given:
        target, online = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
        cases.append((target, online, step, steps, base))
    return cases


FOLLOW = exercise(
    "follow",
    follow,
    {
        "a momentum that stays": _following(lambda x, base: base),
        "a straight line": _following(lambda x, base: base + (1 - base) * x),
        "the schedule run backwards": _following(lambda x, base: 1 - (1 - base) * _half_cosine(1 - x)),
        "the learning rate's cosine": _following(lambda x, base: base * _half_cosine(x)),
        "a whole period of the cosine": _following(lambda x, base: 1 - (1 - base) * _half_cosine(2 * x)),
        "a cosine without π": _following(lambda x, base: 1 - (1 - base) * _half_cosine(x / math.pi)),
        "a quarter of a cosine": _following(lambda x, base: 1 - (1 - base) * math.cos(math.pi * x / 2)),
        "the momentum swapped": lambda target, online, *when: follow(online, target, *when),
        "the online network copied": lambda target, online, *when: online,
        "the target left where it is": lambda target, online, *when: target,
        "a step away from the online network": lambda target, online, *when: (
            2 * target - follow(target, online, *when)
        ),
        "the optimiser's momentum": lambda target, online, *when: follow(target, 0 * online, *when) + online,
    },
    cases=_weights,
)


# ---- 3: the stop-gradient ------------------------------------------------------------------------


def simsiam_loss(p1: Tensor, p2: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
    cosine = torch.nn.functional.cosine_similarity
    one, two = cosine(p1, z2.detach(), dim=1), cosine(p2, z1.detach(), dim=1)
    return -(one.mean() + two.mean()) / 2


def _negative_cosine(a: Tensor, b: Tensor) -> Tensor:
    return -F.cosine_similarity(a, b, dim=1).mean()


SIMSIAM_WRONG = {
    "the stop-gradient forgotten": lambda p1, p2, z1, z2: (
        (_negative_cosine(p1, z2) + _negative_cosine(p2, z1)) / 2
    ),
    "the detach on the predictions": lambda p1, p2, z1, z2: (
        (_negative_cosine(p1.detach(), z2) + _negative_cosine(p2.detach(), z1)) / 2
    ),
    "the detach on one of the two only": lambda p1, p2, z1, z2: (
        (_negative_cosine(p1, z2.detach()) + _negative_cosine(p2, z1)) / 2
    ),
    "the detach on both sides": lambda p1, p2, z1, z2: (
        simsiam_loss(p1.detach(), p2.detach(), z1, z2) + 0 * (z1.sum() + p1.sum())
    ),
    "dot products of vectors that are not normalised": lambda p1, p2, z1, z2: (
        -(p1 * z2.detach() + p2 * z1.detach()).sum(dim=1).mean() / 2
    ),
    "each prediction with its own view": lambda p1, p2, z1, z2: (
        (_negative_cosine(p1, z1.detach()) + _negative_cosine(p2, z2.detach())) / 2
    ),
    "one direction only": lambda p1, p2, z1, z2: _negative_cosine(p1, z2.detach()),
    "the sign turned": lambda p1, p2, z1, z2: -simsiam_loss(p1, p2, z1, z2),
    "the sum of both directions": lambda p1, p2, z1, z2: 2 * simsiam_loss(p1, p2, z1, z2),
    "a sum over the batch": lambda p1, p2, z1, z2: len(p1) * simsiam_loss(p1, p2, z1, z2),
    "BYOL's 2 - 2 cos": lambda p1, p2, z1, z2: 2 + 2 * simsiam_loss(p1, p2, z1, z2),
}


def _embeddings() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(11)
    return [tuple(torch.randn(5, 3, generator=draw, dtype=torch.float64) for _ in range(4))]


SIMSIAM = exercise(
    "simsiam_loss",
    simsiam_loss,
    SIMSIAM_WRONG,
    cases=_embeddings,
    observe=value_and_gradients("p1", "p2", "z1", "z2"),
)

EXERCISES = [QUEUE, FOLLOW, SIMSIAM]
