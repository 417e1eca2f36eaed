"""Figures of a report: alignment against uniformity, spectrum, confusion of classes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from torch import Tensor

from clutils.figures import axes_for, describe, new, style
from clutils.figures.maps import class_name
from clutils.report import neighbours
from clutils.report.layers import Layer
from clutils.report.rules import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

# (alignment, uniformity) as a check measures them of this package's conv16 after 120 steps of NT-Xent, mean
# of seeds 1 and 2; "all at one place" and "spread evenly" are closed forms
PLACES = {
    "conv16, scenes, τ = 0.1 to 0.5": (0.34, -1.75),
    "the same, after its head": (0.60, -2.80),
    "conv16, digits": (0.14, -1.29),
    "conv16, scenes, τ = 10": (0.43, -1.36),
    "all at one place": (0.0, 0.0),
    "spread evenly, views unrelated": (2.0, -4.0),
}
AFTER, FRESH = ", after the head", ", fresh weights"
LEVEL_LOOKS = {  # mark and colour: told apart without colour, too
    GOOD: ("✓", style.GREEN),
    LOOK: ("◐", "#8A5A00"),
    BROKEN: ("✗", "#B00020"),
    UNKNOWN: ("?", style.GREY),
}


@style.in_course_style
def plane(own: Mapping[str, tuple[float, float]], ax: Axes | None = None) -> Axes:
    """Alignment against uniformity: lower left is better, and known encoders beside.

    own: name -> (alignment, uniformity) of what is examined; with AFTER or FRESH behind an encoder's name, of
    what its head gives, and of the same network before training.
    """
    ax = axes_for(ax, 6.4, 4.4)
    halo = [withStroke(linewidth=2.5, foreground="white")]
    for (name, (x, y)), look in zip(PLACES.items(), style.series(len(PLACES), ordered=False), strict=True):
        ax.plot(x, y, marker=look["marker"], color=style.GREY, linestyle="none", markersize=7)
        side = {"ha": "right", "xytext": (-7, 2)} if x > 1.2 else {"ha": "left", "xytext": (7, 2)}
        if name == "conv16, digits":
            side["xytext"] = (7, 7)
        text: dict[str, Any] = {"fontsize": 8.5, "color": style.GREY, "path_effects": halo} | side
        ax.annotate(name, (x, y), textcoords="offset points", zorder=6, **text)  # above the stars
    colours: dict[str, str] = {}
    for name, (x, y) in own.items():
        whose = name.removesuffix(AFTER).removesuffix(FRESH)
        color = colours.setdefault(whose, (style.BLUE, style.VERMILLION)[min(len(colours), 1)])
        look = {"marker": "*", "markersize": 17, "color": color}
        if name.endswith(AFTER):
            look |= {"markerfacecolor": "white", "markeredgewidth": 1.6}
        if name.endswith(FRESH):
            look |= {"marker": "X", "markersize": 10}
        ax.plot(x, y, linestyle="none", label=name, zorder=5, **look)
    ax.set(xlim=(-0.1, 2.1), ylim=(-4.2, 0.25), xlabel="alignment (0: views coincide)")
    ax.set_ylabel("uniformity (lower: more evenly spread)")
    # outside: a star in a legend within the axes reads as a place in the plane, and the best one at that
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    said = "; ".join(
        f"{name} at alignment {x:.2f} and uniformity {round(y, 2) + 0.0:.2f}" for name, (x, y) in own.items()
    )
    return describe(ax, f"The plane of alignment and uniformity: {said}; known encoders beside.")


@style.in_course_style
def spectrum(values: Mapping[str, Tensor], ax: Axes | None = None) -> Axes:
    """Singular values of centred features, largest first, as shares of the first: name -> (D,)."""
    ax = axes_for(ax, 6.4, 3.6)
    said = []
    for (name, found), look in zip(values.items(), style.series(len(values), ordered=False), strict=True):
        shares = (found / found[0]).clamp(min=1e-7)
        color = style.GREY if name == "fresh weights" else look["color"]
        ax.plot(range(1, len(shares) + 1), shares, look["linestyle"], color=color, label=name)
        said.append(f"{name}: {int((shares > 0.01).sum())} of {len(shares)} above a hundredth of the first")
    ax.set(yscale="log", ylim=(1e-5, 1.5), ylabel="share of the first")
    ax.set_xlabel("singular value, largest first")
    ax.legend(loc="lower left")
    return describe(ax, f"Singular values of the features. {'; '.join(said)}.")


@style.in_course_style
def weights(scale: Tensor, hardness: tuple[Tensor, Tensor], temperature: float) -> Figure:
    """W of each anchor, and what share of the push falls on negatives of each similarity.

    scale: (A,); hardness: similarities and weights of all negatives, flat.
    """
    figure, (left, right) = new(9.0, 3.3, 1, 2)
    left.hist(scale.clamp(0, 1).numpy(), bins=40, range=(0, 1), color=style.BLUE, alpha=0.8)
    left.set(xlabel="W (1: full push, 0: none)", ylabel="anchors", xlim=(0, 1))
    s, weight = hardness
    edges = torch.linspace(-1, 1, 41)
    at = torch.bucketize(s, edges[1:-1])
    for values, label, color, line in (
        (torch.ones_like(weight), "of the negatives", style.GREY, "--"),
        (weight, "of the push", style.VERMILLION, "-"),
    ):
        share = torch.zeros(40).index_add_(0, at, values.float())
        look = {"color": color, "linestyle": line, "linewidth": 2}
        right.stairs((share / share.sum()).numpy(), edges.numpy(), label=label, **look)
    right.set(xlabel="similarity of a negative", ylabel="share", xlim=(-1, 1))
    right.set_ylim(0, 1.25 * right.get_ylim()[1])  # room for the legend
    right.legend(loc="upper left")
    return describe(
        figure,
        f"At τ = {temperature:g}: W of {len(scale)} anchors, {float(scale.mean()):.2f} on average; and the "
        "shares of negatives and of the push against their similarity.",
    )


@style.in_course_style
def confusion(labels: Tensor, predicted: Tensor, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Who is taken for whom: a row a class, shares of its images; the first twenty that were asked about."""
    asked = labels.unique()[:20]
    shown = len(asked)
    table = neighbours.confusion(labels, predicted, len(names))
    table = (table / table.sum(dim=1, keepdim=True).clamp(min=1))[asked][:, asked]
    ax = axes_for(ax, 6.4, 5.4)
    ax.imshow(table.numpy(), cmap="Blues", vmin=0, vmax=1)
    short = [style.literal(fill(class_name(names, c), 14)[:28]) for c in asked.tolist()]
    ax.set_xticks(range(shown), short, rotation=60, ha="right")
    ax.set_yticks(range(shown), short)
    ax.set(xlabel="class of its neighbours", ylabel="class of the picture")
    ax.grid(False)
    if shown <= 12:
        for row in range(shown):
            for column in range(shown):
                value = float(table[row, column])
                if value >= 0.05:
                    ink = "white" if value > 0.5 else style.INK
                    ax.text(column, row, f"{value:.0%}", ha="center", va="center", fontsize=8, color=ink)
    right = table.diagonal().mean().item()
    return describe(ax, f"Confusion of {shown} classes: on average {right:.0%} of a class are taken for it.")


@style.in_course_style
def robustness(kept: Mapping[str, Mapping[str, float]], ax: Axes | None = None) -> Axes:
    """How near a picture stays to its place under each augmentation: encoder -> augmentation -> kept."""
    ax = axes_for(ax, 6.4, 3.2)
    looks = style.series(len(kept), ordered=False)
    said = []
    for k, ((name, values), look) in enumerate(zip(kept.items(), looks, strict=True)):
        places = [x + 0.8 * (k + 0.5) / len(kept) - 0.4 for x in range(len(values))]
        bars = {"color": look["color"], "hatch": "//" if k else "", "alpha": 0.85}
        ax.bar(places, list(values.values()), 0.7 / len(kept), label=name, **bars)
        said.append(f"{name}: " + ", ".join(f"{change} {value:.2f}" for change, value in values.items()))
        ax.set_xticks(range(len(values)), list(values))
    ax.axhline(0, color=style.BLACK, linewidth=1)
    ax.set(ylim=(min(0, *(v for values in kept.values() for v in values.values())) - 0.05, 1.05))
    ax.set_ylabel("kept (0: as far as\nanother picture)")
    ax.grid(False, axis="x")
    if len(kept) > 1:
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return describe(ax, f"What a change leaves of a picture's place, 1 = all. {'; '.join(said)}.")


@style.in_course_style
def by_layer(layers: Sequence[Layer]) -> Figure:
    """kNN and linear probe, and effective rank, of each layer from the first to the last."""
    figure, (left, right) = new(6.4, 3.2, 1, 2)
    at = range(1, len(layers) + 1)
    for key, label, color, mark in (("knn", "kNN", style.GREEN, "o"), ("probe", "probe", style.BLUE, "s")):
        values = [getattr(layer, key) for layer in layers]
        left.plot(at, values, f"{mark}-", color=color, label=label)
    left.set(ylim=(0, 1), xlabel="layer", ylabel="accuracy")
    left.legend(loc="best")
    right.plot(at, [layer.effective_rank for layer in layers], "D-", color=style.PURPLE)
    right.set(ylim=(0, None), xlabel="layer", ylabel="effective rank")
    for ax in (left, right):
        ax.set_xticks(list(at))
    said = "; ".join(
        f"{layer.name}: kNN {layer.knn:.2f}, probe {layer.probe:.2f}, rank {layer.effective_rank:.1f}"
        for layer in layers
    )
    return describe(figure, f"{len(layers)} layers from the first to the last. {said}.")


@style.in_course_style
def lengths(z: Tensor, ax: Axes | None = None) -> Axes:
    """Lengths of the embeddings (N, D), and how much each unit moves."""
    ax = axes_for(ax, 6.4, 3.0)
    norms = z.norm(dim=1)
    mean = float(norms.mean())
    # equal lengths, as after a fresh layer normalisation, would leave bins without width
    ends = min(float(norms.min()), 0.99 * mean), max(float(norms.max()), 1.01 * mean, 1e-6)
    ax.hist(norms.numpy(), bins=40, range=ends, color=style.BLUE, alpha=0.8)
    ax.set(xlabel="length of an embedding", ylabel="pictures", xlim=(0, None))
    still = int((z.std(dim=0) <= 1e-6 * z.std(dim=0).max()).sum())
    return describe(
        ax,
        f"Lengths of {len(z)} embeddings: {mean:.2f} on average; {still} of {z.shape[1]} units never move.",
    )


@style.in_course_style
def summary(title: str, verdicts: Sequence[Verdict], text: str, how: str) -> Figure:
    """The verdicts on one page, a line each, with the likely cause of what is broken.

    - text: all of it in short; how: a sentence on how the page is read, under the title
    """
    title, text, how = fill(title, 100), fill(text, 132), fill(how, 140)
    rows = []  # level, cells, likely cause, height
    for v in verdicts:
        value = f"{v.value} ({v.remark})" if v.remark else v.value
        cells = fill(v.name, 20), fill(value, 54), fill(v.expected, 46)
        cause = fill(f"likely cause: {v.causes[0]}", 100) if v.level == BROKEN and v.causes else ""
        lines = 1 + max(cell.count("\n") for cell in cells) + len(cause.splitlines())
        rows.append((v.level, cells, cause, 0.4 + 0.5 * lines))
    tall = sum(height for *_, height in rows)
    above = [0.75 * len(title.splitlines()), 0.55 * len(how.splitlines()), 0.65 * len(text.splitlines())]
    top, head = sum(above) + 0.9, 0.7
    figure, ax = new(11.2, 0.36 * (top + head + tall + 0.3))

    def put(x: float, y: float, text: str, **options: Any) -> None:
        ax.text(x, y, style.literal(text), **options)

    ax.set_axis_off()
    ax.set(xlim=(0, 1), ylim=(head + tall + 0.1, -top))
    put(0, -top, title, fontsize=11.5, weight="bold", va="top")
    put(0, above[0] + 0.15 - top, how, fontsize=8.5, va="top", color=style.GREY)
    put(0, above[0] + above[1] + 0.35 - top, text, fontsize=9.5, va="top")
    places = (0.13, 0.28, 0.66)
    for x, heading in zip((0.0, *places), ("verdict", "of", "measured", "expected"), strict=True):
        put(x, head / 2, heading, va="center", fontsize=8.5, color=style.GREY)
    at = head
    for level, cells, cause, height in rows:
        mark, color = LEVEL_LOOKS[level]
        ax.axhline(at, color=style.GREY, linewidth=0.4)
        put(0.0, at + 0.2, f"{mark} {level}", color=color, weight="bold", va="top", fontsize=9)
        for x, cell in zip(places, cells, strict=True):
            put(x, at + 0.2, cell, va="top", fontsize=9 if x == places[0] else 8.5)
        put(places[1], at + height - 0.2, cause, va="bottom", fontsize=8.5, color=color)
        at += height
    counts = Counter(v.level for v in verdicts)
    said = ", ".join(f"{counts[level]} {level}" for level in LEVEL_LOOKS if counts[level])
    return describe(figure, f"{title}: {said}.")


@style.in_course_style
def missing(name: str, error: Exception) -> Figure:
    """In place of a picture that could not be drawn: a line that says why."""
    figure, ax = new(6.4, 1.0)
    ax.set_axis_off()
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    ax.text(0, 0.5, style.literal(fill(f"could not be drawn ({reason})", 80)), va="center")
    return describe(figure, f"{name} could not be drawn: {reason}.")
