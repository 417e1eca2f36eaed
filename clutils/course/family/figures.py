"""All losses of the family on the same similarities: a portrait of each, and who is kin to whom."""

import math
from collections.abc import Callable, Mapping
from typing import TypeVar

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from torch import Tensor

from clutils import anatomy
from clutils.figures import axes_for, describe, new, style
from clutils.losses import Loss

T = TypeVar("T")
SAME = 1e-9  # relative difference below which two gradients are one
PARALLEL = 1e-4  # degrees below which two directions are one; arccos near 1 knows no less in float64
FLOOR = 1e-3  # of the axis of ratios


def gradients(family: Mapping[str, Loss], positives: Tensor, negatives: Tensor) -> dict[str, Tensor]:
    """name -> minus the gradient of each anchor's loss by its similarities, (A, P + K): pull, then -push.

    positives (A, P), negatives (A, K), float64.
    """
    found = {}
    for name, loss in family.items():
        pull, push = anatomy.forces(loss, positives, negatives)
        found[name] = torch.cat([pull, -push], dim=1)
    return found


def difference(a: Tensor, b: Tensor) -> float:
    """Largest difference of two gradients (A, n), relative to the longer of both, over the anchors."""
    longer = torch.maximum(a.norm(dim=1), b.norm(dim=1)).clamp(min=1e-300)
    return float(((a - b).norm(dim=1) / longer).max())


def angles(a: Tensor, b: Tensor) -> Tensor:
    """Angle between two gradients (A, n), in degrees, for each anchor that has both."""
    both = (a.norm(dim=1) > 0) & (b.norm(dim=1) > 0)
    u, v = (torch.nn.functional.normalize(x[both], dim=1) for x in (a, b))
    # 2 asin(|u - v| / 2) is exact where the angle is small, and arccos is not
    return (2 * ((u - v).norm(dim=1) / 2).clamp(max=1).asin()).rad2deg()


def angle(a: Tensor, b: Tensor) -> float:
    """Largest of `angles`; NaN where no anchor has both."""
    found = angles(a, b)
    return float(found.max()) if len(found) else math.nan


@style.in_course_style
def kinship(found: Mapping[str, Tensor], ax: Axes | None = None) -> Axes:
    """Angles between gradients, every loss with every other: "=" one gradient, "∥" one direction.

    Elsewhere the median over the anchors, and in brackets the largest. found: as from `gradients`.
    """
    names = list(found)
    ax = axes_for(ax, 3.4 + 0.95 * len(names), 2.2 + 0.62 * len(names))
    medians = torch.tensor([[float(angles(found[a], found[b]).median()) for b in names] for a in names])
    picture = ax.imshow(medians.numpy(), cmap="cividis_r", vmin=0, vmax=90, aspect="auto")
    for i, a in enumerate(names):
        for j, b in enumerate(names):
            same, largest = difference(found[a], found[b]) < SAME, angle(found[a], found[b])
            text = "=" if same else "∥" if largest < PARALLEL else f"{medians[i, j]:.0f}° ({largest:.0f}°)"
            color = "white" if medians[i, j] > 45 else "black"
            ax.text(j, i, text, ha="center", va="center", color=color, size=12)
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.grid(False)
    ax.set_title("angle between two gradients: median (largest)\n=  one gradient,   ∥  one direction")
    ax.figure.colorbar(picture, ax=ax, label="degrees", shrink=0.8)
    return describe(
        ax, f"Table of the angles between the gradients of {', '.join(names)} on the same similarities."
    )


def kin(found: Mapping[str, Tensor]) -> tuple[list[list[str]], list[list[str]]]:
    """Losses of one gradient, and those of one direction: two lists of groups of two or more."""
    one = grouped(found, lambda a, b: difference(a, b) < SAME)
    parallel = grouped(found, lambda a, b: angle(a, b) < PARALLEL)
    return [group for group in one if len(group) > 1], [group for group in parallel if len(group) > 1]


def grouped(found: Mapping[str, T], related: Callable[[T, T], bool]) -> list[list[str]]:
    """Names in groups: each with the first group whose first member is related to it."""
    groups: list[list[str]] = []
    for name in found:
        for group in groups:
            if related(found[group[0]], found[name]):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


@style.in_course_style
def portraits(
    family: Mapping[str, Loss], positives: Tensor, negatives: Tensor, beside: str, columns: int = 4
) -> Figure:
    """The force on each pair, divided by that of `beside`: one small figure for all losses of one ratio.

    positives (P,), negatives (K,): one anchor's, float64. A triangle is the pull on a positive, the line the
    push on the negatives, a cross a negative that is drawn in. Sorted: first those whose ratio is level.
    """
    order = negatives.argsort()
    s, ratios = negatives[order], {}
    for name, loss in family.items():
        pull, push = (force[0] for force in anatomy.forces(loss, positives[None], negatives[None]))
        ratios[name] = (pull, push[order])
    first = ratios[beside]
    ratios = {name: (pull / first[0], push / first[1]) for name, (pull, push) in ratios.items()}

    def unevenness(group: list[str]) -> float:
        push = ratios[group[0]][1]
        return float((push.clamp(min=FLOOR).log()).std()) + 10 * float((push < 0).any())

    groups = sorted(grouped(ratios, lambda a, b: all(map(torch.allclose, a, b))), key=unevenness)
    rows = -(-len(groups) // columns)
    figure, axes = new(11.0, 1.65 * rows + 0.6, rows, columns, sharex=True, sharey=True, squeeze=False)
    for ax, group in zip(axes.flat, groups, strict=False):
        pull, push = ratios[group[0]]
        ax.axhline(1, color=style.GREY, linewidth=4, alpha=0.45)
        ax.plot(s, push.where(push > 0, math.nan), color=style.VERMILLION, linestyle="-")
        ax.plot(s[push < 0], -push[push < 0], "x", color=style.VERMILLION, markersize=3)
        ax.plot(positives, pull.where(pull > 0, math.nan), "^", color=style.BLUE, markersize=9)
        ax.set_title(style.folded(", ".join(group), 28), fontsize=11)
        ax.set(yscale="log", ylim=(FLOOR, 100), xlim=(-1.05, 1.05))
        ax.yaxis.set_minor_locator(NullLocator())
    for ax in axes.flat[len(groups) :]:
        ax.set_axis_off()
    for ax in axes.flat[max(0, len(groups) - columns) : len(groups)]:  # the lowest of its column
        ax.set_xlabel("similarity")
        ax.tick_params(labelbottom=True)
    for ax in axes[:, 0]:
        ax.set_ylabel(f"÷ {beside}'s")
    handles = [
        Line2D([], [], color=style.BLUE, marker="^", linestyle="none", markersize=8),
        Line2D([], [], color=style.VERMILLION),
        Line2D([], [], color=style.VERMILLION, marker="x", linestyle="none"),
        Line2D([], [], color=style.GREY, linewidth=4, alpha=0.45),
    ]
    says = ["pull on a positive", "push on a negative", "a negative drawn in", f"as {beside}"]
    figure.legend(handles, says, loc="outside lower center", ncols=4)
    return describe(
        figure,
        f"Small figures of {', '.join(family)}: the force on each pair, divided by {beside}'s, against its "
        "similarity.",
    )
