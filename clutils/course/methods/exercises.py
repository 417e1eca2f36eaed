"""Exercises of notebook 11: MoCo's queue, a target with a schedule, SimSiam's stop-gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from clutils.course.exercise import Exercise, Wrong

Outcome = Callable[[Callable[..., Any]], "list[Tensor] | str"]


def _judge(
    outcome: Outcome, parts: Sequence[str], right: Callable[..., Any], wrong: Sequence[Wrong]
) -> Callable[[Callable[..., Any]], str | None]:
    """A judge of what an answer brings about: its values, and where its gradient goes.

    - outcome: runs a function on fixed inputs and returns its `parts`, or says in words what it lacks
    """

    def same(a: Tensor, b: Tensor) -> bool:
        return a.shape == b.shape and torch.allclose(a.double(), b.double(), rtol=1e-6, atol=1e-7)

    def judge(answer: Callable[..., Any]) -> str | None:
        try:
            found = outcome(answer)
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return f"your code raised {type(error).__name__}: {error}"
        if isinstance(found, str):
            return found
        expected = outcome(right)
        if all(map(same, found, expected)):
            return None
        for known in wrong:
            if all(map(same, found, outcome(known.answer))):
                return known.name
        off = [part for part, a, b in zip(parts, found, expected, strict=True) if not same(a, b)]
        good = [part for part in parts if part not in off]
        told = f"{' and '.join(off)} {'differ' if len(off) > 1 else 'differs'} from what is asked for"
        return f"{told}; right: {', '.join(good) or 'nothing'}."

    return judge


def _gradients(value: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Of a value by each leaf, 0 where none flows."""
    found: Sequence[Tensor | None] = [None] * len(leaves)
    if value.requires_grad:
        found = torch.autograd.grad(value, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


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


def _early(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    queue = _enqueue(queue, keys)
    return moco_step(queries, keys, queue, temperature)[0], queue


def _with_gradient(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    logits = torch.cat([(queries * keys).sum(dim=1, keepdim=True), queries @ queue.T], dim=1) / temperature
    return (logits.logsumexp(dim=1) - logits[:, 0]).mean()


def _with_batch(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    table = torch.cat([queries @ keys.T, queries @ queue.T], dim=1) / temperature
    return (table.logsumexp(dim=1) - table.diagonal()).mean()


def _without_positive(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> Tensor:
    positives = (queries * keys).sum(dim=1) / temperature
    return ((queries @ queue.T / temperature).logsumexp(dim=1) - positives).mean()


def _steps() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(10)

    def unit(*shape: int) -> Tensor:
        return F.normalize(torch.randn(shape, generator=draw, dtype=torch.float64), dim=1)

    return [(unit(3, 4), unit(3, 4), unit(K, 4), t) for K, t in ((7, 0.2), (12, 0.07), (3, 0.5))]


def _of_step(answer: Step) -> list[Tensor] | str:
    """The loss, the queue afterwards, the loss's gradients, and whether the queue keeps a graph."""
    found = []
    for queries, keys, queue, temperature in _steps():
        leaves = [queries.requires_grad_(), keys.requires_grad_()]
        returned = answer(*leaves, queue.clone(), temperature)
        if returned is None or returned is Ellipsis:
            return "your function returned nothing yet"
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            return f"two things are asked for, the loss and the queue; it returned {_kind(returned)}"
        if not all(isinstance(x, Tensor) for x in returned):
            return f"both are to be tensors; it returned {' and '.join(map(_kind, returned))}"
        loss, after = returned
        if loss.ndim:
            return f"the loss is to be one number, the mean over the queries; it is {_kind(loss)}"
        by_queries, by_keys = _gradients(loss, leaves)
        # along the sphere: an answer may normalise its unit vectors once more
        along = by_queries - (by_queries * queries).sum(dim=1, keepdim=True) * queries
        kept = torch.tensor(float(after.requires_grad))
        found.append([x.detach() for x in (loss, after, along, by_keys, kept)])
    return [torch.cat([part.flatten() for part in parts]) for parts in zip(*found, strict=True)]


QUEUE_WRONG = [
    Wrong(
        "keys with a gradient",
        lambda q, k, queue, t: (_with_gradient(q, k, queue, t), _enqueue(queue, k.detach())),
        "that keys are constants is MoCo's decision: keys.detach() before the cosine.",
    ),
    Wrong(
        "no detach at all",
        lambda q, k, queue, t: (_with_gradient(q, k, queue, t), _enqueue(queue, k)),
        "the loss has a gradient by the keys, and the queue keeps their graph for ever: keys.detach() first.",
    ),
    Wrong(
        "a queue that keeps the keys' graph",
        lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], _enqueue(queue, k)),
        "the loss is right, but the memory of every step hangs on the queue: detached keys enter it.",
    ),
    Wrong(
        "a loss that is detached from everything",
        lambda q, k, queue, t: tuple(x.detach() for x in moco_step(q, k, queue, t)),
        "the keys are constants, the queries are not: nothing would learn.",
    ),
    Wrong(
        "the detach on the queries",
        lambda q, k, queue, t: (_with_gradient(q.detach(), k, queue, t), _enqueue(queue, k.detach())),
        "the gradient is for the queries, whose encoder learns; the keys' encoder follows by its mean.",
    ),
    Wrong(
        "keys that enter before the loss",
        _constant_keys(_early),
        "each query then meets its own key among its negatives: it is pushed from its positive.",
    ),
    Wrong(
        "the batch's other keys as negatives, too",
        _loss(_with_batch),
        "that is SimCLR's way; MoCo's negatives are the queue alone, whatever the batch.",
    ),
    Wrong(
        "the positive left out of the denominator",
        _loss(_without_positive),
        "MoCo's sum runs from i = 0, the positive: its loss is never below 0.",
    ),
    Wrong(
        "the newest keys thrown away",
        _then(lambda queue, k: torch.cat([queue[: -len(k)], k])),
        "the oldest stand first, and these are to go: queue[B:].",
    ),
    Wrong(
        "the new keys put in front",
        _then(lambda queue, k: torch.cat([k, queue[: -len(k)]])),
        "the oldest stand first: the newest are appended, and the first B rows go.",
    ),
    Wrong(
        "no temperature",
        _loss(lambda q, k, queue, t: moco_step(q, k, queue, 1.0)[0]),
        "every cosine, the positive's too, is divided by τ before the softmax.",
    ),
    Wrong(
        "the temperature on the negatives alone",
        _loss(lambda q, k, queue, t: moco_step(q, k * t, queue, t)[0]),
        "the positive's cosine is divided by τ as well.",
    ),
    Wrong(
        "a sum over the queries",
        _loss(lambda q, k, queue, t: len(q) * moco_step(q, k, queue, t)[0]),
        "the loss is the mean over the queries, so that it does not grow with the batch.",
    ),
    Wrong(
        "the sign turned",
        _loss(lambda q, k, queue, t: -moco_step(q, k, queue, t)[0]),
        "-log of a probability is never below 0.",
    ),
    Wrong(
        "a queue that grows",
        _then(lambda queue, k: torch.cat([queue, k])),
        "as many leave as enter: drop the B oldest.",
    ),
    Wrong(
        "the queries in the queue",
        lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], _enqueue(queue, q.detach())),
        "the slow encoder's keys enter; queries come from the one that changes with every step.",
    ),
    Wrong(
        "one key that leaves",
        _then(lambda queue, k: torch.cat([queue[1:], k])),
        "as many leave as enter: B, so that its length stays K.",
    ),
    Wrong(
        "keys that never enter",
        _then(lambda queue, k: queue),
        "the same old keys would be the negatives for ever.",
    ),
]
PARTS = ("the loss", "the queue", "the gradient by the queries", "the gradient by the keys")

QUEUE = Exercise(
    name="moco_step",
    question=(
        "(loss, queue afterwards) from unit queries and keys (B, D), both with a gradient, and a queue "
        "(K, D), oldest row first: negatives are the queue's keys, the positive stands in the denominator, "
        "the mean over the queries; then the keys enter at the end. A gradient goes into the queries alone."
    ),
    answer=moco_step,
    hints=[
        "Logits (B, 1 + K): each query with its own key, then with every row of the queue, all over τ.",
        "The loss first, with the queue as it came. Then drop its first B rows and append the keys.",
        "The keys are constants, in the loss and in the queue: `keys = keys.detach()` first of all.",
    ],
    wrong=QUEUE_WRONG,
    cases=_steps,
    judge=_judge(_of_step, (*PARTS, "what the queue keeps of the graph"), moco_step, QUEUE_WRONG),
)


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


FOLLOW = Exercise(
    name="follow",
    question=(
        "The target's weights after a step. Their momentum m rises along half a period of a cosine, from "
        "`base` at step 0 to 1 at step `steps`; m is the share of the target's own weights."
    ),
    answer=follow,
    hints=[
        "First m. (1 + cos(π k/K))/2 falls from 1 to 0: let it take 1 - m from 1 - base to 0.",
        "m = 1 - (1 - base) (1 + cos(π k/K))/2, and then target ← m · target + (1 - m) · online.",
    ],
    wrong=[
        Wrong(
            "a momentum that stays",
            _following(lambda x, base: base),
            "right at step 0 alone: it is to rise to 1, where the target stands still.",
        ),
        Wrong(
            "a straight line",
            _following(lambda x, base: base + (1 - base) * x),
            "it starts and ends as it should; in between half a cosine is asked for.",
        ),
        Wrong(
            "the schedule run backwards",
            _following(lambda x, base: 1 - (1 - base) * _half_cosine(1 - x)),
            "it starts at base and ends at 1: the target slows down.",
        ),
        Wrong(
            "the learning rate's cosine",
            _following(lambda x, base: base * _half_cosine(x)),
            "that one falls to 0, where the target is a copy; the momentum is to rise to 1.",
        ),
        Wrong(
            "a whole period of the cosine",
            _following(lambda x, base: 1 - (1 - base) * _half_cosine(2 * x)),
            "the cosine runs through half a period, from π·0 to π.",
        ),
        Wrong(
            "a cosine without π",
            _following(lambda x, base: 1 - (1 - base) * _half_cosine(x / math.pi)),
            "cos takes radians: half a period is π.",
        ),
        Wrong(
            "a quarter of a cosine",
            _following(lambda x, base: 1 - (1 - base) * math.cos(math.pi * x / 2)),
            "that starts flat and ends steep; half a period, (1 + cos)/2, is flat at both ends.",
        ),
        Wrong(
            "the momentum swapped",
            lambda target, online, *when: follow(online, target, *when),
            "m is the share of the target's own weights: at m = 0.99 it moves by one part in a hundred.",
        ),
        Wrong(
            "the online network copied",
            lambda target, online, *when: online,
            "the target is to follow slowly.",
        ),
        Wrong(
            "the target left where it is",
            lambda target, online, *when: target,
            "that is right at the last step alone: then it would stay at its random start.",
        ),
        Wrong(
            "a step away from the online network",
            lambda target, online, *when: 2 * target - follow(target, online, *when),
            "the difference has the wrong sign: target + (1 - m) (online - target).",
        ),
        Wrong(
            "the optimiser's momentum",
            lambda target, online, *when: follow(target, 0 * online, *when) + online,
            "that sum grows without end, as a velocity may; a mean has shares m and 1 - m.",
        ),
    ],
    cases=_weights,
)


# ---- 3: the stop-gradient ------------------------------------------------------------------------


def simsiam_loss(p1: Tensor, p2: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
    cosine = torch.nn.functional.cosine_similarity
    one, two = cosine(p1, z2.detach(), dim=1), cosine(p2, z1.detach(), dim=1)
    return -(one.mean() + two.mean()) / 2


def _negative_cosine(a: Tensor, b: Tensor) -> Tensor:
    return -F.cosine_similarity(a, b, dim=1).mean()


def _dot(p1: Tensor, p2: Tensor, z1: Tensor, z2: Tensor) -> Tensor:
    return -((p1 * z2.detach()).sum(dim=1).mean() + (p2 * z1.detach()).sum(dim=1).mean()) / 2


SIMSIAM_WRONG = [
    Wrong(
        "the stop-gradient forgotten",
        lambda p1, p2, z1, z2: (_negative_cosine(p1, z2) + _negative_cosine(p2, z1)) / 2,
        "the loss is the same number, but the gradient goes into both sides, and the run collapses.",
    ),
    Wrong(
        "the detach on the predictions",
        lambda p1, p2, z1, z2: (_negative_cosine(p1.detach(), z2) + _negative_cosine(p2.detach(), z1)) / 2,
        "then the predictor never learns: what is predicted stands still, what predicts moves.",
    ),
    Wrong(
        "the detach on one of the two only",
        lambda p1, p2, z1, z2: (_negative_cosine(p1, z2.detach()) + _negative_cosine(p2, z1)) / 2,
        "both terms have a side that is predicted: detach it in both.",
    ),
    Wrong(
        "the detach on both sides",
        lambda p1, p2, z1, z2: simsiam_loss(p1.detach(), p2.detach(), z1, z2) + 0 * (z1.sum() + p1.sum()),
        "then nothing learns: no gradient is left at all.",
    ),
    Wrong(
        "dot products of vectors that are not normalised",
        _dot,
        "the longer the vectors the lower that loss, without end: divide by both lengths.",
    ),
    Wrong(
        "each prediction with its own view",
        lambda p1, p2, z1, z2: (_negative_cosine(p1, z1.detach()) + _negative_cosine(p2, z2.detach())) / 2,
        "p1 comes from z1 already; it has to predict the other view's, z2.",
    ),
    Wrong(
        "one direction only",
        lambda p1, p2, z1, z2: _negative_cosine(p1, z2.detach()),
        "the paper's loss is the mean of both: p1 predicts z2, and p2 predicts z1.",
    ),
    Wrong(
        "the sign turned",
        lambda p1, p2, z1, z2: -simsiam_loss(p1, p2, z1, z2),
        "the loss is the negative cosine: -1 is its best.",
    ),
    Wrong(
        "the sum of both directions",
        lambda p1, p2, z1, z2: 2 * simsiam_loss(p1, p2, z1, z2),
        "the paper's loss is the mean of both, at best -1, not -2.",
    ),
    Wrong(
        "a sum over the batch",
        lambda p1, p2, z1, z2: len(p1) * simsiam_loss(p1, p2, z1, z2),
        "the mean over the batch is asked for: a sum grows with its size, and so does the step.",
    ),
    Wrong(
        "BYOL's 2 - 2 cos",
        lambda p1, p2, z1, z2: 2 + 2 * simsiam_loss(p1, p2, z1, z2),
        "that is BYOL's loss, twice this gradient; SimSiam's is the negative cosine itself.",
    ),
]


def _of_simsiam(loss: Callable[..., Tensor]) -> list[Tensor] | str:
    """A loss on fixed embeddings: its value, and its gradients by p1, p2, z1 and z2."""
    draw = torch.Generator().manual_seed(11)
    leaves = [torch.randn(5, 3, generator=draw, dtype=torch.float64).requires_grad_() for _ in range(4)]
    value = loss(*leaves)
    if value is None or value is Ellipsis:
        return "your function returned nothing yet"
    if not isinstance(value, Tensor) or value.ndim:
        return f"a scalar tensor is asked for, got {_kind(value)}"
    return [value.detach(), *_gradients(value, leaves)]


BY = ("the value", *(f"the gradient by {name}" for name in ("p1", "p2", "z1", "z2")))

SIMSIAM = Exercise(
    name="simsiam_loss",
    question=(
        "SimSiam's loss, a scalar, from predictions p1, p2 and embeddings z1, z2 (B, D), which come as they "
        "are, of any length; its value and where its gradient goes are checked."
    ),
    answer=simsiam_loss,
    hints=[
        "Each prediction with the other view's embedding: -cosine, the mean over the batch and over both.",
        "What is predicted takes no gradient: `z2.detach()`. What predicts does.",
    ],
    wrong=SIMSIAM_WRONG,
    judge=_judge(_of_simsiam, BY, simsiam_loss, SIMSIAM_WRONG),
)

EXERCISES = [QUEUE, FOLLOW, SIMSIAM]
