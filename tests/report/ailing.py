"""Encoders that are well and encoders that are ill, made in seconds: what verdicts are tried on."""

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import nn

from clutils import checkpoints, data, losses, report, training
from clutils.course.experiments import PullOnly
from clutils.data import ImageSet

STEPS, BATCH = 120, 128


@dataclass
class Case:
    """An encoder as `checkpoints.open` would give it, what is fed, and how."""

    opened: checkpoints.Opened
    gallery: ImageSet
    judged: ImageSet
    options: dict[str, Any] = field(default_factory=dict)


@cache
def pictures(name: str) -> tuple[ImageSet, ImageSet]:
    limits = (1024, 320) if name == "scenes" else (1352, 397)
    return data.load(name, limit=limits[0]), data.load(name, split="test", limit=limits[1])


@cache
def trained(name: str, temperature: float, seed: int, ill: str = "") -> training.Run:
    loss = PullOnly() if ill == "pull only" else losses.NTXent(temperature)
    early = ill or not 0.1 <= temperature <= 0.5  # an ailment shows as surely after half of the steps
    return training.Run(
        data=pictures(name)[0],
        loss=loss,
        steps=STEPS // 2 if early else STEPS,
        batch_size=BATCH,
        learning_rate=1e-2,
        seed=seed,
        precision="float32",
    ).finish(progress=False)


def opened(run: training.Run) -> checkpoints.Opened:
    """What `checkpoints.open` makes of the run's file, without the file."""
    state = run.method.encoder.state_dict()
    backbone = checkpoints.backbones.recognise(state)
    return checkpoints.Opened(
        checkpoints.backbones.fill(backbone, state)[0],
        "a run of this package",
        backbone.arch,
        head=copy.deepcopy(run.method.head).eval(),
        temperature=getattr(run.loss, "temperature", None),
        channels=backbone.channels,
        backbone=backbone,
    )


def changed(case: checkpoints.Opened, change: Callable[[nn.Module], object]) -> checkpoints.Opened:
    """The same, its encoder operated on."""
    other = copy.copy(case)
    other.encoder = copy.deepcopy(case.encoder)
    with torch.no_grad():
        change(other.encoder)
    return other


# ---- operations --------------------------------------------------------------------------------------------


def collapse(encoder: nn.Module) -> None:
    """The last normalisation forgets its input and gives a constant."""
    last = encoder.normalisations[-1]
    last.weight.zero_()
    last.bias.copy_(torch.linspace(0.1, 1.0, len(last.bias)))


def nearly_collapse(encoder: nn.Module) -> None:
    last = encoder.normalisations[-1]
    last.weight.mul_(0.003)
    last.bias.add_(1.0)


def one_dimension(encoder: nn.Module) -> None:
    """Every channel is the first one, scaled: all features on a line."""
    last, convolution = encoder.normalisations[-1], encoder.convolutions[-1]
    scale = torch.linspace(0.5, 1.5, len(last.bias))
    convolution.weight.copy_(convolution.weight[:1].expand_as(convolution.weight))
    for values in (last.running_mean, last.running_var, last.weight, last.bias):
        values.copy_(values[:1].abs().expand_as(values))
    last.weight.mul_(scale)
    last.bias.copy_(5 * last.weight)  # so that the ReLU cuts nothing off


def forget_layer(encoder: nn.Module) -> None:
    """The last convolution was never loaded: random weights behind learned ones."""
    draw = torch.Generator().manual_seed(5)
    weight = encoder.convolutions[-1].weight
    weight.copy_(torch.randn(weight.shape, generator=draw) * weight.std())


def shuffled(pictures: ImageSet, seed: int = 0) -> ImageSet:
    """Labels in another order than their pictures."""
    draw = torch.Generator().manual_seed(seed)
    return replace(pictures, labels=pictures.labels[torch.randperm(len(pictures), generator=draw)])


def renamed(pictures: ImageSet) -> ImageSet:
    """Each class under the next one's name."""
    return replace(pictures, labels=(pictures.labels + 1) % len(pictures.class_names))


def nameless(pictures: ImageSet) -> ImageSet:
    """Without labels."""
    return replace(pictures, labels=torch.full_like(pictures.labels, -1), class_names=())


IMAGENET = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
BYTES = {"mean": (0.0,), "std": (1 / 255,)}


def cases(seed: int) -> dict[str, Callable[[], Case]]:
    """What ails it -> the case, made when it is asked for."""
    scenes, digits = pictures("scenes"), pictures("digits")

    def healthy(temperature: float = 0.2, name: str = "scenes") -> checkpoints.Opened:
        return opened(trained(name, temperature, seed))

    def fresh() -> checkpoints.Opened:
        return opened(training.Run(data=scenes[0], steps=1, batch_size=BATCH, seed=seed, precision="float32"))

    def ill(how: str) -> checkpoints.Opened:
        return opened(trained("scenes", 0.2, seed, how))

    def tinted(encoder: nn.Module) -> None:
        """Taught with ImageNet's normalisation: the same function of pictures that are shifted and scaled."""
        first, std, mean = encoder.convolutions[0], *(torch.tensor(IMAGENET[n]) for n in ("std", "mean"))
        encoder.normalisations[0].running_mean.sub_((first.weight.sum((2, 3)) * mean).sum(1))
        first.weight.mul_(std.view(1, 3, 1, 1))

    return {
        "healthy": lambda: Case(healthy(), *scenes),
        "healthy, digits": lambda: Case(healthy(name="digits"), *digits),
        "healthy, by ImageNet's normalisation": lambda: Case(changed(healthy(), tinted), *scenes, IMAGENET),
        "healthy, the head": lambda: Case(healthy(), *scenes, {"layer": "head"}),
        "collapsed": lambda: Case(changed(healthy(), collapse), *scenes),
        "nearly collapsed": lambda: Case(changed(healthy(), nearly_collapse), *scenes),
        "nothing pushed": lambda: Case(ill("pull only"), *scenes),
        "one dimension": lambda: Case(changed(healthy(), one_dimension), *scenes),
        "untrained": lambda: Case(fresh(), *scenes),
        "a layer forgotten": lambda: Case(changed(healthy(), forget_layer), *scenes),
        "too hot": lambda: Case(healthy(10.0), *scenes),
        "too cold": lambda: Case(healthy(0.005), *scenes),
        "normalised, and should not be": lambda: Case(healthy(), *scenes, IMAGENET),
        "not normalised, and should be": lambda: Case(changed(healthy(), tinted), *scenes, {"mean": "none"}),
        "0 to 255": lambda: Case(healthy(), *scenes, BYTES),
        **{
            f"labels shuffled, {n}": lambda n=n: Case(
                healthy(), shuffled(scenes[0], n), shuffled(scenes[1], n)
            )
            for n in range(SHUFFLES)
        },
        "labels of the gallery renamed": lambda: Case(healthy(name="digits"), digits[0], renamed(digits[1])),
    }


SHUFFLES = 3
SEED = 11
OTHERS = {"too hot": 13, "too cold": 14, "nothing pushed": 15}


@cache
def checked(name: str) -> report.Report:
    """The report on a case, made once for all tests; quick: the diagnosis is that of the whole page."""
    case = cases(OTHERS.get(name, SEED))[name]()
    return report.check(case.opened, (case.gallery, case.judged), map_names=(), quick=True, **case.options)


def checks(name: str = "healthy", some: Any = None, **options: Any) -> report.Report:
    """The report on a case with other pictures or options than `checked` has."""
    case = cases(SEED)[name]()
    return report.check(case.opened, some or (case.gallery, case.judged), map_names=(), **options)
