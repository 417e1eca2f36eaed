"""Exercises of notebook 11: MoCo's queue, a target with a schedule, SimSiam's stop-gradient."""

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


def _enqueue(queue: Tensor, keys: Tensor) -> Tensor:
    return torch.cat([queue[len(keys) :], keys])


def _right(q: Tensor, k: Tensor, queue: Tensor, t: float) -> Tensor:
    return moco_step(q, k, queue, t)[0]


def _changed(loss: Callable[..., Tensor] = _right, after: Callable[..., Tensor] = _enqueue) -> Step:
    """A step with another loss, or with another queue afterwards, which gets keys without a graph."""
    return lambda q, k, queue, t: (loss(q, k, queue, t), after(queue, k.detach()))


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
    "keys with a gradient": _changed(_with_gradient),
    "no detach at all": lambda q, k, queue, t: (_with_gradient(q, k, queue, t), _enqueue(queue, k)),
    "a queue that keeps the keys' graph": lambda q, k, queue, t: (_right(q, k, queue, t), _enqueue(queue, k)),
    "a loss that is detached from everything": _changed(lambda *given: _right(*given).detach()),
    "the detach on the queries": _changed(lambda q, *rest: _with_gradient(q.detach(), *rest)),
    "keys that enter before the loss": _changed(
        lambda q, k, queue, t: _right(q, k, _enqueue(queue, k.detach()), t)
    ),
    "the batch's other keys as negatives, too": _changed(
        lambda q, k, queue, t: _with_gradient(q, k.detach(), queue, t, "batch")
    ),
    "the positive left out of the denominator": _changed(
        lambda q, k, queue, t: _with_gradient(q, k.detach(), queue, t, "none")
    ),
    "the newest keys thrown away": _changed(after=lambda queue, k: torch.cat([queue[: -len(k)], k])),
    "the new keys put in front": _changed(after=lambda queue, k: torch.cat([k, queue[: -len(k)]])),
    "no temperature": _changed(lambda q, k, queue, t: _right(q, k, queue, 1.0)),
    "the temperature on the negatives alone": _changed(lambda q, k, queue, t: _right(q, k * t, queue, t)),
    "a sum over the queries": _changed(lambda q, *rest: len(q) * _right(q, *rest)),
    "the sign turned": _changed(lambda *given: -_right(*given)),
    "a queue that grows": _changed(after=lambda queue, k: torch.cat([queue, k])),
    "the queries in the queue": lambda q, k, queue, t: (
        _right(q, k, queue, t),
        _enqueue(queue, q.detach()),
    ),
    "one key that leaves": _changed(after=lambda queue, k: torch.cat([queue[1:], k])),
    "keys that never enter": _changed(after=lambda queue, k: queue),
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
        "a schedule that ends one step early": lambda target, online, step, steps, base: follow(
            target, online, step, max(steps - 1, 1), base
        ),
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
    by_hand=(torch.tensor(1.0), torch.tensor(3.0), 1, 3, 0.6),
)


# ---- 3: the stop-gradient ------------------------------------------------------------------------


def simsiam_loss(p1: Tensor, p2: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
    cosine = torch.nn.functional.cosine_similarity
    one, two = cosine(p1, z2.detach(), dim=1), cosine(p2, z1.detach(), dim=1)
    return -(one.mean() + two.mean()) / 2


def _negative_cosine(a: Tensor, b: Tensor) -> Tensor:
    return -F.cosine_similarity(a, b, dim=1).mean()


def _both(one: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """The mean over both directions of what `one` makes of a prediction and the other view's embedding."""
    return lambda p1, p2, z1, z2: (one(p1, z2) + one(p2, z1)) / 2


SIMSIAM_WRONG = {
    "the stop-gradient forgotten": _both(_negative_cosine),
    "the detach on the predictions": _both(lambda p, z: _negative_cosine(p.detach(), z)),
    "the detach on one of the two only": lambda p1, p2, z1, z2: (
        (_negative_cosine(p1, z2.detach()) + _negative_cosine(p2, z1)) / 2
    ),
    "the detach on both sides": _both(lambda p, z: _negative_cosine(p.detach(), z.detach())),
    "dot products of vectors that are not normalised": _both(lambda p, z: -(p * z.detach()).sum(1).mean()),
    "each prediction with its own view": lambda p1, p2, z1, z2: simsiam_loss(p1, p2, z2, z1),
    "one direction only": lambda p1, p2, z1, z2: _negative_cosine(p1, z2.detach()),
    "the sign turned": lambda *given: -simsiam_loss(*given),
    "the sum of both directions": lambda *given: 2 * simsiam_loss(*given),
    "a sum over the batch": lambda *given: len(given[0]) * simsiam_loss(*given),
    "BYOL's 2 - 2 cos": lambda *given: 2 + 2 * simsiam_loss(*given),
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
