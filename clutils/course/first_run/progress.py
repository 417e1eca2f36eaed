"""Charts of a run that fill while it trains: its loss, alignment and uniformity, a measured accuracy."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from clutils.figures import describe, new, style


class Progress:
    """Loss, alignment and uniformity, and a measured accuracy against the step: charts that `update` fills.

    - steps: where the axis ends
    - chance, floor: the loss when nothing is learned, and the one it can't fall below; None = no line
    - baselines: name -> accuracy that the run is compared with
    """

    @style.in_course_style
    def __init__(
        self,
        steps: int,
        chance: float | None = None,
        floor: float | None = None,
        baselines: Mapping[str, float] | None = None,
    ) -> None:
        self.baselines, self.chance = dict(baselines or {}), chance
        self.figure, (loss, shape, accuracy) = new(10.4, 3.3, 1, 3)
        curve = {"color": style.BLUE, "linestyle": "-", "linewidth": 1.4}
        (self.loss,) = loss.plot([], [], **curve)
        for name, value, line in (("chance", chance, "--"), ("floor", floor, ":")):
            if value is not None:
                loss.axhline(value, color=style.BLACK, linestyle=line, linewidth=1.5)
                loss.text(steps, value, f"{name} {value:.2f}", ha="right", va="bottom")
        loss.set(ylim=(0, 1.1 * chance if chance else None), title="loss")
        (self.alignment,) = shape.plot([], [], label="alignment", **curve)
        curve |= {"color": style.VERMILLION, "linestyle": "--"}
        (self.uniformity,) = shape.plot([], [], label="uniformity", **curve)
        shape.set(ylim=(-4.2, 2.2), title="alignment and uniformity")
        halo: dict[str, Any] = {"path_effects": style.halo(), "ha": "right"}
        self.names = [
            shape.text(steps, 0, "", color=line.get_color(), va=va, **halo)
            for line, va in ((self.alignment, "bottom"), (self.uniformity, "top"))
        ]
        heights = style.apart([*self.baselines.values()], [0.085] * len(self.baselines))
        for k, ((name, value), at) in enumerate(zip(self.baselines.items(), heights, strict=True)):
            accuracy.axhline(value, linewidth=1.6, color=style.GREY, linestyle=("--", ":")[k % 2])
            accuracy.text(steps, at, f"{name} {value:.2f}", va="bottom", color=style.INK, **halo)
        (self.accuracy,) = accuracy.plot([], [], color=style.GREEN, linestyle="-", marker="o")
        accuracy.set(ylim=(0, 1), title="kNN accuracy")
        for ax in (loss, shape, accuracy):
            ax.set(xlabel="step", xlim=(0, steps))
        self.status = self.figure.suptitle(" ", x=0.01, ha="left", fontsize=11)

    def update(
        self, rows: Sequence[Mapping[str, float]], measured: Mapping[int, float], status: str = ""
    ) -> Figure:
        """Show a history (as `Run.rows`), the accuracies measured (step -> value), and a line of text."""
        steps = [row["step"] for row in rows]
        for name in ("loss", "alignment", "uniformity"):
            getattr(self, name).set_data(steps, [row[name] for row in rows])
        for text, name, gap in zip(self.names, ("alignment", "uniformity"), (0.12, -0.12), strict=True):
            text.set(text=name if rows else "", y=rows[-1][name] + gap if rows else 0)
        if rows and not self.chance:  # nothing else says how high the axis must be
            self.loss.axes.set_ylim(0, 1.1 * max(row["loss"] for row in rows))
        self.accuracy.set_data(list(measured), list(measured.values()))
        self.status.set_text(status or " ")
        return describe(self.figure, self._in_words(rows, measured))

    def _in_words(self, rows: Sequence[Mapping[str, float]], measured: Mapping[int, float]) -> str:
        if not rows:
            return "Three charts that fill while a run trains: its loss, alignment and uniformity, accuracy."
        first, last = rows[0], rows[-1]
        chance = f" (chance is {self.chance:.2f})" if self.chance is not None else ""
        parts = [f"the loss goes from {first['loss']:.2f} to {last['loss']:.2f}{chance}"]
        for name in ("alignment", "uniformity"):
            parts.append(f"{name} from {first[name]:.2f} to {last[name]:.2f}")
        if measured:
            values = list(measured.values())
            against = "".join(f", {name} {value:.2f}" for name, value in self.baselines.items())
            parts.append(f"kNN accuracy from {values[0]:.2f} to {values[-1]:.2f}{against}")
        return f"Three charts against the step, {last['step']} steps: {'; '.join(parts)}."
