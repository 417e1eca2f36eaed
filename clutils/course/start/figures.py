"""One image's way through the course, and a map whose points are the images themselves."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from clutils.course.similarity_table import similarity_cells
from clutils.figures import axes_for, describe, new, style
from clutils.figures.pictures import pixels_of
from clutils.similarities import normalise


@style.in_course_style
def journey(
    picture: Tensor,
    views: Sequence[Tensor],
    features: Tensor,
    pairs: Mapping[str, tuple[Tensor, Tensor]],
    losses: Mapping[str, float],
) -> Figure:
    """Image -> two views -> features -> who resembles whom under each encoder, with the loss, as panels.

    - picture: (C, H, W), uint8 or in [0, 1]; views: two of it, (C, h, w) each
    - features: (2, D), one row a view
    - pairs: name of an encoder -> both views' embeddings (B, D) of a batch; losses: that name -> the loss
    """
    figure, axes = new(12.2, 2.9, columns=3 + len(pairs), width_ratios=[1, 1, 1.25, *[1.45] * len(pairs)])
    axes[0].imshow(pixels_of(picture))
    axes[0].set_title("1  an image")
    gap = np.ones((2, views[0].shape[-1], 3))
    axes[1].imshow(np.concatenate([pixels_of(views[0]), gap, pixels_of(views[1])]))
    axes[1].set_title("2  two views of it")
    strips = features.detach().float()
    reach = float(strips.abs().max())
    axes[2].imshow(
        strips.numpy(), aspect="auto", cmap="RdBu_r", vmin=-reach, vmax=reach, interpolation="nearest"
    )
    axes[2].set_title(f"3  encoded: {features.shape[1]} numbers")
    axes[2].set_yticks([0, 1], ["view 1", "view 2"])
    axes[2].set_xlabel("feature")
    axes[2].grid(False)
    for ax in axes[:2]:
        ax.set_axis_off()
    for number, (ax, (name, both)) in enumerate(zip(axes[3:], pairs.items(), strict=True), start=4):
        z = normalise(torch.cat(both).detach())
        cells = similarity_cells(ax, z @ z.T)
        ax.set_title(f"{number}  {name}: loss {losses[name]:.2f}")
    scale = figure.colorbar(cells, ax=axes[3:], shrink=0.75, ticks=[-1, 0, 1])
    scale.set_label("cosine similarity")
    for ax in axes[:2]:
        ax.set_anchor("N")  # one line of titles
    said = ", ".join(f"{name} {losses[name]:.2f}" for name in pairs)
    return describe(
        figure,
        "An image, two randomly altered views of it, the features of both as coloured strips, and tables of "
        f"a batch's similarities with each image's own other view outlined; loss: {said}.",
    )


@style.in_course_style
def picture_map(
    points: np.ndarray, images: Tensor, ax: Axes | None = None, pixels: int = 1100, thumbnail: int = 34
) -> Axes:
    """A map of embeddings with the images themselves as its points.

    - points: (N, 2), from clutils.maps; images: (N, C, H, W) uint8
    - pixels: width of the canvas the images are put on; thumbnail: width of each

    Later images lie on top of earlier ones. Raises ValueError when points and images differ in number.
    """
    points = np.asarray(points, dtype=float)
    if points.shape != (len(images), 2):
        raise ValueError(f"picture_map: points is {points.shape}, but {len(images)} images need a row each")
    ax = axes_for(ax, 7.0, 7.0)
    low, high = points.min(axis=0), points.max(axis=0)
    unit = (points - low) / np.where(high > low, high - low, 1.0)
    canvas = np.ones((pixels, pixels, 3))
    small = torch.nn.functional.interpolate(
        images.float() / 255, size=(thumbnail, thumbnail), mode="bilinear", antialias=True
    )
    corner = (unit * (pixels - thumbnail)).round().astype(int)
    for (x, y), picture in zip(corner, small, strict=True):
        top = pixels - thumbnail - y  # the map's second axis points up
        canvas[top : top + thumbnail, x : x + thumbnail] = pixels_of(picture)
    ax.imshow(canvas)
    ax.set_axis_off()
    return describe(ax, f"{len(images)} small images, each placed where the map puts its embedding.")
