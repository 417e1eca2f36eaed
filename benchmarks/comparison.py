"""The losses beside each other: one encoder, one recipe, several temperatures, several seeds.

    python benchmarks/comparison.py                          generated scenes
    python benchmarks/comparison.py folder:PATH              four CIFAR-10 classes from a folder
    python benchmarks/comparison.py --steps 20 --losses NTXent --temperatures 0.2 --seeds 0

Prints a line a run; with --record it is also added to benchmarks/records/comparison.csv, which notebook 07
shows. A run that the record already holds is left out, so an interrupted recording goes on where it stopped.
Each loss has its other settings at their defaults. Part of the training images is kept apart to choose the
temperature by; the test images decide nothing.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import torch

from clutils import data, losses, training
from clutils.course import experiments, records
from clutils.data import ImageSet

NAME = "comparison"
FOUR = ("automobile", "frog", "horse", "ship")
TEMPERATURES = (0.1, 0.5)
SEEDS = (0, 1, 2, 3, 4)
# further views an image: AttentionNCE's positives; with none its attention has the negatives alone
FURTHER_VIEWS = 4
LOSSES = (
    "NTXent",
    "Decoupled",
    "MACL",
    "DualTemperature",
    "Debiased",
    "HardNegative",
    "SSCL",
    "AttentionNCE",
    f"AttentionNCE+{FURTHER_VIEWS}",
)
KEPT_APART = 1500  # training images to choose by


def pictures(source: str) -> tuple[str, ImageSet, ImageSet, ImageSet]:
    """Name of the images, and those to train on, to choose by and to judge by."""
    train, test = data.load(source, limit=None if source == "scenes" else 20_000), data.load(source, "test")
    name = source
    if source != "scenes":
        name = f"{len(FOUR)} classes of CIFAR-10"
        train, test = train.classes(FOUR), test.classes(FOUR)
    shuffled = torch.randperm(len(train), generator=torch.Generator().manual_seed(0))
    return name, train.subset(shuffled[KEPT_APART:]), train.subset(shuffled[:KEPT_APART]), test


def build(name: str, temperature: float) -> tuple[losses.Loss, int]:
    """The loss and its number of further views."""
    name, _, views = name.partition("+")
    return getattr(losses, name)(temperature=temperature), int(views or 0)


def with_loss(
    loss: losses.Loss, train: ImageSet, validation: ImageSet, test: ImageSet, **settings: Any
) -> tuple[training.Run, dict[str, Any]]:
    """SimCLR with any loss -> the run, and kNN (k = 20) by its features, all else equal.

    - settings: further ones of `training.Run`; 120 steps of 128 where they do not say otherwise
    - knn_validation: accuracy on images that settings are chosen by; knn: on those that they are judged by;
      the neighbours are the training images in both
    - seconds: spent in steps; final_loss: mean of the last tenth of them
    """

    def after(run: training.Run) -> dict[str, Any]:
        return {
            "knn_validation": experiments.accuracy(run.embed, train, validation),
            "knn": experiments.accuracy(run.embed, train, test),
            "final_loss": experiments.late(run),
            **experiments.last(run, "seconds"),
        }

    usual = {"steps": 120, "batch_size": 128}
    run = training.Run(loss=loss, data=train, learning_rate=1e-2, **usual | settings)
    named = {"loss": loss.name, "temperature": getattr(loss, "temperature", math.nan)}
    columns = ("extra_views", "seed", "steps", "batch_size", "precision")
    return run, named | experiments.measured(run, columns, after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("source", nargs="?", default="scenes")
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    name, train, validation, test = pictures(options.source)
    columns = ("pictures", "loss", "extra_views", "temperature", "seed", "steps")
    done = records.known(NAME, *columns) if options.record else set()
    for seed in options.seeds:
        for label in options.losses:
            for temperature in options.temperatures:
                loss, views = build(label, temperature)
                if (name, loss.name, views, temperature, seed, options.steps) in done:
                    continue
                _, found = with_loss(
                    loss, train, validation, test, steps=options.steps, seed=seed, extra_views=views
                )
                found = {k: round(v, 5) if isinstance(v, float) else v for k, v in found.items()}
                print(*(f"{k} {v}" for k, v in found.items()), flush=True)
                if options.record:
                    scenes = options.source == "scenes"
                    command = (
                        f"python benchmarks/comparison.py {'scenes' if scenes else 'folder:PATH'} --record "
                        f"--steps {options.steps} --losses {label} "
                        f"--temperatures {temperature} --seeds {seed}"
                    )
                    source = train.source if scenes else f"{len(train):,} pictures of {name}"
                    row = {"command": command, "pictures": name, "source": source}
                    records.append(NAME, row | found)


if __name__ == "__main__":
    main()
