"""MACL (arXiv 2207.07874): where W turns, the temperature that follows the alignment, the paper's tables.

Forces and temperatures are computed by `clutils.anatomy` and the loss itself. TABLE_6 to TABLE_B3 are the
paper's numbers, not ours.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor

from clutils import anatomy
from clutils.course import records
from clutils.course.forces.gradient_scaling import scale_frame, temperature_axis
from clutils.course.sphere.figures import ARROWS, outline
from clutils.figures import axes_for, describe, new, style
from clutils.losses import MACL, Loss

if TYPE_CHECKING:
    import pandas

# top-1 of a linear probe on ImageNet-1K: (adaptive, reweighted) -> smaller, larger learning rate
TABLE_6 = {
    (False, False): (64.0, 65.6),
    (True, False): (64.9, 67.5),
    (False, True): (65.0, 67.8),
    (True, True): (65.2, 68.1),
}
# top-1 and top-5 on ImageNet-100
TABLE_7 = {
    "NTXent": (75.54, 93.06),
    "Decoupled": (77.38, 94.01),
    "MACL, α = 0": (77.32, 94.03),
    "MACL": (78.28, 94.25),
}
# setting -> value -> top-1 on ImageNet-100; the others stay at τ0 = 0.1, α = 0.5, A0 = 0
TABLE_8 = {
    "temperature": {0.05: 76.68, 0.1: 78.14, 0.5: 69.72, 1.0: 61.72},
    "alpha": {0.0: 77.32, 0.1: 77.18, 0.5: 78.14, 1.0: 77.74},
    "alignment_threshold": {0.0: 78.14, 0.2: 78.28, 0.6: 78.10, 0.8: 77.54},
}
FIXED = {"temperature": 0.1, "alpha": 0.5, "alignment_threshold": 0.0}  # table 8's underlined settings
# CIFAR-10: loss -> linear probe and kNN (k = 200) at each batch size; its first halves are table 9
BATCHES = (64, 128, 256, 512, 1024)
TABLE_B3 = {name: (row[:5], row[5:]) for name, row in records.of_paper(__file__, "table_b3").items()}
MEASURES = ("linear probe", "kNN, k = 200")
LABELS = {name: MACL.ranges[name].symbol for name in FIXED}
LOWEST, HIGHEST = -1.3, 2.2  # of the axis of τ_a/τ0
REACH = 0.62  # the longest arrow of `penalties`, in radii
OUTSIDE = 1.13  # where its arrows start, so that no point covers a short one


# ---- where W turns ---------------------------------------------------------------------------------------


@style.in_course_style
def turn(positives: Tensor, negatives: Tensor, at: float) -> Figure:
    """One anchor along τ: its negatives' mean, weighed by p̂, beside s+; below it W, lowest where they meet.

    - positives (1, 1), negatives (1, K); at: the temperature at which W turns
    """
    figure, (above, below) = new(7.5, 5.4, rows=2, sharex=True)
    grid, positive, K = temperature_axis(), float(positives), negatives.shape[1]
    every = negatives.expand(len(grid), -1)
    mean = (anatomy.hardness_weights(every, grid[:, None]) * every).sum(dim=1)
    W = anatomy.gradient_scale(positives.expand(len(grid), 1), every, grid[:, None])
    low = anatomy.gradient_scale(positives, negatives, at).item()
    above.plot(grid, mean, color=style.VERMILLION, linestyle="-", label="mean negative, weighed: Σ p̂ⱼ s⁻ⱼ")
    above.axhline(positive, color=style.BLUE, linestyle="--", label=f"positive: s⁺ = {positive:g}")
    below.plot(grid, W, color=style.BLACK, linestyle="-", label="W")
    below.axhline(K / (K + 1), color=style.GREY, linestyle=(0, (2, 3)), linewidth=1.3, label="K/(K+1)")
    below.plot([at], [low], marker="v", markersize=9, color=style.BLACK, linestyle="none")
    below.annotate(f"τ = {at:.3g}, W = {low:.3g}", (at, low), (8, -4), textcoords="offset points", va="top")
    for ax in (above, below):
        scale_frame(ax, "temperature τ")
        ax.axvline(at, color=style.GREY, linestyle=":")
        ax.legend(loc="best")
    above.set(xlabel="", ylabel="similarity", ylim=(-1.05, 1.05))
    room = max(float(W.max() - W.min()), 0.02)
    below.set_ylim(float(W.min()) - 0.3 * room, float(W.max()) + 0.12 * room)
    return describe(
        figure,
        f"One anchor with {K} negatives against temperature. Their weighed mean falls from "
        f"{float(mean[0]):.2f} to {float(mean[-1]):.2f} and meets the positive, {positive:g}, at {at:.3g}; "
        f"there W is lowest, {low:.3g}.",
    )


# ---- the adaptive temperature ----------------------------------------------------------------------------


@style.in_course_style
def against_alignment(losses: Sequence[MACL], ax: Axes | None = None) -> Axes:
    """τ_a/τ0 against the alignment A for several settings: with the floor, and thin what eq. 7 alone gives.

    Their `minimum_temperature` is the default, a tenth of τ0. The losses' own counts stay as they are.
    """
    ax = axes_for(ax, 7.6, 4.2)
    A = torch.linspace(-1, 1, 201, dtype=torch.float64)
    ax.axhspan(LOWEST, 0.1, facecolor="#EFEFEF", edgecolor="#C9C9C9", hatch="//", linewidth=0, zorder=0)
    ax.axhline(0, color=style.GREY, linewidth=0.8)
    inside = {"facecolor": "white", "edgecolor": "none", "pad": 2}
    ax.text(0.98, LOWEST + 0.1, "here the floor acts", ha="right", bbox=inside)
    phrases = []
    for k, (look, loss) in enumerate(zip(style.series(len(losses), ordered=False), losses, strict=True)):
        used = copy.deepcopy(loss).temperature_at(A) / loss.temperature
        formula = 1 + loss.alpha * (A - loss.alignment_threshold)
        label = f"α = {loss.alpha:g}, A₀ = {loss.alignment_threshold:g}"
        ax.plot(A, used, **look, markevery=(6 * k, 40), label=label)
        below = formula < used - 1e-9
        if bool(below.any()):
            ax.plot(A[below], formula[below], color=look["color"], linestyle="-", linewidth=0.8)
        floored = f", floored for {float(below.double().mean()):.0%} of all A" if bool(below.any()) else ""
        phrases.append(f"{label} from {float(used[0]):.2g} to {float(used[-1]):.2g}{floored}")
    ax.set(xlim=(-1, 1), ylim=(LOWEST, HIGHEST), xlabel="alignment A", ylabel="τₐ / τ₀")
    ax.plot([], [], color=style.GREY, linestyle="-", linewidth=0.8, label="eq. 7 without a floor")
    style.name_lines(ax)
    return describe(
        ax,
        "Adaptive temperature, in units of its base value, against the alignment: straight lines, cut off at "
        f"a floor of a tenth: {'; '.join(phrases)}.",
    )


# ---- figure 1 --------------------------------------------------------------------------------------------


def penalties_of(loss: Loss, angles: Mapping[str, Sequence[float]]) -> tuple[Tensor, Tensor]:
    """The push on each negative of an anchor at angle 0, (K,), and its angle in radians, (K,).

    - angles: degrees from the anchor: "positive" (one), "negative" and "false negative"; the negatives come
      in this order
    """
    degrees = torch.tensor([*angles["negative"], *angles["false negative"]], dtype=torch.float64)
    positive = torch.tensor([list(angles["positive"])], dtype=torch.float64).deg2rad().cos()
    push = anatomy.forces(loss, positive, degrees.deg2rad().cos()[None])[1][0]
    return push, degrees.deg2rad()


@style.in_course_style
def penalties(
    loss: Loss,
    angles: Mapping[str, Sequence[float]],
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """The penalty on each negative as an arrow along the circle, away from the anchor: the paper's figure 1.

    - angles: as in `penalties_of`; the anchor's is 0, drawn at the top
    """
    ax = axes_for(ax, 3.4, 3.7)
    push, at = penalties_of(loss, angles)
    outline(ax)
    x, y = at.sin(), at.cos()
    away = torch.stack([at.cos(), -at.sin()]) * at.sign() * REACH * push / push.max()
    ax.quiver(OUTSIDE * x, OUTSIDE * y, *away, **ARROWS, width=0.014, color=style.INK, zorder=3)
    false = torch.arange(len(at)) >= len(angles["negative"])
    positive = torch.tensor(angles["positive"], dtype=torch.float64).deg2rad()
    looks = key_looks()
    dots = {"anchor": (torch.zeros(1), torch.ones(1)), "positive": (positive.sin(), positive.cos())}
    dots |= {"negative": (x[~false], y[~false]), "false negative": (x[false], y[false])}
    for name, (across, up) in dots.items():
        ax.plot(across, up, **looks[name], zorder=4)
    ax.set(xlim=(-1.65, 1.65))
    share = float(push[false].sum() / push.sum())
    ax.text(0, 0, f"{share:.0%} of the push\non false negatives", ha="center", va="center", fontsize=10.5)
    if title:
        ax.set_title(title, loc="center")
    what = title or "Penalties on the negatives"
    return describe(ax, f"{what}: arrows at {len(at)} negatives, {share:.0%} of the push on false ones.")


def key_looks() -> dict[str, dict]:
    """How `penalties` draws each kind of point."""
    plain = {"linestyle": "none", "markersize": 11, "markeredgecolor": "white"}
    return {name: style.role(name) | plain for name in ("anchor", "positive", "negative")} | {
        "false negative": plain | {"color": style.ORANGE, "marker": "D", "markeredgecolor": style.INK}
    }


@style.in_course_style
def key_to_penalties(figure: Figure) -> None:
    """The key to `penalties`, under the whole figure."""
    handles = [Line2D([], [], **look, label=name) for name, look in key_looks().items()]
    handles.append(Line2D([], [], color=style.INK, marker=">", markevery=(1, 2), label="push on a negative"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), handlelength=1.4)


# ---- the paper's tables ----------------------------------------------------------------------------------


@style.in_course_style
def table_8() -> Figure:
    """The paper's table 8 as three charts of one scale: top-1 against each setting, the others fixed."""
    figure, axes = new(10.4, 3.4, columns=len(TABLE_8), sharey=True, squeeze=False)
    phrases = []
    for ax, (name, row) in zip(axes[0], TABLE_8.items(), strict=True):
        places = range(len(row))
        ax.plot(places, list(row.values()), color=style.BLUE, marker="o", linestyle="-")
        for k, value in enumerate(row.values()):
            ax.annotate(f"{value:.2f}", (k, value), (4, 6), textcoords="offset points", fontsize=9)
        ax.set_xticks(places, [f"{value:g}" for value in row])
        spread = max(row.values()) - min(row.values())
        others = ", ".join(f"{LABELS[other]} = {value:g}" for other, value in FIXED.items() if other != name)
        ax.set(xlabel=f"{LABELS[name]}   ({others})", xlim=(-0.3, len(row) - 0.3), ylim=(58, 82))
        ax.set_title(f"spread {spread:.2f}")
        phrases.append(f"{LABELS[name]}: {', '.join(f'{v:.2f} at {k:g}' for k, v in row.items())}")
    axes[0, 0].set_ylabel("top-1, %")
    return describe(figure, f"The paper's table 8, top-1 accuracy on ImageNet-100. {'; '.join(phrases)}.")


@style.in_course_style
def table_b3(column: int = 0, ax: Axes | None = None) -> Axes:
    """The paper's table B.3: accuracy on CIFAR-10 against the batch size, a line for each loss.

    - column: 0 the linear probe (the paper's table 9), 1 kNN
    """
    ax = axes_for(ax, 5.2, 4.0)
    phrases = []
    for name, both in TABLE_B3.items():
        values = both[column]
        title = style.title(name)
        ax.plot(range(len(BATCHES)), values, **style.loss(name), label=title)
        phrases.append(f"{title} from {values[0]:.2f} to {values[-1]:.2f}")
    ax.set_xticks(range(len(BATCHES)), [f"{batch:,}" for batch in BATCHES])
    ax.set(xlabel="batch size (images)", ylabel=f"{MEASURES[column]}, %")
    text = f"The paper's table B.3, {MEASURES[column]} on CIFAR-10 from batch 64 to 1,024"
    return describe(ax, f"{text}: {'; '.join(phrases)}.")


def reruns() -> pandas.DataFrame:
    """What the paper's own tables tell of its noise: pairs of rows that have one gradient.

    A row for each pair: where it stands, the two accuracies and how far they lie `apart`; for table B.3 also
    MACL's `lead` over the best of them and dual temperature, and how far `dual` temperature lies above their
    mean. FlatNCE and the decoupled loss, MACL at α = 0 and the decoupled loss, have one gradient.
    """
    import pandas as pd

    pairs = zip(("top-1", "top-5"), TABLE_7["MACL, α = 0"], TABLE_7["Decoupled"], strict=True)
    rows = [{"table": "7", "measure": top, "batch": 256, "one": a, "other": b} for top, a, b in pairs]
    for column, measure in enumerate(MEASURES):
        one, other = TABLE_B3["FlatNCE"][column], TABLE_B3["Decoupled"][column]
        dual, macl = TABLE_B3["DualTemperature"][column], TABLE_B3["MACL"][column]
        for batch, a, b, d, m in zip(BATCHES, one, other, dual, macl, strict=True):
            row = {"table": "B.3", "measure": measure, "batch": batch, "one": a, "other": b}
            rows.append(row | {"lead": round(m - max(a, b, d), 3), "dual": round(d - (a + b) / 2, 3)})
    table = pd.DataFrame(rows)
    table["apart"] = (table["one"] - table["other"]).abs().round(2)
    return table


@style.in_course_style
def lead(measure: str, ax: Axes | None = None) -> Axes:
    """MACL's lead in table B.3 over the best of the other three, and how far two with one gradient lie apart.

    - measure: one of MEASURES
    """
    ax = axes_for(ax, 5.0, 3.4)
    rows = reruns().query("table == 'B.3' and measure == @measure")
    places = range(len(rows))
    ax.bar(places, rows["apart"], width=0.55, color="#C9C9C9", edgecolor=style.GREY, hatch="//",
           label="FlatNCE and decoupled, apart")  # fmt: skip
    label = "MACL's lead over the best of the others"
    ax.plot(places, rows["lead"], **style.loss("MACL"), markersize=9, label=label)
    ax.set_xticks(places, [f"{batch:,}" for batch in rows["batch"]])
    ax.set(xlabel="batch size (images)", ylabel="points", ylim=(0, 1.75), title=measure)
    leads = ", ".join(f"{x:.2f}" for x in rows["lead"])
    return describe(
        ax,
        f"From the paper's table B.3, {measure}: MACL's lead over the best other is {leads} points; "
        f"the two rows with one gradient lie up to {rows['apart'].max():.2f} apart.",
    )
