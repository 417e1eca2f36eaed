"""Exercises of notebook 11: a network that follows, MoCo's queue, SimSiam's stop-gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from clutils.course.exercise import Exercise, Wrong

# ---- 1: the follower -----------------------------------------------------------------------------


def follow(target: Tensor, online: Tensor, momentum: float) -> Tensor:
    return momentum * target + (1 - momentum) * online


def _weights() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(9)
    cases = []
    for shape, momentum in (((3,), 0.99), ((2, 4), 0.5), ((5,), 0.0), ((5,), 1.0)):
        target, online = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
        cases.append((target, online, momentum))
    return cases


FOLLOW = Exercise(
    name="follow",
    question="The target's weights after a step: momentum m of its own, the rest of the online network's.",
    answer=follow,
    hints=[
        "With m = 1 the target never moves; with m = 0 it is the online network.",
        "target ← m · target + (1 - m) · online: a mean of the two, and m is the old one's share.",
    ],
    wrong=[
        Wrong(
            "the momentum swapped",
            lambda target, online, momentum: (1 - momentum) * target + momentum * online,
            "m is the share of the target's own weights: at m = 0.99 it moves by one part in a hundred.",
        ),
        Wrong(
            "the online network copied",
            lambda target, online, momentum: online,
            "that is right at m = 0 alone: the target is to follow slowly.",
        ),
        Wrong(
            "the target left where it is",
            lambda target, online, momentum: target,
            "that is right at m = 1 alone: then it would stay at its random start.",
        ),
        Wrong(
            "a step away from the online network",
            lambda target, online, momentum: target + (1 - momentum) * (target - online),
            "the difference has the wrong sign: target + (1 - m) (online - target).",
        ),
        Wrong(
            "the shares of a mean of two halves",
            lambda target, online, momentum: (target + online) / 2,
            "that is right at m = 0.5 alone.",
        ),
        Wrong(
            "the optimiser's momentum",
            lambda target, online, momentum: momentum * target + online,
            "that sum grows without end, as a velocity may; a mean has shares m and 1 - m.",
        ),
    ],
    cases=_weights,
)


# ---- 2: the queue --------------------------------------------------------------------------------


def moco_step(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    positives = (queries * keys).sum(dim=1, keepdim=True)  # (B, 1)
    logits = torch.cat([positives, queries @ queue.T], dim=1) / temperature  # (B, 1 + K)
    loss = (logits.logsumexp(dim=1) - logits[:, 0]).mean()
    return loss, torch.cat([queue[len(keys) :], keys])


def _enqueue(queue: Tensor, keys: Tensor) -> Tensor:
    return torch.cat([queue[len(keys) :], keys])


def _early(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    queue = _enqueue(queue, keys)
    return moco_step(queries, keys, queue, temperature)[0], queue


def _with_batch(queries: Tensor, keys: Tensor, queue: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    table = torch.cat([queries @ keys.T, queries @ queue.T], dim=1) / temperature
    loss = (table.logsumexp(dim=1) - table.diagonal()).mean()
    return loss, _enqueue(queue, keys)


def _without_positive(
    queries: Tensor, keys: Tensor, queue: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    positives = (queries * keys).sum(dim=1) / temperature
    loss = ((queries @ queue.T / temperature).logsumexp(dim=1) - positives).mean()
    return loss, _enqueue(queue, keys)


def _steps() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(10)

    def unit(*shape: int) -> Tensor:
        return F.normalize(torch.randn(shape, generator=draw, dtype=torch.float64), dim=1)

    return [(unit(3, 4), unit(3, 4), unit(K, 4), t) for K, t in ((7, 0.2), (12, 0.07), (3, 0.5))]


def _judge_step(answer: Callable[..., tuple[Tensor, Tensor]]) -> str | None:
    """The loss and the queue on their own, so that a reader learns which of them is off."""
    given = []
    for case in _steps():
        try:
            returned = answer(*(x.clone() if isinstance(x, Tensor) else x for x in case))
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return f"your code raised {type(error).__name__}: {error}"
        if returned is None or returned is Ellipsis:
            return "your function returned nothing yet"
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            return f"two things are asked for, the loss and the queue; it returned {_kind(returned)}"
        if not all(isinstance(x, Tensor) for x in returned):
            return f"both are to be tensors; it returned {' and '.join(map(_kind, returned))}"
        loss, queue = (x.detach().double() for x in returned)
        if loss.ndim:
            return f"the loss is to be one number, the mean over the queries; it is {_kind(loss)}"
        given.append((loss, queue))

    def same(made: list[tuple[Tensor, Tensor]]) -> list[bool]:
        """Of the losses, and of the queues, whether all are these."""
        return [
            all(a.shape == b.shape and torch.allclose(a, b) for a, b in zip(mine, theirs, strict=True))
            for mine, theirs in zip(zip(*given, strict=True), zip(*made, strict=True), strict=True)
        ]

    expected = [moco_step(*case) for case in _steps()]
    right = same(expected)
    if all(right):
        return None
    for wrong in QUEUE.wrong:
        if all(same([wrong.answer(*case) for case in _steps()])):
            return wrong.name
    (loss, queue), (best, wanted) = given[0], expected[0]
    told = "the loss is right" if right[0] else f"the loss is {loss:.4f} and should be {best:.4f}"
    if right[1]:
        return f"{told}; the queue is right."
    if queue.shape != wanted.shape:
        return f"{told}; the queue is {_kind(queue)} and should be {_kind(wanted)}."
    rows = int((queue - wanted).abs().amax(dim=1).gt(1e-6).sum())
    return f"{told}; {rows} of the queue's {len(wanted)} rows are others than they should be."


def _kind(x: Any) -> str:
    return f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) else repr(x)


QUEUE = Exercise(
    name="moco_step",
    question=(
        "(loss, queue afterwards) from unit queries and keys (B, D) and a queue (K, D), oldest row first: "
        "negatives are the queue's keys, the positive stands in the denominator, the mean over the queries; "
        "then the keys enter at the end."
    ),
    answer=moco_step,
    hints=[
        "Logits (B, 1 + K): each query with its own key, then with every row of the queue, all over τ.",
        "The loss first, with the queue as it came. Then drop its first B rows and append the keys.",
    ],
    wrong=[
        Wrong(
            "keys that enter before the loss",
            _early,
            "each query then meets its own key among its negatives: it is pushed from its positive.",
        ),
        Wrong(
            "the batch's other keys as negatives, too",
            _with_batch,
            "that is SimCLR's way; MoCo's negatives are the queue alone, whatever the batch.",
        ),
        Wrong(
            "the positive left out of the denominator",
            _without_positive,
            "MoCo's sum runs from i = 0, the positive: its loss is never below 0.",
        ),
        Wrong(
            "the newest keys thrown away",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], torch.cat([queue[: -len(k)], k])),
            "the oldest stand first, and these are to go: queue[B:].",
        ),
        Wrong(
            "the new keys put in front",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], torch.cat([k, queue[: -len(k)]])),
            "the oldest stand first: the newest are appended, and the first B rows go.",
        ),
        Wrong(
            "no temperature",
            lambda q, k, queue, t: moco_step(q, k, queue, 1.0),
            "every cosine, the positive's too, is divided by τ before the softmax.",
        ),
        Wrong(
            "the temperature on the negatives alone",
            lambda q, k, queue, t: (moco_step(q, k * t, queue, t)[0], _enqueue(queue, k)),
            "the positive's cosine is divided by τ as well.",
        ),
        Wrong(
            "a sum over the queries",
            lambda q, k, queue, t: (len(q) * moco_step(q, k, queue, t)[0], _enqueue(queue, k)),
            "the loss is the mean over the queries, so that it does not grow with the batch.",
        ),
        Wrong(
            "the sign turned",
            lambda q, k, queue, t: (-moco_step(q, k, queue, t)[0], _enqueue(queue, k)),
            "-log of a probability is never below 0.",
        ),
        Wrong(
            "a queue that grows",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], torch.cat([queue, k])),
            "as many leave as enter: drop the B oldest.",
        ),
        Wrong(
            "the queries in the queue",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], _enqueue(queue, q)),
            "the slow encoder's keys enter; queries come from the one that changes with every step.",
        ),
        Wrong(
            "one key that leaves",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], torch.cat([queue[1:], k])),
            "as many leave as enter: B, so that its length stays K.",
        ),
        Wrong(
            "keys that never enter",
            lambda q, k, queue, t: (moco_step(q, k, queue, t)[0], queue),
            "the same old keys would be the negatives for ever.",
        ),
    ],
    cases=_steps,
    judge=_judge_step,
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


def _value_and_gradients(loss: Callable[..., Tensor]) -> list[Tensor]:
    """A loss on fixed embeddings: its value, and its gradients by p1, p2, z1 and z2 (0 where none flows)."""
    draw = torch.Generator().manual_seed(11)
    leaves = [torch.randn(5, 3, generator=draw, dtype=torch.float64).requires_grad_() for _ in range(4)]
    value = loss(*leaves)
    found = [None] * 4
    if value.requires_grad:
        found = torch.autograd.grad(value, leaves, allow_unused=True)
    gradients = (torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True))
    return [value.detach(), *gradients]


def _judge_simsiam(answer: Callable[..., Tensor]) -> str | None:
    try:
        draw = torch.Generator().manual_seed(12)
        given = answer(*torch.randn(4, 5, 3, generator=draw, dtype=torch.float64))
        if given is None or given is Ellipsis:
            return "your function returned nothing yet"
        if not isinstance(given, Tensor) or given.ndim:
            return f"a scalar tensor is asked for, got {given!r}"
        found = _value_and_gradients(answer)
    except Exception as error:  # whatever a reader's own code raises is an answer to report on
        return f"your code raised {type(error).__name__}: {error}"

    def same(loss: Callable[..., Tensor]) -> bool:
        pairs = zip(found, _value_and_gradients(loss), strict=True)
        return all(torch.allclose(a.double(), b, rtol=1e-6, atol=1e-7) for a, b in pairs)

    if same(simsiam_loss):
        return None
    for wrong in SIMSIAM_WRONG:
        if same(wrong.answer):
            return wrong.name
    expected = _value_and_gradients(simsiam_loss)
    names = ("the value", *(f"the gradient by {name}" for name in ("p1", "p2", "z1", "z2")))
    off = [
        name
        for name, a, b in zip(names, found, expected, strict=True)
        if not torch.allclose(a.double(), b, rtol=1e-6, atol=1e-7)
    ]
    return f"{' and '.join(off)} {'differ' if len(off) > 1 else 'differs'} from the paper's."


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
    judge=_judge_simsiam,
)

EXERCISES = [FOLLOW, QUEUE, SIMSIAM]
