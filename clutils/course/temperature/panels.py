"""The uniformity-tolerance dilemma on the circle: the same start, at a temperature of the reader's choice."""

from __future__ import annotations

from collections.abc import Sequence

from clutils import anatomy, figures, losses, measures
from clutils.course import toys
from clutils.course.panels import Panel, among, player
from clutils.course.sphere import descent
from clutils.course.sphere.figures import outline
from clutils.figures import style

TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0)


def dilemma(temperatures: Sequence[float] = TEMPERATURES, steps: int = 60) -> Panel:
    """Classes on the circle under NT-Xent, moved beforehand: sliders over τ and the steps.

    Left the points after so many steps; in the middle their tolerance and uniformity along the way, for each
    temperature; right the share of the push that falls on false negatives, at the temperature chosen. The
    step length is proportional to τ (0.1 τ), so that 1/τ does not decide who is faster.
    """
    picture = _Picture(temperatures, steps)
    choice = among("τ temperature", temperatures, min(temperatures, key=lambda t: abs(t - 0.1)))
    return player(picture.figure, picture.update, steps + 1, temperature=choice)


class _Picture:
    """The three axes, and the artists that move."""

    def __init__(self, temperatures: Sequence[float], steps: int) -> None:
        z1, z2, self.labels = toys.classes_on_the_circle()
        self.paths, self.tolerance, self.uniformity, self.push = {}, {}, {}, {}
        for t in temperatures:
            path = descent.move(losses.NTXent(t), z1, z2, steps=steps, learning_rate=0.1 * t)
            self.paths[t] = path.z1
            self.tolerance[t] = [measures.tolerance(z, self.labels) for z in path.z1]
            self.uniformity[t] = [measures.uniformity(z) for z in path.z1]
            pairs = zip(path.z1, path.z2, strict=True)
            self.push[t] = [
                float(anatomy.push_on_false_negatives(a, b, self.labels, t).mean()) for a, b in pairs
            ]
        with style.course():
            self._draw(steps)

    def _draw(self, steps: int) -> None:
        self.figure, (ring, plane, share) = figures.new(10.2, 3.6, 1, 3, width_ratios=[1, 1.1, 1.1])
        outline(ring, 1.18)
        looks = style.series(int(self.labels.max()) + 1, ordered=False)
        self.points = [
            ring.scatter([], [], color=k["color"], marker=k["marker"], s=50, edgecolor="white", zorder=4)
            for k in looks
        ]
        for t in self.paths:
            plane.plot(self.uniformity[t], self.tolerance[t], color="#C9C9C9", linestyle="-", linewidth=1)
            share.plot(self.push[t], color="#C9C9C9", linestyle="-", linewidth=1)
        share.axhline(self._fair(), color=style.GREY, linestyle=(0, (4, 3)), linewidth=1.3)
        share.text(steps, self._fair() - 0.03, "their share in number", ha="right", va="top")
        here = {"color": style.VERMILLION, "marker": "o", "markersize": 9, "linestyle": "none", "zorder": 6}
        (self.trade,) = plane.plot([], [], color=style.BLUE, linestyle="-")
        (self.trade_here,) = plane.plot([], [], **here)
        (self.shares,) = share.plot([], [], color=style.BLUE, linestyle="-")
        (self.share_here,) = share.plot([], [], **here)
        plane.set(xlabel="uniformity (left: more even)", ylabel="tolerance (up: classes tighter)")
        plane.set_title("the dilemma")
        share.set(xlim=(0, steps), ylim=(0, 1.04), xlabel="step", ylabel="share of the push")
        share.set_title("push on false negatives")
        figures.describe(
            self.figure,
            f"Three charts: {len(self.labels)} points of {len(looks)} classes on a circle, after the chosen "
            "number of steps at the chosen temperature; their tolerance against their uniformity along the "
            "way, other temperatures in grey; and the share of the push that falls on the same class.",
        )

    def _fair(self) -> float:
        """The share of false negatives among an anchor's negatives, in number."""
        same = (self.labels[:, None] == self.labels[None, :]).sum(dim=1).double().mean().item()
        return (same - 1) / (len(self.labels) - 1)

    def update(self, step: int, temperature: float) -> str:
        z = self.paths[temperature][step]
        for label, points in enumerate(self.points):
            points.set_offsets(z[self.labels == label])
        tolerance, uniformity = self.tolerance[temperature], self.uniformity[temperature]
        self.trade.set_data(uniformity, tolerance)
        self.trade_here.set_data([uniformity[step]], [tolerance[step]])
        push = self.push[temperature]
        self.shares.set_data(range(len(push)), push)
        self.share_here.set_data([step], [push[step]])
        return (
            f"τ = {temperature:g}, step {step}: tolerance {tolerance[step]:.2f} (from {tolerance[0]:.2f}), "
            f"uniformity {uniformity[step]:.2f} (from {uniformity[0]:.2f}). {push[step]:.0%} of the push "
            f"falls on false negatives, which are {self._fair():.0%} of all."
        )
