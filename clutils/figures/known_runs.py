"""Curves of recorded runs, by `benchmarks/known_runs.py`, and one's own over them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clutils.figures import describe, new, style
from clutils.training import migrations

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KEPT = Path(__file__).with_name("known_runs.csv")
PANELS = {  # column -> title
    "learned": "loss: share of the way from chance to the best",
    "W": "W, the gradient's scale",
    "effective_rank": "effective rank, before the head",
    "uniformity": "uniformity, after the head",
    "knn": "kNN accuracy",
}


def read() -> pd.DataFrame:
    """The recorded rows, a row a look: run, step, the columns of `PANELS`, loss, and what the run was."""
    import pandas as pd

    return pd.read_csv(KEPT)


def own_curve(path: Path, chance: float | None, best: float | None) -> pd.DataFrame:
    """A run's own curve: `history.csv` of train, a `Watcher`'s table, or any table with a column step.

    The loss becomes a share of the way from `chance` to `best`, of the ruler; None = there is no such share.
    Raises ValueError, with the columns there are, where there is no step or nothing to draw.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path} is no table in CSV: {error}") from error
    columns = ", ".join(map(str, table.columns))
    if "head_uniformity" in table:  # a Watcher's name for it
        table["uniformity"] = table["head_uniformity"]
    if "loss" in table and chance is not None and best is not None and chance != best:
        table["learned"] = (chance - table["loss"]) / (chance - best)
    if "step" not in table or not any(name in table for name in PANELS):
        raise ValueError(f"{path} needs a column step and one of loss, {', '.join(PANELS)}; it has {columns}")
    for name in ("step", *(set(PANELS) & set(table.columns))):
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ValueError(f"{path}: the column {name} must have numbers alone, it has {table[name].dtype}")
    return migrations.of_history(table) if {"loss", "chance", "radius"} <= set(table) else table  # of iSogCLR


def in_words(own: pd.DataFrame) -> list[str]:
    """A line a number: its last value, and that of each recorded run at the step nearest to it."""
    said = []
    for name, title in PANELS.items():
        known = own.dropna(subset=[name]) if name in own else own[:0]
        if not len(known):
            continue
        step, value = known["step"].iloc[-1], known[name].iloc[-1]
        beside = []
        for run, rows in read().dropna(subset=[name]).groupby("run", sort=False):
            near = rows.iloc[(rows["step"] - step).abs().argmin()]
            beside.append(f"{run} {near[name]:.3g} (step {near['step']:.0f})")
        said.append(f"{title}: {value:.3g} at step {step:.0f}; {', '.join(beside)}")
    return said


@style.in_course_style
def over_known(own: pd.DataFrame, name: str = "this run") -> Figure:
    """One's own curve over those of the recorded runs: a panel a number, against the step."""
    figure, axes = new(12.8, 6.4, 2, 3)
    recorded = read()
    runs = list(recorded.groupby("run", sort=False))
    for ax, (column, title) in zip(axes.flat, PANELS.items(), strict=False):
        looks = style.series(len(runs), ordered=False)
        for (run, rows), look in zip(runs, looks, strict=True):
            ax.plot(rows["step"], rows[column], look["linestyle"], color=look["color"], label=run)
        if column in own and len(known := own.dropna(subset=[column])):
            ax.plot(known["step"], known[column], color=style.INK, linewidth=2.4, label=name)
        else:
            ax.text(0.5, 0.5, f"{name} has no such column", transform=ax.transAxes, ha="center")
        ax.set(title=title, xlabel="step")
        style.step_axis(ax)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    last = axes.flat[-1]
    last.set_axis_off()
    last.legend(handles, labels, loc="upper left", frameon=False)
    what = "\n".join(style.folded(what, 52) for what in recorded["what"].unique())
    last.text(0, 0.45, style.literal(what), transform=last.transAxes, va="top", fontsize=8, color=style.GREY)
    return describe(figure, f"{name} over recorded runs. {'; '.join(in_words(own))}.")
