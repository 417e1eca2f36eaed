"""Experiments that notebooks repeat in small and `benchmarks/` records at full length: one function each.

So what a notebook runs live, and what its record holds, are the same code at different settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from clutils import losses, measures, views
from clutils.data import ImageSet
from clutils.training import Run

NEIGHBOURS = 20
QUESTIONS = ("class", "bright", "right")
PROBE_TRAIN = 2000  # labelled images for the linear probes of `readable`

Row = dict[str, Any]


def measured(
    run: Run,
    settings: Sequence[str],
    after: Callable[[Run], Row],
    before: Callable[[Run], Row] | None = None,
    on_step: Callable[[Run], object] | None = None,
) -> Row:
    """Train a run to its end -> a row: these of its settings, what was measured before it, and after it."""
    first = {} if before is None else before(run)
    run.finish(on_step, progress=False)
    now = vars(run.settings) | {"steps": run.steps_done}
    return {name: now[name] for name in settings} | first | after(run)


def late(run: Run, column: str = "loss") -> float:
    """Mean of a column of the history over the last tenth of the steps."""
    return float(run.history[column].tail(max(1, run.steps_done // 10)).mean())


def last(run: Run, *columns: str) -> Row:
    """Columns of the history at the last step."""
    return {name: run.rows[-1][name] for name in columns}


def first_run(train: ImageSet, test: ImageSet, **settings: Any) -> tuple[Run, Row]:
    """NT-Xent at τ = 0.2 on any pictures -> the run, and kNN (k = 20) before and after it.

    - settings: further ones of `training.Run`
    - knn_raw, knn_untrained, knn: accuracy on the test pictures by raw pixels, and by the encoder before its
      first step and after its last
    - knn_head: the same after the head, in the space that the loss sees
    - probe_class, probe_bright, probe_right, and the same with _head: see `readable`
    - loss: mean of the last tenth of the steps; alignment, uniformity: of the last step
    """

    def before(run: Run) -> Row:
        raw = accuracy(measures.raw_inputs, train, test)
        return {"knn_raw": raw, "knn_untrained": accuracy(run.embed, train, test)}

    def after(run: Run) -> Row:
        found = {"knn": accuracy(run.embed, train, test), "knn_head": accuracy(run.project, train, test)}
        for space, embed in (("", run.embed), ("_head", run.project)):
            read = readable(embed, train, test)
            found |= {f"probe_{name}{space}": read.get(name, math.nan) for name in QUESTIONS}
        return found | {"loss": late(run)} | last(run, "alignment", "uniformity")

    run = Run(loss=losses.NTXent(0.2), data=train, encoder="conv16", **settings)
    return run, measured(run, ("seed", "steps", "batch_size", "precision"), after, before)


def accuracy(embed: Callable[[ImageSet], Tensor], train: ImageSet, test: ImageSet) -> float:
    """kNN accuracy (k = 20) on the test pictures, with the training pictures' labels, by these features."""
    return measures.knn_accuracy(embed(train), train.labels, embed(test), test.labels, k=NEIGHBOURS)


def readable(embed: Callable[[ImageSet], Tensor], train: ImageSet, test: ImageSet) -> dict[str, float]:
    """What a linear probe can read off these features: question -> accuracy on the test pictures.

    - class: the picture's label
    - bright: whether its mean is above the training pictures' median; jitter changes that from view to view
    - right: whether its object lies right of the middle, where there are masks; crops and flips change that
    """
    labelled = train.subset(slice(0, PROBE_TRAIN))
    level = labelled.images.float().mean(dim=(1, 2, 3)).median()
    answers = {
        "class": lambda pictures: pictures.labels,
        "bright": lambda pictures: (pictures.images.float().mean(dim=(1, 2, 3)) > level).long(),
    }
    if labelled.masks is not None and test.masks is not None:
        answers["right"] = on_the_right
    z, test_z = embed(labelled), embed(test)
    return {name: measures.linear_probe(z, ask(labelled), test_z, ask(test)) for name, ask in answers.items()}


def on_the_right(pictures: ImageSet) -> Tensor:
    """Whether the centre of a picture's mask lies right of the picture's middle: (N,), 0 or 1."""
    masks = pictures.masks.float()
    columns = torch.arange(masks.shape[-1]) + 0.5
    centre = (masks * columns).sum(dim=(1, 2)) / masks.sum(dim=(1, 2)).clamp(min=1)
    return (centre > masks.shape[-1] / 2).long()


# ---- trained wrongly, on purpose ---------------------------------------------------------------------------


class PullOnly(nn.Module):
    """Nothing pushes: all pictures end at one place."""

    temperature = 0.2

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        return -torch.nn.functional.cosine_similarity(z1, z2).mean()


def mispaired(images: Tensor, generator: torch.Generator) -> Tensor:
    """Views whose second half is shifted by one: each picture is paired with the next one's view."""
    first, second = views.Augmentation()(images, generator).chunk(2)
    return torch.cat([first, second.roll(1, dims=0)])
