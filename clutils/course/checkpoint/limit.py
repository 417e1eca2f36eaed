"""One limit of the report under a slider: recorded encoders, and how many it calls wrongly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clutils import figures
from clutils.course.panels import Panel, panel, slider
from clutils.figures import style

if TYPE_CHECKING:
    import pandas

KINDS = ("healthy", "half-trained")  # as measured beforehand, on other images
LOW, HIGH = -0.2, 0.6  # of the axis


def gains(made: pandas.DataFrame) -> list[tuple[float, str]]:
    """kNN minus that of fresh weights, and what it is, of each held-out encoder of the two `KINDS`.

    - made: the record `calibration`, one row an encoder
    """
    held_out = made[(made["group"] == "fresh3") & made["expected"].isin(KINDS)]
    numbers = map(json.loads, held_out["numbers"])
    found = [round(one["knn_beside_untrained"] - one["knn_untrained"], 6) for one in numbers]
    return list(zip(found, held_out["expected"], strict=True))


def mistakes(encoders: list[tuple[float, str]], limit: float) -> tuple[int, int]:
    """False alarms and misses, if an encoder below the limit is called half-trained."""
    healthy, half = ([gain for gain, kind in encoders if kind == each] for each in KINDS)
    return sum(gain < limit for gain in healthy), sum(gain >= limit for gain in half)


def one_limit(made: pandas.DataFrame) -> Panel:
    """A slider for the limit below which an encoder is called half-trained, over the held-out encoders."""
    encoders = gains(made)
    figure, ax = figures.new(9.6, 2.9)
    with style.course():
        for row, (kind, colour, mark) in enumerate(zip(KINDS, (style.BLUE, style.ORANGE), "os", strict=True)):
            own = [gain for gain, each in encoders if each == kind]
            ax.plot(own, [row] * len(own), mark, color=colour, markersize=8, alpha=0.8)
        (wrong,) = ax.plot([], [], "o", color="black", markersize=15, fillstyle="none")
        line = ax.axvline(0.0, color="black", linestyle="--")
        ax.set(xlim=(LOW, HIGH), ylim=(-0.6, 1.6), yticks=(0, 1))
        ax.set_yticklabels(KINDS)
        ax.set_xlabel("kNN accuracy, minus that of fresh weights (ringed: called wrongly)")

    def update(limit: float) -> str:
        missed = [(gain, KINDS.index(kind)) for gain, kind in encoders if KINDS[gain < limit] != kind]
        wrong.set_data([gain for gain, _ in missed], [row for _, row in missed])
        line.set_xdata([limit, limit])
        alarms, misses = mistakes(encoders, limit)
        healthy, half = (sum(kind == each for _, kind in encoders) for each in KINDS)
        said = (
            f"Limit {limit:.3f}: {alarms} of {healthy} healthy encoders are called half-trained "
            f"(false alarms), {misses} of {half} half-trained encoders are missed"
        )
        figures.describe(figure, said + ".")
        return said

    return panel(figure, update, limit=slider("limit", LOW, 0.2, 0.1, 0.005))
