"""The uniformity-tolerance dilemma on the circle: the same start, at a temperature of the reader's choice."""

from collections.abc import Sequence

from matplotlib.ticker import MaxNLocator

from clutils import anatomy, figures, losses, measures
from clutils.course import toys
from clutils.course.panels import Panel, among, player
from clutils.course.sphere import descent
from clutils.course.sphere.figures import outline
from clutils.course.temperature.figures import class_looks
from clutils.figures import style

TEMPERATURES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0)


def dilemma(temperatures: Sequence[float] = TEMPERATURES, steps: int = 60) -> Panel:
    """Classes on the circle under NT-Xent, moved beforehand: sliders over τ and the steps.

    Left the points after so many steps; in the middle their tolerance and uniformity up to there, for each
    temperature; right the share of the push that falls on false negatives, at the temperature chosen. The
    step length is proportional to τ (0.1 τ), so that 1/τ does not decide who is faster.
    """
    z1, z2, labels = toys.classes_on_the_circle()
    paths, tolerances, uniformities, pushes = {}, {}, {}, {}
    for t in temperatures:
        path = descent.move(losses.NTXent(t), z1, z2, steps=steps, learning_rate=0.1 * t)
        paths[t] = path.z1
        tolerances[t] = [measures.tolerance(z, labels) for z in path.z1]
        uniformities[t] = [measures.uniformity(z) for z in path.z1]
        pairs = zip(path.z1, path.z2, strict=True)
        pushes[t] = [float(anatomy.push_on_false_negatives(a, b, labels, t).mean()) for a, b in pairs]
    same = (labels[:, None] == labels[None, :]).sum(dim=1).double().mean().item()
    fair = (same - 1) / (len(labels) - 1)  # the share of false negatives among an anchor's, in number
    looks = class_looks(labels)
    figure, (ring, plane, share) = figures.new(10.2, 3.6, 1, 3, width_ratios=[1.35, 1, 1])
    with style.course():
        rim = outline(ring, 1.18, temperatures[0])
        classes = [
            ring.scatter([], [], color=k["color"], marker=k["marker"], s=50, edgecolor="white", zorder=4)
            for k in looks
        ]
        others = {}
        for t in paths:  # all temperatures, pale
            look = {"color": style.temperature(t), "linestyle": "-", "linewidth": 1, "alpha": 0.4}
            others[t] = (*plane.plot([], [], **look), *share.plot([], [], **look))
        share.axhline(fair, color=style.GREY, linestyle=(0, (4, 3)), linewidth=1.3)
        share.text(1.33 * steps, fair - 0.03, "their share of the negatives", ha="right", va="top")
        here = {"marker": "o", "markersize": 9, "linestyle": "none", "zorder": 6}
        plain = {"color": style.GREY, "fontsize": 9, "textcoords": "offset points"}
        ends = [  # the names of the coldest and the hottest, beside the ends of their lines
            ax.annotate(f"τ = {t:g}", (0, 0), xytext, ha=ha, va=va, **plain)
            for ax, places in (
                (plane, (((8, -2), "left", "top"), ((-8, 2), "right", "bottom"))),
                (share, 2 * (((8, 0), "left", "center"),)),
            )
            for t, (xytext, ha, va) in zip((min(paths), max(paths)), places, strict=True)
        ]
        (trade,) = plane.plot([], [], linestyle="-")
        (trade_here,) = plane.plot([], [], **here)
        (shares,) = share.plot([], [], linestyle="-")
        (share_here,) = share.plot([], [], **here)
        plane.set(xlabel="uniformity (left: more even)", ylabel="tolerance (up: classes tighter)")
        for axis, of in ((plane.set_xlim, uniformities), (plane.set_ylim, tolerances)):
            low, high = (end(end(values) for values in of.values()) for end in (min, max))
            axis(low - 0.05 * (high - low), high + 0.05 * (high - low))
        plane.xaxis.set_major_locator(MaxNLocator(4))
        plane.set_title("the dilemma")
        share.set(xlim=(0, 1.35 * steps), ylim=(0, 1.04), xlabel="step", ylabel="share of the push")
        share.set_xticks(range(0, steps + 1, 20))
        share.set_title("push on false negatives")
    figures.describe(
        figure,
        f"Three charts: {len(labels)} points of {len(looks)} classes on a circle, after the chosen number of "
        "steps at the chosen temperature; their tolerance against their uniformity up to there, other "
        "temperatures paler; and the share of the push that falls on the same class.",
    )

    def update(step: int, temperature: float) -> str:
        z = paths[temperature][step]
        for label, points in enumerate(classes):
            points.set_offsets(z[labels == label])
        tolerance, uniformity, push = (of[temperature] for of in (tolerances, uniformities, pushes))
        for t, (in_plane, in_share) in others.items():
            in_plane.set_data(uniformities[t][: step + 1], tolerances[t][: step + 1])
            in_share.set_data(range(step + 1), pushes[t][: step + 1])
        for text, t in zip(ends, 2 * [min(paths), max(paths)], strict=True):
            in_plane = text.axes is plane
            text.set_visible(step > 5)  # before that they would lie on each other
            text.xy = (uniformities[t][step], tolerances[t][step]) if in_plane else (step, pushes[t][step])
        for artist in (rim, trade, trade_here, shares, share_here):
            artist.set_color(style.temperature(temperature))
        trade.set_data(uniformity[: step + 1], tolerance[: step + 1])
        trade_here.set_data([uniformity[step]], [tolerance[step]])
        shares.set_data(range(step + 1), push[: step + 1])
        share_here.set_data([step], [push[step]])
        return (
            f"τ = {temperature:g}, step {step}: tolerance {tolerance[step]:.2f} (from {tolerance[0]:.2f}), "
            f"uniformity {uniformity[step]:.2f} (from {uniformity[0]:.2f}). {push[step]:.0%} of the push "
            f"falls on false negatives, which are {fair:.0%} of all."
        )

    choice = among("τ temperature", temperatures, min(temperatures, key=lambda t: abs(t - 1.0)))
    return player(figure, update, steps + 1, temperature=choice)
