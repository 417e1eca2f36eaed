"""Exercises of notebook 06: AttentionNCE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clutils import anatomy, losses
from clutils.course import toys
from clutils.course.exercise import Exercise, Wrong
from clutils.losses.base import Loss
from clutils.similarities import Pairs

TEMPERATURE = 0.5
FEWEST_POSITIVES, FEWEST_NEGATIVES, GAP, SPREAD = 2, 5, 0.2, 0.4

# ---- 1: the loss ---------------------------------------------------------------------------------


def attention_row(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    alpha = torch.softmax(positives.detach() / d_pos, dim=1)
    beta = negatives.shape[1] * torch.softmax(negatives.detach() / d_neg, dim=1)
    prototype = (alpha * positives).sum(dim=1, keepdim=True)
    logits = torch.cat([prototype, beta * negatives], dim=1) / temperature
    return logits.logsumexp(dim=1) - logits[:, 0]


def _other(attached: str = "", factor: str = "N", alpha: Any = None, beta: Any = None) -> Any:
    """The loss with something amiss.

    - attached: "s", "n": whose attention the gradient goes through
    - factor: β's: "N", "M" or "1"; "outside": β stands before the exponential
    - alpha, beta: the attention's logits, functions of the similarities, d_pos, d_neg and τ
    """

    def row(positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float) -> Tensor:
        s, n = (x if k in attached else x.detach() for k, x in (("s", positives), ("n", negatives)))
        a = torch.softmax(alpha(s, d_pos, d_neg, temperature) if alpha else s / d_pos, dim=1)
        b = torch.softmax(beta(n, d_pos, d_neg, temperature) if beta else n / d_neg, dim=1)
        b = b * {"M": positives.shape[1], "1": 1}.get(factor, negatives.shape[1])
        logits = negatives / temperature + b.log() if factor == "outside" else b * negatives / temperature
        up = (a * positives).sum(dim=1, keepdim=True) / temperature
        return torch.cat([up, logits], dim=1).logsumexp(dim=1) - up[:, 0]

    return row


def _over_anchors(
    positives: Tensor, negatives: Tensor, temperature: float, d_pos: float, d_neg: float
) -> Tensor:
    return attention_row(positives, negatives, temperature, d_pos, d_neg).mean()


def _rows() -> list[tuple[Any, ...]]:
    dice = torch.Generator().manual_seed(5)
    return [
        (torch.tensor([[0.8, 0.2]]).double(), torch.tensor([[0.3, -0.5, 0.1]]).double(), 0.5, 2.0, 0.5),
        (*toys.random_similarities(4, 3, 7, dice), 0.5, 1.5, 3.0),
        (*toys.random_similarities(3, 4, 12, dice), 1.0, 0.3, 0.7),
    ]


def _tried(function: Any) -> list[list[Tensor]] | str:
    """For each case the values, pulls and pushes of a reader's loss; a sentence where there are none."""
    found = []
    for s, n, *settings in _rows():
        s, n = s.requires_grad_(), n.requires_grad_()
        try:
            value = function(s, n, *settings)
            if value is None or value is Ellipsis:
                return "your function returned nothing yet."
            if not isinstance(value, Tensor):
                return f"a tensor ({len(s)},) is asked for, one value for each anchor, got {value!r:.60}."
            forces = (None, None)
            if value.requires_grad:
                forces = torch.autograd.grad(value.sum(), (s, n), allow_unused=True)
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return f"your code raised {type(error).__name__}: {error}"
        found.append(
            [value.detach(), *(0 * y if x is None else x for x, y in zip(forces, (s, n), strict=True))]
        )
    return found


def _alike(one: list[list[Tensor]], other: list[list[Tensor]]) -> bool:
    pairs = [pair for a, b in zip(one, other, strict=True) for pair in zip(a, b, strict=True)]
    return all(a.shape == b.shape and torch.allclose(a.double(), b, rtol=1e-5, atol=1e-6) for a, b in pairs)


def value_and_forces(function: Any) -> str | None:
    """None for AttentionNCE with its attention held: value, pull and push, against `attention_row`."""
    found, right = _tried(function), _tried(attention_row)
    if isinstance(found, str) or _alike(found, right):
        return found if isinstance(found, str) else None
    for wrong in ROW.wrong:
        if _alike(found, _tried(wrong.answer)):
            return wrong.name
    asked = (right[0][0].shape, "values", "gradient by the positives", "gradient by the negatives")
    if found[0][0].shape != asked[0]:
        return (
            f"your values are {tuple(found[0][0].shape)}; {tuple(asked[0])}, one for each anchor, is right."
        )
    for what, ours, theirs in zip(asked[1:], found[0], right[0], strict=True):
        if not _alike([[ours]], [[theirs]]):
            numbers = (", ".join(f"{x:.4f}" for x in g.flatten().tolist()) for g in (theirs, ours))
            return f"for s⁺ = 0.8, 0.2, s⁻ = 0.3, -0.5, 0.1: the {what} should be {', not '.join(numbers)}."
    return "it is right for one anchor, and not for several: is each row its own?"


ROW = Exercise(
    name="attention_row",
    question="AttentionNCE, its attention held fixed: positives (A, M), negatives (A, N) -> (A,).",
    answer=attention_row,
    hints=[
        "α = softmax(s⁺/d_pos) makes one number of the positives: s̄ = Σ α s⁺.",
        "β = N softmax(s⁻/d_neg), with N = `negatives.shape[1]`; negative j's logit is β s⁻/τ.",
        "Then it is InfoNCE on 1 + N logits: `logits.logsumexp(dim=1) - logits[:, 0]`.",
        "Held fixed: the similarities are detached inside the two softmaxes, and only there.",
    ],
    wrong=[
        Wrong(
            "the gradient through both attentions",
            _other(attached="sn"),
            "the value is right, but α and β are to count as constants: detach what they are made of.",
        ),
        Wrong("the gradient through α", _other(attached="s"), "α is to be held as well as β."),
        Wrong("the gradient through β", _other(attached="n"), "β is to be held as well as α."),
        Wrong(
            "a loss without any gradient",
            lambda *case: attention_row(*case).detach(),
            "only the attention is detached, not the similarities that it multiplies.",
        ),
        Wrong(
            "β without its factor N",
            _other(factor="1"),
            "the softmax sums to 1, so every negative would count for about 1/N; eq. 10 multiplies by N.",
        ),
        Wrong(
            "β times M",
            _other(factor="M"),
            "the index of eq. 10 runs to M by a slip; the negatives are N, and so is their factor.",
        ),
        Wrong(
            "β outside the exponential",
            _other(factor="outside"),
            "Σ β e^(s⁻/τ) is HCL's way of weighting; here β multiplies the similarity, inside.",
        ),
        Wrong(
            "the attention with τ in place of d",
            _other(alpha=lambda s, p, n, t: s / t, beta=lambda s, p, n, t: s / t),
            "the softmaxes have scales of their own, d_pos and d_neg.",
        ),
        Wrong(
            "similarities multiplied by d",
            _other(alpha=lambda s, p, n, t: s * p, beta=lambda s, p, n, t: s * n),
            "they are divided by it: a small d is sharp.",
        ),
        Wrong(
            "the plain mean of the positives",
            _other(alpha=lambda s, p, n, t: 0 * s),
            "that is the limit d_pos → ∞; α weighs them.",
        ),
        Wrong(
            "d_pos and d_neg exchanged",
            _other(alpha=lambda s, p, n, t: s / n, beta=lambda s, p, n, t: s / p),
            "d_pos belongs to α, d_neg to β.",
        ),
        Wrong(
            "the mean over the anchors",
            _over_anchors,
            "one value for each anchor is asked for, (A,); the mean comes last.",
        ),
    ],
    judge=value_and_forces,
)


# ---- 2: a counter-example of one's own -----------------------------------------------------------

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
        spread = float(negatives.max() - negatives.min())
        if spread < SPREAD:
            return f"negatives from lowest to highest {spread:.2g} apart; at least {SPREAD:g} is asked for."
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
    answer=(([0.9, -0.9], [0.2] * 5 + [-0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
    hints=[
        "Below: alike negatives have β near 1. What do unequal positives do to s̄, and to the mean loss?",
        "Above: equal positives have nothing to weigh. What does β do to one hard negative among easy ones?",
    ],
    wrong=[
        Wrong(
            ABOVE,
            (([0.5, 0.5], [0.9] + 9 * [-0.5]), ([0.9, -0.9], [0.2] * 5 + [-0.2])),
            "the first is to lie below InfoNCE's mean over its positives, the second above.",
        ),
        Wrong(
            ONE_SIDED,
            (([0.5, 0.5], [0.2] * 5 + [-0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
            f"move it at least {GAP:g} away. Equal positives with equal negatives would be InfoNCE itself.",
        ),
    ],
    judge=below_and_above,
)


# ---- 3: the test of a claim ----------------------------------------------------------------------

NEVER, ALWAYS = "a test that can't say yes", "a test that can't say no"
NEAREST, SIZE = "a test of the nearest positive", "a test that the loss's size decides"
ROUNDING = "a test that rounding decides"


class _Weighed(Loss):
    """Pulls of size · softmax(slope · s⁺): of a slope above 0 the nearest positive gets most, below 0 the
    farthest."""

    paper, year, equation = "a loss made for the exercise", 0, ""

    def __init__(self, slope: float, size: float = 1.0) -> None:
        super().__init__()
        self.slope, self.size = slope, size

    def formula(self, pairs: Pairs) -> Tensor:
        weight = self.size * torch.softmax(self.slope * pairs.positives.detach(), dim=1)
        return self.size * pairs.negatives.logsumexp(dim=1) - (weight * pairs.positives).sum(dim=1)


def mines_hard_positives(loss: Loss) -> bool:
    from clutils import anatomy

    dice = torch.Generator().manual_seed(0)
    s, n = (2 * torch.rand(500, k, generator=dice, dtype=torch.float64) - 1 for k in (4, 50))
    pull = anatomy.forces(loss, s, n)[0]
    farthest = pull.gather(1, s.argmin(dim=1, keepdim=True))[:, 0]
    return bool((farthest > 1.01 * pull.mean(dim=1)).double().mean() > 0.5)


def _controls() -> list[tuple[str, Loss, bool]]:
    """Losses of which it is known whether the farthest positive gets more than its equal share."""
    return [
        ("a loss made to pull the farthest hardest", _Weighed(-3), True),
        ("a hundredth of that loss", _Weighed(-3, 0.01), True),
        ("a hundred times that loss", _Weighed(-3, 100), True),
        ("a loss made to pull the nearest hardest", _Weighed(3), False),
        ("a hundred times the loss that pulls the nearest", _Weighed(3, 100), False),
        ("AttentionNCE at d_pos = 0.1", losses.AttentionNCE(0.5, 0.1), False),
        ("a flat attention, where all get the same", losses.AttentionNCE(0.5, math.inf, math.inf), False),
    ]


def says_yes_and_no(test: Any) -> str | None:
    """None for a test that is right about every control; the name of a known slip; else the first miss."""
    controls, said = _controls(), []
    for _, loss, _ in controls:
        try:
            answer = test(loss)
            if answer is None or answer is Ellipsis:
                return "your function returned nothing yet."
            plain = answer.item() if hasattr(answer, "item") else answer
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return f"your code raised {type(error).__name__}: {error}"
        if not isinstance(plain, bool):
            return f"True or False is asked for, got {answer!r:.60}."
        said.append(plain)
    true = [known for *_, known in controls]
    if said == true:
        return None
    if len(set(said)) == 1:
        return ALWAYS if said[0] else NEVER
    if said[:-1] == true[:-1]:
        return ROUNDING
    if said[:-1] == [not known for known in true[:-1]]:
        return NEAREST
    if len(set(said[:3])) > 1 or said[3] != said[4]:
        return SIZE
    missed = next(name for (name, _, known), x in zip(controls, said, strict=True) if x != known)
    return f"it is wrong about {missed}."


def _test(says: Callable[[Tensor], Tensor], by: str = "argmin") -> Callable[[Loss], bool]:
    """A test on 200 drawn anchors: `says` of the pulls, the chosen positive's first."""

    def test(loss: Loss) -> bool:
        s, n = toys.random_similarities(200, 3, 40, torch.Generator().manual_seed(1))
        order = s.argsort(dim=1, descending=by == "argmax")
        pull = anatomy.forces(loss, s.gather(1, order), n)[0]
        return bool(says(pull).double().mean() > 0.5)

    return test


MINES = Exercise(
    name="mines_hard_positives",
    question="A test: loss -> True if its least similar positive gets more than an equal share of the pull.",
    answer=mines_hard_positives,
    hints=[
        "Draw anchors with several positives each; `anatomy.forces(loss, s, n)[0]` is the pull.",
        "`positives.argmin(dim=1)` is the farthest. Compare its pull with the mean pull of the same anchor.",
        "Try it on a loss that must say yes (`losses.SupCon(0.1)`) and on one that must say no.",
        "With a flat attention all get the same: leave room for rounding.",
    ],
    wrong=[
        Wrong(
            NEVER,
            lambda loss: bool((torch.softmax(torch.rand(9, 4), dim=1).amin(dim=1) > 0.25).any()),
            "try it on a loss that pulls the farthest hardest. (The least entry of a softmax over M is never "
            "above 1/M: such a test decides before it looks.)",
        ),
        Wrong(
            ALWAYS,
            _test(lambda pull: pull.amax(dim=1) >= pull.mean(dim=1)),
            "some positive always gets at least the mean; ask it of the least similar one.",
        ),
        Wrong(
            NEAREST,
            _test(lambda pull: pull[:, 0] > 1.01 * pull.mean(dim=1), "argmax"),
            "a hard positive is the one that is least similar to its anchor.",
        ),
        Wrong(
            SIZE,
            _test(lambda pull: pull[:, 0] > 0.5),
            "a loss and a hundredth of it share the pull alike; divide by the anchor's mean pull.",
        ),
        Wrong(
            ROUNDING,
            _test(lambda pull: pull[:, 0] >= (1 - 1e-9) * pull.mean(dim=1)),
            "with a flat attention no positive gets more than another: ask for more by a margin.",
        ),
    ],
    judge=says_yes_and_no,
)

EXERCISES = [ROW, BOTH_SIDES, MINES]
