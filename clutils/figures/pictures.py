"""Figures of images: a sheet of a data set, views with their parameters, nearest neighbours."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from torch import Tensor

from clutils import maps
from clutils.data import ImageSet
from clutils.figures import axes_for, describe, new, style
from clutils.figures.maps import class_name
from clutils.settings import within
from clutils.similarities import normalise
from clutils.views import Parameters

SHOWN_CLASSES = 10
VIEW_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": style.BLACK, "linestyle": "-"},
    {"color": style.VERMILLION, "linestyle": "--"},
)


@style.in_course_style
def sheet(pictures: ImageSet, each: int = 4, ax: Axes | None = None) -> Axes:
    """The first images of every class, a column a class; without labels simply the first ones.

    - each: images of a class, one below the other; of more than ten classes the first ten are shown
    """
    within("sheet", "each", each, 1, whole=True)
    names = [class_name(pictures.class_names, c) for c in range(len(pictures.class_names))][:SHOWN_CLASSES]
    found = [torch.nonzero(pictures.labels == c).flatten()[:each] for c in range(len(names))]
    if not any(len(f) for f in found):  # nobody labelled them
        found, names = list(torch.arange(len(pictures))[: each * SHOWN_CLASSES].split(each)), []
    canvas, side = _mosaic([[pictures.images[i] for i in column] for column in found])
    ax = axes_for(ax, 9.6, 0.6 + 0.96 * each * 10 / max(len(found), 4))
    ax.imshow(canvas, interpolation="nearest")
    style.bare(ax)
    ax.tick_params(length=0, labelbottom=False, labeltop=True)
    ax.set_xticks(
        [c * (side + _gap(side)) + side / 2 for c in range(len(names))],
        [style.literal(fill(name, 12)) for name in names],
    )
    of = f", {each} of each class: {', '.join(pictures.class_names[: len(names)])}" if names else ""
    return describe(ax, f"A sheet of {sum(map(len, found))} images{of}. {pictures.source}.")


class Views:
    """Images with the boxes of two random crops on them, and below each the two views: `update` redraws.

    - images: (n, C, H, W), a column each; names: of the images
    """

    @style.in_course_style
    def __init__(self, images: Tensor, names: Sequence[str] = ()) -> None:
        self.images = images
        n, (height, width) = len(images), images.shape[-2:]
        self.figure, axes = new(1.25 * n + 0.55, 4.4, 3, n, squeeze=False)
        self.boxes: list[list[Rectangle]] = [[], []]
        self.shown: list[list[AxesImage]] = [[], []]
        self.notes: list[list[Text]] = [[], []]
        for column, (top, *below) in enumerate(axes.T):
            top.imshow(pixels_of(images[column]), interpolation="nearest")
            top.set(xlim=(-1.5, width + 0.5), ylim=(height + 0.5, -1.5))
            if names:
                top.set_title(style.literal(fill(names[column], 12)), fontsize=10, loc="center")
            for k, (ax, look) in enumerate(zip(below, VIEW_LOOKS, strict=True)):
                box = Rectangle((0, 0), 1, 1, fill=False, linewidth=2, **look)
                box.set_path_effects(style.halo(4))
                self.boxes[k].append(top.add_patch(box))
                empty = pixels_of(images[column]) * 0
                self.shown[k].append(ax.imshow(empty, interpolation="nearest", vmin=0, vmax=1))
                self.notes[k].append(
                    ax.text(0.5, -0.05, "", transform=ax.transAxes, ha="center", va="top", fontsize=9)
                )
        axes[0, 0].set_ylabel("image")
        for k, look in enumerate(VIEW_LOOKS):  # the row's name in the colour of its boxes
            axes[k + 1, 0].set_ylabel(f"view {k + 1}", color=look["color"])
        for ax in axes.flat:
            style.bare(ax)

    def update(self, drawn: Sequence[Parameters], made: Sequence[Tensor]) -> Figure:
        """Show views: what `Augmentation.draw` gave for each of the two, and what it made, (n, C, s, s)."""
        n = len(self.images)
        if [len(p.boxes) for p in drawn] != [n, n] or [len(m) for m in made] != [n, n]:
            raise ValueError(
                f"Views: draws for {[len(p.boxes) for p in drawn]} and views of {[len(m) for m in made]} "
                f"images; two of each are needed for all {n}"
            )
        for k, (parameters, views) in enumerate(zip(drawn, made, strict=True)):
            for column in range(n):
                y, x, tall, wide = parameters.boxes[column].tolist()
                self.boxes[k][column].set_bounds(x - 0.5, y - 0.5, wide, tall)
                picture = pixels_of(views[column])
                self.shown[k][column].set_data(picture)
                extent = (0, picture.shape[1], picture.shape[0], 0)
                if tuple(self.shown[k][column].get_extent()) != extent:  # setting it moves the axes' limits
                    self.shown[k][column].set_extent(extent)
                self.notes[k][column].set_text(_changes(parameters, column))
        said = (
            f"image {c + 1} " + " and ".join(_changes(p, c) or "only cropped" for p in drawn)
            for c in range(n)
        )
        return describe(
            self.figure,
            f"{n} images with the boxes of two random crops (solid: view 1, dashed: view 2), and the views "
            f"made of them below: {'; '.join(said)}.",
        )


def overlap(first: Parameters, second: Parameters) -> Tensor:
    """Overlap of two crops: the share of all pixels in either that are in both, (n,), from 0 to 1."""
    tops, lefts = torch.maximum(first.boxes[:, :2], second.boxes[:, :2]).unbind(1)
    ends = [p.boxes[:, :2] + p.boxes[:, 2:] for p in (first, second)]
    bottoms, rights = torch.minimum(*ends).unbind(1)
    both = (bottoms - tops).clamp(min=0) * (rights - lefts).clamp(min=0)
    areas = [p.boxes[:, 2] * p.boxes[:, 3] for p in (first, second)]
    return both / (areas[0] + areas[1] - both)


def _changes(parameters: Parameters, index: int) -> str:
    """Changes to a view beside its crop, in a few words."""
    said = []
    if bool(parameters.flipped[index]):
        said.append("flipped")
    if bool(parameters.grayscaled[index]):
        said.append("grey")
    elif not torch.allclose(parameters.factors[index], torch.tensor([1.0, 1.0, 1.0, 0.0])):
        said.append("jittered")
    if float(parameters.sigma[index]) > 0:
        said.append("blurred")
    return ", ".join(said)


def nearest(z: Tensor, query: int, k: int = 6) -> Tensor:
    """The k rows of z (N, D) most similar to row `query` by cosine, itself left out, nearest first: (k,)."""
    z = normalise(z, "z", "nearest")
    similarity = z @ z[query]
    similarity[query] = -torch.inf
    return similarity.topk(k).indices


@style.in_course_style
def neighbours(
    pictures: ImageSet,
    spaces: Mapping[str, Tensor],
    queries: Sequence[int],
    k: int = 6,
    names: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """For some images, their nearest neighbours in several spaces; those of the same class are framed.

    - spaces: name -> (N, D), a row for each of the N images; nearest by cosine similarity
    - queries: which images, a row each; the titles also give the share over all N images
    - names: the class of each query beside it, and titles without numbers, for a small figure
    """
    for name, z in spaces.items():
        if len(z) != len(pictures):
            raise ValueError(f"neighbours: {name} has {len(z)} rows for {len(pictures)} images")
    asked, side = _mosaic([[pictures.images[q] for q in queries]])
    tall, step = asked.shape[0], side + _gap(side)
    down = pictures.images.shape[-2] + _gap(side)
    size = (10.6, 0.4 + 10.4 * tall / ((1 + k * len(spaces)) * step + len(spaces) * side / 2))
    ax = axes_for(ax, *size)
    ax.imshow(asked, interpolation="nearest", extent=(0, side, tall, 0))
    if names:
        for row, label in enumerate(pictures.labels[torch.as_tensor(queries)].tolist()):
            called = style.literal(fill(class_name(pictures.class_names, label), 11)) if label >= 0 else ""
            place: dict[str, Any] = {"ha": "right", "va": "center", "fontsize": 8.5, "linespacing": 1.0}
            ax.text(-side / 6, row * down + down / 2, called, color=style.GREY, **place)
    else:
        ax.text(0, -side / 6, "image", va="bottom")
    said, left = [], step + side // 2
    for name, z in spaces.items():
        found = torch.stack([nearest(z, q, k) for q in queries])  # (queries, k)
        canvas, _ = _mosaic([[pictures.images[i] for i in column] for column in found.T])
        ax.imshow(canvas, interpolation="nearest", extent=(left, left + canvas.shape[1], tall, 0))
        own = pictures.labels[torch.as_tensor(queries)][:, None]
        same = (pictures.labels[found] == own) & (own >= 0)
        for row, column in torch.nonzero(same).tolist():
            corner = (left + column * step - 0.5, row * down - 0.5)
            frame = Rectangle(corner, side + 1, down - _gap(side) + 1, fill=False, linewidth=2.4)
            ax.add_patch(frame).set_edgecolor(style.BLUE)
        share = maps.share_of_class(z, pictures.labels, k, "cosine")
        above = name if names else f"{name}: {int(same.sum())} of {same.numel()}; all: {share:.0%}"
        ax.text(left, -side / 6, style.literal(above), va="bottom", fontsize=10 if names else None)
        said.append(f"{name} {int(same.sum())} of {same.numel()} (of all images {share:.0%})")
        left += k * step + side // 2
    ax.set(xlim=(-side * (2.1 if names else 0.1), left - side // 2), ylim=(tall + 2, -0.6 * side))
    style.bare(ax)
    return describe(
        ax,
        f"{len(queries)} images and their {k} nearest neighbours in {len(spaces)} spaces, those of "
        f"the same class framed: {', '.join(said)}.",
    )


def _mosaic(columns: Sequence[Sequence[Tensor]]) -> tuple[np.ndarray, int]:
    """Columns of images of one size as one canvas (H, W, 3), white between them, and an image's width."""
    height, side = columns[0][0].shape[-2:]
    rows = max(map(len, columns))
    step = np.array((height, side)) + _gap(side)
    canvas = np.ones((*(step * (rows, len(columns)) - _gap(side)), 3))
    for x, column in enumerate(columns):
        for y, picture in enumerate(column):
            top, left = step * (y, x)
            canvas[top : top + height, left : left + side] = pixels_of(picture)
    return canvas, side


def _gap(side: int) -> int:
    """White pixels between two images `side` wide."""
    return max(1, side // 16)


def pixels_of(picture: Tensor) -> np.ndarray:
    """(C, H, W), uint8 or in [0, 1] -> (H, W, 3) in [0, 1], as imshow wants it."""
    picture = picture.detach().float() / (255 if picture.dtype == torch.uint8 else 1)
    return picture.expand(3, -1, -1).clamp(0, 1).permute(1, 2, 0).numpy()
