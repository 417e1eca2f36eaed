"""Exercises of notebook 05: hard negatives."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from clutils.course import toys
from clutils.course.exercise import Lacks, something, unchanging, written

exercise = written(__file__)

# ---- 1: where an anchor falls silent ---------------------------------------------------------------------


def silent_from(negatives: Tensor, temperature: float, class_prior: float) -> Tensor:
    mean = torch.exp(negatives / temperature).mean(dim=1)
    floor = (1 - class_prior) * math.exp(-1 / temperature)
    return temperature * torch.log((mean - floor) / class_prior)


def _from(
    share: Callable[[float], float], total: Callable[..., Tensor] = torch.mean
) -> Callable[..., Tensor]:
    """The answer with another share of the floor e^(-1/τ), or with another sum over the negatives."""
    return lambda n, t, prior: (
        t * torch.log((total(torch.exp(n / t), dim=1) - share(prior) * math.exp(-1 / t)) / prior)
    )


def _negative_cases() -> list[Tensor]:
    draw = torch.Generator().manual_seed(6)
    random = [toys.random_similarities(4, 1, K, draw)[1] for K in (7, 30)]
    return [toys.three_points()[1], *random, 0.05 * random[0] - 0.95]  # the last: all far away


SILENT_FROM = exercise(
    name="silent_from",
    answer=silent_from,
    wrong={
        "where the estimate is 0, not the clamp": _from(lambda prior: 0.0),
        "a clamp on what was not yet divided by 1 - τ⁺": _from(lambda prior: 1.0),
        "the sum over the negatives in place of their mean": _from(lambda prior: 1 - prior, torch.sum),
        "multiplied by τ⁺": lambda n, t, p: silent_from(n, t, p) + 2 * t * math.log(p),
        "E⁺ in place of s⁺": lambda n, t, p: torch.exp(silent_from(n, t, p) / t),
        "the factor τ forgotten": lambda n, t, p: silent_from(n, t, p) / t,
    },
    cases=lambda: list(zip(_negative_cases(), (0.5, 0.5, 1.0, 0.5), (0.1, 0.3, 0.4, 0.1), strict=True)),
)


# ---- 2: at which temperature the plain loss shares alike --------------------------------------------------


def as_cold_as(gap: float, temperature: float, beta: float) -> float:
    def share(b: float) -> float:  # of the harder of two, by the softmax of b s⁻/τ
        return 1 / (1 + math.exp(-b * gap / temperature))

    harder = (1 + beta) * share(1 + beta) - beta * share(beta)
    return gap / math.log(harder / (1 - harder))


def _of_two_softmaxes(gap: float, temperature: float, *factors: tuple[float, float]) -> float:
    harder = sum(f / (1 + math.exp(-b * gap / temperature)) for f, b in factors)
    return gap / math.log(harder / (1 - harder))


AS_COLD_AS = exercise(
    name="as_cold_as",
    answer=as_cold_as,
    wrong={
        "the weights taken for constants": lambda gap, t, b: t / (1 + b),
        "the limit of a small spread": lambda gap, t, b: t / (1 + 2 * b),
        "the factors 1 + β and β left out": lambda gap, t, b: _of_two_softmaxes(gap, t, (1, 1 + b), (-1, b)),
        "the logarithm of the share": lambda gap, t, b: (
            gap / math.log1p(math.exp(-gap / as_cold_as(gap, t, b)))
        ),
        "the softmaxes at βτ and (1 + β)τ": lambda gap, t, b: _of_two_softmaxes(
            gap, t, (1 + b, 1 / (1 + b)), (-b, 1 / b)
        ),
    },
    cases=lambda: [(0.3, 0.5, 1.0), (0.15, 0.5, 2.0), (0.1, 0.2, 0.5), (0.02, 0.1, 1.0)],
    tolerance=1e-5,
)


# ---- 3: the test of a claim --------------------------------------------------------------------------------


def spares_false_negatives(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    push = push.clamp(min=0)  # to be drawn in is no push
    pushing = push.sum(dim=1) > 0
    if not bool(pushing.any()):
        return False
    ours, theirs = ((f * false).sum(dim=1)[pushing] / f.sum(dim=1)[pushing] for f in (push, plain))
    return bool(ours.mean() < theirs.mean() - 1e-9)


def _shares(f: Tensor, false: Tensor) -> Tensor:
    return (f * false).sum(dim=1) / f.sum(dim=1)


def _lower_mean(ours: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Tensor], bool]:
    """A test against the plain loss's mean over all anchors; `ours` makes one number of the loss's shares."""
    return lambda push, plain, false: bool(ours(_shares(push, false)) < _shares(plain, false).mean() - 1e-9)


def _of_the_batch(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    ours, theirs = ((f * false).sum() / f.sum() for f in (push, plain))
    return bool(ours < theirs - 1e-9)


def _no_room(push: Tensor, plain: Tensor, false: Tensor) -> bool:
    pushing = push.sum(dim=1) > 0
    return bool(_shares(push, false)[pushing].mean() < _shares(plain, false)[pushing].mean())


def _lower(push: Tensor, plain: Tensor, false: Tensor) -> Tensor:
    """Which of the anchors that push have a lower share."""
    pushing = push.sum(dim=1) > 0
    return (_shares(push, false) < _shares(plain, false) - 1e-9)[pushing]


def _by(
    less: Callable[[Tensor, Tensor], Tensor], largest: float = 1e-9
) -> Callable[[Tensor, Tensor, Tensor], bool]:
    """A test by another mean: `less` of ours and theirs, over the anchors that push, is below -`largest`."""

    def test(push: Tensor, plain: Tensor, false: Tensor) -> bool:
        pushing = push.sum(dim=1) > 0
        ours, theirs = _shares(push, false)[pushing], _shares(plain, false)[pushing]
        return bool(pushing.any()) and bool(less(ours, theirs).mean() < -largest)

    return test


def _with(shares: Tensor) -> Tensor:
    """NT-Xent's push, so changed that false negatives have these shares of it (A,)."""
    plain, false = _plain()
    before = _shares(plain, false)
    return plain * torch.where(false, (shares / before)[:, None], ((1 - shares) / (1 - before))[:, None])


def _one_against_the_others(which: str) -> Tensor:
    """A mean share that rises, though the smallest share is all but gone, or the largest falls by a tenth."""
    shares = _shares(*_plain())
    one = shares.argmin() if which == "smallest" else shares.argmax()
    taken = 0.999 * shares[one] if which == "smallest" else torch.tensor(0.1)
    changed = shares + 1.1 * taken / (len(shares) - 1)
    changed[one] = shares[one] - taken
    return _with(changed)


def _middle_against_the_largest() -> Tensor:
    """A mean share that rises, though those in the middle fall."""
    shares = _shares(*_plain())
    order = shares.argsort()
    changed = shares.clone()
    changed[order[2:4]] -= 0.02
    changed[order[-1]] += 0.15
    return _with(changed)


def _made_up() -> list[tuple[Tensor, bool]]:
    """Pushes of losses whose answer is known, in the order of the exercise's wrong answers."""
    plain, false = _plain()
    share = _shares(plain, false)[:, None]
    spared = plain * torch.where(false, 0.5, 1.0)
    most = share >= share.median()
    two = torch.arange(len(plain))[:, None] < 2
    easy = plain < plain.quantile(0.5, dim=1, keepdim=True)
    return [
        (0.5 * plain, False),
        (0 * plain, False),
        (plain * torch.exp(-10 * share), False),
        (plain * ~most, False),
        (plain * (1 - 1e-12 * false.double()), False),
        (spared, True),
        (2 * spared, True),
        (spared * most, True),
        (plain * torch.where(false, torch.where(two, 0.9, 3.0), 1.0), False),
        (plain * torch.where(false, torch.where(two, 0.05, 1.05), 1.0), True),
        (_with(_shares(plain, false) - 1e-4), True),
        (plain * torch.where(false & (torch.arange(len(plain)) >= 3)[:, None], 0.5, 1.0), True),
        (_one_against_the_others("smallest"), False),
        (_one_against_the_others("largest"), False),
        (plain * torch.where(false & (share < 0.3), -1.5, 1.0), True),
        (plain * torch.where(false, 0.9, torch.where(easy, -10.0, 1.0)), True),
        (_middle_against_the_largest(), False),
        (plain * torch.where(false, 1.0, torch.where(easy, -3.0, 1.0)), False),
    ]


def _plain() -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(2)
    plain = torch.softmax(5 * toys.random_similarities(6, 1, 20, draw)[1], dim=1)
    return plain, torch.rand(6, 20, generator=draw) < 0.3


def _tells(answer: Callable[..., Any]) -> str | None:
    """None for a test that is right about all of them, else the name of the first that it is wrong about."""
    answer = unchanging(answer, ("push", "plain", "false"))
    for (push, expected), wrong in zip(_made_up(), SPARES_FALSE_NEGATIVES.wrong, strict=True):
        said = something(answer(push, *_plain()))
        if isinstance(said, str) or getattr(said, "ndim", 0):
            raise Lacks(f"True or False is asked for, got {said!r:.60}")
        if bool(said) != expected:
            return wrong.name
    return None


SPARES_FALSE_NEGATIVES = exercise(
    name="spares_false_negatives",
    answer=spares_false_negatives,
    wrong={
        "a test that any weaker loss passes": lambda push, plain, false: bool(
            (push * false).sum() < (plain * false).sum()
        ),
        "a test that silence passes": _lower_mean(lambda shares: shares.nan_to_num(0).mean()),
        "one share for the whole batch": _of_the_batch,
        "a comparison of different anchors": _lower_mean(torch.nanmean),
        "a test without room for rounding": _no_room,
        "a test that nothing can pass": lambda push, plain, false: False,
        "a test that asks for a weaker push, too": lambda push, plain, false: (
            spares_false_negatives(push, plain, false) and bool(push.sum() < 1.5 * plain.sum())
        ),
        "a test that one silent anchor spoils": _lower_mean(torch.mean),
        "a test that one anchor decides": lambda push, plain, false: bool(_lower(push, plain, false).any()),
        "a count of anchors": lambda push, plain, false: bool(
            _lower(push, plain, false).double().mean() > 0.5
        ),
        "a test that asks for a large effect": _by(torch.sub, 0.01),
        "a test of the first anchors": lambda push, plain, false: spares_false_negatives(
            push[:3], plain[:3], false[:3]
        ),
        "a mean of ratios": _by(lambda ours, theirs: ours / theirs - 1),
        "a mean that the largest shares decide": _by(lambda ours, theirs: ours**2 - theirs**2),
        "a test that takes being drawn in for a push": lambda push, plain, false: spares_false_negatives(
            push.abs(), plain, false
        ),
        "a test without the clamp": _by(torch.sub),
        "a median": lambda push, plain, false: _by(lambda ours, theirs: ours.median() - theirs.median())(
            push.clamp(min=0), plain, false
        ),
        "the pushes over the sum of all forces": lambda push, plain, false: bool(
            ((push.clamp(min=0) * false).sum(dim=1) / push.abs().sum(dim=1)).nanmean()
            < _shares(plain, false)[push.abs().sum(dim=1) > 0].mean() - 1e-9
        ),
    },
    judge=_tells,
)

EXERCISES = [SILENT_FROM, AS_COLD_AS, SPARES_FALSE_NEGATIVES]
