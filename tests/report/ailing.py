"""An encoder that is well and encoders that are ill, made in seconds: what verdicts are tried on."""

import copy
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import torch
from torch import nn

from clutils import checkpoints, data, losses, report, training
from clutils.data import ImageSet

SEED, SHUFFLES = 11, 3


@dataclass
class Case:
    """An encoder as `checkpoints.open` would give it, what is fed, and how."""

    opened: checkpoints.Opened
    gallery: ImageSet
    judged: ImageSet
    options: dict[str, Any] = field(default_factory=dict)


@cache
def pictures(name: str = "digits") -> tuple[ImageSet, ImageSet]:
    limits = (1024, 320) if name == "scenes" else (1352, 397)
    return data.load(name, limit=limits[0]), data.load(name, split="test", limit=limits[1])


@cache
def trained() -> training.Run:
    """Of digits: the one encoder that is trained here; what is ill is made of it."""
    given: dict[str, Any] = {"batch_size": 128, "learning_rate": 1e-2, "precision": "float32"}
    return training.Run(data=pictures()[0], loss=losses.NTXent(0.2), steps=120, seed=SEED, **given).finish(
        progress=False
    )


def untrained(name: str = "digits") -> training.Run:
    return training.Run(data=pictures(name)[0], steps=1, seed=SEED, precision="float32")


def opened(run: training.Run) -> checkpoints.Opened:
    """The run's file, opened; it is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        run.save(f"{folder}/run.pt")
        return replace(checkpoints.open(f"{folder}/run.pt"), path="")


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


def forget_layer(encoder: nn.Module) -> None:
    """The last convolution was never loaded: random weights behind learned ones."""
    draw = torch.Generator().manual_seed(5)
    weight = encoder.convolutions[-1].weight
    weight.copy_(torch.randn(weight.shape, generator=draw) * weight.std())


def shuffled(pictures: ImageSet, seed: int = 0) -> ImageSet:
    """Labels in another order than their pictures."""
    draw = torch.Generator().manual_seed(seed)
    return replace(pictures, labels=pictures.labels[torch.randperm(len(pictures), generator=draw)])


def nameless(pictures: ImageSet) -> ImageSet:
    """Without labels."""
    return replace(pictures, labels=torch.full_like(pictures.labels, -1), class_names=())


HALF = {"mean": (0.5,), "std": (0.5,)}
BYTES = {"mean": (0.0,), "std": (1 / 255,)}


def tinted(encoder: nn.Module) -> None:
    """Taught with mean and std 0.5: the same function of images that are shifted and scaled."""
    first = encoder.convolutions[0].weight
    encoder.normalisations[0].running_mean.sub_(first.sum((1, 2, 3)) * HALF["mean"][0])
    first.mul_(HALF["std"][0])


def cases() -> dict[str, Callable[[], Case]]:
    """What ails it -> the case, made when it is asked for."""
    digits, well = pictures(), opened(trained())

    def ill(change: Callable[[nn.Module], object], **options: Any) -> Case:
        return Case(changed(well, change), *digits, options)

    return {
        "healthy": lambda: Case(well, *digits),
        "collapsed": lambda: ill(collapse),
        "nearly collapsed": lambda: ill(nearly_collapse),
        "untrained": lambda: Case(opened(untrained()), *digits),
        "a layer forgotten": lambda: ill(forget_layer),
        "too hot": lambda: Case(replace(well, temperature=10.0), *digits),
        "too cold": lambda: Case(replace(well, temperature=0.005), *digits),
        "normalised, and should not be": lambda: Case(well, *digits, HALF),
        "not normalised, and should be": lambda: ill(tinted, mean="none"),
        "0 to 255": lambda: Case(well, *digits, BYTES),
        **{
            f"labels shuffled, {n}": lambda n=n: Case(well, *(shuffled(some, n) for some in digits))
            for n in range(SHUFFLES)
        },
    }


@cache
def checked(name: str) -> report.Report:
    """The report on a case, made once for all tests; quick: the diagnosis is that of the whole page."""
    case = cases()[name]()
    return report.check(case.opened, (case.gallery, case.judged), quick=True, **case.options)
