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
from matplotlib.ticker import LogLocator
from torch import Tensor

from clutils.figures import axes_for, describe, new, style

if TYPE_CHECKING:
    import pandas

CHANCE = {"color": style.GREY, "linestyle": (0, (4, 3)), "linewidth": 1.3, "zorder": 1}


# ---- the derivation ----------------------------------------------------------------------------------------


def density(loss: float | Tensor, alpha: Tensor) -> Tensor:
    """Density of the auxiliary variable α ~ N(0, 1/γ), γ = e^(-ℓ), at the values alpha (T,)."""
    gamma = math.exp(-float(loss))
    return math.sqrt(gamma / (2 * math.pi)) * torch.exp(-gamma * alpha**2 / 2)


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


# ---- what the maps find ------------------------------------------------------------------------------------


@style.in_course_style
def found(table: pandas.DataFrame) -> Figure:
    """AUROC of maps as detectors of the object and of its outline: a row a map, its interval as a bar.

    Sorted by the object's; a trained map stands out from what it is compared with.

    - table: as from `maps.measure`: map, and object and outline with `_low` and `_high`
    """
    table = table.sort_values("object", ascending=False)
    each = max(0.34, 0.19 * _lines(table["map"]).max())
    figure, axes = new(10.4, 1.35 + each * len(table), 1, 2, sharey=True)
    end = {"va": "bottom", "fontsize": 9, "color": style.GREY}
    beside = {"textcoords": "offset points", "va": "center", "fontsize": 10, "path_effects": style.halo()}
    looks = {False: {"color": style.BLUE, "marker": "o"}, True: {"color": style.VERMILLION, "marker": "D"}}
    asked = (
        ("object", "the object", "the background", "the object"),
        ("outline", "a band along its outline", "the rest", "the outline"),
    )
    for ax, (what, title, below, above) in zip(axes, asked, strict=True):
        ax.axvline(0.5, **CHANCE)
        rows = table[["map", what, f"{what}_low", f"{what}_high"]].itertuples(index=False)
        for place, (name, value, low, high) in enumerate(rows):
            look, around = looks[name.endswith(", trained")], [[abs(value - low)], [abs(high - value)]]
            ax.errorbar(value, place, xerr=around, **look, linestyle="none", capsize=3, zorder=4)
            end_of, aside, align = (max, 7, "left") if value >= 0.5 else (min, -7, "right")  # not on chance
            at = (end_of(value, high, low), place)
            ax.annotate(f"{value:.2f}", at, (aside, 0), ha=align, **beside, color=look["color"])
        ax.set(xlabel="AUROC per image: mean, 95 % interval", xlim=(0, 1.1))
        ax.set_ylim(len(table) - 0.4, -0.6)
        ax.set_title(title, pad=20)
        ax.text(0, 1.005, f"← more on {below}", ha="left", transform=ax.transAxes, **end)
        ax.text(1, 1.005, f"more on {above} →", ha="right", transform=ax.transAxes, **end)
    axes[0].set_yticks(range(len(table)), [style.folded(name) for name in table["map"]])
    phrases = "; ".join(
        f"{row['map']}: object {row['object']:.2f} ({row['object_low']:.2f} to {row['object_high']:.2f}), "
        f"outline {row['outline']:.2f} ({row['outline_low']:.2f} to {row['outline_high']:.2f})"
        for _, row in table.iterrows()
    )
    return describe(
        figure, f"AUROC of maps as detectors of the object and of its outline; chance is 0.5. {phrases}."
    )


def _lines(labels: Iterable[object]) -> np.ndarray:
    """Lines that each label takes, folded."""
    return np.array([1 + style.folded(label).count("\n") for label in labels] or [0])
