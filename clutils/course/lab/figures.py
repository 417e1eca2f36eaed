"""The training lab's figures: one run that fills six charts while it trains, and runs set side by side."""

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from textwrap import shorten
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from torch import Tensor

from clutils import losses, methods
from clutils.figures import describe, new, style
from clutils.figures.maps import Points, class_name, handles
from clutils.training import comparison
from clutils.training.saved import Comparable

MARGIN = 0.25  # of the span that an axis grows by beyond what made it too short, so that it seldom grows
MOST_NAMES = 10  # classes that the map's legend has room for
MOST_MAPS = 4
MOST_MARKS = 12  # changed settings that are marked: the newest
# settings that the lab writes by their symbol; others share theirs (m is a margin, and a ratio, too)
BY_SYMBOL = (
    *("temperature", "minimum_temperature", "alpha", "alignment_threshold"),
    *("class_prior", "beta", "momentum"),
)
TEMPERATURES = (0.05, 1)  # that the axis of τ has at least: of a single one it would have a tick or two
ACROSS = 3  # charts in a row, beside the map
LABEL = 9  # points, of what stands at a mark
MOVES = {"animated": True}  # what `update` changes: else the first move draws what stands still again


class LabFigure:
    """A map of a run, and beside it five charts against the step: `update` fills them.

    - steps: where the axes end; chance: the loss when nothing is learned, which says how high its axis is;
      None or NaN = there is none, and no word of it in the title
    - ceiling: what the effective rank can't exceed; None = not said
    - baselines: name -> kNN accuracy to compare with
    - labels: (N,), of the map's images; None = no classes; class_names: a name a class
    - measures_knn: whether kNN accuracy is measured; else the chart says that there are no labels
    - map_of: what the map shows, for its title
    """

    @style.in_course_style
    def __init__(
        self,
        steps: int,
        chance: float | None = None,
        ceiling: int | None = None,
        baselines: Mapping[str, float] | None = None,
        labels: Tensor | np.ndarray | None = None,
        class_names: Sequence[str] = (),
        measures_knn: bool = True,
        map_of: str = "PCA of a fixed sample",
    ) -> None:
        self.steps, self.map_of = steps, map_of
        self.baselines = {name: value for name, value in (baselines or {}).items() if math.isfinite(value)}
        self.measures_knn = measures_knn
        self.figure, axes = new(10.4, 4.6, 2, 1 + ACROSS, width_ratios=[1.45, *[1] * ACROSS])
        for ax in axes[:, 0]:
            ax.remove()
        self.map_axes = self.figure.add_subplot(axes[0, 0].get_gridspec()[:, 0])
        *charts, spare = axes[:, 1:].flat
        spare.set_axis_off()
        self.charts = tuple(charts)
        loss, views, rank, knn, temperature = self.charts
        self.loss, self.chance = _empty(loss, style.BLUE), _empty(loss, style.BLACK, linestyle="--")
        known = chance is not None and math.isfinite(chance)
        loss.set(ylim=(0, 1.25 * chance if known and chance > 0 else 1))
        loss.set_title("loss (dashed: chance)" if known else "loss")
        self.alignment = _empty(views, style.BLUE)
        self.uniformity = _empty(views, style.VERMILLION, linestyle="--")
        views.set(ylim=(-4.2, 2.2))
        views.set_title("alignment, uniformity")
        self.names = [  # at the lines' last values
            _beside(views, 1, 0, va=va, color=line.get_color(), **MOVES)
            for line, va in ((self.alignment, "bottom"), (self.uniformity, "top"))
        ]
        self.rank = _empty(rank, style.PURPLE, marker="s")
        rank.set(ylim=(0, 8))
        rank.set_title("effective rank" + ("" if ceiling is None else f" (≤ {ceiling})"))
        self.knn = _empty(knn, style.GREEN, marker="o")
        knn.set(ylim=(0, 1))
        knn.set_title("kNN accuracy")
        self._baselines(knn)
        self.temperature = _empty(temperature, style.ORANGE)
        style.log_axis(temperature.yaxis)
        temperature.set(ylim=TEMPERATURES)
        temperature.set_title("temperature τ")
        self.without = _inside(temperature, "", **MOVES)
        for ax in self.charts:
            ax.set_xlim(0, steps)
            style.step_axis(ax)
        for ax in self.charts[-ACROSS:]:  # those with none below
            ax.set_xlabel("step")
        self._map(labels, class_names)
        self._marks = self._hidden_marks()
        describe(self.figure, self._in_words((), (), ()))

    def _baselines(self, ax: Axes) -> None:
        if not self.measures_knn:
            _inside(ax, "the data has no labels")
            return
        values = list(self.baselines.values())
        high = max(values, default=0) > 0.6  # then the curve is where the names would be
        heights = (
            [0.02 + 0.12 * k for k in range(len(values))]
            if high
            else style.apart(values, [0.12] * len(values))
        )
        looks = (("--", "dashed: "), (":", "dotted: "), ("-.", "dash-dot: "))
        for (name, value), at, (line, said) in zip(self.baselines.items(), heights, looks, strict=False):
            ax.axhline(value, color=style.GREY, linestyle=line, linewidth=1.4)
            _beside(ax, 1, at, f"{said if high else ''}{name} {value:.2f}", va="bottom", color=style.INK)

    def _map(self, labels: Tensor | np.ndarray | None, class_names: Sequence[str]) -> None:
        ax = self.map_axes
        self.points: Points | None = None
        ax.set_title(self.map_of)
        if labels is None:
            ax.set_axis_off()
            return
        labels = torch.as_tensor(labels)
        self.points = Points(ax, labels, size=7, names=False)
        for marks in self.points.marks:
            marks.set(**MOVES)
        known = [c for c in labels.unique().tolist() if c >= 0]
        if 1 < len(known) <= MOST_NAMES:
            names = [(c, shorten(class_name(class_names, c), 18, placeholder="…")) for c in known]
            ax.set_anchor("N")  # the square above, the names in what is left of the room
            small = {"fontsize": 9, "labelspacing": 0.25, "handletextpad": 0.1, "columnspacing": 1.0}
            place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": 2}
            ax.legend(handles=handles(names, 5), **small, **place).set_in_layout(False)

    # ---- what moves ------------------------------------------------------------------------------------

    @style.in_course_style
    def update(
        self,
        rows: Sequence[Mapping[str, float]],
        measured: Sequence[Mapping[str, float]] = (),
        positions: np.ndarray | None = None,
        changes: Sequence[tuple[int, str, float]] = (),
    ) -> Figure:
        """Show a history (as `Run.rows`), what was measured, a map and the settings that were changed.

        - measured: rows with step, knn and effective_rank; positions: (N, 2)
        - changes: (step, name, new value)
        """
        steps = [row["step"] for row in rows]
        if rows and rows[-1]["step"] > self.charts[0].get_xlim()[1]:
            for ax in self.charts:
                ax.set_xlim(0, max(self.steps, 1.25 * rows[-1]["step"]))
        for name in ("loss", "chance", "alignment", "uniformity"):
            _fill(getattr(self, name), steps, [row[name] for row in rows])
        for text, name in zip(self.names, ("alignment", "uniformity"), strict=True):
            text.set(text=f" {name} " if rows else "", y=rows[-1][name] if rows else 0)
        looked = [row["step"] for row in measured]
        _fill(self.rank, looked, [row["effective_rank"] for row in measured])
        if self.measures_knn:
            _fill(self.knn, looked, [row["knn"] for row in measured], low=0.0, high=1.0)
        temperatures = [_temperature(row) for row in rows]
        _fill(self.temperature, steps, temperatures)
        none = bool(rows) and all(map(math.isnan, temperatures))
        self.without.set_text("this loss has none" if none else "")
        if positions is not None and self.points is not None:
            self.points.update(positions)
        self._mark(changes)
        return describe(self.figure, self._in_words(rows, measured, changes))

    def _mark(self, changes: Sequence[tuple[int, str, float]]) -> None:
        """A thin line where a setting was changed, in every chart, and its new value in the first."""
        newest = _settled(changes, self.steps / 50)[-MOST_MARKS:]
        for (lines, text), change in zip_longest(self._marks, newest):
            for artist in (*lines, text):
                artist.set_visible(change is not None)
            if change is None:
                continue
            step, name, value = change
            for line in lines:
                line.set_xdata([step, step])
            first = step < 0.06 * self.charts[0].get_xlim()[1]  # there is no room to the left of it
            words = f" {_turned_to(name, value)} "
            y, side = self._beside_chance()
            text.set(x=step, y=y, va=side, ha="left" if first else "right", text=words)

    def _beside_chance(self) -> tuple[float, str]:
        """Where in the loss chart's height the words at the marks start, so that chance is beyond them."""
        known = [value for value in self.chance.get_ydata() if math.isfinite(value)]
        low, high = self.charts[0].get_ylim()
        if known and (known[-1] - low) / (high - low) < 0.6:
            return 0.98, "top"
        return 0.02, "bottom"

    def _hidden_marks(self) -> list[tuple[list[Line2D], Text]]:
        """Made beforehand: a new artist would have everything that stands still drawn again."""
        first = self.charts[0]
        white = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.8}
        where = {"transform": first.get_xaxis_transform(), "rotation": 90, "fontsize": LABEL}
        hidden = {"visible": False, **MOVES}
        made = []
        for _ in range(MOST_MARKS):
            lines = [
                ax.axvline(0, color=style.GREY, linestyle="-", linewidth=0.8, **hidden) for ax in self.charts
            ]
            text = first.text(0, 0.02, "", ha="right", va="bottom", bbox=white, **where, **hidden)
            text.set_in_layout(False)
            made.append((lines, text))
        return made

    # ---- in words --------------------------------------------------------------------------------------

    def _in_words(
        self,
        rows: Sequence[Mapping[str, float]],
        measured: Sequence[Mapping[str, float]],
        changes: Sequence[tuple[int, str, float]],
    ) -> str:
        if not rows:
            named = ", ".join(ax.get_title() or ax.get_title("left") for ax in self.charts)
            return f"Charts that fill while a run trains: {named}, and a map of a fixed sample of images."
        first, final = rows[0], rows[-1]
        chance = "" if math.isnan(final["chance"]) else f" (chance is {final['chance']:.2f})"
        said = [
            f"the loss goes from {first['loss']:.2f} to {final['loss']:.2f}{chance}",
            f"alignment from {first['alignment']:.2f} to {final['alignment']:.2f}",
            f"uniformity from {first['uniformity']:.2f} to {final['uniformity']:.2f}",
        ]
        looked = {"effective_rank": ("effective rank", ".1f"), "knn": ("kNN accuracy", ".2f")}
        for name, (words, form) in looked.items():
            values = [row[name] for row in measured if not math.isnan(row[name])]
            if values:
                said.append(f"{words} from {values[0]:{form}} to {values[-1]:{form}}")
        if not math.isnan(now := _temperature(final)):
            said.append(f"the temperature is now {now:.3g}")
        turned = ", ".join(f"{_in_full(name, value)} at step {step:,}" for step, name, value in changes)
        turned = f"; changed on the way: {turned}" if turned else ""
        return f"Charts of a run, {final['step']:,} steps: {'; '.join(said)}{turned}; and a map of a sample."


# ---- runs side by side -------------------------------------------------------------------------------------

CURVES = (
    ("loss", "loss"),
    ("uniformity", "uniformity (lower: even)"),
    ("knn", "kNN accuracy"),
    ("temperature", "temperature τ"),
)


@style.in_course_style
def compared_curves(runs: Sequence[Comparable]) -> Figure:
    """Loss, uniformity, kNN accuracy and τ of several runs over each other, a colour and a line style a run.

    runs: with name, history and measured (`saved.Comparable`), at least one with a step.
    """
    if not runs or not any(len(run.history) for run in runs):
        raise ValueError("compared_curves: there is no run with a step to show")
    figure, axes = new(10.4, 3.2, 1, 4, sharex=True)
    charts = dict(zip((name for name, _ in CURVES), axes.flat, strict=True))
    for run, drawn in zip(runs, style.series(len(runs), ordered=False), strict=True):
        marker = drawn.pop("marker")
        for name, ax in charts.items():
            points = {"marker": marker, "markersize": 4.5} if name == "knn" else {}
            ax.plot(
                *_course(run, name), **drawn, **points, linewidth=1.6, label=style.literal(cut(run.name, 44))
            )
    for name, title in CURVES:
        charts[name].set_title(title)
    style.log_axis(charts["temperature"].yaxis)
    used = [value for run in runs for value in _course(run, "temperature")[1] if value > 0]
    low, high = TEMPERATURES
    charts["temperature"].set_ylim(
        min([low, *(value / 2 for value in used)]), max([high, *(2 * value for value in used)])
    )
    if not used:
        _inside(charts["temperature"], "these losses have none")
    charts["knn"].set_ylim(0, 1)
    if not any(len(line.get_xdata()) for line in charts["knn"].lines):
        _inside(charts["knn"], "not measured in these runs")
    for ax in axes:
        ax.set_xlabel("step")
        style.step_axis(ax)
    figure.legend(handles=charts["loss"].lines, loc="outside upper center", ncols=min(3, len(runs)))
    said = []
    for run in runs:
        parts = [f"loss {comparison.last(run, 'loss'):.2f}"]
        parts.append(f"uniformity {comparison.last(run, 'uniformity'):.2f}")
        accuracy = comparison.last(run, "knn")
        parts += [] if math.isnan(accuracy) else [f"kNN accuracy {accuracy:.2f}"]
        temperature = comparison.temperature(run)
        parts += [] if math.isnan(temperature) else [f"temperature {temperature:.3g}"]
        said.append(f"{run.name} ends at {', '.join(parts)}")
    return describe(
        figure,
        f"Curves of {len(runs)} run{'s' if len(runs) > 1 else ''} against the step: {'; '.join(said)}.",
    )


@style.in_course_style
def compared_maps(runs: Sequence[Comparable]) -> Figure:
    """The last maps of one to four runs side by side, each under its name, its step and its kNN accuracy.

    Raises ValueError where no run has a map, and on more than four.
    """
    shown = [run for run in runs if run.map is not None]
    if not 1 <= len(shown) <= MOST_MAPS:
        raise ValueError(
            f"compared_maps: {len(shown)} of {len(runs)} runs have a map; one to four fit in a row"
        )
    names = {
        (c, class_name(run.map.class_names, c))
        for run in shown
        for c in np.unique(run.map.labels).tolist()
        if c >= 0
    }
    listed = 1 < len(names) <= MOST_NAMES
    width = 10.4 / max(2, len(shown))  # inches a map; together as wide as the curves
    across = width * len(shown)
    figure, axes = new(across, width + 1.4, 1, len(shown), squeeze=False)
    for ax, run in zip(axes[0], shown, strict=True):
        labels = torch.as_tensor(run.map.labels)
        Points(ax, labels, size=18, names=False).update(run.map.positions)
        accuracy = comparison.last(run, "knn")
        seen = f"step {run.map.step:,}" + ("" if math.isnan(accuracy) else f", kNN {accuracy:.2f}")
        ax.set_title(style.literal(f"{style.folded(run.name, int(11 * width))}\n{seen}"), fontsize=10.5)
        ax.set_anchor("S")  # what room is left over is the title's
    if listed:
        options: dict[str, Any] = {"handletextpad": 0.1, "columnspacing": 1.2, "fontsize": 9}
        options |= {"loc": "outside lower center", "ncols": round(across / 2)}
        figure.legend(handles=handles(sorted(names), 6), **options)
    said = "; ".join(f"{run.name} at step {run.map.step:,}" for run in shown)
    return describe(figure, f"Maps of the first two principal components, coloured by class: {said}.")


def _course(run: Comparable, name: str) -> tuple[list[float], list[float]]:
    """A column of the history, or the kNN accuracy, against the step; of the temperature the one in use."""
    table = run.measured.dropna(subset=["knn"]) if name == "knn" else run.history
    if name == "temperature" and "effective_temperature" in table:
        name = "effective_temperature"
    if name not in table:
        return [], []
    return table["step"].tolist(), table[name].tolist()


def _fill(
    line: Line2D,
    steps: Sequence[float],
    values: Sequence[float],
    low: float | None = None,
    high: float | None = None,
) -> None:
    """Set a line's points, and let its axis grow, by more than is needed, where they lie outside.

    - low, high: what the axis need not go beyond
    """
    line.set_data(steps, values)
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return
    ax = line.axes
    bottom, top = ax.get_ylim()
    if ax.get_yscale() == "log":
        known = [value for value in known if value > 0]
        bottom, top = (
            (min(known) / 2 if min(known, default=bottom) < bottom else bottom),
            (max(known) * 2 if max(known, default=top) > top else top),
        )
    else:
        span = max(max(known), top) - min(min(known), bottom)
        if max(known) > top:
            top = max(known) + MARGIN * span if high is None else high
        if min(known) < bottom:
            bottom = min(known) - MARGIN * span if low is None else low
    if (bottom, top) != ax.get_ylim():
        ax.set_ylim(bottom, top)


def _empty(ax: Axes, color: str, **look: Any) -> Line2D:
    """A line without points, which `update` fills."""
    usual = {"color": color, "linestyle": "-", "linewidth": 1.4, "markersize": 3.5, **MOVES}
    return ax.plot([], [], **usual | look)[0]


def _temperature(row: Mapping[str, float]) -> float:
    """τ that a step used: MACL's own where there is one; NaN where there is none."""
    return row.get("effective_temperature", row.get("temperature", math.nan))


def _beside(ax: Axes, x: float, y: float, text: str = "", **look: Any) -> Text:
    """The name of a line: at x, a share of the chart's width, and at the line's y, above other lines."""
    place = {"transform": ax.get_yaxis_transform(), "ha": "right", "fontsize": LABEL}
    name = ax.text(x, y, text, path_effects=style.halo(), **place, **look)
    name.set_in_layout(False)
    return name


def _settled(changes: Sequence[tuple[int, str, Any]], within: float) -> list[tuple[int, str, Any]]:
    """The changes without those that the same setting soon left again: a slider on its way is one change."""
    kept: list[tuple[int, str, Any]] = []
    for change in changes:
        if kept and kept[-1][1] == change[1] and change[0] - kept[-1][0] <= within:
            kept.pop()
        kept.append(change)
    return kept


def _inside(ax: Axes, text: str, **options: Any) -> Any:
    place = {"transform": ax.transAxes, "ha": "center", "va": "center", "color": style.GREY}
    return ax.text(0.5, 0.5, text, **place, **options)


def cut(text: str, longest: int) -> str:
    """The text, or its beginning and a sign that there is more; one without any space, too."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def words_of(name: str) -> str:
    """A setting as a reader knows it: its symbol, or its name without underscores."""
    if name == "learning_rate":
        return "rate"
    kinds = (
        *(entry.cls for entry in losses.catalogue().values()),
        *(entry.cls for entry in methods.catalogue().values()),
    )
    symbols = (kind.ranges[name].symbol for kind in kinds if name in BY_SYMBOL and name in kind.ranges)
    return next(symbols, name.replace("_", " "))  # the oldest loss's: τ, though MACL's is τ₀


def _turned_to(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return words_of(name) if value else f"no {words_of(name)}"
    return f"{words_of(name)} {value:.3g}"


def _in_full(name: str, value: Any) -> str:
    return _turned_to(name, value) if isinstance(value, bool) else f"{name.replace('_', ' ')} to {value:.3g}"
