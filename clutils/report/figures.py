"""Figure of a report beside its first screen: confusion of classes; and looks of the levels."""

from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from torch import Tensor

from clutils.figures import axes_for, describe, style
from clutils.figures.maps import class_name
from clutils.report import neighbours
from clutils.report.diagnosis import BROKEN, GOOD, LOOK, UNKNOWN

LEVEL_LOOKS = {  # mark and colour: distinct without colour, too
    GOOD: ("✓", style.GREEN),
    LOOK: ("◐", "#8A5A00"),
    BROKEN: ("✗", "#B00020"),
    UNKNOWN: ("?", style.GREY),
}


@style.in_course_style
def confusion(labels: Tensor, predicted: Tensor, names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Confused classes: a row a class, the shares of its images; twenty classes at most."""
    asked = labels.unique()[:20]
    shown = len(asked)
    table = neighbours.confusion(labels, predicted, len(names))
    table = (table / table.sum(dim=1, keepdim=True).clamp(min=1))[asked][:, asked]
    ax = axes_for(ax, 6.4, 5.4)
    ax.imshow(table.numpy(), cmap="Blues", vmin=0, vmax=1)
    short = [style.literal(fill(class_name(names, c), 14)[:28]) for c in asked.tolist()]
    ax.set_xticks(range(shown), short, rotation=60, ha="right")
    ax.set_yticks(range(shown), short)
    ax.set(xlabel="class of its neighbours", ylabel="class of the image")
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
