"""Maps of embeddings, coloured by class; and what shows that a map leaves out distances and sizes."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from torch import Tensor

from clutils import maps
from clutils.data.labels import numbered as labels_of
from clutils.figures import axes_for, describe, new, style

# ten classes: the course's colours, brown and a darker yellow; the markers distinguish them without colour
COLORS = (
    *(style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY, style.BLACK),
    *("#8C564B", "#B8A800", style.GREY),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", "p")
NO_LABEL = "#BBBBBB"
SORTED = 0.5  # share of same-class neighbours from which on a class has a place in the map


def look(label: int) -> dict[str, Any]:
    """Colour and marker of a class, the same in every map; below 0, without a label: a grey dot."""
    if label < 0:
        return {"color": NO_LABEL, "marker": "."}
    return {"color": COLORS[label % len(COLORS)], "marker": MARKERS[label % len(MARKERS)]}


def handles(names: Iterable[tuple[int, str]], size: float) -> list[Line2D]:
    """Legend handles: marks of these classes, with their names."""
    mark = partial(Line2D, [], [], linestyle="none", markersize=size)
    return [mark(label=style.literal(name), **look(c)) for c, name in names]


class Points:
    """The points of a map, with a colour and a marker for each class, and its name: `update` moves them.

    Points without a label (below 0) are grey, and have no name.
    """

    def __init__(
        self, ax: Axes, labels: Tensor, class_names: Sequence[str] = (), size: float = 14, names: bool = True
    ) -> None:
        self.ax = ax
        ((labels,), names_given) = labels_of("map", labels)
        class_names, self.labels = class_names or names_given, labels.clamp(min=-1)
        self.classes = self.labels.unique().tolist()
        self.marks: list[PathCollection] = []
        self.names: list[Text] = []
        for c in self.classes:
            self.marks.append(ax.scatter([], [], s=size, linewidth=0, alpha=0.85, **look(c)))
        options: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
        options |= {"path_effects": style.halo()}
        for c in [c for c in self.classes if c >= 0] if names else ():
            text = style.literal(fill(class_name(class_names, c), 12))
            self.names.append(ax.text(0, 0, text, color=look(c)["color"], fontsize=9.5, zorder=5, **options))
        style.bare(ax)  # the axes of such a map have no unit and no meaning
        ax.spines[:].set_visible(True)
        ax.spines[:].set_color("#CCCCCC")
        ax.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), aspect="equal")

    def update(self, positions: np.ndarray) -> None:
        """Move the points to positions (N, 2), scaled alike in both directions to fill the square."""
        positions = np.asarray(positions, dtype=float)
        if positions.shape != (len(self.labels), 2):
            raise ValueError(
                f"map: positions is {positions.shape}, but {len(self.labels)} labels need a row of two each"
            )
        low, high = positions.min(axis=0), positions.max(axis=0)
        unit = 0.5 + (positions - (low + high) / 2) / max(float((high - low).max()), 1e-12)
        for k, c in enumerate(self.classes):
            mine = unit[(self.labels == c).numpy()]
            self.marks[k].set_offsets(mine)
            if self.names and c >= 0:  # of -1, the first, there is none
                self.names[k - len(self.classes)].set_position(_densest(mine))
        _apart(self.names, self.ax)


@style.in_course_style
def embedding_map(
    positions: np.ndarray,
    labels: Tensor,
    class_names: Sequence[str] = (),
    title: str = "",
    ax: Axes | None = None,
    size: float = 14,
    names: bool = True,
) -> Axes:
    """A map of embeddings, coloured by class; with the classes' names, unless it is too mixed for that.

    positions: (N, 2), from `clutils.maps`; labels: (N,), whole numbers or names, below 0 = none, which is
    grey and nameless; names: False where a legend has them. Raises ValueError when positions and labels
    differ in number.
    """
    ax = axes_for(ax, 5.4, 5.4)
    ((labels,), found) = labels_of("embedding_map", labels)
    share = maps.share_of_class(torch.from_numpy(np.ascontiguousarray(positions)), labels, 10)
    class_names = class_names or found
    Points(ax, labels, class_names, size, names=names and share >= SORTED).update(positions)
    ax.set_title(style.literal(title))
    nearest = "" if math.isnan(share) else f": of a point's ten nearest, {share:.0%} share its class"
    return describe(
        ax,
        f"Map of {len(labels):,} embeddings{f', {title}' if title else ''}{nearest}. {numbered(class_names)}",
    )


@style.in_course_style
def side_by_side(
    found: Mapping[str, np.ndarray], labels: Tensor, class_names: Sequence[str] = (), size: float = 12
) -> Figure:
    """Maps of the same images, each under its name and its share of same-class neighbours.

    found: name -> positions (N, 2); one to four of them.
    """
    if not 1 <= len(found) <= 4:
        raise ValueError(f"side_by_side: {len(found)} maps; one to four fit into a row")
    ((labels,), told) = labels_of("side_by_side", labels)
    class_names, width = class_names or told, min(4.9, 10.6 / len(found))
    figure, axes = new(width * len(found), width + 1.15, 1, len(found), squeeze=False)
    for ax, (name, positions) in zip(axes[0], found.items(), strict=True):
        share = maps.share_of_class(torch.from_numpy(np.ascontiguousarray(positions)), labels, 10)
        title = name if math.isnan(share) else f"{name}\nneighbours of its class: {share:.0%}"
        embedding_map(positions, labels, class_names, title, ax, size, names=False)  # the legend has them
    names = [(c, class_name(class_names, c)) for c in labels.unique().tolist() if c >= 0]
    place: dict[str, Any] = {"loc": "outside lower center", "handletextpad": 0.2, "columnspacing": 1.4}
    if names:
        figure.legend(handles=handles(names, 7), ncols=5, **place)
    return figure


def class_name(class_names: Sequence[str], label: int) -> str:
    """The name of a class, or its number where it has none, or one that no font here can draw."""
    if 0 <= label < len(class_names) and style.drawable(class_names[label]):
        return class_names[label]
    return str(label)


def numbered(class_names: Sequence[str]) -> str:
    """The classes that figures here have by number, since no font can draw their names; "" = none."""
    names = [f"{c} {name}" for c, name in enumerate(class_names) if not style.drawable(name)]
    return f"No font here draws these names, so figures have numbers: {', '.join(names)}." if names else ""


def _apart(names: Sequence[Text], ax: Axes) -> None:
    """Move names up or down, each as little as it takes, until none lies over another."""
    for _ in range(40):
        boxes, moved = [name.get_window_extent() for name in names], [0.0] * len(names)
        for i, j in itertools.combinations(range(len(names)), 2):
            one, other = boxes[i], boxes[j]
            over = min(one.y1, other.y1) - max(one.y0, other.y0)
            if over > 0 and min(one.x1, other.x1) > max(one.x0, other.x0):
                up = i if (one.y0, i) > (other.y0, j) else j
                for k in (i, j):
                    moved[k] += (1 if k == up else -1) * (over / 2 + 1)
        if not any(moved):
            return
        for name, by in zip(names, moved, strict=True):
            name.set_y(name.get_position()[1] + by / ax.bbox.height * np.ptp(ax.get_ylim()))


def _densest(points: np.ndarray) -> tuple[float, float]:
    """Where a class is densest: the point with the nearest nearest third of the others."""
    some = points[:: max(1, len(points) // 200)]
    distance = np.linalg.norm(some[:, None] - some[None], axis=-1)
    near = np.sort(distance, axis=1)[:, : max(1, len(some) // 3)]
    return tuple(some[near.mean(axis=1).argmin()])
