"""Experiments that notebooks repeat in small and `benchmarks/` records at full length: one function each.

So what a notebook runs live, and what its record holds, are the same code at different settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from clutils import anatomy, losses, measures, similarities, training
from clutils.data import ImageSet
from clutils.views import Augment

if TYPE_CHECKING:
    pass

NEIGHBOURS = 20
QUESTIONS = ("class", "bright", "right")
TOLD = 2000  # pictures whose answers a probe of `readable` is told


def at_temperature(
    temperature: float,
    train: ImageSet,
    test: ImageSet,
    steps: int = 300,
    seed: int = 0,
    precision: str | None = None,
) -> tuple[training.Run, dict[str, Any]]:
    """NT-Xent at one temperature -> the run, and what it has learned by the measures of the dilemma.

    - knn: accuracy on the test pictures, features of the encoder, k = 20
    - uniformity, tolerance: of the test pictures after the head, which is the space that the loss sees
    - classmates: share of the push that falls on pictures of the anchor's own class, in a training batch
    - turns: share of that batch's anchors whose W has a minimum along τ (`anatomy.turns`)
    - loss: mean of the last tenth of the steps
    """
    run = training.train(
        loss=losses.NTXent(temperature),
        data=train,
        encoder="conv16",
        steps=steps,
        batch_size=256,
        learning_rate=5e-3,
        seed=seed,
        precision=precision,
        progress=False,
    )
    projected = run.project(test)
    draw = torch.Generator().manual_seed(seed)
    batch, labels = train.images[: run.settings.batch_size], train.labels[: run.settings.batch_size]
    z1, z2 = (run.project(run.augmentation(batch, generator=draw)) for _ in range(2))
    pairs = similarities.two_views(similarities.normalise(z1), similarities.normalise(z2))
    found = {
        "knn": measures.knn_accuracy(
            run.embed(train), train.labels, run.embed(test), test.labels, k=NEIGHBOURS
        ),
        "uniformity": measures.uniformity(projected),
        "tolerance": measures.tolerance(projected, test.labels),
        "classmates": anatomy.push_on_classmates(z1, z2, labels, temperature).mean().item(),
        "turns": anatomy.turns(pairs.positives, pairs.negatives).double().mean().item(),
        "loss": float(run.history["loss"].tail(max(1, run.steps_done // 10)).mean()),
    }
    settings = {
        "temperature": temperature,
        "seed": seed,
        "steps": run.steps_done,
        "precision": run.settings.precision,
    }
    return run, settings | found


def first_run(
    train: ImageSet,
    test: ImageSet,
    augmentation: Augment | None = None,
    steps: int = 300,
    batch_size: int = 256,
    seed: int = 0,
    learning_rate: float | None = None,
    precision: str | None = None,
) -> tuple[training.Run, dict[str, Any]]:
    """NT-Xent at τ = 0.2 on any pictures -> the run, and kNN (k = 20) before and after it.

    - knn_raw, knn_untrained, knn: accuracy on the test pictures by raw pixels, and by the encoder before its
      first step and after its last
    - knn_head: the same after the head, in the space that the loss sees
    - probe_class, probe_bright, probe_right, and the same with _head: see `readable`
    - loss: mean of the last tenth of the steps; alignment, uniformity: of the last step
    """
    run = training.Run(
        loss=losses.NTXent(0.2),
        data=train,
        encoder="conv16",
        augmentation=augmentation,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        precision=precision,
    )
    found = {"seed": seed, "steps": steps, "batch_size": batch_size, "precision": run.settings.precision}
    found["knn_raw"] = accuracy(measures.raw_inputs, train, test)
    found["knn_untrained"] = accuracy(run.embed, train, test)
    run.finish(progress=False)
    found["knn"] = accuracy(run.embed, train, test)
    found["knn_head"] = accuracy(run.project, train, test)
    for space, embed in (("", run.embed), ("_head", run.project)):
        read = readable(embed, train, test)
        found |= {f"probe_{name}{space}": read.get(name, math.nan) for name in QUESTIONS}
    found["loss"] = float(run.history["loss"].tail(max(1, run.steps_done // 10)).mean())
    return run, found | {name: run.rows[-1][name] for name in ("alignment", "uniformity")}


def with_loss(
    loss: losses.Loss,
    train: ImageSet,
    validation: ImageSet,
    test: ImageSet,
    steps: int = 120,
    batch_size: int = 128,
    seed: int = 0,
    extra_views: int = 0,
    precision: str | None = None,
) -> tuple[training.Run, dict[str, Any]]:
    """SimCLR with any loss -> the run, and kNN (k = 20) by its features, all else equal.

    - knn_validation: accuracy on pictures that settings are chosen by; knn: on those that they are judged by;
      the neighbours are the training pictures in both
    - seconds: spent in steps; final_loss: mean of the last tenth of them
    """
    run = training.train(
        loss=loss,
        data=train,
        steps=steps,
        batch_size=batch_size,
        learning_rate=1e-2,
        seed=seed,
        extra_views=extra_views,
        precision=precision,
        progress=False,
    )
    found = {
        "loss": loss.name,
        "temperature": getattr(loss, "temperature", math.nan),
        "extra_views": extra_views,
        "seed": seed,
        "steps": run.steps_done,
        "batch_size": batch_size,
        "precision": run.settings.precision,
        "knn_validation": accuracy(run.embed, train, validation),
        "knn": accuracy(run.embed, train, test),
        "final_loss": float(run.history["loss"].tail(max(1, run.steps_done // 10)).mean()),
        "seconds": run.rows[-1]["seconds"],
    }
    return run, found


def accuracy(embed: Callable[[ImageSet], Tensor], train: ImageSet, test: ImageSet) -> float:
    """kNN accuracy (k = 20) on the test pictures, with the training pictures' labels, by these features."""
    return measures.knn_accuracy(embed(train), train.labels, embed(test), test.labels, k=NEIGHBOURS)


def readable(embed: Callable[[ImageSet], Tensor], train: ImageSet, test: ImageSet) -> dict[str, float]:
    """What a linear probe can read off these features: question -> accuracy on the test pictures.

    - class: the picture's label
    - bright: whether its mean is above the training pictures' median; jitter changes that from view to view
    - right: whether its object lies right of the middle, where there are masks; crops and flips change that
    """
    told = train.subset(slice(0, TOLD))
    level = told.images.float().mean(dim=(1, 2, 3)).median()
    answers = {
        "class": lambda pictures: pictures.labels,
        "bright": lambda pictures: (pictures.images.float().mean(dim=(1, 2, 3)) > level).long(),
    }
    if told.masks is not None and test.masks is not None:
        answers["right"] = on_the_right
    z, test_z = embed(told), embed(test)
    return {name: measures.linear_probe(z, ask(told), test_z, ask(test)) for name, ask in answers.items()}


def on_the_right(pictures: ImageSet) -> Tensor:
    """Whether the centre of a picture's mask lies right of the picture's middle: (N,), 0 or 1."""
    masks = pictures.masks.float()
    columns = torch.arange(masks.shape[-1]) + 0.5
    centre = (masks * columns).sum(dim=(1, 2)) / masks.sum(dim=(1, 2)).clamp(min=1)
    return (centre > masks.shape[-1] / 2).long()
