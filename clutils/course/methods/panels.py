"""Under sliders: of which past encoders MoCo's keys are made; which rates keep two networks from collapse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from clutils import figures
from clutils.course.methods import experiments
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
        queue = (
            f"With {batch_size} keys a step, the oldest of {queue_size:,} is {age} step{'s' * (age > 1)} old"
        )
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


DECAYS = (0.01, 0.05, 0.1, 0.15, 0.19)
RATES = {"1": 1.0, "3": 3.0, "10": 10.0}
FOLLOWS = {"at once": np.inf, "1": 1.0, "0.1": 0.1}  # at a slower one 400 units of time do not suffice


def explore_rates() -> Panel:
    """Final size of an embedding in step 8's equations, by its start, the rates of predictor, target, decay.

    Grey: target at once, predictor's rate 1, η = 0.15.
    """
    starts = np.linspace(0.0, 0.6, 121)[1:]
    usual, (usual_ridge, usual_end) = experiments.linear_theory(starts, starts), experiments.ridge_and_end()
    figure, ax = figures.new(7.2, 3.4)
    with style.course():
        ax.plot(
            starts,
            usual,
            color="#B0B0B0",
            linestyle="--",
            label="target at once,\npredictor's rate 1, η = 0.15",
        )
        (curve,) = ax.plot(starts, usual, color=style.BLUE, linestyle="-", label="these rates")
        edge = ax.axvline(usual_ridge, color=style.VERMILLION, linestyle=":", label="ridge")
        ax.set(xlabel="start, p = w", ylabel="w² at the end", ylim=(-0.02, 0.72))
        style.legend_outside(ax)
    figures.describe(
        figure,
        "The size of an embedding at the end against its start: zero below a ridge, marked by a dotted line, "
        "and one size above it; dashed in grey the same for target at once, predictor's rate 1, η = 0.15.",
    )

    def update(predictor_rate: float, decay_follows_rate: bool, target_rate: float, decay: float) -> str:
        rates = {
            "predictor_rate": predictor_rate,
            "decay_follows_rate": decay_follows_rate,
            "target_rate": target_rate,
            "decay": decay,
        }
        ridge, end = experiments.ridge_and_end(**rates)
        curve.set_ydata(experiments.linear_theory(starts, starts, **rates))
        edge.set_xdata([ridge, ridge])
        before = (
            f"before (target at once, predictor's rate 1, η = 0.15) {usual_ridge:.3f} and {usual_end:.3f}"
        )
        if np.isnan(ridge):
            return f"Every start collapses; {before}."
        moved = "lower than" if ridge < usual_ridge else "higher than"
        moved = "the same as" if abs(ridge - usual_ridge) < 2e-3 else moved
        return f"The ridge is {ridge:.3f}, {moved} before, and w² ends at {end:.3f}; {before}."

    return panel(
        figure,
        update,
        predictor_rate=choose("predictor's rate", RATES, 1.0),
        decay_follows_rate=choose("its decay", {"times its rate (AdamW)": True, "not": False}, True),
        target_rate=choose("target's rate", FOLLOWS, np.inf),
        decay=among("η decay", DECAYS, 0.15),
    )
