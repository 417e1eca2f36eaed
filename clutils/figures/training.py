"""Curves, distributions of similarities, and accuracies side by side."""

from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from torch import Tensor

from clutils.figures import axes_for, describe, style
from clutils.similarities import normalise, two_views

BINS = torch.linspace(-1, 1, 81)


@style.in_course_style
def curves(
    x: Sequence[float] | Tensor,
    lines: Mapping[str, Sequence[float] | Tensor],
    xlabel: str,
    ylabel: str,
    log: bool = False,
    ordered: bool = False,
    digits: int = 2,
    ax: Axes | None = None,
) -> Axes:
    """Several quantities against one: x (T,), and label -> (T,).

    - log: x on a logarithmic axis; ordered: as in `style.series`; digits: of the values in the alt text
    """
    ax = axes_for(ax, 8.8, 3.8)
    at, phrases = torch.as_tensor(x, dtype=torch.float64), []
    every = max(1, len(at) // 7)
    looks = style.series(len(lines), ordered)
    for k, (look, (label, line)) in enumerate(zip(looks, lines.items(), strict=True)):
        y = torch.as_tensor(line, dtype=torch.float64).detach()
        ax.plot(at, y, **look, markevery=(k % every, every), label=style.folded(label))
        first, last = (style.signed(float(value), digits) for value in (y[0], y[-1]))
        phrases.append(f"{label}: from {first} to {last}")
    ax.set(xlabel=xlabel, ylabel=ylabel, xscale="log" if log else "linear")
    style.name_lines(ax)
    return describe(ax, f"{ylabel} against {xlabel}. {'; '.join(phrases)}.")


@style.in_course_style
def similarity_spread(z1: Tensor, z2: Tensor, title: str = "", ax: Axes | None = None) -> Axes:
    """How the similarities of positives and of negatives are spread over a batch, as two outlined histograms.

    z1, z2: (B, D), row i of both from one image.
    """
    ax = axes_for(ax, 5.0, 3.2)
    pairs = two_views(normalise(z1, "z1", "similarity_spread"), normalise(z2, "z2", "similarity_spread"))
    said = []
    for name, values, line in (("positive", pairs.positives, "-"), ("negative", pairs.negatives, "--")):
        shares = torch.histc(values.detach().flatten().clamp(-1, 1), len(BINS) - 1, -1, 1) / values.numel()
        color = style.role(name)["color"]
        outline = (shares.numpy(), BINS.numpy())
        ax.stairs(*outline, color=color, linestyle=line, linewidth=2, label=f"{name}s")
        ax.stairs(*outline, color=color, fill=True, alpha=0.15)
        said.append(f"{name}s at {float(values.mean()):.2f} on average")
    ax.set(xlim=(-1.02, 1.02), xlabel="similarity s", ylabel="share of the pairs", title=style.literal(title))
    ax.legend(loc="upper left")
    return describe(ax, f"Histograms of similarities{f' ({title})' if title else ''}: {', '.join(said)}.")


@style.in_course_style
def accuracies(
    results: Mapping[str, Sequence[float]],
    label: str = "accuracy",
    chance: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Accuracies with their spread: a row for each name, a bar for each value, a diamond for the mean.

    - results: name -> values, of draws or seeds; from top to bottom
    """
    if not results or not all(len(values) for values in results.values()):
        raise ValueError(f"accuracies: {dict(results)}: every name needs at least one value")
    ax = axes_for(ax, 7.6, 0.9 + 0.42 * len(results))
    said = []
    for row, (name, values) in enumerate(results.items()):
        mean = sum(values) / len(values)
        ax.plot([min(values), max(values)], [row, row], color=style.GREY, linestyle="-", linewidth=1.4)
        ax.plot(values, [row] * len(values), marker="|", markersize=12, color=style.INK, linestyle="none")
        ax.plot([mean], [row], marker="D", markersize=8, color=style.BLUE, linestyle="none", zorder=4)
        ax.text(1.02, row, f"{mean:.3f}", transform=ax.get_yaxis_transform(), va="center")
        among = f" ({min(values):.3f} to {max(values):.3f})" if len(values) > 1 else ""
        said.append(f"{name} {mean:.3f}{among}")
    ax.text(1.02, -0.5, "mean", transform=ax.get_yaxis_transform(), va="bottom", color=style.GREY)
    if chance is not None:
        ax.axvline(chance, color=style.BLACK, linestyle="--", linewidth=1.4)
        ax.text(chance, -0.55, "chance", ha="center", va="bottom")
    ax.set_yticks(range(len(results)), list(map(style.literal, results)))
    ax.set(ylim=(len(results) - 0.5, -0.5), xlabel=label)
    ax.grid(False, axis="y")
    return describe(ax, f"{label}: {'; '.join(said)}.")
