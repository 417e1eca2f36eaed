"""A batch's similarities as a table of cells, in 00 and in 03."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from torch import Tensor

from clutils.figures import axes_for, describe, style
from clutils.similarities import normalise, two_views


@style.in_course_style
def similarity_table(z1: Tensor, z2: Tensor, title: str = "", ax: Axes | None = None) -> Axes:
    """Cosine similarities of all views in a small batch, each image's own other view outlined.

    z1, z2: (B, D), row i of both from one image.
    """
    ax = axes_for(ax, 4.6, 4.0)
    batch = len(z1)
    z = torch.cat([normalise(z1, "z1", "similarity_table"), normalise(z2, "z2", "similarity_table")])
    image = similarity_cells(ax, z @ z.T)
    ax.set_title(style.literal(title))
    ax.figure.colorbar(image, ax=ax, label="similarity s", shrink=0.8)
    pairs = two_views(z[:batch], z[batch:])
    return describe(
        ax,
        f"Table of similarities of {batch} images in two views each{f' ({title})' if title else ''}: the "
        f"outlined positives are at {float(pairs.positives.mean()):.2f} on average, the negatives at "
        f"{float(pairs.negatives.mean()):.2f}.",
    )


def similarity_cells(ax: Axes, similarities: Tensor) -> AxesImage:
    """The cells of `similarity_table`: similarities (2B, 2B) of both views, whose positives are outlined."""
    own = torch.eye(len(similarities), dtype=torch.bool)  # of a view with itself, which no loss uses: grey
    cells = similarities.detach().float().cpu().masked_fill(own, math.nan).numpy()
    ax.set_facecolor("#C4C4C4")
    image = ax.imshow(cells, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
    ax.set_xlabel("grey: itself, not used", fontsize=10)
    batch = len(similarities) // 2
    for i in range(2 * batch):
        corner = (i + batch) % (2 * batch) - 0.5, i - 0.5
        for color, width in (("white", 3.6), (style.BLACK, 1.6)):  # black alone is lost on dark red
            ax.add_patch(Rectangle(corner, 1, 1, fill=False, linewidth=width, edgecolor=color))
    middles = [(batch - 1) / 2, batch + (batch - 1) / 2]
    ax.set_xticks(middles, ["view 1", "view 2"])
    ax.set_yticks(middles, ["view 1", "view 2"], rotation=90, va="center")
    ax.tick_params(length=0)
    ax.grid(False)
    return image
