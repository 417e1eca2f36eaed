"""The methods beside each other: a diagram of each, and the records of notebook 11.

A diagram is drawn from a method object and a step that it takes, not from what is known of its paper. The
records are those of `benchmarks/methods.py` and `benchmarks/evidence.py`; SIMCLR_FIGURE_5 is the paper's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import Tensor

from clutils import encoders, methods
from clutils.figures import axes_for, describe, new, style

if TYPE_CHECKING:
    import pandas


# Chen et al. 2020, figure 5: a linear probe on ImageNet, %; rows: 1st transformation, columns: 2nd
SIMCLR_FIGURE_5 = {
    "crop": (33.1, 33.9, 56.3, 46.0, 39.9, 35.0, 30.2),
    "cutout": (32.2, 25.6, 33.9, 40.0, 26.5, 25.2, 22.4),
    "colour": (55.8, 35.5, 18.8, 21.0, 11.4, 16.5, 20.8),
    "Sobel": (46.2, 40.6, 20.9, 4.0, 9.3, 6.2, 4.2),
    "noise": (38.8, 25.8, 7.5, 7.6, 9.8, 9.8, 9.6),
    "blur": (35.1, 25.2, 16.6, 5.8, 9.7, 2.6, 6.7),
    "rotate": (30.0, 22.5, 20.7, 4.3, 9.7, 6.5, 2.6),
}
NAMES = {"simclr": "SimCLR", "moco": "MoCo", "byol": "BYOL", "simsiam": "SimSiam", "supcon": "SupCon"}
FURTHER = {"barlowtwins": "Barlow Twins", "vicreg": "VICReg", "mocov3": "MoCo v3", "lejepa": "LeJEPA"}

# ---- the diagrams ------------------------------------------------------------------------------------------

# of a branch's boxes, from left to right
PLACES = {"encoder": 2.5, "head": 4.2, "codes": 5.75, "vectors": 5.75, "predictor": 5.9}
LOSS, PICTURE, VIEW = 7.9, 0.0, 1.2
ROWS = (1.5, 0.0)  # the first view's branch, the second's
WIDTH, HEIGHT = 1.3, 0.62  # of a box
LOSS_WIDTH = 1.46
MIDDLE = sum(ROWS) / 2
BETWEEN = (ROWS[0] - HEIGHT / 2, ROWS[1] + HEIGHT / 2)  # the boxes of the two branches
SAME = {"color": style.GREY, "linestyle": "-", "linewidth": 3.5, "solid_capstyle": "butt", "alpha": 0.55}
LATER = {"color": style.BLUE, "linestyle": (0, (1, 1.6)), "linewidth": 2.0}
ARROWS = {  # of a kind: its look
    "view": {"color": style.GREY, "linewidth": 1.2},
    "gradient": {"color": style.INK, "linestyle": "-", "linewidth": 1.8},
    "no gradient": {"color": style.VERMILLION, "linestyle": (0, (4, 2.5)), "linewidth": 1.5},
    "follows": LATER,
    "enters": LATER,
}
KEY = {"gradient": "gradient flows back along it", "no gradient": "no gradient"}
KEY |= dict.fromkeys(("follows", "enters"), "after the step, without gradient")


class Flow(NamedTuple):
    """Tensors that a step of a method handed to its loss.

    - gradient: into the first and the second of what it compares, one pair for each comparison
    - taken: names of what the loss got besides: queue, labels, extra_views
    """

    gradient: tuple[tuple[bool, bool], ...]
    taken: tuple[str, ...]


def flow(method: methods.Method) -> Flow:
    """Take a step's forward pass on a copy of the method, with images of noise, and watch what it compares.

    Where the loss is given similarities and not two views, each view is asked whether a gradient reaches it.
    Without batch statistics, by which it would reach all of a batch.
    """
    method = copy.deepcopy(method).eval()
    method.allocate(4)
    stepping = getattr(method, "method", method)  # PiNDA's step is another's
    calls, taken, asked, drawn = [], [], [], []
    compare, of_similarities = stepping.compare, stepping.loss.per_anchor

    def views(x: Tensor, generator: torch.Generator) -> Tensor:
        drawn.append((x * torch.rand(x.shape, generator=draw)).requires_grad_())
        return drawn[-1]

    def watched(z1: Tensor, z2: Tensor, index: Tensor | None = None, **given: Tensor) -> Tensor:
        calls.append((z1.requires_grad, z2.requires_grad))
        taken.extend(name for name in given if name not in taken)
        return compare(z1, z2, index, **given)

    def ask(positives: Tensor, negatives: Tensor, **mask: Tensor) -> Tensor:
        (slope,) = torch.autograd.grad(positives.sum(), drawn[-1], retain_graph=True)
        reached = [bool(part.abs().sum() > 0) for part in slope.split(4)]
        asked.append((any(reached), len(reached) > 1 and all(reached)))
        return of_similarities(positives, negatives, **mask)

    vars(stepping).update(compare=watched)
    vars(stepping.loss).update(per_anchor=ask)
    draw = torch.Generator().manual_seed(0)
    channels = next(p for p in method.encoder.parameters() if p.ndim == 4).shape[1]
    pictures = torch.rand(4, channels, 16, 16, generator=draw)
    labels = torch.tensor([0, 0, 1, 1]) if method.uses_labels else None
    method(pictures, views, draw, labels, torch.arange(4))
    return Flow(tuple(calls or asked), tuple(taken))


@style.in_course_style
def diagram(method: str | methods.Method, ax: Axes | None = None) -> Axes:
    """A method's two branches, from the image to the loss: which parts there are, and where gradient flows.

    - method: a name from `methods.catalogue()`, built with its defaults, or a method as a run has it

    The boxes are the parts that the method object has. An arrow is solid where a gradient flows back along
    it, dashed where none does; that is asked of a step (`flow`). Two bars: the gradient stops here.
    Raises ValueError on a name that is none.
    """
    if isinstance(method, str):
        method = _built(method)
    moved = flow(method)
    title = (NAMES | FURTHER).get(type(method).__name__.lower(), type(method).__name__)
    lowest = -1.75 if moved.taken else -0.75
    ax = axes_for(ax, 9.2, 1.75 - 0.9 * lowest)
    ax.set(xlim=(-0.75, 8.9), ylim=(lowest, 2.1), aspect="equal", title=title)
    ax.set_axis_off()
    below = "target_encoder" if hasattr(method, "target_encoder") else "encoder"
    upper = ["encoder", "head", *(["predictor"] if hasattr(method, "predictor") else [])]
    banked = hasattr(method, "bank")
    lower = ["bank"] if banked else [below, below.replace("encoder", "head")]
    into = (any(a for a, _ in moved.gradient), any(b for _, b in moved.gradient))
    prototypes = isinstance(method, methods.SwAV | methods.DINO)
    copied = hasattr(method, "target_vectors")  # DINO's target has prototypes of its own
    rows = upper, [*lower, "target_vectors" if copied else "codes"] if prototypes else lower
    for row, (parts, flows) in enumerate(zip(rows, into, strict=True)):
        _branch(ax, row, parts, flows)
    loss = type(method.loss).__name__
    named = f"loss\n{style.title(loss)}"
    if len(named) > 20:  # as 'loss: dual' above 'temperature'
        named = "\n".join(named.replace("\n", ": ").rsplit(" ", 1))
    _box(ax, "loss", named, (LOSS, MIDDLE), "#E8E8E8", LOSS_WIDTH)
    _box(ax, None, "image", (PICTURE, MIDDLE), "white", 0.95)
    phrases = [f"view 1 goes through {_listed(upper)}"]
    phrases.append("the bank gives what it remembers" if banked else f"view 2 through {_listed(lower)}")
    if banked:
        _arrow(ax, *((PLACES["head"], y) for y in BETWEEN), "enters")
        said = f"after the step\nm = {method.momentum:g}"
        ax.text(PLACES["head"] + 0.1, MIDDLE, said, va="center", fontsize=9)
        phrases.append("after the step the image's entry moves towards what was seen of it")
    elif below == "encoder":
        for part in ("encoder", "head"):
            ax.plot([PLACES[part]] * 2, BETWEEN, **SAME)
        ax.text(PLACES["encoder"] + 0.08, MIDDLE, "same\nweights", va="center", fontsize=9)
        phrases.append("both branches have the same weights")
    else:
        for part in ("encoder", "head"):
            _arrow(ax, *((PLACES[part], y) for y in BETWEEN), "follows")
        said = f"follows\nm = {method.momentum:g}"
        ax.text(PLACES["encoder"] + 0.1, MIDDLE, said, va="center", fontsize=9)
        phrases.append("the target's weights follow the others as a moving average")
    if not into[1]:
        where = "the bank" if banked else "view 2's branch"
        phrases.append(f"no gradient flows into {where}")
    if prototypes:
        x, y, tall = PLACES["codes"], MIDDLE + 0.03, 0.5
        _box(ax, "vectors", "prototypes", (x, y), "#DCEBF6", height=tall)
        _arrow(ax, (x + WIDTH / 2, y), (LOSS - LOSS_WIDTH / 2, MIDDLE), "gradient")
        _arrow(ax, (x, y - tall / 2), (x, ROWS[1] + HEIGHT / 2), "follows" if copied else "no gradient")
        whose = "target's" if copied else "same"
        phrases.append(
            f"view 2's scores of the {whose} prototypes become codes, which view 1's are to predict"
        )
    _further(ax, method, moved, phrases)
    _key(ax)
    return describe(ax, f"Diagram of {title}: {'; '.join(phrases)}; the loss, {loss}, compares both.")


def overview(names: Iterable[str] | None = None) -> pandas.DataFrame:
    """A row a method, asked of the method object and of a step that it takes, as its diagram.

    - names: of `methods.catalogue()`; None: all that learn from images, in the notebook's order, those of
      learned or random noise last
    """
    import pandas

    rows = {}
    in_order = dict.fromkeys((*NAMES, "mocov3", *methods.catalogue("pictures")))
    for name in sorted(in_order, key=_section_of) if names is None else names:
        method = _built(name)
        moved = flow(method)
        into = any(second for _, second in moved.gradient)
        second = "a copy that follows" if hasattr(method, "target_encoder") else "the same network"
        kept = [part for part in ("bank", "prototypes") if hasattr(method, part)]
        rows[(NAMES | FURTHER).get(name, type(method).__name__)] = {
            "section": _section_of(name),
            "year": method.year,
            "second embedding from": "a bank" if "bank" in kept else second,
            "gradient into it": "yes" if into else "no",
            "predictor": "yes" if hasattr(method, "predictor") else "no",
            "comparisons a step": len(moved.gradient),
            "loss": style.title(type(method.loss).__name__),
            "besides": ", ".join([*moved.taken, *kept]) or "nothing",
        }
    return pandas.DataFrame.from_dict(rows, orient="index")


def _section_of(name: str) -> str:
    """Where a method is explained; in alphabetical order, that of the course."""
    kind = methods.catalogue()[name].cls
    if name in NAMES:
        return "1 to 5"
    return "notebook 09" if kind in (methods.PiNDA, methods.SimCL, methods.CLAE) else "8"


def _built(name: str) -> methods.Method:
    if name not in methods.catalogue():
        raise ValueError(f"diagram: no method is called {name!r}; there are {', '.join(methods.catalogue())}")
    kind = methods.catalogue()[name].cls
    with torch.random.fork_rng(devices=[]):
        return kind(encoders.build("conv16"), kind.default_loss())


def _bars(ax: Axes, start: Sequence[float], stop: Sequence[float]) -> None:
    """Two bars across an arrow: here the gradient stops."""
    start, stop = np.array(start), np.array(stop)
    along = (stop - start) / np.linalg.norm(stop - start)
    across = np.array((-along[1], along[0])) * 0.22
    for shift in (-0.06, 0.06):
        at = start + 0.55 * (stop - start) + shift * along
        ax.plot(*np.stack([at - across, at + across]).T, color=style.VERMILLION, linewidth=2.2, gid="stop")


def _branch(ax: Axes, row: int, parts: Sequence[str], flows: bool) -> None:
    """view → parts → loss, one row."""
    y, kind = ROWS[row], "gradient" if flows else "no gradient"
    end = PICTURE + 0.48 if "bank" in parts else VIEW + 0.43
    if "bank" not in parts:
        _box(ax, None, f"view {row + 1}", (VIEW, y), "white", 0.85)
        _arrow(ax, (PICTURE + 0.48, MIDDLE), (VIEW - 0.43, y), "view")
    for part in parts:
        place = PLACES["head" if part == "bank" else part.removeprefix("target_")]
        target = part.startswith("target")
        start = (end, MIDDLE if part == "bank" else y)
        _arrow(ax, start, (place - WIDTH / 2, y), kind)
        color = "#FBE9DD" if target else "white" if part == "codes" else "#DCEBF6"
        gid = None if part == "codes" else part  # which are no part of the method, but made of a step
        said = part.replace("vectors", "prototypes").replace("_", "\n")
        _box(ax, gid, said, (place, y), color, dashed=target)
        end = place + WIDTH / 2
    corner = (LOSS - LOSS_WIDTH / 2, MIDDLE + (0.12 if row == 0 else -0.12))
    _arrow(ax, (end, y), corner, kind)
    if not flows:
        _bars(ax, (end, y), corner)


def _further(ax: Axes, method: methods.Method, moved: Flow, phrases: list[str]) -> None:
    """Further inputs of the loss besides the two branches, and whether it is asked twice."""
    if "queue" in moved.taken:
        size = len(method.queue)
        at = (PLACES["predictor"], -1.2)
        _box(ax, "queue", f"queue\n{size:,} keys", at, "#FFF6CF", 1.5)
        ends = (at[0] + 0.75, at[1]), (LOSS - 0.15, MIDDLE - HEIGHT / 2)
        _arrow(ax, *ends, "no gradient")
        _bars(ax, *ends)
        _arrow(ax, (PLACES["head"] + 0.3, -HEIGHT / 2), (at[0] - 0.75, at[1]), "enters")
        said = "the keys enter\nafter the step"
        ax.text(PLACES["head"] - 0.1, -1.0, said, ha="right", va="center", fontsize=9)
        gives = "neighbours for the positives" if isinstance(method, methods.NNCLR) else "the negatives"
        phrases.append(f"a queue of {size:,} earlier keys gives {gives}; new ones enter after the step")
    if "labels" in moved.taken:
        _box(ax, "labels", "labels", (LOSS, -0.75), "#FFF6CF")
        _arrow(ax, (LOSS, -0.75 + HEIGHT / 2), (LOSS, MIDDLE - HEIGHT / 2), "no gradient")
        phrases.append("labels say which images are positives")
    if "extra_views" in moved.taken:
        number = method.extra_views
        said = f"{number} more views of the image\nthrough the same encoder and head"
        ax.text(PLACES["head"], -1.1, said, ha="center", va="center", fontsize=9)
        start, end = (PLACES["head"] + 1.95, -1.1), (LOSS - 0.15, MIDDLE - HEIGHT / 2)
        _arrow(ax, start, end, "gradient")
        phrases.append(f"{number} more views go the same way")
    if len(moved.gradient) > 1:
        said = "and once more with\nthe views swapped"
        ax.text(LOSS + 0.05, 1.5, said, ha="center", va="center", fontsize=9)
        phrases.append("a step does this twice, the second time with the views swapped")


def _box(
    ax: Axes,
    part: str | None,
    label: str,
    at: tuple[float, float],
    color: str,
    width: float = WIDTH,
    dashed: bool = False,
    height: float = HEIGHT,
) -> None:
    """part: the method's attribute that the box stands for, kept as its gid; None: none of it."""
    corner = (at[0] - width / 2, at[1] - height / 2)
    box = FancyBboxPatch(corner, width, height, boxstyle="round,pad=0,rounding_size=0.08")
    look = {"edgecolor": style.INK, "linewidth": 1.2, "linestyle": (0, (4, 2)) if dashed else "-"}
    box.set(facecolor=color, zorder=3, gid=part, **look)
    ax.add_patch(box)
    longest = max(map(len, label.split("\n")))
    size = 10 if longest < 10 else 9 if longest < 15 else 7.5
    ax.text(*at, label, ha="center", va="center", fontsize=size, zorder=4, linespacing=1.15)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], kind: str) -> None:
    look = {"mutation_scale": 12, "shrinkA": 0, "shrinkB": 0, "zorder": 2} | ARROWS[kind]
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", gid=kind, **look))


def _key(ax: Axes) -> None:
    drawn = {patch.get_gid() for patch in ax.patches}
    lines = {said: Line2D([], [], **ARROWS[kind], label=said) for kind, said in KEY.items() if kind in drawn}
    ax.legend(handles=lines.values(), loc="upper center", bbox_to_anchor=(0.5, 0.07), ncols=len(lines))


def _listed(parts: Sequence[str]) -> str:
    names = [part.replace("_", " ") for part in parts]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# ---- the records -------------------------------------------------------------------------------------------


@style.in_course_style
def composition(ours: pandas.DataFrame) -> Figure:
    """Two heatmaps: kNN accuracy of SimCLR by the two augmentations that it had, and SimCLR's figure 5.

    - ours: rows with first, second, knn; several seeds are averaged, each two mirrored. The pair none, none
      is left out of the image.
    """
    names = [name for name in dict.fromkeys(ours["first"]) if name != "none"]
    half = 100 * ours.pivot_table("knn", "first", "second").reindex(index=names, columns=names)
    table = half.fillna(half.T).to_numpy()
    figure, axes = new(11.0, 4.9, 1, 2, width_ratios=[len(names), 7])
    _heat(axes[0], table, names, "ours, recorded: kNN, %", decimals=0)
    paper = np.array(list(SIMCLR_FIGURE_5.values()))
    _heat(axes[1], paper, list(SIMCLR_FIGURE_5), "SimCLR's figure 5: linear probe on ImageNet, %", 1)
    best = np.unravel_index(np.nanargmax(table), table.shape)
    return describe(
        figure,
        "Two heatmaps of accuracy by the two augmentations used, alone on the diagonal. Left, ours, "
        f"recorded: best {names[best[0]]} with {names[best[1]]}, {np.nanmax(table):.0f} %, alone "
        f"{', '.join(f'{n} {table[k, k]:.0f} %' for k, n in enumerate(names))}. Right, SimCLR's figure 5: "
        "best crop with colour, 56.3 %, alone at most 33.1 %.",
    )


def _heat(ax: Axes, table: np.ndarray, names: Sequence[str], title: str, decimals: int) -> None:
    low, high = np.nanmin(table), np.nanmax(table)
    image = ax.imshow(table, cmap="viridis", vmin=low, vmax=high)
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    for (i, j), value in np.ndenumerate(table):
        if not np.isnan(value):
            color = "black" if (value - low) / (high - low) > 0.6 else "white"
            text = ax.text(j, i, f"{value:.{decimals}f}", ha="center", va="center", color=color, fontsize=9.5)
            text.set_gid(f"{names[i]}, {names[j]}")
            if i == j:
                text.set_fontweight("bold")
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.set_title(title, fontsize=11)
    ax.grid(visible=False)


@style.in_course_style
def along(curves: pandas.DataFrame, names: Iterable[str] | None = None, ax: Axes | None = None) -> Axes:
    """kNN accuracy against the steps of a run: mean of the seeds, and a band from their lowest to highest.

    - curves: of `evidence.curves`; its step 0 is the untrained encoder
    - names: of the contenders to draw; None: all
    """
    ax = axes_for(ax, 9.2, 4.2)
    phrases = []
    drawn = [name for name in dict.fromkeys(curves["contender"]) if names is None or name in set(names)]
    for look, name in zip(style.series(len(drawn), ordered=False), drawn, strict=True):
        own = curves[curves["contender"] == name].sort_values("step")
        ax.plot(own["step"], 100 * own["mean"], **look, label=name)
        low, high = 100 * own["min"], 100 * own["max"]
        ax.fill_between(own["step"], low, high, color=look["color"], alpha=0.18, linewidth=0)
        points = zip(own["step"], 100 * own["mean"], strict=True)
        phrases.append(f"{name} {', '.join(f'{mean:.0f} % at {step}' for step, mean in points)}")
    ax.set(xlabel="steps (0: untrained)", ylabel="kNN accuracy, %")
    style.name_lines(ax)
    return describe(
        ax, f"kNN accuracy along training, means over seeds with their range. {'; '.join(phrases)}."
    )


def spread(values: Iterable[float], unit: str = "") -> str:
    """Mean of several seeds and their range: '41.2 (40.1 to 42.6)'."""
    values = list(values)
    low, high = min(values), max(values)
    return f"{sum(values) / len(values):.1f}{unit} ({low:.1f} to {high:.1f})"
