"""The limit of many negatives: how fast NT-Xent reaches it, and an encoder whose head is the circle.

Wang & Isola 2020 (arXiv 2005.10242), theorem 1.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from clutils.course.sphere.figures import outline
from clutils.figures import axes_for, describe, new, style

COUNTS = (4, 16, 64, 256, 1024, 4096)


class Errors(NamedTuple):
    """How far NT-Xent minus log K is from its limit: by draw, in the mean, and the leading terms."""

    counts: Tensor
    scatter: Tensor
    mean: Tensor
    scatter_due: Tensor
    mean_due: Tensor


def drawn_errors(
    positive: float, temperature: float, counts: Sequence[int] = COUNTS, draws: int = 2000, seed: int = 0
) -> Errors:
    """NT-Xent of one anchor with K negatives drawn evenly from the circle, again and again.

    On the circle m = E e^(s/τ) = I₀(1/τ) and E e^(2s/τ) = I₀(2/τ), the Bessel function. With v = Var/m² the
    leading terms are √(v/K) and (e^(s⁺/τ)/m - v/2)/K. The mean error is computed minus the linear part of
    each draw, whose expectation is known: else it would take far more draws.
    """
    dice = torch.Generator().manual_seed(seed)
    bessel = torch.special.i0(torch.tensor([1.0, 2.0], dtype=torch.float64) / temperature)
    m, v = float(bessel[0]), float(bessel[1] / bessel[0] ** 2) - 1
    own, rows = math.exp(positive / temperature) / m, []
    for K in counts:
        angle = torch.rand(draws, K, generator=dice, dtype=torch.float64) * 2 * math.pi
        off = (angle.cos() / temperature).exp().mean(dim=1) / m - 1 + own / K
        error = off.log1p()  # of ℓ - log K, from the limit log m - s⁺/τ
        rows.append((float(error.std()), float((error - off).mean()) + own / K))
    scatter, mean = torch.tensor(rows, dtype=torch.float64).T
    K = torch.tensor(counts, dtype=torch.float64)
    return Errors(K, scatter, mean, (v / K).sqrt(), (own - v / 2) / K)


def slope(counts: Tensor, errors: Tensor) -> float:
    """Of |errors| on two logarithmic axes, by least squares over the larger half of the counts."""
    x, y = (values.abs().log()[len(counts) // 2 :] for values in (counts, errors))
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


@style.in_course_style
def decay(errors: Errors, ax: Axes | None = None) -> Axes:
    """Both errors against the number of negatives, on logarithmic axes; their leading terms as lines."""
    ax, said = axes_for(ax, 7.2, 4.0), []
    for look, name, found, due in (
        (style.series(2, False)[0], "one draw (standard deviation)", errors.scatter, errors.scatter_due),
        (style.series(2, False)[1], "mean over draws", errors.mean.abs(), errors.mean_due.abs()),
    ):
        ax.plot(errors.counts, due, color=look["color"], linestyle=look["linestyle"])
        label = f"{name}: slope {slope(errors.counts, found):.2f}".replace("-", "−")
        ax.plot(
            errors.counts, found, color=look["color"], marker=look["marker"], linestyle="none", label=label
        )
        said.append(f"{label}, from {float(found[0]):.2g} to {float(found[-1]):.2g}")
    ax.plot([], [], color=style.INK, label="lines: the leading terms")
    ax.set(yscale="log", xlabel="number of negatives K", ylabel="distance from the limit")
    ax.set_xscale("log", base=2)
    ax.set_xticks(errors.counts, [f"{int(K):,}" for K in errors.counts])
    ax.legend(loc="lower left")
    return describe(ax, f"Distance of NT-Xent minus log K from its limit against K: {'; '.join(said)}.")


@style.in_course_style
def by_class(
    panels: Mapping[str, Tensor], labels: Tensor, names: Sequence[str], classes: Sequence[int]
) -> Figure:
    """Images on the circle, each class on a ring of its own, so that none hides another.

    - panels: title -> z (N, 2), unit rows; labels: (N,); classes: those drawn, from the inside outwards
    """
    figure, axes = new(4.2 * len(panels) + 1.6, 4.2, columns=len(panels), squeeze=False)
    said = []
    for ax, (title, z) in zip(axes[0], panels.items(), strict=True):
        outline(ax, 1.75)
        for k, (look, c) in enumerate(zip(style.series(len(classes), False), classes, strict=True)):
            point = {"color": look["color"], "marker": look["marker"], "linestyle": "none", "alpha": 0.6}
            ax.plot(*(z[labels == c] * (1.1 + 0.14 * k)).T, **point, markersize=5, label=names[c])
        ax.set_title(title)
        lengths = [float(z[labels == c].mean(dim=0).norm()) for c in classes]
        said.append(f"{title}: the classes' mean vectors are {min(lengths):.2f} to {max(lengths):.2f} long")
    style.legend_outside(axes[0][-1], title="class (a ring each)")
    return describe(figure, f"Images on the circle, each class on a ring of its own. {'; '.join(said)}.")


def negatives_needed(similarities: Tensor, temperature: float, accuracy: float) -> float:
    """The K at which one draw's ℓ - log K scatters by `accuracy` around its limit: step 11, solved for K.

    - similarities: (N,), all that is drawn from
    """
    E = torch.exp(similarities / temperature)
    return float(E.var(unbiased=False) / E.mean() ** 2 / accuracy**2)
