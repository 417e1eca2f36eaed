"""The limit of many negatives: how fast NT-Xent reaches it, and an encoder whose head is the circle.

Wang & Isola 2020 (arXiv 2005.10242), theorem 1.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor

from clutils.figures import describe, new, style


@style.in_course_style
def by_class(
    panels: Mapping[str, Tensor], labels: Tensor, names: Sequence[str], classes: Sequence[int]
) -> Figure:
    """How images lie along the circle, unrolled: a band of density a class, its mean direction marked.

    - panels: title -> z (N, 2), unit rows; labels: (N,); classes: those drawn, from the top
    """
    figure, axes = new(10.4, 0.9 + 0.62 * len(classes), columns=len(panels), squeeze=False, sharey=True)
    grid = torch.linspace(-math.pi, math.pi, 361)
    said = []
    for ax, (title, z) in zip(axes[0], panels.items(), strict=True):
        points = torch.view_as_complex(z.contiguous())
        turned = points * points.mean().conj()  # all images' mean lies in the middle
        for k, (look, c) in enumerate(zip(style.series(len(classes), False), classes, strict=True)):
            own = turned[labels == c]
            density = (60 * ((grid[:, None] - own.angle()).cos() - 1)).exp().mean(dim=1)  # about 7° wide
            top = -k + 0.85 * density / density.max()
            ax.fill_between(grid.rad2deg(), -k, top, color=look["color"], alpha=0.75)
            ax.plot(own.mean().angle().rad2deg(), -k + 0.06, "v", color=style.INK, markersize=7)
        ax.set(title=title, xlabel="angle from all images' mean (▼ its class's)", xlim=(-180, 180))
        ax.set_xticks(range(-180, 181, 90), ["−180°", "−90°", "0°", "90°", "180°"])
        lengths = [float(z[labels == c].mean(dim=0).norm()) for c in classes]
        said.append(f"{title}: the classes' mean vectors are {min(lengths):.2f} to {max(lengths):.2f} long")
    axes[0][0].set_yticks([0.3 - k for k in range(len(classes))], [names[c] for c in classes])
    return describe(figure, f"Densities of classes along the circle, a band each. {'; '.join(said)}.")
