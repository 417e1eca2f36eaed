"""Panels of notebook 16: one σ on columns with units, and what a view leaves of a correlation."""

from collections.abc import Callable
from statistics import mean

import numpy as np
import torch
from matplotlib.ticker import LogLocator
from torch import Tensor

from clutils import encoders, figures, losses, methods
from clutils.course.panels import Panel, choose, log_slider, panel, slider
from clutils.course.vectors.exercises import strength_for
from clutils.data import vectors
from clutils.figures import style
from clutils.views.vectors import Corruption, Masking, Noise

SIGMAS = (0.01, 100)  # of the slider
PAIR = (6, 7)  # of breast cancer's columns: mean concavity, mean concave points


def raw(name: str) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """A table in its own units: all rows (N, D) float32, labels (N,), and the columns' names."""
    from sklearn import datasets

    parts = vectors.table(name)
    columns = getattr(datasets, f"load_{name.replace('-', '_')}")().feature_names
    rows = torch.from_numpy(parts.vectors.astype(np.float32))
    return rows, torch.from_numpy(parts.labels), tuple(map(str, columns))


def mixup(most: float) -> Callable[[Tensor, torch.Generator], Tensor]:
    """DACL's view: a share, up to `most`, of another row."""
    return methods.DACL(encoders.MLP(2, hidden=2, features=2), losses.NTXent(), mixed=most).mix


def correlation(x: Tensor, y: Tensor) -> float:
    """Pearson's, of two columns (N,)."""
    return float(torch.corrcoef(torch.stack([x, y]).double())[0, 1])


def one_sigma(name: str = "wine") -> Panel:
    """A slider for σ over a table's columns, each at its spread, and what neighbours make of noisy rows.

    Nearest by distance, not by cosine: of a noisy row among all clean rows but its own, five by vote.
    """
    x, labels, columns = raw(name)
    spread = x.std(dim=0)
    order = spread.argsort()
    scaled = (x - x.mean(dim=0)) / spread
    figure, ax = figures.new(9.6, 4.2)
    with style.course():
        ax.barh(range(len(order)), spread[order].tolist(), color=style.BLUE)
        line = ax.axvline(1.0, color=style.VERMILLION, linestyle="--", linewidth=2)
        named = {"transform": ax.get_xaxis_transform(), "ha": "center", "va": "bottom"}
        written = ax.text(1.0, 1.0, "σ = 1", color=style.readable(style.VERMILLION), **named)
        style.log_axis(ax.xaxis)
        ax.xaxis.set_major_locator(LogLocator())
        ax.set(yticks=range(len(order)), xlabel="standard deviation, in the column's unit")
        ax.set_xlim(SIGMAS[0] / 2, 2 * max(SIGMAS[1], float(spread.max())))
        ax.set_yticklabels([columns[c] for c in order], fontsize=9)
    figures.describe(figure, f"Bars: the spread of each column of {name}. A dashed line: σ of the noise.")

    def share(rows: Tensor, sigma: float | Tensor) -> float:
        noise = torch.randn(rows.shape, generator=torch.Generator().manual_seed(0))
        far = torch.cdist(rows + sigma * noise, rows).fill_diagonal_(torch.inf)
        voted = labels[far.topk(5, largest=False).indices].mode(dim=1).values
        return float((voted == labels).double().mean())

    def update(sigma: float) -> str:
        line.set_xdata([sigma, sigma])
        written.set(x=sigma, text=f"σ = {sigma:g}")
        drowned, untouched = int((spread < sigma).sum()), int((spread > 10 * sigma).sum())
        return (
            f"σ = {sigma:g} in raw units: {drowned} of {len(spread)} columns have less spread than noise, "
            f"{untouched} have more than ten times as much. The nearest of the other rows, clean, tell the "
            f"class of a noisy one in {share(x, sigma):.0%} of cases raw, in {share(scaled, sigma):.0%} "
            "where each column is divided by its spread and has the same σ"
        )

    return panel(figure, update, sigma=log_slider("σ of the noise", *SIGMAS, 1.0))


def kept_correlation() -> Panel:
    """Two columns of breast cancer, and of their views: a menu of views, a slider for how strong."""
    x, labels, columns = raw("breast-cancer")
    pair = torch.stack([x[:, c] / x[:, c].std() for c in PAIR], dim=1)
    before = correlation(*pair.T)
    figure, axes = figures.new(9.6, 4.2, 1, 2, sharex=True, sharey=True)
    with style.course():
        marks = []
        for ax, title in zip(axes, ("rows", "their views"), strict=True):
            for label, (colour, mark) in enumerate(((style.VERMILLION, "x"), (style.BLUE, "o"))):
                own = labels == label
                (points,) = ax.plot(
                    *pair[own].T,
                    mark,
                    color=colour,
                    markersize=4,
                    alpha=0.6,
                    label=("malignant", "benign")[label],
                )
                marks.append(points)
            ax.set(title=title, xlabel=f"{columns[PAIR[0]]} / spread", xlim=(-2.5, 6.5), ylim=(-2.5, 6.5))
        axes[0].set_ylabel(f"{columns[PAIR[1]]} / spread")
        axes[0].legend(loc="upper left")
    figures.describe(figure, "Two columns of breast cancer: left rows, right views. Crosses: malignant.")

    def update(view: str, c: float) -> str:
        dice = torch.Generator().manual_seed(0)
        made = {"corruption": Corruption(c), "masking": Masking(c), "noise": Noise(strength_for(c))}
        change = made[view] if view in made else mixup(c / 2)
        draws = [change(pair, dice) for _ in range(40)]  # of 569 rows one alone may be off by a tenth
        seen = draws[0]
        expected = {"corruption": (1 - c) ** 2, "noise": 1 / (1 + strength_for(c) ** 2)}
        expected |= {"masking": 1 - c, "mixup": 1.0}
        for label, points in enumerate(marks[2:]):
            points.set_data(*seen[labels == label].T)
        what = {"noise": f"σ = {strength_for(c):.2f}", "mixup": f"shares up to {c / 2:.2f}"}
        return (
            f"{view}, {what.get(view, f'c = {c:.2f}')}: correlation of the two columns {before:.2f} in the "
            f"rows, {mean(correlation(*draw.T) for draw in draws):.2f} in the views, by step 3 "
            f"{expected[view] * before:.2f}; of a column with its view "
            f"{mean(correlation(pair[:, 0], draw[:, 0]) for draw in draws):.2f} (means of 40 draws)"
        )

    names = ("corruption", "noise", "masking", "mixup")
    return panel(figure, update, view=choose("view", names), c=slider("c strength", 0.0, 0.9, 0.3, 0.05))
