"""Debiasing, hardness weights and mixes: what each does to pull and push; SSCL's figures 2, 4 and 5.

Every force is computed by `clutils.anatomy`. The numbers of SSCL's tables (arXiv 2304.02971) are the paper's.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from clutils import anatomy
from clutils.course import records
from clutils.figures import axes_for, describe, new, style
from clutils.figures.training import curves
from clutils.losses import HardNegative, mixing

SWEEP = torch.linspace(-1, 1, 401, dtype=torch.float64)
DATA_SETS = ("CIFAR-10", "CIFAR-100", "TinyImageNet")
# the paper's numbers: linear evaluation, top-1 in per cent on each of DATA_SETS
TABLE_3, TABLE_4 = (records.of_paper(__file__, f"table_{number}") for number in (3, 4))


@style.in_course_style
def pull_under_priors(
    negatives: Tensor,
    temperature: float = 0.5,
    priors: Sequence[float] = (0.0, 0.01, 0.05, 0.1, 0.3),
    ax: Axes | None = None,
) -> Axes:
    """Pull against s+ for several class priors; NT-Xent's maximum 1/τ dashed, a cross where the clamp sets
    in.

    - negatives: (K,), one anchor's
    """
    ax = axes_for(ax, 8.4, 4.0)
    table, phrases = negatives[None, :].expand(len(SWEEP), -1), []
    cross = {"marker": "x", "markersize": 10, "mew": 2.5}
    for k, (look, prior) in enumerate(zip(style.series(len(priors)), priors, strict=True)):
        loss = HardNegative(temperature, prior, 0.0)
        pull, push = anatomy.forces(loss, SWEEP[:, None], table)
        clamped = (push == 0).all(dim=1)
        name = f"τ⁺ = {prior:g}" + (" (NT-Xent)" if prior == 0 else "")
        free = pull[:, 0].where(~clamped, math.nan)
        ax.plot(SWEEP, free, **look, markevery=(9 * k, 60), label=name)
        largest = f"{name}: at most {float(free.nan_to_num(0).max()):.3g}"
        if bool(clamped.any()):
            first = int(clamped.nonzero()[0])
            shut = pull[:, 0].where(clamped, math.nan)
            ax.plot(SWEEP, shut, color=look["color"], linestyle=":", linewidth=2.4)
            at = max(first - 1, 0)
            ax.plot(SWEEP[at], pull[at, 0], color=look["color"], **cross)
            largest += f", clamped from {float(SWEEP[first]):.2f}"
        phrases.append(largest)
    ceiling = 1 / temperature
    ax.axhline(ceiling, color=style.GREY, linestyle=(0, (2, 3)), label=f"1/τ = {ceiling:g}")
    ax.plot([], [], color=style.INK, linestyle=":", **cross, label="clamp from here")
    ax.set(xlim=(-1.03, 1.03), xlabel="similarity s⁺ of the positive", ylabel="pull −∂ℓ/∂s⁺")
    style.log_axis(ax.yaxis)
    ax.set_title(f"β = 0, τ = {temperature:g}, {len(negatives):,} negatives")
    style.name_lines(ax)
    return describe(
        ax,
        f"Pull against the positive's similarity at temperature {temperature:g}, a line for each class "
        f"prior, and the dashed maximum of NT-Xent, {ceiling:g}. {'; '.join(phrases)}.",
    )


@style.in_course_style
def push_under_betas(
    negatives: Tensor,
    temperature: float = 0.5,
    betas: Sequence[float] = (0.0, 0.5, 1.0, 2.0),
    ax: Axes | None = None,
) -> Axes:
    """Each negative's part of the total push against its similarity, for several β: below 0 it is drawn in.

    negatives (K,), one anchor's. In units of 1/K, so that 1 is an equal part.
    """
    ax, phrases = axes_for(ax, 7.4, 3.8), []
    s = negatives.sort().values
    for k, (look, beta) in enumerate(zip(style.series(len(betas)), betas, strict=True)):
        push = anatomy.forces(HardNegative(temperature, 0.0, beta), torch.zeros(1, 1).to(s), s[None])[1][0]
        part = push / push.sum() * len(s)
        ax.plot(s, part, **look, markevery=(0.03 * k, 0.12), label=f"β = {beta:g}")
        phrases.append(f"β = {beta:g} from {float(part.min()):.2g} to {float(part.max()):.2g}")
    ax.axhline(0, color=style.INK, linewidth=1.0)
    ax.axhline(1, color=style.GREY, linestyle=(0, (2, 3)), label="an equal part")
    ax.set_yscale("symlog", linthresh=1)  # so that who is drawn in is seen beside the hardest
    ax.set_yticks((-1, 0, 1, 10, 100), ("−1", "0", "1", "10", "100"))
    ax.minorticks_off()
    ax.set(xlabel="similarity s⁻ of the negative", ylabel="push times K (log above 1)")
    style.name_lines(ax)
    return describe(
        ax,
        "Each negative's part of the push, times their number, against its similarity: "
        f"{'; '.join(phrases)}; negative parts draw a negative in.",
    )


@style.in_course_style
def colder(
    temperatures: Tensor, angles: Mapping[str, Tensor], temperature: float, negatives: Tensor, push: Tensor
) -> Figure:
    """How near NT-Xent at each temperature comes to another loss's push; and one anchor's push beside it.

    - temperatures: (T,), of NT-Xent; angles: name -> (T,), mean angle to the other loss's push, in degrees;
      temperature: the other loss's own
    - negatives, push: (K,), of one anchor of the last of `angles`
    """
    figure, (left, right) = new(10.8, 3.9, 1, 2)
    phrases = []
    looks = style.series(max(3, len(angles)), ordered=False)
    for k, (look, (name, values)) in enumerate(zip(looks, angles.items(), strict=False)):
        best = int(values.argmin())
        left.plot(temperatures, values, **look, markevery=(2 * k, 12), label=name)
        left.plot(temperatures[best], values[best], color=look["color"], marker="*", markersize=13)
        phrases.append(f"{name} {float(values[best]):.1f}° at {float(temperatures[best]):.2f}")
    left.axvline(temperature, color=style.GREY, linestyle=":")
    left.set_title(f"dotted: its own τ = {temperature:g}", fontsize=10)
    left.set(ylim=(0, None), xlabel="τ′ of NT-Xent", ylabel="mean angle between the pushes, °")
    style.log_axis(left.xaxis)
    style.name_lines(left)
    s, order = negatives.sort()
    nearest = float(temperatures[int(values.argmin())])
    lines = {"HCL": (push / push.sum())[order]} | {
        f"NT-Xent, τ = {t:.2g}": torch.softmax(s / t, dim=0) for t in (temperature, nearest)
    }
    for k, (look, (label, part)) in enumerate(zip(looks, lines.items(), strict=False)):
        right.plot(s, len(s) * part, **look, markevery=(0.04 * k, 0.12), label=label)
    right.axhline(0, color=style.INK, linewidth=1.0)
    right.set(xlabel="similarity s⁻ of the negative", ylabel="part of the push, times K")
    right.set_title(f"one anchor, {name}")
    style.name_lines(right)
    return describe(
        figure,
        f"Left: the mean angle between HCL's push at τ = {temperature:g} and NT-Xent's, against NT-Xent's "
        f"temperature; smallest: {'; '.join(phrases)}. Right: one anchor's push, HCL's "
        f"and NT-Xent's at {temperature:g} and at {nearest:.2g}.",
    )


@style.in_course_style
def harder_than_parents(kinds: Mapping[str, tuple[Tensor, Tensor]], ax: Axes | None = None) -> Axes:
    """Mixes against their harder parent, a point each: above the diagonal a mix is harder than both parents.

    - kinds: name -> (similarity of the harder parent, similarity of the mix), (n,) each
    """
    ax, phrases = axes_for(ax, 8.6, 4.4), []
    looks = style.series(len(kinds), ordered=False)
    for look, (name, (parent, mix)) in zip(looks, kinds.items(), strict=True):
        look = look | {"linestyle": "none", "markersize": 3, "alpha": 0.6}
        above = float((mix > parent + 1e-12).double().mean())
        ax.plot(parent, mix, **look, label=f"{name}: {above:.1%} harder")
        phrases.append(f"{name} {above:.1%}")
    both = torch.cat([x for pair in kinds.values() for x in pair])
    ends = [float(both.min()), float(both.max())]
    ax.plot(ends, ends, color=style.INK, linestyle="-", linewidth=1.2, label="as hard as the harder parent")
    ax.set(xlabel="similarity of the harder parent", ylabel="similarity of the mix")
    style.legend_outside(ax)
    return describe(ax, f"Mixes against their harder parent; harder than it are: {'; '.join(phrases)}.")


@style.in_course_style
def on_the_circle(
    anchor: Tensor,
    negatives: Tensor,
    hardest: int = 6,
    synthetic: int = 8,
    temperature: float = 0.5,
) -> Axes:
    """SSCL's figure 2 from vectors: mixes on the chords between the hardest negatives, and who is pushed.

    - anchor: (2,); negatives: (K, 2), unit vectors. The area of a mark is its part of HCL's push at this
      temperature and β = 1, among real negatives and mixes together; a cross is drawn in.

    Raises ValueError unless the vectors are in the plane, and where there are fewer than `hardest`.
    """
    if anchor.shape != (2,) or negatives.ndim != 2 or negatives.shape[1] != 2:
        raise ValueError(
            f"on_the_circle: anchor is {tuple(anchor.shape)} and negatives {tuple(negatives.shape)}, "
            f"but they must be (2,) and (K, 2)"
        )
    draw = torch.Generator().manual_seed(0)
    columns = mixing.hardest((negatives @ anchor)[None], hardest, "on_the_circle")
    (i, a), (j, _) = (mixing.draw(columns, synthetic, draw, negatives.dtype) for _ in range(2))
    first, second, a = negatives[i[0]], negatives[j[0]], a[0, :, None]
    everyone = torch.cat([negatives, a * first + (1 - a) * second])
    s = (everyone @ anchor)[None]
    push = anatomy.forces(HardNegative(temperature, 0.0, 1.0), torch.zeros_like(s[:, :1]), s)[1][0]
    parts = push.clamp(min=0) / push.clamp(min=0).sum()
    real = torch.arange(len(everyone)) < len(negatives)
    _, ax = new(7.0, 4.2)
    angle = torch.linspace(0, 2 * math.pi, 181, dtype=torch.float64)
    ax.plot(angle.cos(), angle.sin(), color="#BDBDBD", linestyle="-", linewidth=1.2, zorder=1)
    for chord in torch.stack([first, second], dim=2):
        ax.plot(*chord.numpy(), color=style.GREY, linestyle="-", linewidth=0.8)
    ax.scatter(*anchor.tolist(), color=style.BLACK, marker="*", s=150, zorder=5)
    marks = (
        ("a negative, pushed", real & (push > 0), style.VERMILLION, "v"),
        ("a mix of two of the hardest", ~real & (push > 0), style.GREEN, "D"),
        ("a negative, drawn in", push < 0, style.GREY, "x"),
    )
    for _, who, color, marker in marks:
        area = (600 * parts[who]).clamp(min=30 if marker == "x" else 3).numpy()
        ax.scatter(*everyone[who].T.numpy(), s=area, color=color, marker=marker, alpha=0.8, zorder=3)
    handles = [ax.scatter([], [], color=style.BLACK, marker="*", s=44, label="the anchor")]
    handles += [ax.scatter([], [], s=44, label=name, color=c, marker=m) for name, _, c, m in marks]
    ax.figure.legend(handles=handles, loc="outside right center")
    ax.set(xlim=(-1.22, 1.22), ylim=(-1.22, 1.22), aspect="equal")
    style.bare(ax)
    return describe(
        ax,
        f"An anchor and {len(negatives)} negatives on the circle; {synthetic} mixes of the {hardest} hardest "
        f"lie on chords between their parents, inside the circle; each mark is as large as its part of the "
        f"push, of which the mixes get {float(parts[~real].sum()):.0%}.",
    )


@style.in_course_style
def with_more_mixes(
    counts: Sequence[int],
    lines: Mapping[str, Sequence[float]],
    hardest: int,
    what: str,
    names: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """A measure against the number of mixes k, a line for each way to use them; dotted: as many as parents.

    The axis is that of SSCL's figures 4 and 5, which have accuracy there.

    - counts: the k; lines: name -> a value for each k; what: the measure, on the axis
    - names: whether the lines have theirs at their ends
    """
    ax = curves(counts, lines, "number of mixes k", what, ax=axes_for(ax, 6.0, 3.6))
    ax.axvline(hardest, color=style.GREY, linestyle=":")
    ax.set_title(f"dotted: k = H = {hardest}", fontsize=10)
    ax.set_xscale("symlog", base=2, linthresh=min(k for k in counts if k))
    ax.set_xticks(counts, [f"{k:,}" for k in counts], rotation=45)
    ax.minorticks_off()
    ax.set_xlim(-min(k for k in counts if k) / 3, 1.25 * max(counts))
    if names:
        style.name_lines(ax)
    return ax


@style.in_course_style
def reported(table: Mapping[str, Sequence[float]], title: str) -> Figure:
    """A table of the paper's, a chart for each of DATA_SETS: a dot a method, the best one filled.

    - table: method -> its accuracies; title: says whose numbers these are
    """
    figure, axes = new(10.6, 0.9 + 0.34 * len(table), 1, len(DATA_SETS), sharey=True)
    phrases = []
    for column, (ax, data_set) in enumerate(zip(axes, DATA_SETS, strict=True)):
        values = [row[column] for row in table.values()]
        best = max(values)
        for y, value in enumerate(values):
            filled = style.BLUE if value == best else "white"
            ax.plot(value, y, marker="o", color=style.BLUE, markerfacecolor=filled, linestyle="none")
            ax.annotate(f"{value:.2f}", (value, y), (7, 0), textcoords="offset points", va="center", size=9.5)
        room = 0.35 * (best - min(values))
        ax.set(title=data_set, xlim=(min(values) - 0.15 * room, best + room), xlabel="top-1, %")
        phrases.append(f"{data_set}: best {list(table)[values.index(best)]} with {best:.2f}")
    axes[0].set_yticks(range(len(table)), list(table))
    axes[0].invert_yaxis()
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return describe(figure, f"{title}. {'; '.join(phrases)}.")
