"""Figures of a report beside its first screen: spectrum, confusion of classes."""

from collections.abc import Mapping, Sequence
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
def spectrum(values: Mapping[str, Tensor], ax: Axes | None = None) -> Axes:
    """Singular values of centred features, largest first, as shares of the first: name -> (D,)."""
    ax = axes_for(ax, 6.4, 3.6)
    said = []
    for (name, found), look in zip(values.items(), style.series(len(values), ordered=False), strict=True):
        shares = (found / found[0]).clamp(min=1e-7)
        color = style.GREY if name == "fresh weights" else look["color"]
        ax.plot(range(1, len(shares) + 1), shares, look["linestyle"], color=color, label=name)
        said.append(f"{name}: {int((shares > 0.01).sum())} of {len(shares)} above a hundredth of the first")
    ax.set(yscale="log", ylim=(1e-4, 1.5), ylabel="share of largest")
    ax.yaxis.set_major_formatter(lambda value, at: f"{value:g}")  # a formula as a label takes half a second
    ax.set_xlabel("singular value, largest first")
    ax.legend(loc="upper right")
    return describe(ax, f"Singular values of the features. {'; '.join(said)}.")


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
