"""Exercises of notebook 04: where W turns, MACL's adaptive temperature and its reweighting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import anatomy
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

COLD, HOT = 0.05, 10.0  # between these the counter-example has to turn
HIGH, LOW = 0.9, 0.65
FEWEST = 10


# ---- 1: a counter-example of one's own -----------------------------------------------------------

ALL_BELOW, ALL_ABOVE = "every negative below the positive", "the negatives' mean above the positive"
TOO_SHALLOW = "a dip that is too shallow"


def turns_deeply(answer: Any) -> str | None:
    """None for (positive, negatives) whose W is above 0.9 at τ = 0.05 and 10 and below 0.65 between."""
    try:
        positive, negatives = answer
        s = torch.as_tensor(positive, dtype=torch.float64).reshape(1)
        n = torch.as_tensor(negatives, dtype=torch.float64).reshape(1, -1)
    except (TypeError, ValueError, RuntimeError):
        return f"expected two things, (positive, [negative, negative, ...]), got {answer!r:.60}."
    if n.shape[1] < FEWEST:
        return f"{n.shape[1]} negatives; at least {FEWEST} are asked for."
    both = torch.cat([s, n[0]])
    if not bool((both.abs() <= 1).all()):
        return f"a similarity lies between -1 and 1, and you have {float(both[~(both.abs() <= 1)][0]):g}."
    if n.max() <= s:
        return ALL_BELOW
    if n.mean() >= s:
        return ALL_ABOVE
    temperatures = torch.logspace(math.log10(COLD), math.log10(HOT), 400, dtype=torch.float64)
    W = anatomy.gradient_scale(s.expand(400), n.expand(400, -1), temperatures[:, None])
    for end, at in ((0, COLD), (-1, HOT)):
        if W[end] <= HIGH:
            return f"W is {float(W[end]):.3f} at τ = {at:g}, and should be above {HIGH:g} there."
    return TOO_SHALLOW if W.min() >= LOW else None


COUNTER_EXAMPLE = Exercise(
    name="counter_example",
    question=f"(positive, [negatives]): W above {HIGH} at τ = {COLD} and {HOT:g}, below {LOW} between.",
    answer=(0.8, [0.95] + 19 * [-1.0]),
    hints=[
        "W turns only when s⁺ lies between the mean of the negatives and the hardest of them.",
        "Cold, the hardest negative decides: how far above s⁺ must it be for W > 0.9? No farther.",
        "Hot, the number decides: W tends to K/(K+1). In between, the easy ones must weigh nothing.",
    ],
    wrong=[
        Wrong(
            ALL_BELOW,
            (0.5, [0.2] + 20 * [-0.9]),
            "then warming only ever raises W, and cold it is near 0: the claim holds here.",
        ),
        Wrong(
            ALL_ABOVE,
            (-0.5, [0.9] + 20 * [0.1]),
            "then warming only ever lowers W: the claim holds here too.",
        ),
        Wrong(
            TOO_SHALLOW,
            (0.5, [0.9] + 200 * [-0.9]),
            f"W turns, but never falls below {LOW:g}: bring the hardest negative nearer to s⁺, and keep "
            "the easy ones few and far.",
        ),
    ],
    judge=turns_deeply,
)

# ---- how an answer that has a gradient is judged -------------------------------------------------

Found = dict[str, Tensor]  # what is compared -> its values


def by_what_it_does(
    found: Callable[..., Found | str],
    cases: Callable[[], Sequence[tuple[Any, ...]]],
    right: Callable[..., Tensor],
    wrong: Sequence[Wrong],
) -> Callable[[Callable[..., Any]], str | None]:
    """A judge that compares all that `found(answer, *case)` returns with what the right answer has.

    In the first case where they differ, the answer bears the name of the wrong one that does the same.
    """

    def judge(answer: Callable[..., Any]) -> str | None:
        for case in cases():
            try:
                own = found(answer, *case)
            except Exception as error:  # whatever a reader's own code raises is an answer to report on
                return f"your code raised {type(error).__name__}: {error}."
            if isinstance(own, str):
                return own
            expected = found(right, *case)
            if not _alike(own, expected):
                known = (w.name for w in wrong if _alike(own, found(w.answer, *case)))
                return next(known, _difference(own, expected, case))
        return None

    return judge


def _alike(a: Found | str, b: Found | str) -> bool:
    if isinstance(a, str) or isinstance(b, str):
        return a == b
    return all(
        a[name].shape == b[name].shape
        and torch.allclose(a[name].double(), b[name].double(), rtol=1e-4, atol=1e-6, equal_nan=True)
        for name in b
    )


def _difference(own: Found, expected: Found, case: tuple[Any, ...]) -> str:
    name = next(n for n in expected if not _alike({n: own[n]}, {n: expected[n]}))
    values = [", ".join(f"{x:.3g}" for x in each[name].flatten()[:3].tolist()) for each in (own, expected)]
    return f"for s⁺ = {case[0][0].item():.3g}, … the {name} is {values[0]}, and should be {values[1]}."


def _returned(answer: Callable[..., Any], shape: tuple[int, ...], *case: Any) -> Tensor | str:
    """A reader's tensor, or a sentence on what came in place of it."""
    value = answer(*case)
    if value is None or value is Ellipsis:
        return "your function returned nothing yet."
    if not isinstance(value, Tensor) or value.shape != shape:
        what = "one value per anchor" if shape else "one number for the batch"
        return f"a tensor {tuple(shape)} is asked for, {what}, got {value!r:.60}."
    return value


# ---- 2: the adaptive temperature -----------------------------------------------------------------


def adaptive_temperature(
    positives: Tensor, temperature: float, alpha: float, threshold: float, lowest: float
) -> Tensor:
    A = positives.detach().mean()
    return (temperature * (1 + alpha * (A - threshold))).clamp(min=lowest)


def _alignments() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(4)
    some = toys.random_similarities(6, 1, 1, draw)[0]
    return [
        (torch.tensor([[0.8]], dtype=torch.float64), 0.1, 0.5, 0.0, 0.01),
        (some, 0.2, 1.0, 0.3, 0.02),
        (some.abs(), 0.05, 2.0, 0.1, 0.005),
        (torch.full((4, 1), 0.1, dtype=torch.float64), 0.05, 2.0, 0.8, 0.005),  # the floor acts
    ]


def _with(rule: Callable[[Tensor, float, float, float], Tensor]) -> Callable[..., Tensor]:
    """The right function with another rule for what the alignment does: rule(A, τ0, α, A0)."""
    return lambda s, t, alpha, threshold, lowest: rule(s.detach().mean(), t, alpha, threshold).clamp(lowest)


def _temperature_of(answer: Callable[..., Any], s: Tensor, *settings: float) -> Found | str:
    """Its value, and whether it would be trained: 1 where it depends on the positives through autograd."""
    value = _returned(answer, (), s.clone().requires_grad_(), *settings)
    if isinstance(value, str):
        return value
    return {"τ_a": value.detach(), "stop-gradient (0 = kept)": torch.tensor(float(value.requires_grad))}


ADAPTIVE_WRONG = [
    Wrong(
        "τ_a without the stop-gradient",
        lambda s, t, a, a0, low: (t * (1 + a * (s.mean() - a0))).clamp(min=low),
        "the value is right, but the loss would now move the positives to change its own temperature: "
        "`.detach()` the alignment.",
    ),
    Wrong(
        "τ_a without its floor",
        lambda s, t, a, a0, low: t * (1 + a * (s.detach().mean() - a0)),
        "with α = 2 and A0 = 0.8 it is negative for any A below 0.3, and the forces turn round.",
    ),
    Wrong(
        "the threshold the wrong way round",
        _with(lambda A, t, a, a0: t * (1 + a * (a0 - A))),
        "then a better aligned batch would get a colder temperature; eq. 7 warms it.",
    ),
    Wrong(
        "α(A - A0) added without τ0",
        _with(lambda A, t, a, a0: t + a * (A - a0)),
        "α is a share of τ0, so that one α suits every temperature: τ0 multiplies both terms.",
    ),
    Wrong(
        "an exponential, τ0 (1 + α)^(A - A0)",
        _with(lambda A, t, a, a0: t * (1 + a) ** (A - a0)),
        "eq. 7 is linear in A. (With α = 1, A0 = 0 this is τ0 · 2^A, which an early version of the "
        "authors' code had.)",
    ),
    Wrong(
        "the distance in place of the similarity",
        _with(lambda A, t, a, a0: t * (1 + a * (2 - 2 * A - a0))),
        "the alignment *loss* is a squared distance, 2 - 2A; eq. 7 takes A itself.",
    ),
]

ADAPTIVE = Exercise(
    name="adaptive_temperature",
    question="τ_a from the batch's positives (A, 1), τ0, α, A0 and a floor: a 0-d tensor without a gradient.",
    answer=adaptive_temperature,
    hints=[
        "The alignment A is the mean of all positives of the batch: one number, not one per anchor.",
        "Eq. 7 multiplies all of the bracket by τ0; `.clamp(min=...)` is the floor.",
        "The temperature follows the positives and is no way to move them: `.detach()`.",
    ],
    wrong=ADAPTIVE_WRONG,
    judge=by_what_it_does(_temperature_of, _alignments, adaptive_temperature, ADAPTIVE_WRONG),
)


# ---- 3: the reweighted loss ----------------------------------------------------------------------


def macl_loss(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    c = torch.logsumexp(negatives / temperature, dim=1) - positives[:, 0] / temperature
    fixed = c.detach()
    value = -torch.nn.functional.logsigmoid(-fixed) / torch.sigmoid(fixed)
    value = torch.where(fixed < -40, torch.ones_like(value), value)  # softplus(c)/sigmoid(c) tends to 1
    return value + c - fixed  # the value from its logarithms, the gradient from c


def _forces_of(answer: Callable[..., Any], s: Tensor, n: Tensor, t: float) -> Found | str:
    """Value (A,), pull (A,) and push (A, K) of a reader's loss."""
    s, n = s.clone().requires_grad_(), n.clone().requires_grad_()
    value = _returned(answer, s.shape[:1], s, n, t)
    if isinstance(value, str):
        return value
    if not value.requires_grad:
        return "your loss has no gradient: only the weight is detached, not what it multiplies."
    pull, push = torch.autograd.grad(value.sum(), (s, n), allow_unused=True)
    found = {"value": value.detach(), "pull": pull, "push": push}
    return {name: torch.zeros(len(s)) if x is None else -x[:, 0] if name == "pull" else x
            for name, x in found.items()}  # fmt: skip


def _batches() -> list[tuple[Tensor, Tensor, float]]:
    draw = torch.Generator().manual_seed(5)
    easy = torch.ones(1, 1), -torch.ones(1, 10)  # float32: the positive at 1, all negatives at -1
    common = [(*toys.three_points(), 0.2), (*toys.random_similarities(5, 1, 9, draw), 0.5)]
    return [*common, (*easy, 0.05), (*easy, 0.02)]


def _pseudocode(s: Tensor, n: Tensor, t: float, detach: bool = True) -> Tensor:
    P = torch.softmax(torch.cat([s, n], dim=1) / t, dim=1)[:, 0]
    V = 1 / (1 - P)
    return -(V.detach() if detach else V) * torch.log(P)


def _in_logarithms(s: Tensor, n: Tensor, t: float) -> Tensor:
    log_p = torch.log_softmax(torch.cat([s, n], dim=1) / t, dim=1)
    log_W = torch.logsumexp(log_p[:, 1:], dim=1)
    return torch.exp(-log_W).detach() * -log_p[:, 0]


def _nt_xent(s: Tensor, n: Tensor, t: float) -> Tensor:
    return F.softplus(_contrast(s, n, t))


def _contrast(s: Tensor, n: Tensor, t: float) -> Tensor:
    return torch.logsumexp(n / t, dim=1) - s[:, 0] / t


def _flat(s: Tensor, n: Tensor, t: float) -> Tensor:
    c = _contrast(s, n, t)
    return torch.exp(c - c.detach())


def _twice(s: Tensor, n: Tensor, t: float) -> Tensor:
    c = _contrast(s, n, t)
    return torch.sigmoid(c).detach() * F.softplus(c)


def _pushing(shares: Callable[[Tensor, float], Tensor]) -> Callable[..., Tensor]:
    """The right value and pull, with the push that `shares(negatives, τ)` gives: a sum over them, (A,)."""

    def loss(s: Tensor, n: Tensor, t: float) -> Tensor:
        x = shares(n, t) - s[:, 0] / t
        return (macl_loss(s, n, t) - x).detach() + x

    return loss


MACL_WRONG = [
    Wrong(
        "infinity times nothing",
        _pseudocode,
        "for an easy anchor P rounds to 1, V is infinite and -log P zero: NaN. Build it from c.",
    ),
    Wrong(
        "a weight that outlives its loss",
        _in_logarithms,
        "log space keeps the weight, but -log p⁺ itself rounds to 0 there, and the pull with it, while "
        "the pushes stay: take the value's limit, 1, and the gradient of c.",
    ),
    Wrong(
        "the weight without its stop-gradient",
        lambda s, n, t: _pseudocode(s, n, t, detach=False),
        "the value is right, but autograd also differentiates 1/W: on easy anchors the gradient is then "
        "smaller than NT-Xent's.",
    ),
    Wrong(
        "NT-Xent, without the weight", _nt_xent, "that is softplus(c); divide it by W = sigmoid(c), detached."
    ),
    Wrong(
        "the contrast c itself",
        _contrast,
        "it has MACL's gradient, but not its value: that is the decoupled loss.",
    ),
    Wrong(
        "the weight W in place of 1/W",
        _twice,
        "that shuts the gate twice; the weight has to undo W, so it is 1/W.",
    ),
    Wrong("FlatNCE", _flat, "it has MACL's gradient, but its value is always 1."),
    Wrong(
        "a push that draws the negatives in",
        _pushing(lambda n, t: -n.mean(dim=1) / t),
        "value and pull are right, but the negatives come nearer: the gradient has to be that of c.",
    ),
    Wrong(
        "a push that is the same on every negative",
        _pushing(lambda n, t: n.mean(dim=1) / t),
        "value and pull are right, but the push has lost its shares p̂: the gradient has to be that of c.",
    ),
    Wrong(
        "a push on the hardest negative alone",
        _pushing(lambda n, t: n.amax(dim=1) / t),
        "value and pull are right, but one negative takes the shares of all: logsumexp, not the maximum.",
    ),
]

MACL_LOSS = Exercise(
    name="macl_loss",
    question="-sg[1/W] log p⁺ per anchor, easy ones too: positives (A, 1), negatives (A, K), τ -> (A,).",
    answer=macl_loss,
    hints=[
        "Start from the contrast c. The value is softplus(c)/sigmoid(c), the gradient that of c alone.",
        "`x - x.detach()` is zero, and has the gradient of x: add it to a detached value.",
        "For c below about -40 the value is 1 to the last digit: `torch.where`.",
    ],
    wrong=MACL_WRONG,
    judge=by_what_it_does(_forces_of, _batches, macl_loss, MACL_WRONG),
)

EXERCISES = [COUNTER_EXAMPLE, ADAPTIVE, MACL_LOSS]
