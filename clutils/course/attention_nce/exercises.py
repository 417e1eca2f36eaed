"""Exercises of notebook 06: AttentionNCE."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clutils import anatomy, losses
from clutils.course import toys
from clutils.course.exercise import something, value_and_gradients, written
from clutils.losses.base import Loss
from clutils.similarities import Pairs

exercise = written(__file__)

TEMPERATURE = 0.5
FEWEST_POSITIVES, FEWEST_NEGATIVES, GAP, SPREAD = 2, 5, 0.2, 0.4
ROUNDED = 1e-6  # 0.7 - 0.3 is not quite 0.4

# ---- 1: a table's gain, taken apart ------------------------------------------------------------------

PARTS = (0.9, 1.1, 2.0, 2.4 / 3.8)  # CIFAR-10: views, attention over the negatives, whole; CIFAR-100: views
ROUND = 0.05, 0.05, 0.05, 0.035  # the paper's numbers have one decimal; 0.6 is 2.4/3.8, and two thirds is not

GAINS = {
    "the two parts exchanged": (1.1, 0.9, 2.0, 2.4 / 3.8),
    "the gain from M = 1 to M = 4": (0.9, 0.9, 2.0, 2.4 / 3.8),
    "accuracies in place of gains": (0.9, 92.2, 93.1, 2.4 / 3.8),
    "the part that the views do not give": (0.9, 1.1, 2.0, 1.4 / 3.8),
    "points in place of a part": (0.9, 1.1, 2.0, 2.4),
    "per cent in place of a part": (0.9, 1.1, 2.0, 240 / 3.8),
}


def parts_of_the_gain(answer: Any) -> str | None:
    """None for the three gains on CIFAR-10 and the views' part on CIFAR-100, as PARTS."""
    try:
        given = [float(part) for part in answer]
    except (TypeError, ValueError):
        given = []
    if len(given) != len(PARTS):
        return f"expected four numbers (views, negatives, whole, part), got {answer!r:.60}."
    for name, wrong in GAINS.items():
        if all(abs(a - b) < near for a, b, near in zip(given, wrong, ROUND, strict=True)):
            return name
    names = ("the views alone", "the attention over the negatives", "the whole gain", "the views' part")
    parts = zip(names, given, PARTS, ROUND, strict=True)
    off = [name for name, a, b, near in parts if not abs(a - b) < near]
    return f"look again at {', '.join(off)}." if off else None


GAIN = exercise(name="gain_by_parts", answer=PARTS, wrong=GAINS, judge=parts_of_the_gain)


# ---- 2: the loss ---------------------------------------------------------------------------------


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


def _rows() -> list[tuple[Any, ...]]:
    dice = torch.Generator().manual_seed(5)
    return [
        (torch.tensor([[0.8, 0.2]]).double(), torch.tensor([[0.3, -0.5, 0.1]]).double(), 0.5, 2.0, 0.5),
        (*toys.random_similarities(4, 3, 7, dice), 0.5, 1.5, 3.0),
        (*toys.random_similarities(3, 4, 12, dice), 1.0, 0.3, 0.7),
    ]


ROW = exercise(
    name="attention_row",
    answer=attention_row,
    wrong={
        "the gradient through both attentions": _other(attached="sn"),
        "the gradient through α": _other(attached="s"),
        "the gradient through β": _other(attached="n"),
        "a loss without any gradient": lambda *case: attention_row(*case).detach(),
        "β without its factor N": _other(factor="1"),
        "β times M": _other(factor="M"),
        "β outside the exponential": _other(factor="outside"),
        "the attention with τ in place of d": _other(
            alpha=lambda s, p, n, t: s / t, beta=lambda s, p, n, t: s / t
        ),
        "similarities multiplied by d": _other(alpha=lambda s, p, n, t: s * p, beta=lambda s, p, n, t: s * n),
        "the plain mean of the positives": _other(alpha=lambda s, p, n, t: 0 * s),
        "d_pos and d_neg exchanged": _other(alpha=lambda s, p, n, t: s / n, beta=lambda s, p, n, t: s / p),
        "the mean over the anchors": lambda *case: attention_row(*case).mean(),
    },
    cases=_rows,
    observe=value_and_gradients("s⁺", "s⁻"),
    tolerance=1e-5,
    by_hand=(torch.tensor([[0.6, 0.1]]), torch.tensor([[0.5, -0.5]]), 0.5, 0.5, 1.0),
)


# ---- 3: a counter-example of one's own -----------------------------------------------------------

ABOVE, ONE_SIDED = "an anchor on the wrong side", "an anchor that lies almost on the line"


def below_and_above(answer: Any) -> str | None:
    """None for (below, above), each ([positives], [negatives]), on either side of InfoNCE by at least GAP."""
    try:
        below, above = answer
        tables = [
            [torch.as_tensor(part, dtype=torch.float64).reshape(1, -1) for part in (s, n)]
            for s, n in (below, above)
        ]
    except (TypeError, ValueError, RuntimeError):
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
        if spread < SPREAD - ROUNDED:
            return f"negatives from lowest to highest {spread:.2g} apart; at least {SPREAD:g} is asked for."
        each = positives.T, negatives.expand(positives.shape[1], -1)
        infonce = losses.NTXent(TEMPERATURE).per_anchor(*each).mean()
        attended = losses.AttentionNCE(TEMPERATURE, 1.0, 1.0).per_anchor(positives, negatives)
        gaps.append(float(attended - infonce))
    if min(abs(gap) for gap in gaps) < GAP - ROUNDED:
        return ONE_SIDED
    return None if gaps[0] < 0 < gaps[1] else ABOVE


BOTH_SIDES = exercise(
    name="both_sides",
    answer=(([0.9, -0.9], [0.2] * 5 + [-0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
    wrong={
        ABOVE: (([0.5, 0.5], [0.9] + 9 * [-0.5]), ([0.9, -0.9], [0.2] * 5 + [-0.2])),
        ONE_SIDED: (([0.5, 0.5], [0.2] * 5 + [-0.2]), ([0.5, 0.5], [0.9] + 9 * [-0.5])),
    },
    judge=below_and_above,
)


# ---- 4: the test of a claim ----------------------------------------------------------------------

NEVER, ALWAYS = "a test that can't say yes", "a test that can't say no"
NEAREST, SIZE = "a test of the nearest positive", "a test that the loss's size decides"
ROUNDING, AGAINST = "a test that rounding decides", "a test against the nearest alone"
ANY, EVERY = "a test that any anchor decides", "a test that every anchor must pass"
FEW, PULLS = "a test of an anchor or two", "a test that the hardest pulled anchors decide"
SHARE = "a test of an average over the anchors"
BLIND, MOST = "a test that asks for much more", "a test that asks for the most"
PARTLY = 8  # controls of each kind that do it for a part of the anchors


class _Weighed(Loss):
    """Pulls of size · weights(s⁺); a slope above 0 gives the nearest positive most, below 0 the farthest."""

    paper, year, equation = "a loss made for the exercise", 0, ""

    def __init__(self, weights: float | Callable[[Tensor], Tensor], size: float = 1.0) -> None:
        super().__init__()
        self.weights, self.size = weights, size

    def formula(self, pairs: Pairs) -> Tensor:
        s = pairs.positives.detach()
        weight = self.weights(s) if callable(self.weights) else torch.softmax(self.weights * s, dim=1)
        return self.size * (pairs.negatives.logsumexp(dim=1) - (weight * pairs.positives).sum(dim=1))


def _second_farthest(s: Tensor) -> Tensor:
    """The farthest gets more than the nearest, and yet less than an equal share."""
    M, rank = s.shape[1], s.argsort(dim=1).argsort(dim=1)
    return torch.where(rank == 1, 1 - 0.8 / M - 0.1 * (M - 2) / M, torch.where(rank == 0, 0.8 / M, 0.1 / M))


def _second_and_farthest(s: Tensor) -> Tensor:
    """The farthest gets more than an equal share, and the second farthest, of three or more, the most."""
    M, rank = s.shape[1], s.argsort(dim=1).argsort(dim=1)
    second, others = (1.5, (M - 2.7) / (M - 2)) if M > 2 else (0.8, 0.0)
    return torch.where(rank == 0, 1.2, torch.where(rank == 1, second, others)) / M


def _in_part(mined: float, number: int) -> Callable[[Tensor], Tensor]:
    """Weights by which a part of the anchors pulls the farthest hardest, and the others the nearest.

    Which anchors it is, no one can foresee: a digit far behind the point decides. The fewer pull harder.
    """

    def weights(s: Tensor) -> Tensor:
        drawn = (s.sum(dim=1, keepdim=True) * 997 * (number + 1) ** 0.5 + 0.618 * number) % 1
        does = drawn < mined
        size = torch.where(does == (mined < 0.5), 100.0, 1.0)
        return size * torch.softmax(torch.where(does, -3.0, 3.0) * s, dim=1)

    return weights


def _for_some(part: float, lead: float, behind: float) -> Callable[[Tensor], Tensor]:
    """For a part of the anchors the farthest gets `lead` equal shares, at most 97%, else `behind`.

    How hard an anchor pulls is drawn from 1 to 100, so that medians over the anchors say nothing.
    """

    def weights(s: Tensor) -> Tensor:
        M, farthest = s.shape[1], s.argsort(dim=1).argsort(dim=1) == 0
        total = s.sum(dim=1, keepdim=True)
        share = torch.where((total * 997) % 1 < part, min(0.97, lead / M), behind / M)
        return 100 ** ((total * 611) % 1) * torch.where(farthest, share, (1 - share) / (M - 1))

    return weights


def mines_hard_positives(loss: Loss) -> bool:
    from clutils import anatomy

    dice = torch.Generator().manual_seed(0)
    s, n = (2 * torch.rand(500, k, generator=dice, dtype=torch.float64) - 1 for k in (4, 50))
    pull = anatomy.forces(loss, s, n)[0]
    farthest = pull.gather(1, s.argmin(dim=1, keepdim=True))[:, 0]
    return bool((farthest > (1 + 1e-6) * pull.mean(dim=1)).double().mean() > 0.5)


def _controls() -> list[tuple[str, Loss, bool]]:
    """Losses of which it is known whether the farthest positive gets more than its equal share."""
    return [
        ("a loss made to pull the farthest hardest", _Weighed(-3), True),
        ("a hundredth of that loss", _Weighed(-3, 0.01), True),
        ("a hundred times that loss", _Weighed(-3, 100), True),
        ("a loss made to pull the nearest hardest", _Weighed(3), False),
        ("a hundred times the loss that pulls the nearest", _Weighed(3, 100), False),
        ("AttentionNCE at d_pos = 0.1", losses.AttentionNCE(0.5, 0.1), False),
        ("a loss made to pull the second farthest hardest", _Weighed(_second_farthest), False),
        ("a flat attention, where all get the same", losses.AttentionNCE(0.5, math.inf, math.inf), False),
        ("NT-Xent averaged at τ = 1, which does it a little", losses.NTXent(1.0), True),
        (
            "a loss that gives the farthest more, the second farthest most",
            _Weighed(_second_and_farthest),
            True,
        ),
        *(("a loss that does it for a fifth of the anchors", _Weighed(f), False) for f in _parts(0.2)),
        *(("a loss that does it for all but a fifth", _Weighed(f), True) for f in _parts(0.8)),
        (
            "a loss that gives it nearly all for four anchors in ten",
            _Weighed(_for_some(0.4, 99, 0.8)),
            False,
        ),
        ("a loss that does it a little for seven anchors in ten", _Weighed(_for_some(0.7, 1.2, 0.1)), True),
    ]


def _parts(mined: float) -> list[Callable[[Tensor], Tensor]]:
    return [_in_part(mined, number) for number in range(PARTLY)]


def says_yes_and_no(test: Any) -> str | None:
    """None for a test that is right about every control; the name of a known slip; else the first miss."""
    controls, said = _controls(), []
    for _, loss, _ in controls:
        answer = something(test(loss))
        plain = answer.item() if hasattr(answer, "item") else answer
        if not isinstance(plain, bool):
            return f"True or False is asked for, got {answer!r:.60}."
        said.append(plain)
    true = [known for *_, known in controls]
    if said == true:
        return None
    if said[:-2] == true[:-2] and said[-2:] == [True, False]:
        return SHARE
    if len(set(said)) == 1:
        return ALWAYS if said[0] else NEVER
    if said[:7] == true[:7] and said[7]:
        return ROUNDING
    if said[:6] == true[:6] and said[6] and not said[7]:
        return AGAINST
    if said[:8] == true[:8] and said[:-2] != true[:-2]:
        return _of_the_others(said[8], said[9], said[10 : 10 + PARTLY], said[10 + PARTLY : -2])
    if said[:5] == [not known for known in true[:5]]:
        return NEAREST
    if len(set(said[:3])) > 1 or said[3] != said[4]:
        return SIZE
    missed = next(name for (name, _, known), x in zip(controls, said, strict=True) if x != known)
    return f"it is wrong about {missed}."


def _of_the_others(little: bool, second: bool, fewer: list[bool], most: list[bool]) -> str:
    """The name of a slip by what it says of a weak effect, and of an effect on a part of the anchors."""
    if not little:
        return BLIND
    if all(fewer):
        return ANY if all(most) else PULLS
    if second:
        return FEW if any(most) else EVERY
    return MOST


def _test(says: Callable[[Tensor], Tensor], by: str = "argmin", anchors: int = 200) -> Callable[[Loss], bool]:
    """A test on drawn anchors: `says` of the pulls, the chosen positive's first; it asks for most of them."""

    def test(loss: Loss) -> bool:
        s, n = toys.random_similarities(anchors, 3, 40, torch.Generator().manual_seed(1))
        order = s.argsort(dim=1, descending=by == "argmax")
        pull = anatomy.forces(loss, s.gather(1, order), n)[0]
        return bool(says(pull).double().mean() > 0.5)

    return test


MINES = exercise(
    name="mines_hard_positives",
    answer=mines_hard_positives,
    wrong={
        NEVER: lambda loss: bool((torch.softmax(torch.rand(9, 4), dim=1).amin(dim=1) > 0.25).any()),
        ALWAYS: _test(lambda pull: pull.amax(dim=1) >= pull.mean(dim=1)),
        NEAREST: _test(lambda pull: pull[:, 0] > 1.000001 * pull.mean(dim=1), "argmax"),
        AGAINST: _test(lambda pull: pull[:, 0] > 1.000001 * pull[:, -1]),
        SIZE: _test(lambda pull: pull[:, 0] > 0.5),
        ROUNDING: _test(lambda pull: pull[:, 0] >= (1 - 1e-9) * pull.mean(dim=1)),
        BLIND: _test(lambda pull: pull[:, 0] > 2 * pull.mean(dim=1)),
        MOST: _test(lambda pull: pull[:, 0] > 1.000001 * pull[:, 1:].amax(dim=1)),
        ANY: _test(lambda pull: (pull[:, 0] > 1.000001 * pull.mean(dim=1)).any()),
        EVERY: _test(lambda pull: (pull[:, 0] > 1.000001 * pull.mean(dim=1)).all()),
        SHARE: _test(lambda pull: (pull[:, 0] / pull.sum(dim=1)).mean() > 1.000001 / pull.shape[1]),
        PULLS: _test(lambda pull: pull[:, 0].mean() > 1.000001 * pull.mean()),
        FEW: _test(lambda pull: pull[:, 0] > 1.000001 * pull.mean(dim=1), anchors=1),
    },
    judge=says_yes_and_no,
)

EXERCISES = [GAIN, ROW, BOTH_SIDES, MINES]
