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
        x, y = z.mean(dim=0) / z.mean(dim=0).norm().clamp(min=1e-9)  # all images' mean lies in the middle
        turned = z @ torch.stack([torch.stack([x, -y]), torch.stack([y, x])])
        for k, (look, c) in enumerate(zip(style.series(len(classes), False), classes, strict=True)):
            angles = torch.atan2(turned[labels == c, 1], turned[labels == c, 0])
            density = (
                (60 * (torch.cos(grid[:, None] - angles) - 1)).exp().mean(dim=1)
            )  # von Mises, about 7° wide
            ax.fill_between(
                grid.rad2deg(), -k, -k + 0.85 * density / density.max(), color=look["color"], alpha=0.75
            )
            x, y = turned[labels == c].mean(dim=0)
            ax.plot(math.degrees(math.atan2(y, x)), -k + 0.06, "v", color=style.INK, markersize=7)
        ax.set(title=title, xlabel="angle from all images' mean (▼ its class's)", xlim=(-180, 180))
        ax.set_xticks(
            range(-180, 181, 90), [f"{degrees}°".replace("-", "−") for degrees in range(-180, 181, 90)]
        )
        lengths = [float(z[labels == c].mean(dim=0).norm()) for c in classes]
        said.append(f"{title}: the classes' mean vectors are {min(lengths):.2f} to {max(lengths):.2f} long")
    axes[0][0].set_yticks([0.3 - k for k in range(len(classes))], [names[c] for c in classes])
    return describe(figure, f"Densities of classes along the circle, a band each. {'; '.join(said)}.")
