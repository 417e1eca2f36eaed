"""AttentionNCE's figures 1 and 2 drawn again, its scales, and its tables redrawn.

Weights, logits, values and forces are computed by the loss itself; the tables' numbers are the paper's.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator
from torch import Tensor

from clutils import anatomy
from clutils.course import records
from clutils.figures import axes_for, describe, new, style
from clutils.figures.training import curves
from clutils.losses import AttentionNCE, NTXent

# ---- the paper's numbers ---------------------------------------------------------------------------------

DATA_SETS = ("CIFAR-10", "STL-10", "CIFAR-100", "Tiny-ImageNet")
SETTINGS = {
    "CIFAR-10": (1.0, 1.0),
    "STL-10": (2.0, 0.5),
    "CIFAR-100": (1.0, 10.0),
    "Tiny-ImageNet": (4.0, 1.0),
}
"""Table 5: d_pos and d_neg; for all of them M = 4, N = 510, τ = 0.5, batches of 256."""

_ROWS = records.of_paper(__file__, "table_1")
TABLE_1 = {name: tuple(zip(row[::2], row[1::2], strict=True)) for name, row in _ROWS.items()}
"""Method -> for each of DATA_SETS its top-1 (%) after 200 and 400 epochs."""

TABLE_1_GAINS = ((3.2, 2.0), (8.6, 7.2), (5.8, 3.8), (5.0, 5.2))
"""Its last line as printed: AttentionNCE less SimCLR."""

TABLE_3 = {"CIFAR-10": (92.2, 92.5, 92.8, 93.1, 93.0, 93.2), "STL-10": (85.4, 86.5, 87.8, 89.4, 89.5, 89.4)}
"""Top-1 (%) for M = 1 to 6."""

TABLE_4 = {
    "CIFAR-10": ((93.1, 93.6), (93.9, 94.2)),
    "CIFAR-100": ((64.6, 68.6), (73.3, 73.4)),
    "Tiny-ImageNet": ((52.7, 54.4), (58.9, 60.2)),
}
"""With labels: SimCLR, then AttentionNCE, after 200 and 400 epochs."""


# ---- its figures, drawn again ----------------------------------------------------------------------------


@style.in_course_style
def attention(
    positives: Tensor,
    negatives: Tensor,
    d_pos: Sequence[float] = (0.1, 1.0, 10.0),
    d_neg: Sequence[float] = (0.2, 1.0, 10.0),
) -> Figure:
    """How much each positive and each negative counts against its similarity: the paper's figure 1.

    positives (M,), negatives (K,): one anchor's. Shown are M α_i and β_j, both 1 where all count alike. Grey:
    between the lowest positive and the highest negative, where the hard ones lie.
    """
    figure, axes = new(9.6, 3.9, 1, 2, sharex=True)
    low, high = sorted((float(positives.min()), float(negatives.max())))
    sides = (("positives", positives, d_pos, "α", "d_pos"), ("negatives", negatives, d_neg, "β", "d_neg"))
    for ax, (name, s, scales, letter, scale) in zip(axes, sides, strict=True):
        s = s.sort().values
        ax.axvspan(low, high, color="#E6E6E6", zorder=0)
        for k, (look, d) in enumerate(zip(style.series(len(scales)), scales, strict=True)):
            every = max(len(s) // 8, 1)
            counts = len(s) * AttentionNCE().attention(s[None], None, d)[0]
            ax.plot(s, counts, **look, markevery=(k % every, every), label=f"{scale} = {d:g}")
        ax.axhline(1, color=style.GREY, linestyle=(0, (2, 3)), linewidth=1.2)
        ax.plot(s, torch.full_like(s, -0.25), marker="|", linestyle="none", color=style.INK, clip_on=False)
        ax.set(title=name, xlabel="similarity to the anchor")
        ax.set_ylabel(f"weight {'M ' if letter == 'α' else ''}{letter}")
        style.name_lines(ax)
    return describe(
        figure,
        f"How much each of {len(positives)} positives and {len(negatives)} negatives counts against its "
        "similarity. A smaller scale gives more to the most similar: among positives these are the easy "
        "ones, among negatives the hard ones.",
    )


@style.in_course_style
def against_infonce(attended: Tensor, infonce: Tensor, title: str = "", ax: Axes | None = None) -> Axes:
    """AttentionNCE against InfoNCE, a dot an anchor, (A,) each, with the line where they are equal: figure 2.

    The title says for how many anchors AttentionNCE is the larger (or equal).
    """
    ax = axes_for(ax, 3.6, 3.6)
    ends = min(float(attended.min()), float(infonce.min())), max(float(attended.max()), float(infonce.max()))
    room = 0.05 * max(ends[1] - ends[0], 1e-3)
    ends = ends[0] - room, ends[1] + room
    share = float((attended >= infonce).double().mean())
    ax.fill_between(ends, ends, [ends[0]] * 2, color="#E6E6E6", zorder=0)
    ax.plot(ends, ends, color=style.INK, linestyle="--", linewidth=1.2)
    ax.plot(infonce, attended, ".", markersize=4, color=style.loss("AttentionNCE")["color"])
    ax.set(xlim=ends, ylim=ends, aspect="equal", xlabel="InfoNCE", ylabel="AttentionNCE")
    ax.set_title(f"{title}\nabove the line: {share:.0%}" if title else f"above the line: {share:.0%}")
    return describe(
        ax, f"{title or 'AttentionNCE'}: larger than InfoNCE for {share:.0%} of {len(infonce)} anchors."
    )


# ---- its scales ------------------------------------------------------------------------------------------


@style.in_course_style
def inside_or_outside(
    negatives: Tensor,
    scales: Sequence[float] = (0.3, 1.0, 10.0),
    positive: float = 0.7,
) -> Figure:
    """Weights inside the exponent and outside: negatives (K,) in InfoNCE, HCL and AttentionNCE.

    Left: the logarithm of each negative's term in the denominator, over InfoNCE's e^(s⁻/τ): (β - 1) s⁻/τ, and
    log w for HCL's weight w = e^(s⁻/τ) over its mean (its β is 1). Right: the push.
    """
    figure, (left, right) = new(9.6, 3.9, 1, 2)
    s, temperature = negatives.double().sort().values, 0.5
    one = torch.tensor([[positive]], dtype=torch.float64)
    plain = {"color": style.INK, "linestyle": "-", "linewidth": 1.4}
    left.axhline(0, **plain, label="InfoNCE")
    right.plot(s, anatomy.forces(NTXent(temperature), one, s[None])[1][0], **plain, label="InfoNCE")
    outside = s / temperature - (s / temperature).logsumexp(0) + math.log(len(s))
    left.plot(s, outside, color=style.GREY, linestyle="--", linewidth=2, label="HCL: outside")
    for k, (look, d) in enumerate(zip(style.series(len(scales)), scales, strict=True)):
        loss = AttentionNCE(temperature, d_neg=d)
        every = max(len(s) // 8, 1)
        look |= {"markevery": (k % every, every), "markersize": 4}
        inside = (weights(loss, one[0], s)[1] - 1) * s / temperature
        left.plot(s, inside, **look, label=f"inside, d_neg = {d:g}")
        right.plot(s, anatomy.forces(loss, one, s[None])[1][0], **look)
    left.set(xlabel="s⁻", ylabel="log of its factor", title="the negative's term, against InfoNCE's")
    right.set(xlabel="s⁻", ylabel="push ∂ℓ/∂s⁻", yscale="log", title="the push on it")
    right.yaxis.set_minor_locator(NullLocator())
    style.name_lines(left)
    return describe(
        figure,
        f"Left: the log weight of each of {len(s)} negatives against its similarity: HCL's is a rising line; "
        f"AttentionNCE's, for d_neg {', '.join(f'{d:g}' for d in scales)}, is above zero below 0 as well. "
        "Right: the push on them, which a smaller d_neg lessens there.",
    )


@style.in_course_style
def along_d_neg(
    positives: Tensor,
    negatives: Tensor,
    scales: Tensor | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Mean loss and mean largest push against d_neg, positives (A, P), negatives (A, K).

    Grey: where the mean loss is within a tenth of its limit for a flat attention, d_neg → ∞.
    """
    ax = axes_for(ax, 7.6, 4.0)
    d = torch.logspace(-2, 2, 41, dtype=torch.float64) if scales is None else scales.double()
    values, pushes = [], []
    for each in d.tolist():
        loss = AttentionNCE(0.5, d_neg=each)
        values.append(float(loss.per_anchor(positives, negatives).mean()))
        pushes.append(float(anatomy.forces(loss, positives, negatives)[1].amax(dim=1).mean()))
    flat = float(AttentionNCE(0.5, d_neg=math.inf).per_anchor(positives, negatives).mean())
    near = d[(torch.tensor(values) / flat - 1).abs() < 0.1]
    if len(near):
        ends = float(near[0]), float(near[-1])
        ax.axvspan(*ends, color="#E6E6E6", zorder=0)
        middle = math.sqrt(ends[0] * ends[1])
        ax.text(middle, max(values), "loss within 10% of its limit", ha="center", va="center")
    ax.plot(d, values, color=style.BLUE, linestyle="-", marker="o", markevery=5, label="loss, mean")
    look = {"color": style.VERMILLION, "linestyle": "--", "marker": "v", "markevery": (2, 5)}
    ax.plot(d, pushes, **look, label="largest push, mean")
    look = {"color": style.GREY, "linestyle": (0, (2, 3)), "linewidth": 1.4}
    ax.axhline(flat, **look, label=f"loss as d_neg → ∞: {flat:.2f}")
    ax.set(xscale="log", yscale="log", xlabel="d_neg", ylabel="per anchor")
    ticks = [0.01, 0.1, 1, 10, 100]
    ax.set_xticks(ticks, [f"{t:g}" for t in ticks])
    style.name_lines(ax)
    return describe(
        ax,
        f"Loss and largest push against d_neg: the loss falls from {values[0]:.0f} at {float(d[0]):g} to "
        f"{values[-1]:.2f} at {float(d[-1]):g}, where it is flat.",
    )


def weights(loss: AttentionNCE, positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    """One anchor's α and β: positives (P,), negatives (K,) -> (P,), (K,)."""
    alpha = loss.attention(positives[None], None, loss.d_pos)[0]
    return alpha, len(negatives) * loss.attention(negatives[None], None, loss.d_neg)[0]


# ---- labels ----------------------------------------------------------------------------------------------


@style.in_course_style
def pulls_by_similarity(positives: Tensor, pulls: Mapping[str, Tensor], ax: Axes | None = None) -> Axes:
    """The pull on each positive (P,) against its similarity, a line for each loss: name -> (P,)."""
    order = positives.argsort()
    lines = {name: pull[order] for name, pull in pulls.items()}
    ax = curves(positives[order], lines, "similarity of the positive s⁺", "pull −∂ℓ/∂s⁺", ax=ax)
    ax.axhline(0, color=style.GREY, linewidth=0.9, linestyle="-")
    style.name_lines(ax)
    return ax


# ---- its tables, redrawn ---------------------------------------------------------------------------------


@style.in_course_style
def published_accuracies() -> Figure:
    """Table 1 redrawn, the paper's numbers: top-1 after 200 epochs (hollow) and after 400 (filled)."""
    figure, axes = new(11.2, 5.0, 1, 4, sharey=True)
    names = list(TABLE_1)
    for column, (ax, data) in enumerate(zip(axes, DATA_SETS, strict=True)):
        for row, name in enumerate(names):
            early, late = TABLE_1[name][column]
            color, marker = (style.VERMILLION, "D") if name == "AttentionNCE" else (style.BLUE, "o")
            ax.plot([early, late], [row, row], color=color, linestyle="-", linewidth=1.2)
            ax.plot(early, row, marker, color=color, fillstyle="none")
            ax.plot(late, row, marker, color=color)
        ax.set_title(data)
        ax.set_xlabel("top-1, %")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    best = "; ".join(f"{d}: {TABLE_1['AttentionNCE'][k][1]}" for k, d in enumerate(DATA_SETS))
    return describe(
        figure,
        f"The paper's table 1 as dots: top-1 accuracy of {len(names)} methods on four data sets after 200 "
        f"and 400 epochs. AttentionNCE has the highest number on each; after 400 epochs {best}.",
    )


@style.in_course_style
def published_ablations() -> Figure:
    """Tables 3 and 4 redrawn: top-1 against M, and with labels; the paper's numbers."""
    figure, (left, right) = new(10.6, 3.9, 1, 2)
    for look, (data, row) in zip(style.series(2, ordered=False), TABLE_3.items(), strict=True):
        left.plot(range(1, 7), row, **look, label=f"{data}, AttentionNCE")
        simclr = TABLE_1["SimCLR"][DATA_SETS.index(data)][1]
        left.axhline(simclr, color=look["color"], linestyle=":", linewidth=1.4, label=f"{data}, SimCLR")
    left.set(xlabel="M, positives per anchor", ylabel="top-1, %", title="table 3", ylim=(79, 99))
    style.name_lines(left)
    sides = (("SimCLR with labels", "", style.BLUE), ("AttentionNCE with labels", "//", style.VERMILLION))
    for side, (name, hatch, color) in enumerate(sides):
        places = [k + 0.36 * side - 0.18 for k in range(len(TABLE_4))]
        late, look = [row[side][1] for row in TABLE_4.values()], {"hatch": hatch, "color": color}
        bars = right.bar(places, late, 0.34, **look, edgecolor="white", label=name)
        right.bar_label(bars, fmt="%.1f", padding=2, fontsize=9)
    right.set_xticks(range(len(TABLE_4)), TABLE_4)
    right.set(ylabel="top-1 after 400 epochs, %", title="table 4", ylim=(0, 128))
    right.legend(loc="upper right", fontsize=9)
    return describe(
        figure,
        "The paper's tables 3 and 4: accuracy against the number of positives M, rising to M = 4 and level "
        "after it; and with labels, where AttentionNCE is above SimCLR on three data sets.",
    )
