"""MoCo's key encoder under sliders: of which past encoders it is made, and how old its keys may grow."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from clutils import figures
from clutils.controls.panels import Panel, choose, counts, panel
from clutils.figures import style

SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)


def key_ages(
    similarities: Mapping[float, Tensor],
    batch_size: int,
    momentum: float | None = None,
    queue_size: int = 2048,
) -> Panel:
    """Left, the weights (1 - m) m^k of past encoders; right, how near old keys are to today's.

    - similarities: momentum -> mean cosine by age, as from `experiments.key_ages`; all of one length
    - batch_size: keys that enter in a step, so that the oldest of K is K / batch_size steps old
    - momentum, queue_size: at first; the largest momentum where none is named

    Raises ValueError where nothing is given, or a momentum has no measurement.
    """
    if not similarities or (momentum is not None and momentum not in similarities):
        known = ", ".join(f"{m:g}" for m in similarities) or "none"
        raise ValueError(f"key_ages: momentum is {momentum}, but there are measurements of {known}")
    chosen = max(similarities) if momentum is None else momentum
    picture = _Ages(similarities, batch_size)
    names = {f"{m:g}": m for m in sorted(similarities)}
    return panel(
        picture.figure,
        picture.update,
        momentum=choose("m momentum", names, chosen),
        queue_size=counts("K keys in the queue", SIZES, queue_size),
    )


class _Ages:
    """The weights, the measured similarities, and what of them moves."""

    def __init__(self, similarities: Mapping[float, Tensor], batch_size: int) -> None:
        self.similarities, self.batch_size = similarities, batch_size
        self.oldest = min(map(len, similarities.values())) - 1
        self.ages = torch.arange(self.oldest + 1, dtype=torch.float64)
        with style.course():
            self.figure, (left, right) = figures.new(10.2, 3.6, 1, 2)
            self.bars = left.bar(self.ages.numpy(), np.ones(len(self.ages)), width=0.8, color=style.BLUE)
            left.set(xlabel="k: steps ago", ylabel="weight (1 − m) mᵏ", yscale="log", ylim=(1e-4, 1.3))
            left.set_xlim(-1, self.oldest + 1)
            for mean in similarities.values():  # the others stay in sight, faint
                right.plot(self.ages, mean[: self.oldest + 1], color="#C4C4C4", linestyle="-", linewidth=1.2)
            (self.curve,) = right.plot(self.ages, 0 * self.ages, color=style.VERMILLION, linestyle="-")
            self.edge = right.axvline(0, color=style.INK, linestyle="--", linewidth=1.5, label="oldest key")
            lowest = min(float(mean.min()) for mean in similarities.values())
            right.set(xlabel="age of the key, steps", ylabel="cosine with the key made today")
            right.set(xlim=(-1, self.oldest + 1), ylim=(min(0.0, lowest) - 0.03, 1.04))
            right.legend(loc="lower left")
            figures.describe(
                self.figure,
                "Left, bars: the weight of the encoder of k steps ago in today's key encoder, falling by the "
                "factor m a step. Right, a curve: the mean cosine of keys by age with those that today's key "
                "encoder makes of the same views, and a dashed line at the age of the queue's oldest key.",
            )

    def update(self, momentum: float, queue_size: int) -> str:
        weights = (1 - momentum) * momentum**self.ages
        for bar, weight in zip(self.bars, weights.tolist(), strict=True):
            bar.set_height(weight)
        mean = self.similarities[momentum][: self.oldest + 1]
        self.curve.set_ydata(mean)
        age = queue_size // self.batch_size
        self.edge.set_xdata([age, age])
        start = momentum**self.oldest
        queue = f"With {self.batch_size} keys a step, the oldest of {queue_size:,} is {age} steps old"
        if age <= self.oldest:
            queue += f", and its cosine with today's key is {float(mean[age]):.2f}"
        else:
            queue += f", more than the {self.oldest} steps of this run: the queue still holds random vectors"
        return f"{queue}. Of the encoder that the run began with, {start:.1%} is left in the key encoder."
