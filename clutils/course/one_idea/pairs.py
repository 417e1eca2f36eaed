"""SigLIP's bias: what it makes of the balance between one match and all that are none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes

from clutils import anatomy, data, losses, training
from clutils.figures import axes_for, describe, style
from clutils.similarities import Pairs, normalise, two_views


def first_similarities(pictures: data.ImageSet, batch_size: int) -> Pairs:
    """What a loss sees in the first step of a new SimCLR: one encoder for both views, in training."""
    run, seen = training.Run(data=pictures, batch_size=batch_size, steps=1, precision="float32"), []
    run.loss.register_forward_pre_hook(lambda loss, given: seen.extend(given))
    run.step()
    z1, z2 = (normalise(z.detach().double(), "z", "first_similarities") for z in seen[:2])
    return two_views(z1, z2, "other view")


@style.in_course_style
def balance(counts: Sequence[int], start: float = -10.0, ax: Axes | None = None) -> Axes:
    """All pushes over the pull against the bias, at similarities of 0, a line for each of the counts."""
    ax, zero = axes_for(ax, 8.4, 3.8), torch.zeros(1, 1, dtype=torch.float64)
    biases = torch.linspace(-16, 4, 81).tolist()
    forces = [anatomy.forces(losses.SigLIP(0.1, bias), zero, zero) for bias in biases]  # of one negative
    for k, (look, K) in enumerate(zip(style.series(len(counts)), counts, strict=True)):
        ratio = [K * float(push / pull) for pull, push in forces]
        ax.plot(biases, ratio, **look, markevery=(3 * k, 16), label=f"K = {K:,}")
        ax.plot(-math.log(K), 1, color=look["color"], marker="*", markersize=14, linestyle="none")
    ax.axhline(1, color=style.GREY, linestyle=(0, (2, 3)))
    ax.axvline(start, color=style.INK, linestyle=":", label=f"b = −{-start:g}, where training starts")
    ax.plot([], [], color=style.INK, marker="*", markersize=12, linestyle="none", label="b = −log K")
    ax.set(yscale="log", xlabel="bias b", ylabel="all pushes / pull")
    style.legend_outside(ax)
    said = ", ".join(f"{-math.log(K):.1f} for K = {K:,}" for K in counts)
    return describe(
        ax, f"All pushes over the pull, rising by e per unit of the bias; they reach 1 at {said}."
    )
