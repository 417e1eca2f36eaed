"""Points that move on the circle under a loss of choice, and the push on an anchor's negatives."""

import functools
import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from clutils import figures, losses, measures
from clutils.course.panels import Panel, choose, log_slider, panel, player, slider
from clutils.course.sphere import descent
from clutils.course.sphere import figures as drawn
from clutils.course.sphere.descent import Trajectory
from clutils.figures import style
from clutils.losses import Loss

NEEDS = "but the circle needs a loss of each anchor's similarities that keeps no state of a sample"
FEW = {"SSCL": {"hardest": 2, "synthetic": 2}}  # two pictures have two negatives
STEPS, RATE = 150, 0.1
SPREAD, ARC = 0.2, 2.0  # of the start, in radians
NEAREST = 0.95  # beyond it the pair loss's ∂d/∂s, 1/d, outgrows the picture


def circle(
    loss: str = "PairMargin", margin: float = 1.0, temperature: float = 0.2, pictures: int = 5
) -> Panel:
    """Play the way of points under a loss: the circle with its forces, and loss, alignment, uniformity.

    - loss: chosen at first: of the catalogue, a function of each anchor's similarities without a state
    - margin: of a loss that has one, 0 to 2; temperature: likewise, 0.05 to 2; pictures: 2 to 12

    Raises ValueError on a value outside.
    """
    if loss not in offered():
        raise ValueError(f"circle: loss is {loss!r}, {NEEDS}: one of {', '.join(offered())}")
    inputs = {
        "loss": choose("loss", {style.title(name): name for name in offered()}, loss),
        "margin": slider("m margin", 0.0, 2.0, float(margin), 0.1),
        "temperature": log_slider("τ temperature", 0.05, 2.0, temperature),
        "pictures": slider("pictures", 2, 12, pictures),
    }
    for name in ("margin", "temperature", "pictures"):
        inputs[name].continuous_update = False  # a new way takes longer to compute than to show

    shown: tuple[str, float, int] | None = None
    points, strongest, values = None, 1.0, {}
    figure, axes = figures.new(9.6, 4.9, 3, 2, width_ratios=[1.25, 1], sharex="col")
    with style.course():
        grid = axes[0, 0].get_gridspec()
        for ax in axes[:, 0]:
            ax.remove()
        disc = figure.add_subplot(grid[:, 0])
        curves = {}
        for ax, name in zip(axes[:, 1], drawn.QUANTITIES, strict=True):
            (line,) = ax.plot([], [], color=style.BLACK, linestyle="-")
            cursor = ax.axvline(0, color=style.VERMILLION, linestyle="--", linewidth=1.4)
            (here,) = ax.plot([], [], marker="o", markersize=8, color=style.VERMILLION, linestyle="none")
            curves[name] = (ax, line, cursor, here)
            ax.set_title(name)
            ax.set_xlim(-2, STEPS + 2)
        even = axes[2, 1].axhline(0, color=style.GREY, linestyle=":", linewidth=1.4)
        axes[2, 1].set_xlabel("step")
        drawn.key_to_points(figure)
    figures.describe(
        figure,
        "Left, points on a circle, two views of each picture joined by a line, with arrows for the pull of "
        "positives and the push of negatives. Right, loss, alignment and uniformity against the step, a mark "
        "at the step shown and, dotted, the uniformity of evenly spread points.",
    )

    def show(path: Trajectory, made: Loss, pictures: int) -> None:
        """What a new way changes beside the points: their number, the curves and the scales."""
        nonlocal points, strongest, values
        disc.clear()
        points = drawn.Points(disc, pictures)
        disc.set_title(drawn.name_of(made), loc="center")
        strongest = drawn.strongest(*descent.forces(made, path.z1[0], path.z2[0]))
        values = {name: drawn.along(path, name) for name in drawn.QUANTITIES}
        best = measures.uniformity(drawn.evenly(pictures))
        even.set_ydata([best, best])
        for name, (ax, line, _, _) in curves.items():
            line.set_data(range(len(values[name])), values[name])
            low, high = min(values[name]), max(values[name])
            low = min(low, best if name == "uniformity" else 0.0)
            room = 0.08 * max(high - low, 1e-3)
            ax.set_ylim(low - room, high + room)

    def update(step: int, loss: str, margin: float, temperature: float, pictures: int) -> str:
        nonlocal shown
        own = setting_of(loss)
        for name in ("margin", "temperature"):
            inputs[name].layout.display = "" if name == own else "none"
        chosen = loss, {"margin": margin, "temperature": temperature}.get(own, 0.0)
        path, made = way(*chosen, pictures), build(*chosen)
        if shown != (*chosen, pictures):
            shown = (*chosen, pictures)
            show(path, build(*chosen), pictures)  # of its own: a loss may draw at each call
        pull, push = descent.forces(made, path.z1[step], path.z2[step])
        points.update(path.z1[step], path.z2[step], pull, push, strongest, drawn.state(path, step))
        for name, (_, _, cursor, here) in curves.items():
            cursor.set_xdata([step, step])
            here.set_data([step], [values[name][step]])
        widest = float(descent.gaps(path.z1[step]).max())
        return (
            f"{drawn.name_of(made)}, step {step}: loss {float(path.loss[step]):.4f}, "
            f"alignment {values['alignment'][step]:.4f}; the widest gap between neighbours is {widest:.0f}° "
            f"(evenly spread, it would be {360 / pictures:.0f}°)."
        )

    return player(figure, update, STEPS + 1, interval=80, **inputs)


def offered() -> list[str]:
    """The losses of the catalogue that move points by their similarities alone."""
    every = losses.catalogue().items()
    return [name for name, of in every if of.level == "similarity" and "index" not in of.accepts]


def setting_of(loss: str) -> str:
    """The one setting of a loss that the panel turns: its "temperature" or "margin", "" = it has neither."""
    return next((name for name in ("temperature", "margin") if name in getattr(losses, loss).ranges), "")


def build(loss: str, setting: float) -> Loss:
    """The loss of this name with its one setting, a margin or a temperature; all else at its default."""
    own = setting_of(loss)
    built = getattr(losses, loss)(**({own: setting} if own else {}), **FEW.get(loss, {}))
    if hasattr(built, "generator"):  # what it draws is the same at every showing
        built.generator = torch.Generator().manual_seed(0)
    return built


@functools.lru_cache(maxsize=64)
def way(loss: str, setting: float, pictures: int) -> Trajectory:
    """The way of `pictures` pairs of points under a loss, from a start that is the same for every loss."""
    z1, z2 = descent.start(pictures, 2, spread=SPREAD, arc=ARC, seed=0)
    return descent.move(build(loss, setting), z1, z2, STEPS, RATE)


def as_explored(
    loss: str = "PairMargin", margin: float = 1.0, temperature: float = 0.2, pictures: int = 5
) -> dict[str, str | int | float]:
    """The state in which the explorer `circle` opens as this panel does: points, steps, NT-Xent beside."""
    both = descent.start(pictures, 2, spread=SPREAD, arc=ARC, seed=0)
    turns = [math.atan2(y, x) / (2 * math.pi) % 1 for view in both for x, y in view.tolist()]
    places = [np.base_repr(int(turn * 36**3), 36).lower().zfill(3) for turn in turns]
    turned = {"margin": margin, "temperature": temperature}
    own: dict[str, str | int | float] = {name: turned[name] for name in [setting_of(loss)] if name}
    arc = round(ARC / (2 * math.pi), 2)  # in turns
    start = {"pictures": pictures, "arc": arc, "scatter": SPREAD, "at": "".join(places)}
    steps = {"rate": RATE, "proportional": False, "beside_temperature": temperature}
    return {"loss": loss} | own | start | steps


def explore_pushes(compared: Sequence[Loss], positive: float, negatives: Tensor) -> Panel:
    """The push on each negative of one anchor under several losses at once, while one negative moves.

    - compared: losses of level "similarity", side by side
    - positive: s+; negatives: (K,) similarities; the first is the one that moves, from -0.95 to 0.95

    Raises ValueError unless there is a negative beside the one that moves.
    """
    if negatives.ndim != 1 or len(negatives) < 2:
        raise ValueError(f"pushes: negatives is {tuple(negatives.shape)}, but must be (K,), K of 2 or more")
    picture = drawn.PushStems(compared, positive, negatives, NEAREST)

    def update(moving: float) -> str:
        others = zip(picture.losses, picture.update(moving), strict=True)
        said = "; ".join(
            f"{drawn.name_of(loss)}: {now:.3f} (at first {then:.3f})" for loss, (then, now) in others
        )
        return f"Push on the {len(negatives) - 1} negatives that stay where they are. {said}."

    start = slider("s⁻ of one negative", -NEAREST, NEAREST, float(negatives[0]), 0.01)
    return panel(picture.figure, update, moving=start)
