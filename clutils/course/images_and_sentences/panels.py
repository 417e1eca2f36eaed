"""Panels of notebook 17: a table of cosines that is drawn while a loop trains, and the gap against τ."""

from collections.abc import Callable, Mapping, Sequence

import ipywidgets as W
import numpy as np
from torch import Tensor

from clutils import figures
from clutils.course.panels import Panel, panel, slider
from clutils.figures import style

CLOUDS = (("images", style.BLUE, "o"), ("captions", style.VERMILLION, "^"))
FRESH = "fresh"


def matrix(steps: Sequence[int]) -> tuple[Panel, Callable[[Tensor], None]]:
    """Table of cosines that is drawn while a loop trains, and the function that adds a look to it.

    A loop calls that function after each of `steps`, with (N, N) cosines whose diagonal holds the pairs; the
    table is drawn at once, and afterwards the slider goes back over the looks.
    """
    frames: list[np.ndarray] = []
    figure, ax = figures.new(5.4, 4.4)
    with style.course():
        image = ax.imshow(np.zeros((2, 2)), cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest")
        figure.colorbar(image, ax=ax, label="cosine", shrink=0.8)
        ax.set(xlabel="captions, each in its image's place", ylabel="images", xticks=[], yticks=[])
        ax.grid(False)
    figures.describe(figure, "A table of cosines, images by captions. The pairs are on its diagonal.")

    def update(look: int) -> str:
        if not frames:
            return "no look yet"
        at = min(look, len(frames) - 1)
        N = len(frames[at])
        image.set(data=frames[at], extent=(-0.5, N - 0.5, N - 0.5, -0.5))
        ax.set(xlim=(-0.5, N - 0.5), ylim=(N - 0.5, -0.5))
        own = float(np.trace(frames[at])) / N
        others = (float(frames[at].sum()) - N * own) / (N * (N - 1))
        said = f"mean cosine with the own caption {own:.2f}, with the others {others:.2f}"
        figures.describe(figure, f"Cosines of images and captions after {steps[at]} steps: {said}.")
        return f"after {steps[at]} steps: {said}"

    shown = panel(figure, update, look=slider("look", 0, len(steps) - 1, 0))

    def add(cosines: Tensor) -> None:
        frames.append(cosines.detach().float().cpu().numpy())
        shown.set(look=len(frames) - 1)

    return shown, add


def gap_against_temperature(maps: Mapping[str, np.ndarray], gaps: Mapping[float, Sequence[float]]) -> Panel:
    """A slider for τ over a map of both clouds, and over the gap of each recorded run.

    - maps: "fresh" or τ as a text -> (2, N, 2), images and captions of one run
    - gaps: τ -> the gap of each seed; 0.0 stands for fresh networks
    """
    figure, (left, right) = figures.new(9.4, 4.2, columns=2)
    taus, fresh = sorted(tau for tau in gaps if tau), float(np.mean(gaps[0.0]))
    dots, means = [], []
    with style.course():
        for name, colour, mark in CLOUDS:
            dots += left.plot([], [], mark, color=colour, markersize=4, alpha=0.6, label=name)
            means += left.plot([], [], mark, color=colour, markersize=13, markeredgecolor="white")
        left.legend(loc="upper right")
        left.set(xlabel="strongest direction of both clouds", ylabel="second direction", aspect="equal")
        left.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        for tau in taus:
            colour = style.temperature(tau)
            right.plot(
                [tau] * len(gaps[tau]), gaps[tau], "_", color=colour, markersize=14, markeredgewidth=2.5
            )
        right.axhline(fresh, color=style.GREY, linestyle="--")
        right.annotate("fresh networks", (taus[-1], fresh), (0, 4), textcoords="offset points", ha="right")
        (here,) = right.plot([], [], "D", color=style.BLACK, markersize=8, fillstyle="none")
        right.set(xscale="log", xlabel="τ, fixed while training (a tick a seed)", ylabel="gap")
        right.set(ylim=(0, 1.15 * max(max(values) for values in gaps.values())))
    figures.describe(figure, "Left a map of images and captions, right the gap against the temperature.")

    def update(tau: str) -> str:
        of = 0.0 if tau == FRESH else float(tau)
        for cloud, dot, centre in zip(maps[tau].astype(float), dots, means, strict=True):
            dot.set_data(cloud[:, 0], cloud[:, 1])
            centre.set_data([cloud[:, 0].mean()], [cloud[:, 1].mean()])
        here.set_data([of] if of else [], [np.mean(gaps[of])] if of else [])
        what = f"trained at τ = {tau}" if of else "fresh networks"
        mean, low, high = np.mean(gaps[of]), min(gaps[of]), max(gaps[of])
        said = f"{what}: gap {mean:.2f} on average, {low:.2f} to {high:.2f} over {len(gaps[of])} seeds"
        figures.describe(figure, f"Map of images and captions beside the gap against τ. {said}.")
        return f"{said}; the map is of one seed"

    options = [FRESH, *(f"{tau:g}" for tau in taus)]
    return panel(figure, update, tau=W.SelectionSlider(options=options, value=FRESH, description="τ"))
