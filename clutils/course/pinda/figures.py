"""PiNDA (arXiv 2408.09929): the auxiliary Gaussian, the collapse, the maps of the noise and their measure.

The records are those of `benchmarks/pinda.py`. TABLE_5 is the paper's, not ours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator
from torch import Tensor

from clutils.course.pinda.experiments import task_entropy
from clutils.figures import axes_for, describe, new, style
from clutils.figures.noise import strips

if TYPE_CHECKING:
    import pandas

# SimCLR on CIFAR-10, seconds an epoch on the paper's GPU; the generators' are on top of the first
TABLE_5 = {"SimCLR": 39, "DNN3": 5, "ResNet-18": 11, "ResNet-50": 36}
CHANCE = {"color": style.GREY, "linestyle": (0, (4, 3)), "linewidth": 1.3, "zorder": 1}


# ---- the derivation ----------------------------------------------------------------------------------------


def density(loss: float | Tensor, alpha: Tensor) -> Tensor:
    """Of the auxiliary variable α ~ N(0, 1/γ), γ = e^(-ℓ), at the values alpha (T,)."""
    gamma = math.exp(-float(loss))
    return math.sqrt(gamma / (2 * math.pi)) * torch.exp(-gamma * alpha**2 / 2)


@style.in_course_style
def auxiliary(losses: Sequence[float], ax: Axes | None = None) -> Axes:
    """Densities of the auxiliary Gaussian N(0, 1/γ), γ = e^(-ℓ), one for each loss: the paper's figure 3.

    - losses: ℓ of an anchor, nats

    Raises ValueError on one below 0: γ would be no share.
    """
    losses = [float(loss) for loss in losses]
    if not losses or not all(0 <= loss < math.inf for loss in losses):
        raise ValueError(f"auxiliary: losses are {losses}, but each is a number from 0 on, and one is needed")
    ax = axes_for(ax, 8.4, 3.8)
    reach = 3 * math.exp(max(losses) / 2)
    alpha = torch.linspace(-reach, reach, 801, dtype=torch.float64)
    phrases = []
    for k, (look, loss) in enumerate(zip(style.series(len(losses)), losses, strict=True)):
        entropy = float(task_entropy(torch.tensor(loss, dtype=torch.float64)))
        label = f"ℓ = {loss:.3g}: γ = {math.exp(-loss):.3g}, {entropy:.2f} nats"
        ax.plot(alpha, density(loss, alpha), **look, markevery=(15 * k, 100), label=label)
        phrases.append(label)
    ax.set(xlabel="α", ylabel="density of α | x", xlim=(-reach, reach), ylim=(0, None))
    style.name_lines(ax, title="loss, 1/variance, entropy")
    return describe(
        ax,
        "Bell curves around 0, the auxiliary Gaussian of an anchor at several losses; a larger loss makes it "
        f"wider: {'; '.join(phrases)}.",
    )


# ---- the collapse ------------------------------------------------------------------------------------------


@style.in_course_style
def collapse(
    histories: Mapping[str, Sequence[pandas.DataFrame]], ordered: bool = False, ax: Axes | None = None
) -> Axes:
    """Root mean square of the noise against the steps, on a logarithmic axis.

    - histories: label -> those of its seeds; of several, thin lines of one look
    - ordered: as in `style.series`
    """
    ax = axes_for(ax, 8.8, max(4.0, 0.6 + 0.21 * _lines(histories).sum()))
    phrases = []
    for k, (look, (label, runs)) in enumerate(
        zip(style.series(len(histories), ordered), histories.items(), strict=True)
    ):
        for j, run in enumerate(runs):
            every = max(1, len(run) // 6)
            look["markevery"] = (k * every // len(histories), every)
            look["label"] = None if j else style.folded(label)
            ax.plot(run["step"], run["noise"], **look, linewidth=2.0 if len(runs) == 1 else 1.1)
        ends = " and ".join(f"{float(run['noise'].iloc[-1]):.2g}" for run in runs)
        phrases.append(f"{label}: from {float(runs[0]['noise'].iloc[0]):.2g} to {ends}")
    ax.set(xlabel="step", ylabel="root mean square of the noise ε", yscale="log")
    low, high = ax.get_ylim()
    style.log_axis(ax.yaxis)
    if high / low > 1e3:
        ax.yaxis.set_major_locator(LogLocator())
    style.name_lines(ax)
    return describe(ax, f"Root mean square of the noise against the training step. {'; '.join(phrases)}.")


@style.in_course_style
def along(strengths: Sequence[float] | Tensor, curves: Mapping[str, Tensor], ax: Axes | None = None) -> Axes:
    """The loss along a direction in the inputs, with a mark at each curve's minimum.

    - strengths: (T,) multiples of the direction; curves: label -> (T,) loss at each
    """
    lines = _lines(f"{label}: lowest at −0.00" for label in curves).sum()
    ax = axes_for(ax, 8.8, max(4.0, 0.6 + 0.21 * lines))
    x = torch.as_tensor(strengths, dtype=torch.float64)
    ax.axvline(0, color=style.GREY, linestyle=(0, (2, 3)), linewidth=1.3)
    phrases = []
    for look, (label, loss) in zip(style.series(len(curves), ordered=False), curves.items(), strict=True):
        y = torch.as_tensor(loss).detach().double()
        least = int(y.argmin())
        where = f"{label}: lowest at {style.signed(float(x[least]))}"
        mark = {"markevery": [least], "markersize": 10, "markeredgecolor": "white"}
        ax.plot(x, y, **look, **mark, label=style.folded(where))
        phrases.append(f"{where}, {float(y[least]):.3g}, and {float(y[x.abs().argmin()]):.3g} at 0")
    ax.set(xlabel="multiple of the direction", ylabel="loss")
    style.name_lines(ax)
    return describe(ax, f"Loss along a direction, with a mark at each minimum. {'; '.join(phrases)}.")


# ---- what the maps find ------------------------------------------------------------------------------------


@style.in_course_style
def found(table: pandas.DataFrame) -> Figure:
    """How well maps find the object, and its outline: a row a map, its interval as a bar, chance dashed.

    A hollow mark stands at 1 - value: what the map is worth turned round.

    - table: as from `maps.measure`: map, and object and outline with `_low` and `_high`
    """
    each = max(0.34, 0.19 * _lines(table["map"]).max())
    figure, axes = new(10.4, 1.75 + each * len(table), 1, 2, sharey=True)
    places, point = np.arange(len(table)), {"color": style.BLUE, "marker": "o", "linestyle": "none"}
    end = {"va": "bottom", "fontsize": 9, "color": style.GREY}
    asked = (
        ("object", "the object", "the background", "the object"),
        ("outline", "a band along its outline", "the rest", "the outline"),
    )
    for ax, (what, title, below, above) in zip(axes, asked, strict=True):
        values = table[what].to_numpy()
        around = np.abs(table[[f"{what}_low", f"{what}_high"]].to_numpy().T - values)
        ax.axvline(0.5, **CHANCE)
        ax.plot(1 - values, places, **point, markerfacecolor="white")
        ax.errorbar(values, places, xerr=around, **point, capsize=3, zorder=4)
        ax.set(xlabel="AUROC per image, mean", xlim=(0, 1), ylim=(len(table) - 0.4, -0.6))
        ax.set_title(title, pad=20)
        ax.text(0, 1.005, f"← more on {below}", ha="left", transform=ax.transAxes, **end)
        ax.text(1, 1.005, f"more on {above} →", ha="right", transform=ax.transAxes, **end)
    axes[0].set_yticks(places, [style.folded(name) for name in table["map"]])
    keys = [
        Line2D([], [], **point, label="the map, and its 95 % interval"),
        Line2D([], [], **point, markerfacecolor="white", label="inverted"),
        Line2D([], [], **CHANCE, label="chance"),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3)
    phrases = "; ".join(
        f"{row['map']}: object {row['object']:.2f} ({row['object_low']:.2f} to {row['object_high']:.2f}), "
        f"outline {row['outline']:.2f} ({row['outline_low']:.2f} to {row['outline_high']:.2f})"
        for _, row in table.iterrows()
    )
    return describe(
        figure, f"AUROC of maps as detectors of the object and of its outline; chance is 0.5. {phrases}."
    )


@style.in_course_style
def of_photographs(kept: Mapping[str, np.ndarray]) -> Figure:
    """Recorded maps of images that cannot be shown: the scale before the first step and after the last.

    - kept: names (N,), untrained and trained (N, H, W), object_before and object (N,): their AUROC against
      the object's mask
    """
    rows = []
    for when in ("untrained", "trained"):
        values = torch.from_numpy(kept[when]).float()
        low, high = float(values.min()), float(values.max())
        rows.append((f"scale,\n{when}", values, {"cmap": "viridis", "vmin": low, "vmax": high}))
    changes = zip(kept["names"], kept["object_before"], kept["object"], strict=True)
    each = [f"{name}\n{before:.2f} → {after:.2f}" for name, before, after in changes]
    figure = strips(rows, below=each)
    said = ", ".join(each).replace("\n", " ")
    return describe(
        figure, f"Scale of the noise; AUROC against the object, before and after training: {said}."
    )


@style.in_course_style
def turning(records: pandas.DataFrame) -> Figure:
    """Where the noise goes as the run goes on: a panel for each kind of images, a thin line a seed.

    - records: of `benchmarks/pinda.py along`: `pictures`, seed, step, object_plain, object_textured
    """
    parts = {"object_textured": "objects with a texture", "object_plain": "plain objects"}
    groups = list(records.groupby("pictures", sort=False))
    figure, axes = new(5.1 * len(groups), 3.8, 1, len(groups), squeeze=False, sharey=True)
    phrases = []
    for ax, (name, runs) in zip(axes[0], groups, strict=True):
        for look, (column, label) in zip(style.series(2, ordered=False), parts.items(), strict=True):
            for k, (_, run) in enumerate(runs.groupby("seed")):
                thin = {"linewidth": 1.2, "markersize": 4.5, "label": None if k else label}
                ax.plot(run["step"], run[column], **look, **thin)
            last = runs[runs["step"] == runs["step"].max()][column]
            phrases.append(f"{name}, {label}: {last.min():.2f} to {last.max():.2f} at the last step")
        ax.axhline(0.5, **CHANCE, label="chance")
        ax.set(title=name, xlabel="step", ylim=(0, 1))
    axes[0, 0].set_ylabel("AUROC of the scale: object\n(below 0.5: more on the background)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return describe(
        figure, f"AUROC of the scale as a detector of the object, against the step. {'; '.join(phrases)}."
    )


# ---- what it costs -------------------------------------------------------------------------------------


@style.in_course_style
def cost(records: pandas.DataFrame, ax: Axes | None = None) -> Axes:
    """Time of a step in units of SimCLR's, with its range, above the paper's table V (hatched).

    - records: of `benchmarks/pinda.py cost`: encoder, contender, ratio, lowest_ratio, highest_ratio
    """
    rows = records[records["contender"] != "SimCLR"].sort_values("encoder", kind="stable")
    base = TABLE_5["SimCLR"]
    paper = {f"PiNDA, {name}": 1 + more / base for name, more in TABLE_5.items() if name != "SimCLR"}
    ax = axes_for(ax, 8.8, 1.3 + 0.36 * (len(rows) + len(paper)))
    encoders = list(records["encoder"].unique())
    looks = dict(zip(encoders, ("#9FC3DD", "#F2C9A8", "#A8D8C6", "#E6C6DA"), strict=False))
    several = [f" ({encoder})" if len(encoders) > 1 else "" for encoder in rows["encoder"]]
    names = list(rows["contender"] + several)
    places = [*range(len(rows)), *(len(rows) + 0.5 + k for k in range(len(paper)))]
    ends = [rows["ratio"] - rows["lowest_ratio"], rows["highest_ratio"] - rows["ratio"]]
    bar = {"height": 0.66, "edgecolor": style.INK}
    here = {"xerr": np.maximum(ends, 0), "capsize": 3, "ecolor": style.INK}
    colors = [looks.get(encoder, "#D5D5D5") for encoder in rows["encoder"]]
    own = ax.barh(places[: len(rows)], rows["ratio"], color=colors, **bar, **here)
    theirs = ax.barh(places[len(rows) :], list(paper.values()), color="white", hatch="///", **bar)
    for bars in (own, theirs):
        ax.bar_label(bars, fmt="%.2f", padding=6, fontsize=9.5)
    ax.axvline(1, **CHANCE | {"zorder": 3})
    ax.set_yticks(places, [style.folded(name) for name in (*names, *paper)])
    highest = max([*rows["highest_ratio"], *paper.values()])
    style.log_axis(ax.xaxis)
    ax.set(xlabel="time of a step, SimCLR's = 1", xlim=(0.8, 1.5 * highest), ylim=(places[-1] + 0.7, -0.7))
    ax.grid(axis="y", visible=False)
    keys = [
        Patch(facecolor=looks.get(e, "#D5D5D5"), edgecolor=style.INK, label=f"here, {e}") for e in encoders
    ]
    keys.append(Patch(facecolor="white", edgecolor=style.INK, hatch="///", label="the paper, GPU"))
    style.legend_outside(ax, handles=keys, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    phrases = [f"{name} {ratio:.2f}" for name, ratio in zip(names, rows["ratio"], strict=True)]
    reported = ", ".join(f"{name.removeprefix('PiNDA, ')} {ratio:.2f}" for name, ratio in paper.items())
    return describe(
        ax,
        f"Bars of the time of a step in units of SimCLR's. Here: {', '.join(phrases)}. The paper's table V, "
        f"CIFAR-10 on a GPU, by generator: {reported}.",
    )


# ---- what several of them share ----------------------------------------------------------------------------


def _lines(labels: Iterable[object]) -> np.ndarray:
    """How many lines each label takes, folded."""
    return np.array([1 + style.folded(label).count("\n") for label in labels] or [0])
