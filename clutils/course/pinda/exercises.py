"""Exercises of notebooks 09 and 10: PiNDA's noise and its entropy; what a map finds, and how surely."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from clutils import data
from clutils.course.exercise import Exercise, Wrong
from clutils.course.pinda import detectors

# ---- 1: noise with a gradient --------------------------------------------------------------------


def sample(mean: Tensor, scale: Tensor, drawn: Tensor) -> Tensor:
    return mean + drawn * scale


SAMPLE_WRONG = [
    Wrong(
        "noise that was detached",
        lambda mean, scale, drawn: sample(mean, scale, drawn).detach(),
        "the numbers are right, but no gradient reaches the generator, and it never learns.",
    ),
    Wrong(
        "a scale that was detached",
        lambda mean, scale, drawn: mean + drawn * scale.detach(),
        "the scale is what the generator is to learn: its gradient must flow.",
    ),
    Wrong(
        "a mean that was detached",
        lambda mean, scale, drawn: mean.detach() + drawn * scale,
        "a learned mean needs its gradient, too.",
    ),
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
]


def _value_and_gradients(answer: Callable[..., Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """ε, and the gradient of a weighted sum of it by mean and scale (0 where none flows)."""
    draw = torch.Generator().manual_seed(8)
    mean, drawn, weights = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(3))
    scale = 0.05 + torch.rand(shape, generator=draw, dtype=torch.float64)
    leaves = [mean.requires_grad_(), scale.requires_grad_()]
    value = answer(*leaves, drawn)
    if not isinstance(value, Tensor) or value.shape != shape:
        raise TypeError(f"a tensor {shape} is asked for, got {tuple(getattr(value, 'shape', ()))}")
    found = [None, None]
    if value.requires_grad:
        found = torch.autograd.grad((value * weights).sum(), leaves, allow_unused=True)
    return [
        value.detach(),
        *(torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)),
    ]


def _judge_sample(answer: Callable[..., Tensor]) -> str | None:
    def all_of(one: Callable[..., Tensor]) -> list[Tensor]:
        return [part.double() for shape in ((4,), (2, 3, 5, 5)) for part in _value_and_gradients(one, shape)]

    def same(one: list[Tensor], other: list[Tensor]) -> bool:
        return all(torch.allclose(a, b, rtol=1e-6, atol=1e-7) for a, b in zip(one, other, strict=True))

    try:
        if answer(*torch.ones(3, 2)) in (None, Ellipsis):
            return "your function returned nothing yet"
    except Exception:  # a tensor has no single truth; what a reader's own code raises, it raises again below
        pass
    try:
        found = all_of(answer)
    except Exception as error:  # whatever a reader's own code raises is an answer to report on
        return f"your code raised {type(error).__name__}: {error}"
    if same(found, all_of(sample)):
        return None
    for wrong in SAMPLE_WRONG:
        if same(found, all_of(wrong.answer)):
            return wrong.name
    right = same(found[::3], all_of(sample)[::3])
    return "the numbers are right, but not their gradient." if right else "that is not ε = μ + ϵ σ."


SAMPLE = Exercise(
    name="sample",
    question=(
        "ε of N(mean, scale²) from `drawn` of N(0, 1), all of one shape; scale is a standard deviation. "
        "Its value and its gradient by mean and scale are checked."
    ),
    answer=sample,
    hints=[
        "Draw first, then stretch and shift: so μ and σ get a gradient, which a call of `normal` has not.",
        "A standard deviation multiplies the draw once; the mean is added after it.",
    ],
    wrong=SAMPLE_WRONG,
    judge=_judge_sample,
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


# ---- 4: where the noise hides --------------------------------------------------------------------


def on_dead(scale: Tensor, x: Tensor) -> Tensor:
    dead = x.std(dim=0) < 0.02
    power = scale.pow(2).sum(dim=0)
    return power[dead].sum() / power.sum()


def _inputs() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(12)
    cases = []
    for dead in (3, 1):
        x = torch.rand(30, 8, generator=draw, dtype=torch.float64)
        x[:, :dead] = 0.9 + 0.001 * x[:, :dead]
        scale = 0.05 + torch.rand(30, 8, generator=draw, dtype=torch.float64)
        x[:, 7] -= x[:, 7].mean()  # around 0, and alive
        scale[:, :dead] *= 2.5 * torch.rand(30, 1, generator=draw, dtype=torch.float64)
        cases.append((scale, x))
    return cases


DEAD = Exercise(
    name="on_dead",
    question="The share of the noise's power on entries whose spread over the inputs is below 0.02.",
    answer=on_dead,
    hints=[
        "The power of noise is its variance: scale². Which entries hardly change from input to input?",
        "`x.std(dim=0) < 0.02` is a mask of the entries; sum scale² over it, and over all.",
    ],
    wrong=[
        Wrong(
            "the share of the scale",
            lambda scale, x: scale[:, x.std(dim=0) < 0.02].sum() / scale.sum(),
            "power is the variance, scale²: step 7's sum has σ².",
        ),
        Wrong(
            "the share of the entries",
            lambda scale, x: (x.std(dim=0) < 0.02).double().mean(),
            "that is what noise that does not choose would put there; compare with it.",
        ),
        Wrong(
            "the share on the entries that live",
            lambda scale, x: 1 - on_dead(scale, x),
            "the other way round: dead is what does not change.",
        ),
        Wrong(
            "entries near 0 taken for dead ones",
            lambda scale, x: scale[:, x.mean(dim=0).abs() < 0.02].pow(2).sum() / scale.pow(2).sum(),
            "an entry can be constant at any value: the spread tells, not the mean.",
        ),
        Wrong(
            "inputs taken for entries",
            lambda scale, x: scale[x.std(dim=1) < 0.02].pow(2).sum() / scale.pow(2).sum(),
            "the spread is over the inputs, dim=0: a number for each entry.",
        ),
        Wrong(
            "the mean power of a dead entry over that of all",
            lambda scale, x: scale[:, x.std(dim=0) < 0.02].pow(2).mean() / scale.pow(2).mean(),
            "that is how many times more a dead entry gets; the share is a ratio of sums.",
        ),
        Wrong(
            "the power of the mean scale",
            lambda scale, x: on_dead(scale.mean(dim=0, keepdim=True).expand_as(scale), x),
            "square first: inputs with more noise count by their power.",
        ),
    ],
    cases=_inputs,
)

# ---- 5: its own picture, or any, and how surely? -------------------------------------------------


def mean_lead(scores: Tensor) -> tuple[Tensor, Tensor]:
    n = len(scores)
    own = scores.diagonal()
    others = (scores.sum(dim=1) - own) / (n - 1)
    each = own - others  # of map i: a number a picture
    half = 1.96 * each.std() / n**0.5
    return each.mean() - half, each.mean() + half


def _tables() -> list[tuple[Any, ...]]:
    draw = torch.Generator().manual_seed(10)
    known = torch.rand(5, 5, generator=draw, dtype=torch.float64) * 0.4 + 0.4
    known += 0.15 * torch.eye(5, dtype=torch.float64)
    central = (0.6 + 0.3 * torch.rand(6, generator=draw, dtype=torch.float64)).expand(6, 6)
    return [
        (torch.tensor([[0.9, 0.6], [0.5, 0.7]], dtype=torch.float64),),
        (known,),
        (central.clone(),),  # one map for all pictures: around 0, however well it does
        (torch.tensor([[0.4, 0.7, 0.6], [0.8, 0.6, 0.6], [0.7, 0.9, 0.5]], dtype=torch.float64),),
    ]


def _interval(each: Tensor, half: Tensor | float) -> tuple[Tensor, Tensor]:
    return each.mean() - half, each.mean() + half


def _leads(scores: Tensor) -> Tensor:
    own = scores.diagonal()
    return own - (scores.sum(dim=1) - own) / (len(scores) - 1)


LEAD = Exercise(
    name="mean_lead",
    question="scores (N, N), map i on mask j -> (low, high): 95 % interval of the mean lead on its own.",
    answer=mean_lead,
    hints=[
        "A map's lead: its score on its own picture, the diagonal, less its mean over the other N - 1 masks.",
        "N leads, one a picture: their mean, ± 1.96 times their standard deviation over √N.",
    ],
    wrong=[
        Wrong(
            "the spread of the leads, not of their mean",
            lambda scores: _interval(_leads(scores), 1.96 * _leads(scores).std()),
            "that is where single pictures lie; a mean of N of them is √N times as sure.",
        ),
        Wrong(
            "one standard error",
            lambda scores: _interval(_leads(scores), _leads(scores).std() / len(scores) ** 0.5),
            "that holds the mean in 68 % of the cases: 95 % takes 1.96 of them.",
        ),
        Wrong(
            "all pairs taken for independent",
            lambda scores: _interval(
                _leads(scores), 1.96 * _leads(scores).std() / (len(scores) * (len(scores) - 1)) ** 0.5
            ),
            "N maps make N (N - 1) pairs, but only N pictures were drawn: count the pictures.",
        ),
        Wrong(
            "the standard deviation over N",
            lambda scores: _interval(
                _leads(scores), 1.96 * _leads(scores).std(unbiased=False) / len(scores) ** 0.5
            ),
            "the mean was taken from the same N: divide by N - 1, as `.std()` does.",
        ),
        Wrong(
            "the lead over 0.5",
            lambda scores: _interval(
                scores.diagonal() - 0.5, 1.96 * scores.diagonal().std() / len(scores) ** 0.5
            ),
            "that is chance for a random map; one bright spot in the middle is above it on most pictures and "
            "knows none of them. What it gets on the others' masks is its chance.",
        ),
        Wrong(
            "the own pictures counted among the others",
            lambda scores: _interval(
                scores.diagonal() - scores.mean(dim=1),
                1.96 * (scores.diagonal() - scores.mean(dim=1)).std() / len(scores) ** 0.5,
            ),
            "the mean of the whole row holds the diagonal, too, which makes the lead smaller by 1/N.",
        ),
        Wrong(
            "each mask with the other maps",
            lambda scores: mean_lead(scores.T),
            "row i is map i: the mean is over the masks of its row, not over a column.",
        ),
        Wrong(
            "the others less the own",
            lambda scores: tuple(-end for end in reversed(mean_lead(scores))),
            "a map that knows its own picture should come out above 0.",
        ),
    ],
    cases=_tables,
)

# ---- 6: could it have said yes? ------------------------------------------------------------------


def positive_control(network: nn.Module, pictures: Tensor, masks: Tensor, new: Tensor) -> Tensor:
    optimiser = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(pictures)[:, 0], masks.float())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network(new)[:, 0].detach()


class _Eye(nn.Module):
    """A small network that maps pictures (N, 1, H, W) to one number a pixel, (N, 1, H, W); or a blind one."""

    def __init__(self, sees: bool) -> None:
        super().__init__()
        self.sees = sees
        self.layers = nn.Sequential(nn.Conv2d(1, 8, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x if self.sees else torch.zeros_like(x))


def _by_brightness(network: nn.Module, pictures: Tensor, masks: Tensor, new: Tensor) -> Tensor:
    grey, at = pictures[:, 0], masks.bool()
    return new[:, 0] * (grey[at].mean() - grey[~at].mean()).sign()


CONTROL_WRONG = [
    Wrong(
        "a network that was not told the masks",
        lambda network, pictures, masks, new: network(new)[:, 0].detach(),
        "it finds bright objects or dark ones, whichever it happens to: fit it to the masks.",
    ),
    Wrong(
        "the background's maps",
        lambda *given: -positive_control(*given),
        "the map is higher on the background. Higher is to mean object.",
    ),
    Wrong(
        "maps without the network",
        _by_brightness,
        "a network that sees nothing still finds the object: your map does not come from the network.",
    ),
    Wrong(
        "maps that find nothing",
        lambda network, pictures, masks, new: torch.zeros_like(new[:, 0]),
        "they are at chance, as if it was not trained: fit the network to the masks.",
    ),
]


def _scored(answer: Callable[..., Tensor], sees: bool, bright: bool) -> float:
    """Mean AUROC on new pictures of what `answer` makes of a network that can, or cannot, see the object."""
    scenes = data.load("scenes", limit=40, size=16)
    draw = torch.Generator().manual_seed(3)
    inside = scenes.masks[:, None].float()
    shown = 0.5 + (0.25 if bright else -0.25) * (2 * inside - 1)
    shown = shown + 0.05 * torch.randn(shown.shape, generator=draw)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        given = answer(_Eye(sees), shown[:30].clone(), scenes.masks[:30].clone(), shown[30:].clone())
    if given is None or given is Ellipsis:
        return math.nan
    if not isinstance(given, Tensor) or given.shape != (10, 16, 16):
        got = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise TypeError(f"maps of the new pictures are asked for, (10, 16, 16), got {got}")
    return float(detectors.auroc(given.double(), scenes.masks[30:]).mean())


def _judge_control(answer: Callable[..., Tensor]) -> str | None:
    try:
        light, dark, blind = (_scored(answer, *case) for case in ((True, True), (True, False), (False, True)))
    except Exception as error:  # whatever a reader's own code raises is an answer to report on
        return f"your code raised {type(error).__name__}: {error}"
    if math.isnan(light):
        return "your function returned nothing yet"
    if abs(blind - 0.5) > 0.1:
        return CONTROL_WRONG[2].name
    if min(light, dark) > 0.9:
        return None
    if max(light, dark) < 0.1:
        return CONTROL_WRONG[1].name
    return CONTROL_WRONG[0 if max(light, dark) > 0.9 else 3].name


CONTROL = Exercise(
    name="positive_control",
    question=(
        "Train network (N, 1, H, W) -> (N, 1, H, W) on pictures and masks; return its maps (N, H, W) of new."
    ),
    answer=positive_control,
    hints=[
        "The masks are a target of 0 and 1 for each pixel: `nn.functional.binary_cross_entropy_with_logits`.",
        "An optimiser over network.parameters(), some dozen steps (Adam, 0.01), then network(new)[:, 0].",
    ],
    wrong=CONTROL_WRONG,
    judge=_judge_control,
)

EXERCISES = [SAMPLE, ENTROPY, DEAD, SPARED, LEAD, CONTROL]
