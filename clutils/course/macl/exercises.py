"""Exercises of notebook 04: where W turns, MACL's adaptive temperature and its reweighting."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import anatomy
from clutils.course import toys
from clutils.course.exercise import a_tensor, value_and_gradients, written

exercise = written(__file__)

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


COUNTER_EXAMPLE = exercise(
    name="counter_example",
    answer=(0.8, [0.95] + 19 * [-1.0]),
    wrong={
        ALL_BELOW: (0.5, [0.2] + 20 * [-0.9]),
        ALL_ABOVE: (-0.5, [0.9] + 20 * [0.1]),
        TOO_SHALLOW: (0.5, [0.9] + 200 * [-0.9]),
    },
    judge=turns_deeply,
)

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
        (torch.full((4, 1), 0.9, dtype=torch.float64), 0.1, 2.0, -0.5, 0.01),  # far above τ0
        (torch.full((4, 1), 0.9, dtype=torch.float64), 1.0, 2.0, -0.5, 0.01),  # above 1
        (torch.full((4, 1), 0.1, dtype=torch.float64), 0.05, 2.0, 0.8, 0.005),  # the floor acts
        (torch.full((4, 1), -0.2, dtype=torch.float64), 0.1, 1.0, 0.5, 0.04),  # and another
    ]


def _with(rule: Callable[[Tensor, float, float, float], Tensor]) -> Callable[..., Tensor]:
    """The right function with another rule for what the alignment does: rule(A, τ0, α, A0)."""
    return lambda s, t, alpha, threshold, lowest: rule(s.detach().mean(), t, alpha, threshold).clamp(lowest)


def _temperature_of(answer: Callable[..., Any], s: Tensor, *settings: float) -> dict[str, Any]:
    """Its value, and whether it would be trained: whether it depends on the positives through autograd."""
    value = a_tensor(answer(s.requires_grad_(), *settings))
    return {"τ_a": value.detach(), "whether a gradient flows": value.requires_grad}


ADAPTIVE_WRONG = {
    "τ_a without the stop-gradient": lambda s, t, a, a0, low: (t * (1 + a * (s.mean() - a0))).clamp(min=low),
    "τ_a without its floor": lambda s, t, a, a0, low: t * (1 + a * (s.detach().mean() - a0)),
    "a floor of its own": lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0))).clamp(
        min=0.1 * t
    ),
    "a ceiling of its own": lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0))).clamp(
        low, 2 * t
    ),
    "the threshold the wrong way round": _with(lambda A, t, a, a0: t * (1 + a * (a0 - A))),
    "α(A - A0) added without τ0": _with(lambda A, t, a, a0: t + a * (A - a0)),
    "an exponential, τ0 (1 + α)^(A - A0)": _with(lambda A, t, a, a0: t * (1 + a) ** (A - a0)),
    "the distance in place of the similarity": _with(lambda A, t, a, a0: t * (1 + a * (2 - 2 * A - a0))),
}

ADAPTIVE = exercise(
    name="adaptive_temperature",
    answer=adaptive_temperature,
    wrong=ADAPTIVE_WRONG,
    cases=_alignments,
    observe=_temperature_of,
    by_hand=(torch.tensor([[-0.9], [0.5]]), 0.1, 1.0, 0.0, 0.085),  # a mean below 0, and the floor acts
)


# ---- 3: the reweighted loss ----------------------------------------------------------------------


def macl_loss(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    c = torch.logsumexp(negatives / temperature, dim=1) - positives[:, 0] / temperature
    fixed = c.detach()
    value = -torch.nn.functional.logsigmoid(-fixed) / torch.sigmoid(fixed)
    value = torch.where(fixed < -40, torch.ones_like(value), value)  # softplus(c)/sigmoid(c) tends to 1
    return value + c - fixed  # the value from its logarithms, the gradient from c


def _batches() -> list[tuple[Tensor, Tensor, float]]:
    draw = torch.Generator().manual_seed(5)
    easy = torch.ones(1, 1), -torch.ones(1, 10)  # float32: the positive at 1, all negatives at -1
    common = [(*toys.three_points(), 0.2), (*toys.random_similarities(5, 1, 9, draw), 0.5)]
    hard = -easy[0], -easy[1]  # and the other way round: exp of its contrast is infinite
    return [*common, (*easy, 0.05), (*easy, 0.02), (*hard, 0.01)]


def _pseudocode(s: Tensor, n: Tensor, t: float, detach: bool = True, least: float = 0.0) -> Tensor:
    P = torch.softmax(torch.cat([s, n], dim=1) / t, dim=1)[:, 0]
    V = 1 / (1 - P + least)
    return -(V.detach() if detach else V) * torch.log(P)


def _in_logarithms(s: Tensor, n: Tensor, t: float) -> Tensor:
    log_p = torch.log_softmax(torch.cat([s, n], dim=1) / t, dim=1)
    log_W = torch.logsumexp(log_p[:, 1:], dim=1)
    return torch.exp(-log_W).detach() * -log_p[:, 0]


def _contrast(s: Tensor, n: Tensor, t: float) -> Tensor:
    return torch.logsumexp(n / t, dim=1) - s[:, 0] / t


def _overflowing(s: Tensor, n: Tensor, t: float, by_similarity: bool = False) -> Tensor:
    c = (torch.exp(n / t).sum(dim=1).log() if by_similarity else torch.logsumexp(n / t, dim=1)) - s[:, 0] / t
    fixed = c.detach()
    return torch.where(fixed < -40, 1.0, fixed.exp().log1p() * (1 + (-fixed).exp())) + c - fixed


def _pushing(shares: Callable[[Tensor, float], Tensor]) -> Callable[..., Tensor]:
    """The right value and pull, with the push that `shares(negatives, τ)` gives: a sum over them, (A,)."""

    def loss(s: Tensor, n: Tensor, t: float) -> Tensor:
        x = shares(n, t) - s[:, 0] / t
        return (macl_loss(s, n, t) - x).detach() + x

    return loss


MACL_WRONG = {
    "infinity times nothing": _pseudocode,
    "a small number in the weight": lambda s, n, t: _pseudocode(s, n, t, least=1e-8),
    "a weight that outlives its loss": _in_logarithms,
    "a quotient of two numbers that vanish": lambda s, n, t: (
        F.softplus(_contrast(s, n, t)) / torch.sigmoid(_contrast(s, n, t)).detach()
    ),
    "exp of a large contrast": _overflowing,
    "exp of a large similarity": lambda s, n, t: _overflowing(s, n, t, by_similarity=True),
    "the weight without its stop-gradient": lambda s, n, t: _pseudocode(s, n, t, detach=False),
    "NT-Xent, without the weight": lambda s, n, t: F.softplus(_contrast(s, n, t)),
    "the contrast c itself": _contrast,
    "the weight W in place of 1/W": lambda s, n, t: (
        torch.sigmoid(_contrast(s, n, t)).detach() * F.softplus(_contrast(s, n, t))
    ),
    "FlatNCE": lambda s, n, t: torch.exp(_contrast(s, n, t) - _contrast(s, n, t).detach()),
    "a push that draws the negatives in": _pushing(lambda n, t: -n.mean(dim=1) / t),
    "a push that is the same on every negative": _pushing(lambda n, t: n.mean(dim=1) / t),
    "a push on the hardest negative alone": _pushing(lambda n, t: n.amax(dim=1) / t),
}

MACL_LOSS = exercise(
    name="macl_loss",
    answer=macl_loss,
    wrong=MACL_WRONG,
    cases=_batches,
    tolerance=1e-4,  # in float32, where easy anchors are hard
    observe=value_and_gradients("the positives", "the negatives"),
)

EXERCISES = [COUNTER_EXAMPLE, ADAPTIVE, MACL_LOSS]
