"""Figures of notebook 02: how many negatives share the push, points of classes on a circle.

Every value is computed by `clutils.anatomy` or by the losses themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor

from clutils import anatomy
from clutils.course.sphere.figures import outline
from clutils.figures import axes_for, describe, style

TEMPERATURES = (0.02, 10.0)


@style.in_course_style
def effective_negatives(
    sets: Mapping[str, Tensor], marked: float | None = None, ax: Axes | None = None
) -> Axes:
    """The effective number of negatives, exp of the entropy of p̂, against τ.

    - sets: name -> negatives (A, K), in the order of their spread; the line is the mean over the anchors
    - marked: a temperature to draw a dotted line at
    """
    ax = axes_for(ax)
    grid = torch.logspace(*map(math.log10, TEMPERATURES), 61, dtype=torch.float64)
    phrases = []
    for look, (name, negatives) in zip(style.series(len(sets)), sets.items(), strict=True):
        seen = torch.stack([anatomy.effective_negatives(negatives, float(t)).mean() for t in grid])
        ax.plot(grid, seen, **look, label=f"{name}, K = {negatives.shape[1]:,}")
        if marked is not None:
            at = float(anatomy.effective_negatives(negatives, marked).mean())
            ax.plot(marked, at, "o", color=look["color"])
            ax.annotate(
                f"{at:.0f}",
                (marked, at),
                (-7, 4),
                textcoords="offset points",
                ha="right",
                color=look["color"],
            )
        phrases.append(f"{name} from {seen[0]:.3g} to {seen[-1]:.3g} of {negatives.shape[1]:,}")
        ax.axhline(negatives.shape[1], color=style.GREY, linestyle=(0, (2, 3)), linewidth=1, zorder=1)
    if marked is not None:
        ax.axvline(marked, color=style.GREY, linestyle=":", linewidth=1.5)
    style.log_axis(ax.xaxis)
    ax.set(xlim=TEMPERATURES, xlabel="temperature τ", yscale="log", ylabel="effective number of negatives")
    ax.legend(loc="lower right")  # where no line comes: all of them rise to K
    return describe(
        ax,
        f"Effective number of negatives against temperature, rising to K (dashed): {'; '.join(phrases)}.",
    )


def class_looks(labels: Tensor) -> list[dict[str, Any]]:
    """Colours and markers of classes, without blue and vermillion, the ends of a temperature's."""
    colours = (style.GREEN, style.PURPLE, style.ORANGE, style.GREY, style.SKY, style.BLACK)
    return [{"color": colours[k % 6], "marker": style.MARKERS[k % 8]} for k in range(int(labels.max()) + 1)]


@style.in_course_style
def circle(
    z: Tensor,
    labels: Tensor,
    path: Tensor | None = None,
    title: str = "",
    tau: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Points on the circle, a colour and a marker for each class; the circle has the colour of its τ.

    - z: (N, 2) unit vectors; labels: (N,) whole numbers
    - path: (T, N, 2), how the points came there, drawn inside the circle: oldest nearest its centre
    """
    ax = axes_for(ax, 3.4, 3.4)
    outline(ax, 1.18, tau)
    looks = class_looks(labels)
    for label in labels.unique().tolist():
        own, look = labels == label, looks[label]
        if path is not None:
            radius = torch.linspace(0.55, 0.97, len(path), dtype=path.dtype)[:, None, None]
            for x, y in (radius * path[:, own]).permute(1, 2, 0):
                ax.plot(x, y, color=look["color"], linestyle="-", linewidth=0.8, alpha=0.7)
        ax.scatter(*z[own].T, color=look["color"], marker=look["marker"], s=46, edgecolor="white", zorder=4)
    if title:
        ax.set_title(title, loc="center")
    return describe(
        ax, f"{title or 'Points'} on the circle: {len(z)} points of {len(labels.unique())} classes."
    )
