"""How far a report's lines are from their limits, at healthy encoders and at ill ones: a figure of 13."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from clutils import figures
from clutils.figures import style
from clutils.report.calibration import MARGINS, MEANT, Reading
from clutils.report.rules import UNKNOWN

FARTHEST = 16.0  # times the limit, beyond which a point stands at the edge


def margins(rows: Sequence[Reading]) -> Figure:
    """Lines that judge by numbers alone: each encoder's number over the limit, below 1 the line sounds.

    Healthy encoders above, ill ones (harmed by what the line is there for) below, each line's own row.
    """
    figure, axes = figures.new(8, 0.62 * len(MARGINS) + 1.2)
    dice = np.random.default_rng(0)
    kinds = (("healthy", style.BLUE, "o", 0.17), ("ill", style.VERMILLION, "X", -0.17))
    for at, (line, margin) in enumerate(MARGINS.items()):
        judged = [row for row in rows if row.levels.get(line, UNKNOWN) != UNKNOWN]
        healthy = [row for row in judged if not row.ailment]
        ill = [row for row in judged if row.harmed and row.ailment in MEANT[line]]
        for (name, colour, marker, up), own in zip(kinds, (healthy, ill), strict=True):
            x = np.clip([margin(row.numbers) for row in own], 1 / FARTHEST, FARTHEST)
            y = -at + up + dice.uniform(-0.09, 0.09, len(own))
            label = name if at == 0 else None
            axes.scatter(x, y, s=22, color=colour, marker=marker, alpha=0.7, linewidth=0, label=label)
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="the encoder's number over the line's limit (left of 1 the line sounds)")
    axes.set_xticks([1 / 16, 1 / 4, 1, 4, 16], ["1/16 or less", "1/4", "1", "4", "16 or more"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(0, -len(MARGINS), -1), list(MARGINS))
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return figures.describe(figure, _said(rows))


def _said(rows: Sequence[Reading]) -> str:
    said = []
    for line, margin in MARGINS.items():
        own = [row for row in rows if row.levels.get(line, UNKNOWN) != UNKNOWN]
        well = [margin(row.numbers) for row in own if not row.ailment]
        ill = [margin(row.numbers) for row in own if row.harmed and row.ailment in MEANT[line]]
        told = f"ill ones at {np.median(ill):.2g}" if ill else "no ill ones"
        said.append(f"{line}: healthy encoders at {np.median(well):.2g} times the limit, {told} (medians)")
    return "; ".join(said) + "."
