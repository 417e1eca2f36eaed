"""Exercises of notebooks 09 and 10: PiNDA's noise, its task entropy, and what a map of the noise finds."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from clutils.course.exercise import Exercise, Wrong

# ---- 1: noise with a gradient --------------------------------------------------------------------


def sample(mean: Tensor, scale: Tensor, drawn: Tensor) -> Tensor:
    return mean + drawn * scale


def _draws() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(8)
    cases = []
    for shape in ((4,), (2, 3, 5, 5)):
        mean, drawn = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
        scale = 0.05 + torch.rand(shape, generator=draw, dtype=torch.float64)
        cases.append((mean, scale, drawn))
    return cases


SAMPLE = Exercise(
    name="sample",
    question="ε of N(mean, scale²) from `drawn` of N(0, 1), all of one shape; scale is a standard deviation.",
    answer=sample,
    hints=[
        "Draw first, then stretch and shift: so μ and σ get a gradient, which a call of `normal` has not.",
        "A standard deviation multiplies the draw once; the mean is added after it.",
    ],
    wrong=[
        Wrong(
            "the scale taken for a variance",
            lambda mean, scale, drawn: mean + drawn * scale.sqrt(),
            "the paper calls Σ a variance, but eq. 23 multiplies by it: it is used as a standard deviation.",
        ),
        Wrong(
            "the scale squared",
            lambda mean, scale, drawn: mean + drawn * scale**2,
            "then scale² would be the standard deviation; scale itself is.",
        ),
        Wrong(
            "noise without its mean",
            lambda mean, scale, drawn: drawn * scale,
            "right only where no mean is learned: add it.",
        ),
        Wrong(
            "the scale on the mean as well",
            lambda mean, scale, drawn: (mean + drawn) * scale,
            "that has the mean μσ: stretch the draw alone, then shift.",
        ),
        Wrong(
            "the uniform formula",
            lambda mean, scale, drawn: (2 * drawn - 1) * scale,
            "(2ϵ - 1) u turns a draw from U(0, 1) into one from [-u, u]; `drawn` is normal already.",
        ),
    ],
    cases=_draws,
)


# ---- 2: the task entropy -------------------------------------------------------------------------


def task_entropy(loss: Tensor) -> Tensor:
    return 0.5 * math.log(2 * math.pi * math.e) + loss / 2


def _losses() -> list[tuple[Any, ...]]:
    return [
        (torch.tensor([0.0, 0.7, 3.0], dtype=torch.float64),),
        (torch.tensor([math.log(2 * 256 - 1)], dtype=torch.float64),),
        (torch.tensor(12.0, dtype=torch.float64),),
    ]


CONSTANT = 0.5 * math.log(2 * math.pi * math.e)  # entropy of N(0, 1)

ENTROPY = Exercise(
    name="task_entropy",
    question="Entropy in nats of N(0, 1/γ) with γ = e^(-ℓ), from ℓ per anchor, any shape.",
    answer=task_entropy,
    hints=[
        "A Gaussian's entropy is ½ log(2πe · variance). What is the variance here?",
        "log(1/γ) = ℓ: take it out of the logarithm, and mind the ½ before it.",
    ],
    wrong=[
        Wrong(
            "the whole loss in place of half of it",
            lambda loss: CONSTANT + loss,
            "1/γ is the variance; its root is the standard deviation, and ½ log(1/γ) = ℓ/2.",
        ),
        Wrong(
            "γ as the variance",
            lambda loss: CONSTANT - loss / 2,
            "the variance is 1/γ: a larger loss makes the Gaussian wider, and its entropy larger.",
        ),
        Wrong(
            "the loss without the constant",
            lambda loss: loss / 2,
            "at ℓ = 0 it is the entropy of N(0, 1), ½ log 2πe = 1.42 nats, not 0.",
        ),
        Wrong(
            "the entropy in bits",
            lambda loss: (CONSTANT + loss / 2) / math.log(2),
            "nats are asked for: the natural logarithm.",
        ),
        Wrong(
            "e forgotten under the logarithm",
            lambda loss: 0.5 * math.log(2 * math.pi) + loss / 2,
            "½ log 2π is the log-density's part; the mean of α²γ/2 adds the ½ that log e stands for.",
        ),
    ],
    cases=_losses,
)


# ---- 3: is the object spared? --------------------------------------------------------------------


def spared(scale: Tensor, mask: Tensor) -> Tensor:
    inside, outside = scale[mask].double(), scale[~mask].double()
    gaps = inside[:, None] - outside[None, :]  # every pixel of the object with every one of the rest
    return (gaps > 0).double().mean() + (gaps == 0).double().mean() / 2


def _maps() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(9)
    mask = torch.zeros(6, 7, dtype=torch.bool)
    mask[1:4, 2:5] = True
    smooth = torch.rand(6, 7, generator=draw, dtype=torch.float64) - 0.15 * mask
    rough = torch.randint(1, 4, (6, 7), generator=draw).double()  # many ties
    corner = torch.tensor([[True, False], [False, False]])
    return [
        (torch.tensor([[0.2, 0.1], [0.2, 0.4]], dtype=torch.float64), corner),
        (smooth, mask),
        (rough, mask),
        (torch.full((6, 7), 0.3, dtype=torch.float64), mask),  # all equal: no detector
    ]


def _whole_ties(scale: Tensor, mask: Tensor) -> Tensor:
    return (scale[mask][:, None] >= scale[~mask]).double().mean()


def _no_ties(scale: Tensor, mask: Tensor) -> Tensor:
    return (scale[mask][:, None] > scale[~mask]).double().mean()


SPARED = Exercise(
    name="spared",
    question="AUROC of a scale map (H, W) as a detector of the object, mask (H, W) bool: pairs, ties half.",
    answer=spared,
    hints=[
        "Of all pairs (a pixel of the object, one of the rest): in which share has the object's more?",
        "`scale[mask][:, None]` beside `scale[~mask]` makes all pairs at once; equal ones count ½.",
    ],
    wrong=[
        Wrong(
            "one minus the AUROC",
            lambda scale, mask: 1 - spared(scale, mask),
            "that is the background's share of the pairs; a detector of the object is right where the "
            "object's pixel has more.",
        ),
        Wrong("ties counted whole", _whole_ties, "a map that is the same everywhere would get 1: count ½."),
        Wrong("ties counted as lost", _no_ties, "a map that is the same everywhere would get 0: count ½."),
        Wrong(
            "a difference of means",
            lambda scale, mask: (scale[mask].mean() - scale[~mask].mean()).double(),
            "it depends on the unit of the noise; the AUROC asks only for the order of the pixels.",
        ),
        Wrong(
            "an accuracy at the median",
            lambda scale, mask: ((scale > scale.median()) == mask).double().mean(),
            "it depends on where the threshold lies and on how large the object is; take all pairs.",
        ),
    ],
    cases=_maps,
)


# ---- 4: its own picture, or any? -----------------------------------------------------------------


def above_shuffled(scores: Tensor) -> Tensor:
    own = torch.eye(len(scores), dtype=torch.bool)
    return scores[own].mean() - scores[~own].mean()


def _tables() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(10)
    known = torch.rand(5, 5, generator=draw, dtype=torch.float64) * 0.4 + 0.4
    known += 0.15 * torch.eye(5, dtype=torch.float64)
    central = (0.6 + 0.3 * torch.rand(6, generator=draw, dtype=torch.float64)).expand(6, 6)
    return [
        (torch.tensor([[0.9, 0.6], [0.5, 0.7]], dtype=torch.float64),),
        (known,),
        (central.clone(),),  # one map for all pictures: 0, however well it does
        # maps that fit the others' objects better; and the same number on the diagonal and beside it
        (torch.tensor([[0.4, 0.7, 0.6], [0.8, 0.6, 0.6], [0.7, 0.9, 0.5]], dtype=torch.float64),),
    ]


def _best_other(scores: Tensor) -> Tensor:
    others = scores.clone().fill_diagonal_(-math.inf)
    return scores.diagonal().mean() - others.amax(dim=1).mean()


ABOVE = Exercise(
    name="above_shuffled",
    question="scores (N, N), map i against mask j: the mean on the own pictures less the mean on the others.",
    answer=above_shuffled,
    hints=[
        "A map's own picture is on the diagonal. How many pairs are not?",
        "Sum of all less sum of the diagonal, over N (N - 1) pairs; or a mask, `~torch.eye(N).bool()`.",
    ],
    wrong=[
        Wrong(
            "the lead over 0.5",
            lambda scores: scores.diagonal().mean() - 0.5,
            "that is chance for a random map; one bright spot in the middle is above it on most pictures and "
            "knows none of them. What it gets on the others' masks is its chance.",
        ),
        Wrong(
            "the own pictures counted among the others",
            lambda scores: scores.diagonal().mean() - scores.mean(),
            "the mean of the whole table holds the diagonal, too, which makes the lead smaller by 1/N.",
        ),
        Wrong(
            "the others less the own",
            lambda scores: -above_shuffled(scores),
            "a map that knows its own picture should come out above 0.",
        ),
        Wrong(
            "never below 0",
            lambda scores: above_shuffled(scores).clamp(min=0),
            "a map that fits the others' objects better than its own has a lead below 0, and should show it.",
        ),
        Wrong(
            "the mean on the own pictures alone",
            lambda scores: scores.diagonal().mean(),
            "nothing is taken off yet: what would the same map get on another picture's mask?",
        ),
        Wrong(
            "the lead over the best of the others",
            _best_other,
            "by luck one of many other masks fits well, the better the more there are; take their mean.",
        ),
    ],
    cases=_tables,
)

EXERCISES = [SAMPLE, ENTROPY, SPARED, ABOVE]
