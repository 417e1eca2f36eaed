"""MoCo's key encoder under sliders: of which past encoders it is made, and how old its keys may grow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from clutils import figures
from clutils.course.panels import Panel, among, choose, panel
from clutils.figures import style

if TYPE_CHECKING:
    from clutils.course.methods.experiments import KeyAges

SIZES = (128, 256, 512, 1024, 2048, 4096, 8192)


def explore_key_ages(
    measured: Mapping[float, KeyAges], batch_size: int, momentum: float | None = None, queue_size: int = 2048
) -> Panel:
    """Left, the weights (1 - m) m^k of past encoders; right, how near old keys are to today's.

    - measured: momentum -> `experiments.key_ages`
    - batch_size: keys that enter in a step, so that the oldest of K is K / batch_size steps old
    - momentum, queue_size: at first; the largest momentum where none is named

    Raises ValueError where nothing is given, or a momentum has no measurement.
    """
    if not measured or (momentum is not None and momentum not in measured):
        known = ", ".join(f"{m:g}" for m in measured) or "none"
        raise ValueError(f"key_ages: momentum is {momentum}, but there are measurements of {known}")
    chosen = max(measured) if momentum is None else momentum
    oldest = min(len(found.by_age) for found in measured.values()) - 1
    ages = torch.arange(oldest + 1, dtype=torch.float64)
    figure, (left, right) = figures.new(10.2, 3.6, 1, 2)
    with style.course():
        bars = left.bar(ages.numpy(), np.ones(len(ages)), width=0.8, color=style.BLUE)
        left.set(xlabel="k: steps ago", ylabel="weight (1 − m) mᵏ", yscale="log", ylim=(1e-4, 1.3))
        left.set_xlim(-1, oldest + 1)
        for found in measured.values():  # the others stay in sight, faint
            right.plot(ages, found.by_age[: oldest + 1], color="#C4C4C4", linestyle="-", linewidth=1.2)
        own = {"color": style.VERMILLION, "linestyle": "-", "label": "of the same image"}
        (curve,) = right.plot(ages, 0 * ages, **own)
        floor = right.axhline(0, color=style.BLUE, linestyle=":", label="of different images, today")
        edge = right.axvline(0, color=style.INK, linestyle="--", linewidth=1.5, label="oldest key")
        lowest = min(min(float(found.by_age.min()), found.others) for found in measured.values())
        right.set(xlabel="age of the key, steps", ylabel="cosine with the key made today")
        right.set(xlim=(-1, oldest + 1), ylim=(min(0.0, lowest) - 0.03, 1.04))
        right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=9)
    figures.describe(
        figure,
        "Left, bars: the weight of the encoder of k steps ago in today's key encoder, falling by the factor "
        "m a step. Right, a curve: the mean cosine of keys by age with those that today's key encoder makes "
        "of the same views, a dotted line at that of different images' keys, and a dashed line at the age "
        "of the queue's oldest key.",
    )

    def update(momentum: float, queue_size: int) -> str:
        weights = (1 - momentum) * momentum**ages
        for bar, weight in zip(bars, weights.tolist(), strict=True):
            bar.set_height(weight)
        mean, others = measured[momentum]
        curve.set_ydata(mean[: oldest + 1])
        floor.set_ydata([others, others])
        age = queue_size // batch_size
        edge.set_xdata([age, age])
        queue = f"With {batch_size} keys a step, the oldest of {queue_size:,} is {age} steps old"
        if age <= oldest:
            queue += f", and its cosine with today's key is {float(mean[age]):.2f}"
            queue += f" (keys of different images: {others:.2f})"
        else:
            queue += f", more than the {oldest} steps of this run: the queue still holds random vectors"
        start = momentum**oldest
        return f"{queue}. Of the encoder that the run began with, {start:.1%} is left in the key encoder."

    return panel(
        figure,
        update,
        momentum=choose("m momentum", {f"{m:g}": m for m in sorted(measured)}, chosen),
        queue_size=among("K keys in the queue", SIZES, queue_size),
    )
