"""Two losses on the same similarities: who is pushed, how hard the positive is pulled, force by force.

All values are computed by `clutils.anatomy.forces`, so any loss of level "similarity" can be looked at.
"""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from torch import Tensor

from clutils import anatomy
from clutils.figures import describe, new, style
from clutils.losses import Loss

SWEEP = torch.linspace(-1, 1, 81, dtype=torch.float64)
FORCE = (1e-5, 1e2)  # of the axis of single forces
CEILINGS = tuple(m * 10.0**e for e in range(-1, 5) for m in (1, 2, 5))
BINS = torch.linspace(-1, 1, 41, dtype=torch.float64)


def push_frame(ax: Axes) -> None:
    """Axes for shares over the negatives' similarity: logarithmic, since one in a thousand may get it all."""
    ax.set(xlim=(-1.02, 1.02), xlabel="similarity s⁻ of the negative", yscale="log", ylim=(1e-5, 5))
    ax.set_yticks([10.0**e for e in range(-5, 1)], ["0.001%", "0.01%", "0.1%", "1%", "10%", "100%"])
    ax.yaxis.set_minor_locator(NullLocator())


def options_for(loss: Loss, alignment: float | None) -> dict[str, float]:
    """Options of `per_anchor` beside the similarities: MACL's alignment, where it is given."""
    return {"alignment": alignment} if loss.name == "MACL" and alignment is not None else {}


def pulls(
    loss: Loss, positives: Tensor, negatives: Tensor, to: Tensor = SWEEP, alignment: float | None = None
) -> Tensor:
    """Pull on the positives, summed, while they move together until their mean is at `to`, (n,) -> (n,).

    positives (P,), negatives (K,): one anchor's. A positive that would leave [-1, 1] stops at its end.
    MACL's alignment stays the anchor's own while it moves, unless it is given.
    """
    alignment = float(positives.mean()) if alignment is None else alignment
    moved = (positives[None, :] + (to[:, None] - positives.mean())).clamp(-1, 1)
    table = negatives[None, :].expand(len(to), -1)
    # each place is an anchor alone, also where a loss weighs its anchors against one another
    size, options = 1 if loss.name == "WeightedDecoupled" else len(to), options_for(loss, alignment)
    parts = zip(moved.split(size), table.split(size), strict=True)
    return torch.cat([anatomy.forces(loss, *part, **options)[0].sum(dim=1) for part in parts])


def shares(similarities: Tensor, push: Tensor) -> Tensor:
    """The push (K,) summed over the histogram's bins of similarity, as shares of its total -> (bins,)."""
    bins = torch.bucketize(similarities.clamp(-1, 1), BINS[1:-1])
    summed = torch.zeros(len(BINS) - 1, dtype=torch.float64).index_add_(0, bins, push.double())
    total = float(summed.sum())
    return summed / total if total > 0 else torch.zeros_like(summed)


class Beside:
    """Three axes with two losses on one anchor's similarities, and the artists that move.

    `update` shows other losses or similarities; `figure` is described by its alt text.
    """

    def __init__(self, several: bool = False) -> None:
        with style.course():
            self.figure, (who, how, each) = new(10.6, 4.0, 1, 3)
            self.how = how
            push_frame(who)
            who.set_title("who is pushed")
            zeros, edges = torch.zeros(len(BINS) - 1).numpy(), BINS.numpy()
            self.number = who.stairs(zeros, edges, fill=True, color="#D0D0D0")
            how.set(xlim=(-1.05, 1.05), xlabel="mean s⁺" if several else "s⁺")
            how.set_title("pull on the positives, summed" if several else "pull on the positive")
            how.set_ylabel("−Σ ∂ℓ/∂s⁺" if several else "−∂ℓ/∂s⁺")
            how.axhline(0, color=style.GREY, linewidth=0.8)
            each.set(
                xlim=(-1.05, 1.05),
                ylim=FORCE,
                yscale="log",
                xlabel="similarity of the pair",
                ylabel="|∂ℓ/∂s|",
            )
            each.yaxis.set_minor_locator(NullLocator())
            each.set_title("force on each pair")
            self.sides = [_Side(who, how, each, wide) for wide in (True, False)]
            self.legend: Figure | None = None
            self.shown: tuple[str, ...] = ()
            self.ceiling = (0.0, 0.0)

    def update(
        self,
        compared: Sequence[Loss],
        positives: Tensor,
        negatives: Tensor,
        alignment: float | None = None,
        batch: tuple[Tensor, Tensor] | None = None,
    ) -> str:
        """Show two losses on one anchor: positives (P,), negatives (K,), float64 -> a sentence of numbers.

        - alignment: MACL's A, where it is not this anchor's own
        - batch: tables (A, P), (A, K) of all anchors: the middle image then has a point for each of them,
          else it has the curve along which this anchor would go
        """
        self._name(compared)
        self.number.set_data(shares(negatives, torch.ones_like(negatives)).numpy())
        said, reach, deepest = [], 0.1, 0.0
        for side, loss in zip(self.sides, compared, strict=True):
            options = options_for(loss, alignment)
            pull, push = (f[0] for f in anatomy.forces(loss, positives[None], negatives[None], **options))
            if batch is None:
                along, curve = SWEEP, pulls(loss, positives, negatives, alignment=alignment)
            else:
                along = batch[0].mean(dim=1)
                curve = anatomy.forces(loss, *batch, **options)[0].sum(dim=1)
            side.update(positives, negatives, pull, push, along, curve, joined=batch is None)
            reach, deepest = max(reach, float(curve.max())), min(deepest, float(curve.min()))
            said.append(_said(loss, positives, negatives, pull, push, options))
        self._room(reach, deepest)
        return "; ".join(said) + "."

    def _name(self, compared: Sequence[Loss]) -> None:
        names = tuple(loss.name for loss in compared)
        if names == self.shown:
            return
        self.shown = names
        for side, loss in zip(self.sides, compared, strict=True):
            side.dress(style.loss(loss.name))
        titles = [style.title(loss.name) for loss in compared]
        handles = [Line2D([], [], **side.look, linewidth=side.width) for side in self.sides]
        handles += [
            Line2D([], [], color=style.INK, marker="^", linestyle="none", markersize=8),
            Line2D([], [], color=style.INK, marker="x", linestyle="none"),
        ]
        if self.legend is not None:
            self.legend.remove()
        with style.course():
            self.legend = self.figure.legend(
                [self.number, *handles],
                ["the negatives", *titles, "pull on a positive", "a negative drawn in, not pushed"],
                loc="outside lower center",
                ncols=5,
                handlelength=2.2,
                columnspacing=1.4,
            )
        describe(
            self.figure,
            f"Three charts of {titles[0]} and {titles[1]} on one anchor's similarities: how the negatives "
            "and the push on them are distributed; the pull against the positive's similarity; and the force "
            "on each single pair against its similarity.",
        )

    def _room(self, reach: float, deepest: float) -> None:
        """Limits in round steps, so that they stay while a slider moves a little."""
        top = next((c for c in CEILINGS if c >= 1.02 * reach), reach)
        bottom = -next((c for c in CEILINGS if c >= -1.02 * deepest), -deepest) if deepest < -0.01 else 0.0
        if (bottom, top) != self.ceiling:
            self.ceiling = (bottom, top)
            self.how.set_ylim(bottom - 0.03 * (top - bottom), top * 1.03)


class _Side:
    """One loss's artists in the three axes."""

    def __init__(self, who: Axes, how: Axes, each: Axes, wide: bool) -> None:
        self.width = 3.6 if wide else 2.0  # the first lies beneath and is wider: both are seen where equal
        zeros, empty = torch.zeros(len(BINS) - 1).numpy(), []
        self.share = who.stairs(zeros, BINS.numpy(), linewidth=self.width)
        (self.curve,) = how.plot(empty, empty, linewidth=self.width)
        (self.points,) = how.plot(empty, empty, linestyle="none", markersize=5 if wide else 4, alpha=0.7)
        (self.here,) = how.plot(empty, empty, linestyle="none", marker="^", markersize=12 if wide else 9)
        (self.push,) = each.plot(empty, empty, linewidth=self.width, markersize=4)
        (self.drawn_in,) = each.plot(empty, empty, linestyle="none", marker="x", markersize=6)
        (self.pull,) = each.plot(empty, empty, linestyle="none", marker="^", markersize=11 if wide else 8)

    def dress(self, look: dict) -> None:
        self.look = {"color": look["color"], "linestyle": look["linestyle"]}
        for artist in (self.curve, self.points, self.here, self.push, self.drawn_in, self.pull):
            artist.set_color(look["color"])
        self.share.set_edgecolor(look["color"])
        for artist in (self.share, self.curve, self.push):
            artist.set_linestyle(look["linestyle"])
        self.points.set_marker(look["marker"])

    def update(
        self,
        positives: Tensor,
        negatives: Tensor,
        pull: Tensor,
        push: Tensor,
        along: Tensor,
        curve: Tensor,
        joined: bool,
    ) -> None:
        self.share.set_data(shares(negatives, push.clamp(min=0)).numpy())
        none = torch.empty(0)
        self.curve.set_data(along if joined else none, curve if joined else none)
        self.points.set_data(none if joined else along, none if joined else curve)
        self.here.set_data([float(positives.mean())], [float(pull.sum())])
        order = negatives.argsort()
        s, f = negatives[order], push[order]
        self.push.set_data(s, f.where(f > 0, math.nan))
        self.drawn_in.set_data(s[f < 0], -f[f < 0])
        self.pull.set_data(positives, pull.where(pull > 0, math.nan))


def _said(
    loss: Loss, positives: Tensor, negatives: Tensor, pull: Tensor, push: Tensor, options: dict[str, float]
) -> str:
    value = float(loss.per_anchor(positives[None], negatives[None], **options).detach())
    pushing = push.clamp(min=0)
    where = float((pushing * negatives).sum() / pushing.sum()) if float(pushing.sum()) > 0 else math.nan
    lands = (
        "pushes nothing" if math.isnan(where) else f"the average pushed negative has similarity {where:.2f}"
    )
    numbers = f"loss {value:.3g}, pull {float(pull.sum()):.3g}, {lands}"
    return f"{style.title(loss.name)}: {numbers.replace('-', '−')}"


def beside(
    compared: Sequence[Loss],
    positives: Tensor,
    negatives: Tensor,
    alignment: float | None = None,
    batch: tuple[Tensor, Tensor] | None = None,
) -> Figure:
    """Two losses on one anchor's similarities, standing still: arguments as in `Beside.update`.

    Raises ValueError unless there are two losses, positives (P,) and negatives (K,).
    """
    if len(compared) != 2 or positives.ndim != 1 or negatives.ndim != 1:
        raise ValueError(
            f"forces.beside: needs two losses, positives (P,) and negatives (K,), got {len(compared)}, "
            f"{tuple(positives.shape)} and {tuple(negatives.shape)}"
        )
    picture = Beside(several=len(positives) > 1)
    picture.update(compared, positives.double(), negatives.double(), alignment, batch)
    return picture.figure
