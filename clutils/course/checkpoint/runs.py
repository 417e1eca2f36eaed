"""Encoders of notebook 13, made healthy and ill in seconds."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from clutils import checkpoints, losses, training, views
from clutils.data import ImageSet

COLOURS_KEPT = views.Augmentation(grayscale=0.0, jitter=(0.0, 0.0, 0.0, 0.0), flip=0.0)  # crops alone
WAYS: tuple[dict[str, Any], ...] = (
    {"loss": losses.NTXent(0.2), "augmentation": COLOURS_KEPT},
    {"loss": losses.NTXent(5.0)},
    {"loss": losses.Regression()},
)
Pair = tuple[ImageSet, ImageSet]


@dataclass
class Ill:
    """An encoder, the gallery and test images that it is asked about, and options of `report.check`."""

    opened: checkpoints.Opened
    images: Pair
    options: dict[str, Any] = field(default_factory=dict)


def eight(
    folder: Path, images: Pair, opened: checkpoints.Opened, pictures: Pair, steps: int = 60
) -> Iterator[tuple[str, Ill]]:
    """Encoders of digits by what was done to them; each is trained as it is asked for.

    images: of digits; opened: an encoder of coloured images, which is asked about their brightness: too
    early for "learned but not these classes", which takes hundreds of steps. With
    CLUTILS_FAST=1 runs are shortened.
    """

    def run(loss: Any, steps: int) -> checkpoints.Opened:
        settings = {"batch_size": 64, "learning_rate": 1e-2, "seed": 0}
        made = training.Run(data=images[0], loss=loss, steps=max(training.fewer(steps), 1), **settings)
        if steps:
            made.finish(progress=False)
        made.save(folder / "eight.pt")
        return checkpoints.open(folder / "eight.pt")

    well = run(losses.NTXent(0.2), 2 * steps)
    yield "trained", Ill(well, images)
    yield "saved before the first step", Ill(run(losses.NTXent(0.2), 0), images)
    yield "stopped after twelve steps", Ill(run(losses.NTXent(0.2), 12), images)
    yield "fed with mean and std 0.5", Ill(well, images, {"mean": "half"})
    yield "nothing pushes apart", Ill(run(losses.Regression(), steps), images)
    yield "a layer of the head did not load", Ill(_forgotten(well), images)
    yield "a temperature of 10", Ill(run(losses.NTXent(10.0), steps), images)
    gallery, test = (replace(one, labels=_quarters(one, pictures[0])) for one in pictures)
    yield "the encoder from above, asked about brightness", Ill(opened, (gallery, test))


def _forgotten(opened: checkpoints.Opened) -> checkpoints.Opened:
    """The same run with a head whose last layer has weights of 0: it maps all images to its bias."""
    other = copy.copy(opened)
    other.head = copy.deepcopy(opened.head)
    assert isinstance(other.head, torch.nn.Sequential)
    last = other.head[-1]
    with torch.no_grad():
        last.weight.zero_()
        last.bias.fill_(1.0)
    return other


def _quarters(images: ImageSet, of: ImageSet) -> torch.Tensor:
    """Quarters by mean brightness: labels that the views of training took away."""
    means = [one.images.float().mean(dim=(1, 2, 3)) for one in (images, of)]
    return torch.bucketize(means[0], means[1].quantile(torch.tensor([0.25, 0.5, 0.75])))


def ill_runs(pictures: ImageSet, steps: int = 40) -> dict[str, training.Run]:
    """Three runs of some seconds each, by letter; what is wrong with them, exercise 3 asks.

    With CLUTILS_FAST=1 they are shortened.
    """
    settings = {
        "data": pictures,
        "steps": training.fewer(steps),
        "batch_size": 64,
        "learning_rate": 1e-2,
        "seed": 2,
    }
    return {
        letter: training.Run(**settings, **way).finish(progress=False)
        for letter, way in zip("ABC", WAYS, strict=True)
    }
