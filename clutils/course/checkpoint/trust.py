"""How far a report's lines are from their limits, at healthy encoders and at ill ones: a figure of 13."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from clutils import figures
from clutils.figures import style
from clutils.report import calibration
from clutils.report.calibration import MARGINS, Reading

FARTHEST = 16.0  # times the limit, beyond which a point stands at the edge


def margins(rows: Sequence[Reading]) -> Figure:
    """Lines that judge by numbers alone: each encoder's number over the limit, below 1 the line sounds.

    Healthy encoders above, ill ones (harmed by what the line is there for) below, each line's own row.
    """
    figure, axes = figures.new(8, 0.62 * len(MARGINS) + 1.2)
    dice = np.random.default_rng(0)
    kinds = (("healthy", style.BLUE, "o", 0.17), ("ill", style.VERMILLION, "X", -0.17))
    phrases = []
    for at, (line, margin) in enumerate(MARGINS.items()):
        counted, medians = calibration.of_line(rows, line), []
        for name, colour, marker, up in kinds:
            own = [margin(row.numbers) for row in counted if bool(row.ailment) is (name == "ill")]
            y = -at + up + dice.uniform(-0.09, 0.09, len(own))
            look = {"s": 22, "color": colour, "marker": marker, "alpha": 0.7, "linewidth": 0}
            x = np.clip(own, 1 / FARTHEST, FARTHEST)
            axes.scatter(x, y, label=None if at else name, **look)
            medians.append(
                f"{name} ones at {np.median(own):.2g} times the limit" if own else f"no {name} ones"
            )
        phrases.append(f"{line}: {', '.join(medians)}")
    axes.axvline(1, color="black", linewidth=1)
    axes.set(xscale="log", xlabel="the encoder's number over the line's limit (left of 1 the line sounds)")
    axes.set_xticks([1 / 16, 1 / 4, 1, 4, 16], ["1/16 or less", "1/4", "1", "4", "16 or more"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(0, -len(MARGINS), -1), list(MARGINS))
    figure.legend(loc="outside upper left", ncols=2, frameon=False)
    return figures.describe(figure, "Medians. " + "; ".join(phrases) + ".")
