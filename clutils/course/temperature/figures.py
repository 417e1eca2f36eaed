"""What the temperature does: the gate W, the cold limit, how many negatives share the push, the dilemma.

Every value is computed by `clutils.anatomy` or by the losses themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from clutils import anatomy, similarities
from clutils.course.sphere.figures import outline
from clutils.figures import axes_for, describe, new, style
from clutils.losses import NTXent
from clutils.losses.base import softplus

if TYPE_CHECKING:
    import pandas

TEMPERATURES = (0.02, 10.0)


@style.in_course_style
def gate(marks: Mapping[str, float] | None = None, ax: Axes | None = None) -> Axes:
    """The loss softplus(c) and its slope W = sigmoid(c) against the contrast c.

    - marks: name -> c, anchors to be shown on the slope
    """
    ax = axes_for(ax, 8.0)
    c = torch.linspace(-8, 5, 261, dtype=torch.float64)
    ax.axvspan(-8, -3, color="#EFEFEF", zorder=0)
    ax.text(-7.8, 3.55, "nearly shut: W < 0.05", color=style.INK, va="top")
    ax.plot(c, softplus(c), color=style.BLUE, linestyle="-", label="the loss")
    ax.text(2.7, 3.0, "the loss ℓ = softplus(c)", color=style.BLUE, ha="right")
    ax.plot(c, c.sigmoid(), color=style.VERMILLION, linestyle="--", label="its slope")
    ax.text(5, 1.06, "its slope W = sigmoid(c)", color=style.readable(style.VERMILLION), ha="right")
    phrases = []
    for k, ((name, at), marker) in enumerate(zip((marks or {}).items(), style.MARKERS, strict=False)):
        W = torch.tensor(at, dtype=torch.float64).sigmoid().item()
        look = {"color": style.BLACK, "marker": marker, "markersize": 8, "linestyle": "none"}
        ax.plot([at], [W], **look, clip_on=False, zorder=5)
        right = at > 0  # below the curves there is room; left of 0 only above them
        ax.annotate(
            f"{name}: W = {W:.2g}",
            (at, W),
            (at + 0.3, W - 0.25) if right else (at, 1.3 - 0.4 * k),
            ha="left" if right else "center",
            arrowprops=None if right else {"arrowstyle": "-", "color": style.GREY, "linewidth": 0.8},
            fontsize=10,
        )
        phrases.append(f"{name} at c = {at:.2g} has W = {W:.2g}")
    ax.set(xlim=(-8, 5), ylim=(0, 4), xlabel="contrast c", ylabel="ℓ and W, per anchor")
    return describe(
        ax,
        "The loss softplus(c) and its slope W = sigmoid(c) against the contrast c: both near 0 below c = -3, "
        f"the slope near 1 above c = 3. {'; '.join(phrases)}",
    )


@style.in_course_style
def shares_of_pull(trained: Mapping[int, Tensor], temperatures: Sequence[float] = (0.05, 0.1, 0.5)) -> Figure:
    """What each tenth of the anchors, sorted by W, has of the pull on all of them: a panel a training.

    trained: steps -> two views of each image, (N, 2, D) unit vectors
    """
    figure, axes = new(9.6, 3.6, 1, len(trained), sharey=True, squeeze=False)
    phrases = []
    for ax, (steps, z) in zip(axes[0], trained.items(), strict=True):
        pairs = similarities.two_views(z[:, 0].double(), z[:, 1].double())
        for look, t in zip(style.series(len(temperatures)), temperatures, strict=True):
            W = anatomy.gradient_scale(pairs.positives, pairs.negatives, t).sort().values
            shares = [float(part.mean() / W.mean()) / 10 for part in W.tensor_split(10)]
            ax.plot(range(1, 11), shares, label=f"τ = {t:g}", **look)
            phrases.append(f"{steps:,} steps, τ = {t:g}: {shares[0]:.1%} to {shares[-1]:.1%}")
        ax.axhline(0.1, color=style.GREY, linewidth=1.2, linestyle=":")
        ax.set(title=f"after {steps:,} steps", xlabel="tenth of the anchors, the smallest W first")
    axes[0, 0].set(ylabel="share of the total pull", ylim=(0, None))
    for ax in axes[0]:
        style.name_lines(ax)
    return describe(
        figure,
        "Share of the total pull by tenths of the anchors, sorted by W; dotted: equal shares. From the first "
        f"tenth to the last: {'; '.join(phrases)}.",
    )


@style.in_course_style
def cold_limit(temperatures: Sequence[float] = (1.0, 0.5, 0.2, 0.05), ax: Axes | None = None) -> Axes:
    """τ times NT-Xent against the gap s- - s+ of one negative, and the hinge that is its limit at τ = 0."""
    ax = axes_for(ax)
    gap = torch.linspace(-1, 1, 201, dtype=torch.float64)
    ax.plot(gap, gap.clamp(min=0), color=style.BLACK, linewidth=3.5, alpha=0.35, label="hinge: max(0, gap)")
    for k, (look, t) in enumerate(zip(style.series(len(temperatures)), temperatures, strict=True)):
        loss = NTXent(t).per_anchor(torch.zeros(201, 1, dtype=torch.float64), gap[:, None])
        ax.plot(gap, t * loss, **look, markevery=(5 * k, 25), label=f"NT-Xent, τ = {t:g}")
    ax.set(xlim=(-1, 1), ylim=(0, 1.35), xlabel="gap s⁻ - s⁺: below 0 the positive is nearer", ylabel="τ · ℓ")
    style.name_lines(ax)
    return describe(
        ax,
        "Temperature times NT-Xent against the gap of one negative to the positive, for temperatures "
        f"{', '.join(f'{t:g}' for t in temperatures)}: the colder, the closer to the hinge max(0, gap).",
    )


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
        phrases.append(f"{name} from {seen[0]:.3g} to {seen[-1]:.3g} of {negatives.shape[1]:,}")
        ax.axhline(negatives.shape[1], color=look["color"], linestyle=(0, (2, 3)), linewidth=1, zorder=1)
    if marked is not None:
        ax.axvline(marked, color=style.GREY, linestyle=":", linewidth=1.5)
    style.log_axis(ax.xaxis)
    ax.set(xlim=TEMPERATURES, xlabel="temperature τ", yscale="log", ylabel="effective number of negatives")
    ax.legend(loc="lower right")  # where no line comes: all of them rise to K
    return describe(
        ax,
        f"Effective number of negatives against temperature, rising to K (dashed): {'; '.join(phrases)}.",
    )


@style.in_course_style
def circle(
    z: Tensor,
    labels: Tensor,
    path: Tensor | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Points on the circle, a colour and a marker for each class.

    - z: (N, 2) unit vectors; labels: (N,) whole numbers
    - path: (T, N, 2), how the points came there, drawn inside the circle: oldest nearest its centre
    """
    ax = axes_for(ax, 3.4, 3.4)
    outline(ax, 1.18)
    looks = style.series(int(labels.max()) + 1, ordered=False)
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


@style.in_course_style
def by_temperature(
    table: pandas.DataFrame,
    column: str,
    label: str,
    ax: Axes | None = None,
) -> Axes:
    """A column of results against τ: a marker for each run, a line through the means.

    - table: a row a run, with the columns `temperature`, `seed` and `column`
    - label: of the vertical axis
    """
    ax = axes_for(ax, 4.2, 3.6)
    means = table.groupby("temperature")[column].mean()
    ax.plot(means.index, means, color=style.BLUE, linestyle="-", linewidth=1.5, label="mean")
    for marker, (seed, rows) in zip(style.MARKERS * 4, table.groupby("seed"), strict=False):
        ax.plot(
            rows["temperature"], rows[column], marker=marker, markersize=7, fillstyle="none",
            linestyle="none", color=style.BLUE, label=f"seed {seed}",
        )  # fmt: skip
    _at_the_temperatures(ax, means.index, label)
    ax.set_title("line: mean; a mark: a seed", fontsize=10)
    spread = ", ".join(f"{value:.3g} at {t:g}" for t, value in means.items())
    seeds = table["seed"].nunique()
    return describe(ax, f"{label} against temperature, {seeds} seeds each; means: {spread}.")


@style.in_course_style
def sweep(curves: pandas.DataFrame, label: str, names: bool = True, ax: Axes | None = None) -> Axes:
    """A recorded sweep of τ: a line for each number of steps, bars from the lowest seed to the highest.

    - curves: as `evidence.curves("temperature", ...)` gives them: contender ("τ = 0.05"), step, mean, min,
      max, count
    - label: of the vertical axis; names: whether the lines have theirs at their ends
    """
    ax = axes_for(ax, 4.2, 3.6)
    table = curves.assign(temperature=curves["contender"].str.removeprefix("τ = ").astype(float))
    phrases, shades = [], iter(style.series(table["step"].nunique()))
    for step, rows in table.groupby("step"):
        rows = rows.sort_values("temperature")
        reach = (rows["mean"] - rows["min"], rows["max"] - rows["mean"])
        name = f"{step:,} steps" if step else "untrained"
        look = next(shades) if step else {"color": style.GREY, "linestyle": "-", "linewidth": 0.9}
        ax.errorbar(rows["temperature"], rows["mean"], yerr=reach, **look, capsize=3, label=name)
        phrases.append(f"{name} " + ", ".join(f"{m:.2f}" for m in rows["mean"]))
    _at_the_temperatures(ax, sorted(table["temperature"].unique()), label)
    if names:
        style.name_lines(ax)
    seeds = int(table["count"].min())
    return describe(
        ax, f"{label} against temperature, recorded, {seeds} seeds and more; {'; '.join(phrases)}."
    )


def _at_the_temperatures(ax: Axes, temperatures: Iterable[float], label: str) -> None:
    """A logarithmic axis of τ with a tick at each of these."""
    ticks = [float(t) for t in temperatures]
    ax.set(xscale="log", xlabel="temperature τ", ylabel=label)
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    ax.set_xticks([], minor=True)
