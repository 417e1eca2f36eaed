"""Exercises of notebooks 09 and 10: PiNDA's noise and its entropy; what a map finds, and how surely."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils.course.exercise import Lacks, something, value_and_gradients, written
from clutils.course.pinda import detectors

exercise = written(__file__)

# ---- 1: noise with a gradient --------------------------------------------------------------------


def sample(mean: Tensor, scale: Tensor, drawn: Tensor) -> Tensor:
    return mean + drawn * scale


SAMPLE_WRONG = {
    "noise that was detached": lambda mean, scale, drawn: sample(mean, scale, drawn).detach(),
    "a scale that was detached": lambda mean, scale, drawn: mean + drawn * scale.detach(),
    "a mean that was detached": lambda mean, scale, drawn: mean.detach() + drawn * scale,
    "the scale taken for a variance": lambda mean, scale, drawn: mean + drawn * scale.sqrt(),
    "the scale squared": lambda mean, scale, drawn: mean + drawn * scale**2,
    "noise without its mean": lambda mean, scale, drawn: drawn * scale,
    "the scale on the mean as well": lambda mean, scale, drawn: (mean + drawn) * scale,
    "the draw's mirror image": lambda mean, scale, drawn: mean - drawn * scale,
    "the uniform formula": lambda mean, scale, drawn: (2 * drawn - 1) * scale,
}


def _noise() -> list[tuple[Tensor, ...]]:
    draw = torch.Generator().manual_seed(8)
    cases = []
    for shape in ((4,), (2, 3, 5, 5)):
        mean, drawn = (torch.randn(shape, generator=draw, dtype=torch.float64) for _ in range(2))
        cases.append((mean, 0.05 + torch.rand(shape, generator=draw, dtype=torch.float64), drawn))
    return cases


SAMPLE = exercise(
    name="sample",
    answer=sample,
    wrong=SAMPLE_WRONG,
    cases=_noise,
    observe=value_and_gradients("mean", "scale"),
)


# ---- 2: the task entropy -------------------------------------------------------------------------


def task_entropy(loss: Tensor) -> Tensor:
    return loss / 2 + 0.5 * np.log(2 * np.pi * np.e)  # a notebook has numpy, not math


ENTROPY = exercise(
    name="task_entropy",
    answer=task_entropy,
    wrong={
        "the whole loss in place of half of it": lambda loss: task_entropy(2 * loss),
        "γ as the variance": lambda loss: task_entropy(-loss),
        "the loss without the constant": lambda loss: loss / 2,
        "the entropy in bits": lambda loss: task_entropy(loss) / math.log(2),
        "e forgotten under the logarithm": lambda loss: 0.5 * math.log(2 * math.pi) + loss / 2,
    },
    cases=lambda: [
        (torch.tensor(x).double(),)
        for x in ([0.0, 0.7, 3.0], [math.log(2 * 256 - 1)], 12.0, [[0.5, 1.0, -4.0], [2.0, 3.0, 0.1]])
    ],
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


SPARED = exercise(
    name="spared",
    answer=spared,
    wrong={
        "one minus the AUROC": lambda scale, mask: 1 - spared(scale, mask),
        "the pairs in which the background's is larger": (
            lambda scale, mask: (scale[mask][:, None] < scale[~mask]).double().mean()
        ),
        "the better of both directions": lambda scale, mask: torch.maximum(
            spared(scale, mask), 1 - spared(scale, mask)
        ),
        "ties counted whole": lambda scale, mask: (scale[mask][:, None] >= scale[~mask]).double().mean(),
        "ties counted as lost": lambda scale, mask: (scale[mask][:, None] > scale[~mask]).double().mean(),
        "a difference of means": lambda scale, mask: (scale[mask].mean() - scale[~mask].mean()).double(),
        "an accuracy at the median": lambda scale, mask: ((scale > scale.median()) == mask).double().mean(),
    },
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
        x[:, :dead] = 0.9 + 0.04 * x[:, :dead]  # a spread below 0.02, a range above it
        x[:, 6] = 0.5 + 0.2 * x[:, 6]  # alive, though its variance is below 0.02
        x[:, 5], x[0, 5] = 0.5, 0.65  # one input alone: its spread is above 0.02, its mean deviation below
        scale = 0.05 + torch.rand(30, 8, generator=draw, dtype=torch.float64)
        x[:, 7] -= x[:, 7].mean()  # around 0, and alive
        x[:, 3] = 0.4 + 0.076 * x[:, 3]  # its spread is 0.022
        x[:, 4] = 2 + 0.1 * x[:, 4]  # bright, and alive
        if dead > 1:
            x[:, 0], x[0, 1] = 0.0, 0.97  # dead at 0; dead, though its range is above 0.05
        scale[:, :dead] *= 2.5 * torch.rand(30, 1, generator=draw, dtype=torch.float64)
        cases.append((scale, x))
    return cases


def _of_power(chosen: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """The share of the power on other entries: those that `chosen` finds in the inputs."""
    return lambda scale, x: scale[:, chosen(x)].pow(2).sum() / scale.pow(2).sum()


DEAD = exercise(
    name="on_dead",
    answer=on_dead,
    wrong={
        "the share of the scale": lambda scale, x: scale[:, x.std(dim=0) < 0.02].sum() / scale.sum(),
        "the share of the entries": lambda scale, x: (x.std(dim=0) < 0.02).double().mean(),
        "the share on the entries that live": lambda scale, x: 1 - on_dead(scale, x),
        "the variance held against 0.02": _of_power(lambda x: x.var(dim=0) < 0.02),
        "the mean of each input's share": lambda scale, x: torch.stack(
            [on_dead(one[None].expand_as(x), x) for one in scale]
        ).mean(),
        "entries near 0 taken for dead ones": _of_power(lambda x: x.mean(dim=0).abs() < 0.02),
        "inputs taken for entries": lambda scale, x: (
            scale[x.std(dim=1) < 0.02].pow(2).sum() / scale.pow(2).sum()
        ),
        "the mean power of a dead entry over that of all": lambda scale, x: (
            scale[:, x.std(dim=0) < 0.02].pow(2).mean() / scale.pow(2).mean()
        ),
        "the power of the mean scale": lambda scale, x: on_dead(
            scale.mean(dim=0, keepdim=True).expand_as(scale), x
        ),
    },
    cases=_inputs,
)

# ---- 5: its own image, or any, and how surely? -------------------------------------------------


def mean_lead(scores: Tensor) -> tuple[Tensor, Tensor]:
    n = len(scores)
    own = scores.diagonal()
    others = (scores.sum(dim=1) - own) / (n - 1)
    each = own - others  # of map i: a number an image
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
        (central.clone(),),  # one map for all images: around 0, however well it does
        (torch.tensor([[0.4, 0.7, 0.6], [0.8, 0.6, 0.6], [0.7, 0.9, 0.5]], dtype=torch.float64),),
    ]


def _leads(scores: Tensor) -> Tensor:
    own = scores.diagonal()
    return own - (scores.sum(dim=1) - own) / (len(scores) - 1)


def _interval(
    each: Callable[[Tensor], Tensor] = _leads,
    count: Callable[[int], int] = lambda n: n,
    errors: float = 1.96,
    unbiased: bool = True,
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """The interval with something amiss: the leads, how many count, or how many standard errors."""

    def interval(scores: Tensor) -> tuple[Tensor, Tensor]:
        leads = each(scores)
        half = errors * leads.std(unbiased=unbiased) / count(len(scores)) ** 0.5
        return leads.mean() - half, leads.mean() + half

    return interval


LEAD = exercise(
    name="mean_lead",
    answer=mean_lead,
    wrong={
        "the spread of the leads, not of their mean": _interval(count=lambda n: 1),
        "one standard error": _interval(errors=1),
        "all pairs taken for independent": _interval(count=lambda n: n * (n - 1)),
        "the standard deviation over N": _interval(unbiased=False),
        "the lead over 0.5": _interval(lambda scores: scores.diagonal() - 0.5),
        "the own images counted among the others": _interval(
            lambda scores: scores.diagonal() - scores.mean(dim=1)
        ),
        "each mask with the other maps": lambda scores: mean_lead(scores.T),
        "the others minus the own": lambda scores: tuple(-end for end in reversed(mean_lead(scores))),
        "the upper end before the lower": lambda scores: mean_lead(scores)[::-1],
    },
    cases=_tables,
    tolerance=1e-4,
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


def _eye(sees: bool, blank: bool = False) -> nn.Module:
    """A small network that maps images (N, 1, H, W) to one number a pixel, (N, 1, H, W); or a blind one.

    Its hidden units bend at brightnesses from 0.1 to 0.9, so that a short training finds any range of them.
    blank: before it, every pixel gets the same number, so nothing can be read from it untrained.
    """
    light = nn.Identity() if sees else nn.Threshold(math.inf, 0.0)  # which lets nothing through
    hidden, weight = nn.Conv2d(1, 16, 1), torch.tensor([4.0, -4.0]).repeat(8)
    hidden.weight.data = weight.view(16, 1, 1, 1)
    hidden.bias.data = -weight * torch.linspace(0.1, 0.9, 16)
    last = nn.Conv2d(16, 1, 1)
    if blank:
        nn.init.zeros_(last.weight)
    return nn.Sequential(light, hidden, nn.LeakyReLU(0.1), last)


def _by_brightness(network: nn.Module, pictures: Tensor, masks: Tensor, new: Tensor) -> Tensor:
    grey, at = pictures[:, 0], masks.bool()
    return new[:, 0] * (grey[at].mean() - grey[~at].mean()).sign()


def _by_its_sign(network: nn.Module, pictures: Tensor, masks: Tensor, new: Tensor) -> Tensor:
    found, at = network(pictures)[:, 0].detach(), masks.bool()
    return network(new)[:, 0].detach() * (found[at].mean() - found[~at].mean()).sign()


CONTROL_WRONG = {
    "a network that was not told the masks": lambda network, pictures, masks, new: network(new)[
        :, 0
    ].detach(),
    "the background's maps": lambda *given: -positive_control(*given),
    "maps without the network": _by_brightness,
    "maps that find nothing": lambda network, pictures, masks, new: torch.zeros_like(new[:, 0]),
    "maps that a sign or a threshold decides": _by_its_sign,
}
_CONTROL_SLIPS = list(CONTROL_WRONG)


def _scored(answer: Callable[..., Tensor], sees: bool, object_is: str, blank: bool = False) -> float:
    """Mean AUROC on new images of what `answer` makes of a network that can, or cannot, see the object.

    - object_is: "bright" or "dark" on a background that is the other; "between" pixels that are both
    """
    draw = torch.Generator().manual_seed(3)
    # eight images, each with the object in a place of its own: another image's mask is wrong everywhere
    places = torch.eye(8).reshape(8, 4, 1, 2, 1).expand(-1, -1, 4, -1, 8).reshape(8, 16, 16).bool()
    # new image i has another mask than image i; for a blind network the same, to find masks given back
    masks = torch.cat([places, places.roll(3 * sees, 0), places[2 * sees : 2 * sees + 2]])
    inside = masks[:, None].float()
    either = (torch.rand(inside.shape, generator=draw) < 0.5).float()
    light = {"bright": inside, "dark": 1 - inside, "between": 0.5 * inside + (1 - inside) * either}
    shown = 0.25 + 0.5 * light[object_is]
    shown = shown + 0.05 * torch.randn(shown.shape, generator=draw)
    learned: set[bytes] = set()  # images whose output had a gradient

    def watch(network: nn.Module, images: tuple[Tensor], out: Tensor) -> None:
        def note(gradient: Tensor) -> None:
            at = gradient.flatten(1).any(dim=1)
            learned.update(image.numpy().tobytes() for image in images[0].detach()[at])

        if out.requires_grad:
            out.register_hook(note)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = _eye(sees, blank)
        network.register_forward_hook(watch)
        given = something(answer(network, shown[:8].clone(), masks[:8].clone(), shown[8:].clone()))
    if learned & {image.numpy().tobytes() for image in shown[8:]}:
        raise Lacks("the network was trained on the new images as well")
    if tuple(getattr(given, "shape", ())) != (10, 16, 16):
        got = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
        raise Lacks(f"maps of the new images are asked for, (10, 16, 16), got {got}")
    maps = torch.as_tensor(given).double().nan_to_num()  # a map that is constant has no range to divide by
    return float(detectors.auroc(maps, masks[8:]).mean())


def _judge_control(answer: Callable[..., Tensor]) -> str | None:
    light, dark, between = (_scored(answer, True, object_is) for object_is in ("bright", "dark", "between"))
    if abs(_scored(answer, False, "bright") - 0.5) > 0.1:
        return _CONTROL_SLIPS[2]
    if min(light, dark) > 0.9:  # which takes a sign alone
        if between <= 0.9:
            return _CONTROL_SLIPS[4]
        return None if _scored(answer, True, "between", blank=True) > 0.9 else _CONTROL_SLIPS[0]
    if max(light, dark) < 0.1:
        return _CONTROL_SLIPS[1]
    return _CONTROL_SLIPS[0 if max(light, dark) > 0.9 else 3]


CONTROL = exercise(
    name="positive_control",
    answer=positive_control,
    wrong=CONTROL_WRONG,
    judge=_judge_control,
)

EXERCISES = [SAMPLE, ENTROPY, DEAD, SPARED, LEAD, CONTROL]
