"""Exercises of notebook 04: MACL's adaptive temperature and its reweighting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import anatomy
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

# ---- 1: the adaptive temperature -----------------------------------------------------------------


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
    return lambda s, t, alpha, threshold, lowest: rule(s.mean(), t, alpha, threshold).clamp(min=lowest)


ADAPTIVE = Exercise(
    name="adaptive_temperature",
    question="τ_a from the batch's positives (A, 1), τ0, α, A0 and a floor: a 0-d tensor.",
    answer=adaptive_temperature,
    hints=[
        "The alignment A is the mean of all positives of the batch: one number, not one per anchor.",
        "Eq. 7 multiplies all of the bracket by τ0; `.clamp(min=...)` is the floor.",
    ],
    wrong=[
        Wrong(
            "τ_a without its floor",
            lambda s, t, a, a0, low: t * (1 + a * (s.mean() - a0)),
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
            "a temperature for each anchor",
            lambda s, t, a, a0, low: (t * (1 + a * (s[:, 0] - a0))).clamp(min=low),
            "A is the mean over the batch, and τ_a one number for all anchors.",
        ),
        Wrong(
            "the distance in place of the similarity",
            _with(lambda A, t, a, a0: t * (1 + a * (2 - 2 * A - a0))),
            "the alignment *loss* is a squared distance, 2 - 2A; eq. 7 takes A itself.",
        ),
    ],
    cases=_alignments,
)


# ---- 2: the reweighted loss ----------------------------------------------------------------------


def macl_loss(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    c = torch.logsumexp(negatives / temperature, dim=1) - positives[:, 0] / temperature
    fixed = c.detach()
    value = -torch.nn.functional.logsigmoid(-fixed) / torch.sigmoid(fixed)
    value = torch.where(fixed < -40, torch.ones_like(value), value)  # softplus(c)/sigmoid(c) tends to 1
    return value + c - fixed  # the value from its logarithms, the gradient from c


PSEUDOCODE = "infinity times nothing"
LOGARITHMS = "a weight that outlives its loss"
ATTACHED = "the weight without its stop-gradient"
PLAIN = "NT-Xent, without the weight"
DECOUPLED = "the contrast c itself"
BRAKED = "the weight W in place of 1/W"
FLAT = "FlatNCE"


def reweights(answer: Callable[..., Any]) -> str | None:
    """None for a function with MACL's value and gradient at a fixed temperature, on easy anchors too."""
    draw = torch.Generator().manual_seed(5)
    cases = [(*toys.three_points(), 0.2), (*toys.random_similarities(5, 1, 9, draw), 0.5)]
    for s, n, t in cases:
        tried = _tried(answer, s, n, t)
        if isinstance(tried, str):
            return tried
        value, pull, push = tried
        c = anatomy.contrast(s, n, t)
        W, ell = torch.sigmoid(c), F.softplus(c)
        right = torch.full_like(c, 1 / t)
        if _close(pull, right) and _close(push, anatomy.hardness_weights(n, t) / t):
            if _close(value, c):
                return DECOUPLED
            if _close(value, torch.ones_like(c)):
                return FLAT
        if _close(value, ell):
            return PLAIN
        if _close(value, W * ell):
            return BRAKED
        if not _close(value, ell / W):
            return (
                f"for s⁺ = {s[0].item():.3g}, τ = {t:g} your loss is {value[0]:.4g}, not {ell[0] / W[0]:.4g}."
            )
        if not _close(pull, right):
            brake = (1 - ell * (1 - W) / W) / t
            found = (
                f"the pull is {pull[0]:.4g} for s⁺ = {s[0].item():.3g}, τ = {t:g}, and should be {1 / t:g}."
            )
            return ATTACHED if _close(pull, brake) else found
    easy = torch.ones(1, 1), -torch.ones(1, 10)  # float32: the positive at 1, all negatives at -1
    for t in (0.05, 0.02):
        tried = _tried(answer, *easy, t)
        if isinstance(tried, str):
            return tried
        value, pull, push = tried
        if not bool(torch.isfinite(torch.cat([value, pull, push[0]])).all()):
            return LOGARITHMS if bool(_tried(answer, *easy, 0.05)[0].isfinite().all()) else PSEUDOCODE
        if not _close(value, torch.ones(1)) or not _close(pull, torch.full((1,), 1 / t)):
            return LOGARITHMS
    return None


def _tried(answer: Callable[..., Any], s: Tensor, n: Tensor, t: float) -> tuple[Tensor, Tensor, Tensor] | str:
    """Value, pull and push (A,), (A,), (A, K) of a reader's loss; a sentence where there are none."""
    s, n = s.clone().requires_grad_(), n.clone().requires_grad_()
    try:
        value = answer(s, n, t)
        if value is None or value is Ellipsis:
            return "your function returned nothing yet."
        if not isinstance(value, Tensor) or value.shape != s.shape[:1]:
            return f"a tensor ({len(s)},) is asked for, one value per anchor, got {value!r:.60}."
        if not value.requires_grad:
            return "your loss has no gradient: only the weight is detached, not what it multiplies."
        pull, push = torch.autograd.grad(value.sum(), (s, n))
    except Exception as error:  # whatever a reader's own code raises is an answer to report on
        return f"your code raised {type(error).__name__}: {error}"
    return value.detach(), -pull[:, 0], push


def _close(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(((a - b).abs() <= 1e-4 * b.abs().clamp(min=1)).all())


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


def _braked(s: Tensor, n: Tensor, t: float) -> Tensor:
    c = _contrast(s, n, t)
    return torch.sigmoid(c).detach() * F.softplus(c)


MACL_LOSS = Exercise(
    name="macl_loss",
    question="-sg[1/W] log p⁺ per anchor, easy ones too: positives (A, 1), negatives (A, K), τ -> (A,).",
    answer=macl_loss,
    hints=[
        "Start from the contrast c. The value is softplus(c)/sigmoid(c), the gradient that of c alone.",
        "`x - x.detach()` is zero, and has the gradient of x: add it to a detached value.",
        "For c below about -40 the value is 1 to the last digit: `torch.where`.",
    ],
    wrong=[
        Wrong(
            PSEUDOCODE,
            _pseudocode,
            "for an easy anchor P rounds to 1, V is infinite and -log P zero: NaN. Build it from c.",
        ),
        Wrong(
            LOGARITHMS,
            _in_logarithms,
            "log space keeps the weight, but -log p⁺ itself rounds to 0 there, and the pull with it, while "
            "the pushes stay: take the value's limit, 1, and the gradient of c.",
        ),
        Wrong(
            ATTACHED,
            lambda s, n, t: _pseudocode(s, n, t, detach=False),
            "the value is right, but autograd also differentiates 1/W: the brake is back, and harder for "
            "easy anchors than NT-Xent's.",
        ),
        Wrong(PLAIN, _nt_xent, "that is softplus(c); divide it by W = sigmoid(c), detached."),
        Wrong(DECOUPLED, _contrast, "it has MACL's gradient, but not its value: that is the decoupled loss."),
        Wrong(BRAKED, _braked, "that brakes twice; the weight has to undo W, so it is 1/W."),
        Wrong(FLAT, _flat, "it has MACL's gradient, but its value is always 1."),
    ],
    judge=reweights,
)


# ---- 3: settings that never reach the floor ------------------------------------------------------


def largest_alpha(threshold: float, lowest: float) -> float:
    return (1 - lowest) / (1 + threshold)  # the coldest batch is A = -1: 1 - α (1 + A0) = lowest


LARGEST = Exercise(
    name="largest_alpha",
    question="The largest α for which τ_a/τ0 is at least `lowest` for every A from -1 to 1, given A0.",
    answer=largest_alpha,
    hints=[
        "τ_a rises with A. Which A is the worst that can happen?",
        "At A = -1 the bracket of eq. 7 is 1 - α (1 + A0). Where is it equal to `lowest`?",
    ],
    wrong=[
        Wrong(
            "the α at which τ_a reaches zero",
            lambda a0, low: 1 / (1 + a0),
            "it may not fall below `lowest`: leave room for it.",
        ),
        Wrong(
            "the threshold's sign turned round",
            lambda a0, low: (1 - low) / (1 - a0) if a0 != 1 else 0.0,
            "A - A0 at A = -1 is -(1 + A0).",
        ),
        Wrong(
            "A = 0 as the worst case",
            lambda a0, low: (1 - low) / a0 if a0 else 0.0,
            "positives can point away from their anchors: A goes down to -1.",
        ),
        Wrong(
            "the width of the range in place of its lower end",
            lambda a0, low: (1 - low) / 2,
            "τ_a/τ0 is 2α wide, from 1 - α - αA0 to 1 + α - αA0; only the lower end can fall too far.",
        ),
    ],
    cases=lambda: [(0.0, 0.1), (0.8, 0.1), (0.5, 0.3), (-0.4, 0.2)],
)

EXERCISES = [ADAPTIVE, MACL_LOSS, LARGEST]
