"""Exercises of notebook 06: AttentionNCE."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong

TEMPERATURE = 0.5
FEWEST_POSITIVES, FEWEST_NEGATIVES, GAP = 2, 5, 0.2

# ---- 1: the loss ---------------------------------------------------------------------------------


def attention_row(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    alpha = torch.softmax(positives / d_pos, dim=1)
    beta = negatives.shape[1] * torch.softmax(negatives / d_neg, dim=1)
    prototype = (alpha * positives).sum(dim=1, keepdim=True)
    logits = torch.cat([prototype, beta * negatives], dim=1) / temperature
    return logits.logsumexp(dim=1) - logits[:, 0]


def _row(positives: Tensor, attended: Tensor, weight: Tensor, temperature: float) -> Tensor:
    """The loss of a prototype (A,) and negatives (A, K), each exponential times `weight`."""
    total = (weight * (attended / temperature).exp()).sum(dim=1)
    up = (positives / temperature).exp()
    return -(up / (up + total)).log()


def _prototype(positives: Tensor, d_pos: float) -> Tensor:
    return (torch.softmax(positives / d_pos, dim=1) * positives).sum(dim=1)


def _times(factor: Any) -> Any:
    """β as `factor(positives, negatives)` times the softmax, inside the exponential."""

    def row(positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float) -> Tensor:
        beta = factor(positives, negatives) * torch.softmax(negatives / d_neg, dim=1)
        return _row(_prototype(positives, d_pos), beta * negatives, torch.ones_like(beta), temperature)

    return row


def _outside(positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float) -> Tensor:
    beta = negatives.shape[1] * torch.softmax(negatives / d_neg, dim=1)
    return _row(_prototype(positives, d_pos), negatives, beta, temperature)


def _by_temperature(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives, negatives, temperature, temperature, temperature)


def _multiplied(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives, negatives, temperature, 1 / d_pos, 1 / d_neg)


def _plain_mean(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives.mean(dim=1, keepdim=True), negatives, temperature, 1.0, d_neg)


def _exchanged(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives, negatives, temperature, d_neg, d_pos)


def _over_anchors(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives, negatives, temperature, d_pos, d_neg).mean()


def _rows() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(5)
    return [
        (torch.tensor([[0.8, 0.2]]).double(), torch.tensor([[0.3, -0.5, 0.1]]).double(), 0.5, 2.0, 0.5),
        (*toys.random_similarities(4, 3, 7, draw), 0.5, 1.5, 3.0),
        (*toys.random_similarities(3, 4, 12, draw), 1.0, 0.3, 0.7),
    ]


ROW = Exercise(
    name="attention_row",
    question="AttentionNCE of each anchor: positives (A, M), negatives (A, N) -> (A,).",
    answer=attention_row,
    hints=[
        "α = softmax(s⁺/d_pos) makes one number of the positives: s̄ = Σ α s⁺.",
        "β = N softmax(s⁻/d_neg), with N = `negatives.shape[1]`; negative j's logit is β s⁻/τ.",
        "Then it is InfoNCE on 1 + N logits: `logits.logsumexp(dim=1) - logits[:, 0]`.",
    ],
    wrong=[
        Wrong(
            "β without its factor N",
            _times(lambda s, n: 1),
            "the softmax sums to 1, so every negative would count for about 1/N; eq. 10 multiplies by N.",
        ),
        Wrong(
            "β times M",
            _times(lambda s, n: s.shape[1]),
            "the index of eq. 10 runs to M by a slip; the negatives are N, and so is their factor.",
        ),
        Wrong(
            "β outside the exponential",
            _outside,
            "Σ β e^(s⁻/τ) is HCL's way of weighting; here β multiplies the similarity, inside.",
        ),
        Wrong(
            "the attention with τ in place of d",
            _by_temperature,
            "the softmaxes have scales of their own, d_pos and d_neg.",
        ),
        Wrong("similarities multiplied by d", _multiplied, "they are divided by it: a small d is sharp."),
        Wrong("the plain mean of the positives", _plain_mean, "that is the limit d_pos → ∞; α weighs them."),
        Wrong("d_pos and d_neg exchanged", _exchanged, "d_pos belongs to α, d_neg to β."),
        Wrong(
            "the mean over the anchors",
            _over_anchors,
            "one value for each anchor is asked for, (A,); the mean comes last.",
        ),
    ],
    cases=_rows,
)


# ---- 2: the push ---------------------------------------------------------------------------------


def attention_push(positive: Tensor, negatives: Tensor, temperature: float, d_neg: float) -> Tensor:
    beta = negatives.shape[1] * torch.softmax(negatives / d_neg, dim=1)
    logits = torch.cat([positive, beta * negatives], dim=1) / temperature
    p = torch.softmax(logits, dim=1)[:, 1:]  # W p̂: each negative's share of the whole
    return beta * p / temperature


def _beta(negatives: Tensor, d_neg: float) -> Tensor:
    return negatives.shape[1] * torch.softmax(negatives / d_neg, dim=1)


def _nt_xent_push(positive: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    return torch.softmax(torch.cat([positive, negatives], dim=1) / temperature, dim=1)[:, 1:] / temperature


def _without_w(positive: Tensor, negatives: Tensor, temperature: float, d_neg: float) -> Tensor:
    beta = _beta(negatives, d_neg)
    return beta * torch.softmax(beta * negatives / temperature, dim=1) / temperature


def _attached(positive: Tensor, negatives: Tensor, temperature: float, d_neg: float) -> Tensor:
    beta = _beta(negatives, d_neg)
    p = temperature * attention_push(positive, negatives, temperature, d_neg) / beta
    mean = (p * beta * negatives).sum(dim=1, keepdim=True) / (negatives.shape[1] * d_neg)
    return beta * (p * (1 + negatives / d_neg) - mean) / temperature


def _pushes() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(6)
    return [
        (*toys.three_points(), 0.5, 1.0),
        (*toys.random_similarities(4, 1, 7, draw), 0.5, 0.6),
        (*toys.random_similarities(3, 1, 12, draw), 0.8, 3.0),
    ]


PUSH = Exercise(
    name="attention_push",
    question="The push on each negative, M = 1, attention detached: (A, 1), (A, N) -> (A, N).",
    answer=attention_push,
    hints=[
        "β counts as a constant. What is the derivative of the logit β s⁻/τ by s⁻?",
        "push = (β/τ) W p̂, and W p̂ is the negative's entry in the softmax over all 1 + N logits.",
    ],
    wrong=[
        Wrong(
            "the push without its factor β",
            lambda s, n, t, d: attention_push(s, n, t, d) / _beta(n, d),
            "the logit is β s⁻/τ, so its derivative by s⁻ is β/τ.",
        ),
        Wrong("NT-Xent's push", lambda s, n, t, d: _nt_xent_push(s, n, t), "β acts in the logits as well."),
        Wrong(
            "NT-Xent's push times β",
            lambda s, n, t, d: _beta(n, d) * _nt_xent_push(s, n, t),
            "the shares are the softmax of β s⁻/τ, not of s⁻/τ.",
        ),
        Wrong("the push without W", _without_w, "a positive that wins lets all pushes fade: the factor W."),
        Wrong(
            "the push without 1/τ",
            lambda s, n, t, d: t * attention_push(s, n, t, d),
            "the chain rule leaves a 1/τ.",
        ),
        Wrong(
            "the push with gradient through β",
            _attached,
            "the attention is detached here: β moves no gradient.",
        ),
    ],
    cases=_pushes,
)


# ---- 3: a counter-example of one's own -----------------------------------------------------------

ABOVE, ONE_SIDED = "an anchor on the wrong side", "an anchor that lies almost on the line"


def below_and_above(answer: Any) -> str | None:
    """None for (below, above), each ([positives], [negatives]), on either side of InfoNCE by at least GAP."""
    try:
        tables = [
            [torch.as_tensor(part, dtype=torch.float64).reshape(1, -1) for part in anchor]
            for anchor in answer
        ]
    except (TypeError, ValueError, RuntimeError):
        return f"expected (below, above), each ([s⁺, …], [s⁻, …]), got {answer!r:.60}."
    if len(tables) != 2 or any(len(table) != 2 for table in tables):
        return f"expected (below, above), each ([s⁺, …], [s⁻, …]), got {answer!r:.60}."
    gaps = []
    for positives, negatives in tables:
        if positives.shape[1] < FEWEST_POSITIVES or negatives.shape[1] < FEWEST_NEGATIVES:
            return (
                f"{positives.shape[1]} positives and {negatives.shape[1]} negatives; at least "
                f"{FEWEST_POSITIVES} and {FEWEST_NEGATIVES} are asked for."
            )
        both = torch.cat([positives, negatives], dim=1)[0]
        if not bool((both.abs() <= 1).all()):
            return f"a similarity lies between -1 and 1, and you have {float(both[~(both.abs() <= 1)][0]):g}."
        each = positives.T, negatives.expand(positives.shape[1], -1)
        infonce = losses.NTXent(TEMPERATURE).per_anchor(*each).mean()
        gaps.append(
            float(losses.AttentionNCE(TEMPERATURE, 1.0, 1.0).per_anchor(positives, negatives) - infonce)
        )
    if min(abs(gap) for gap in gaps) < GAP:
        return ONE_SIDED
    return None if gaps[0] < 0 < gaps[1] else ABOVE


BOTH_SIDES = Exercise(
    name="both_sides",
    question=f"(below, above): two anchors ([s⁺, …], [s⁻, …]), {GAP:g} below and above mean InfoNCE.",
    answer=(([0.9, -0.9], 6 * [0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
    hints=[
        "Below: equal negatives have β = 1 each. What do unequal positives do to s̄ and to the mean loss?",
        "Above: equal positives have nothing to weigh. What does β do to one hard negative among easy ones?",
    ],
    wrong=[
        Wrong(
            ABOVE,
            (([0.5, 0.5], [0.9] + 9 * [-0.5]), ([0.9, -0.9], 6 * [0.2])),
            "the first is to lie below InfoNCE's mean over its positives, the second above.",
        ),
        Wrong(
            ONE_SIDED,
            (([0.5, 0.5], 6 * [0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
            f"move it at least {GAP:g} away. Equal positives with equal negatives are InfoNCE itself.",
        ),
    ],
    judge=below_and_above,
)

EXERCISES = [ROW, PUSH, BOTH_SIDES]
