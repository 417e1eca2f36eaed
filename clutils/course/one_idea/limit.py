"""The limit of many negatives: how fast NT-Xent reaches it, and an encoder whose head is the circle.

Wang & Isola 2020 (arXiv 2005.10242), theorem 1.
"""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from torch import Tensor

from clutils.course.sphere.figures import outline
from clutils.figures import describe, new, style


@style.in_course_style
def by_class(
    panels: Mapping[str, Tensor], labels: Tensor, names: Sequence[str], classes: Sequence[int]
) -> Figure:
    """Images on the circle, each class on a ring of its own, so that none hides another.

    - panels: title -> z (N, 2), unit rows; labels: (N,); classes: those drawn, from the inside outwards
    """
    figure, axes = new(4.2 * len(panels) + 1.6, 4.2, columns=len(panels), squeeze=False)
    said = []
    for ax, (title, z) in zip(axes[0], panels.items(), strict=True):
        outline(ax, 1.75)
        for k, (look, c) in enumerate(zip(style.series(len(classes), False), classes, strict=True)):
            point = {"color": look["color"], "marker": look["marker"], "linestyle": "none", "alpha": 0.6}
            ax.plot(*(z[labels == c] * (1.1 + 0.14 * k)).T, **point, markersize=5, label=names[c])
        ax.set_title(title)
        lengths = [float(z[labels == c].mean(dim=0).norm()) for c in classes]
        said.append(f"{title}: the classes' mean vectors are {min(lengths):.2f} to {max(lengths):.2f} long")
    style.legend_outside(axes[0][-1], title="class (a ring each)")
    return describe(figure, f"Images on the circle, each class on a ring of its own. {'; '.join(said)}.")
