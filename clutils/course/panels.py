"""Sliders and menus, and the panels that join them to a figure."""

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import ipywidgets as W
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from traitlets import TraitError

from clutils import figures
from clutils.course.live import LiveFigure
from clutils.settings import Setting

INPUT_WIDTH = "450px"  # two beside each other in a cell of a laptop
ROUND = (
    *("1", "1.1", "1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "2", "2.2", "2.4", "2.6", "2.8"),
    *("3", "3.3", "3.6", "4", "4.4", "4.8", "5", "5.5", "6", "6.5", "7", "7.5", "8", "8.5", "9", "9.5"),
)
NONE = "none"  # a slider's None, which in ipywidgets is no value
NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.98, 0.99, 0.995, 0.996, 0.999, 0.9999, 1.0)
# as `figures.page` has them
ROUND_CORNERS = "<style>.clutils-panel-image { clip-path: inset(0 round 6px); }</style>"
MUTED = "var(--jp-content-font-color2, #555)"  # JupyterLab's own, so that it suits the dark theme


def slider(
    label: str, low: float, high: float, value: float, step: float | None = None
) -> W.FloatSlider | W.IntSlider:
    """A slider for numbers from low to high; whole numbers where low, high, value and step all are.

    - label: symbol and name, as in "s⁺ positive similarity"
    - step: 1 for whole numbers, else a hundredth of the range, by default

    Raises ValueError when value lies outside.
    """
    _inside(label, low, high, value)
    whole = all(isinstance(x, int) for x in (low, high, value, step or 1))
    kind = W.IntSlider if whole else W.FloatSlider
    step = step or (1 if whole else (high - low) / 100)
    form = ",d" if whole else ".2f" if step >= 0.01 else ".3f"
    return kind(value, min=low, max=high, step=step, description=label, readout_format=form)


def log_slider(label: str, low: float, high: float, value: float) -> W.SelectionSlider:
    """A slider for positive numbers on a logarithmic axis, some 30 round ones a decade: temperatures.

    (ipywidgets' FloatLogSlider moves in equal ratios, which miss the numbers one talks about: 0.5 becomes
    0.502.) Raises ValueError when value lies outside, or low is not positive.
    """
    _inside(label, low, high, value)
    if low <= 0:
        raise ValueError(f"log_slider: {label}: low is {low}, but a logarithmic axis starts above 0")
    return among(label, _round_numbers(low, high), value)


def _round_numbers(low: float, high: float) -> set[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    grid = {float(f"{number}e{decade}") for decade in decades for number in ROUND}
    return {low, high, *(x for x in grid if low < x < high)}


def among(label: str, values: Iterable[Any], value: Any) -> W.SelectionSlider:
    """A slider over given numbers, so that each step changes something (numbers of negatives, for one).

    `value` is put among them if it is missing; `NONE`, if it is there, is the first.
    """
    ordered = sorted({*values, value}, key=lambda number: -math.inf if number == NONE else number)
    return W.SelectionSlider(options=[(_said(x), x) for x in ordered], value=value, description=label)


def _said(number: Any) -> str:
    if number in (NONE, math.inf):
        return NONE if number == NONE else "∞"
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def dial(name: str, value: Any, declared: Setting) -> W.Widget:
    """A slider for a hyper-parameter, or a box to tick, from its declaration; long enough to hold the value.

    Infinity and None (as `NONE`), where the declaration allows them, are its ends. A pointer that rests on it
    reads the declaration's line of help.
    """
    made = _dial(name, value, declared)
    made.tooltip = declared.about
    return made


def _dial(name: str, value: Any, declared: Setting) -> W.Widget:
    label = " ".join(dict.fromkeys([declared.symbol, name.replace("_", " ")])).strip()
    if declared.switch:
        return W.Checkbox(value, description=label, indent=False)
    if declared.choices is not None:
        return choose(label, {str(one): one for one in declared.choices}, value)
    low, high, how = declared.dial or _a_dial(declared, value)
    if value not in (None, math.inf) and (value > 0 or how != "log"):
        low, high = min(low, value), max(high, value)
    if how == "even" and not declared.also:
        if declared.whole:
            return slider(label, int(low), int(high), int(value))
        return slider(label, float(low), float(high), float(value), 0.05 if high - low > 1 else 0.01)
    values: set[Any] = {low, high}
    if how == "log":
        values = _round_numbers(low, high)
    elif how == "doubling":
        values = {low, *(2**k for k in range(64) if low <= 2**k <= high)}
    elif how == "near one":
        values = {x for x in NEAR_ONE if low <= x <= high}
    else:
        values |= {low + (high - low) * k / 40 for k in range(41)}
    ends = (NONE if end is None else end for end in declared.also)
    return among(label, {*values, *ends}, NONE if value is None else value)


def _a_dial(declared: Setting, value: Any) -> tuple[float, float, str]:
    """Where the slider of one that declares no dial goes: along its range, as far as that is finite."""
    low, high = declared.lowest, declared.highest
    around = max(1.0, abs(value)) if value not in (None, math.inf) else 1.0
    low, high = (end if math.isfinite(end) else sign * 10 * around for sign, end in ((-1, low), (1, high)))
    return low, high, "log" if 0 < 1000 * low < high else "even"


def choose(label: str, options: Sequence[str] | Mapping[str, Any], value: Any = None) -> W.Dropdown:
    """A menu; with a mapping the update function gets what the chosen name stands for.

    - value: what is chosen at first (not its name); by default the first
    """
    pairs = list(options.items()) if isinstance(options, Mapping) else [(name, name) for name in options]
    if not pairs:
        raise ValueError(f"choose: {label}: there is nothing to choose from")
    first = pairs[0][1] if value is None else value
    return W.Dropdown(options=pairs, value=first, description=label)


class ErrorLine(W.HTML):
    """A line that says what went wrong, and takes no room while nothing did."""

    def __init__(self) -> None:
        super().__init__(layout=W.Layout(display="none"))
        self.add_class("clutils-panel-error")

    def say(self, text: str = "") -> None:
        alert = f'<div role="alert" style="color: #B00020; font-weight: 600">{html.escape(text)}</div>'
        self.value, self.layout.display = (alert, "") if text else ("", "none")


class Panel(W.VBox):
    """Inputs above, the live image, and below it a sentence that says what it shows: see `panel`."""

    def __init__(
        self,
        figure: Figure,
        update: Callable[..., str | None],
        inputs: Mapping[str, W.Widget],
        extra: Sequence[W.Widget] = (),
    ):
        self.live, self.update, self.inputs = LiveFigure(figure), update, dict(inputs)
        self.error = ErrorLine()
        self.readout = W.HTML()
        self.reset = W.Button(description="reset", icon="undo", tooltip="Back to the values at the start")
        self.reset.layout = W.Layout(width="90px", margin="2px 2px 2px auto")  # at the right
        self._start = {name: widget.value for name, widget in self.inputs.items()}
        self._held = False
        _align(self.inputs.values())
        line = W.Box(layout=W.Layout(width="100%", height="0px"))  # what follows starts a new one
        first = [*extra, self.reset, line] if extra else []
        controls = W.Box(
            [*first, *self.inputs.values(), *([] if extra else [self.reset])],
            layout=W.Layout(flex_flow="row wrap", align_items="center"),
        )
        self._refresh()
        if not figures.alt(self.live.figure):
            raise ValueError("panels.panel: the figure has no alt text; call figures.describe(ax, '...')")
        for widget in self.inputs.values():
            widget.observe(self._refresh, "value")
        self.reset.on_click(lambda _: self.set(**self._start))
        self.live.image.add_class("clutils-panel-image")
        look = W.HTML(ROUND_CORNERS, layout=W.Layout(display="none"))
        super().__init__([controls, self.error, self.live.image, self.readout, look])

    def values(self) -> dict[str, Any]:
        """Values that the update function gets."""
        return {name: widget.value for name, widget in self.inputs.items()}

    def set(self, **values: Any) -> None:
        """Move several inputs at once, with one new image.

        Raises ValueError on a name that is no input, and on a value that an input can't take.
        """
        unknown = sorted(values.keys() - self.inputs.keys())
        if unknown:
            raise ValueError(f"panel.set: no input {unknown[0]!r}; there are {', '.join(self.inputs)}")
        with self.live.lock:
            self._held = True
            try:
                for name, value in values.items():
                    try:
                        self.inputs[name].value = value
                    except TraitError as error:
                        raise ValueError(f"panel.set: {name} can't be {value!r}: {error}") from None
            finally:
                self._held = False
            self._refresh()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and beside it the image as it stands, for an export where no kernel runs."""
        still = figures.page(self.live.figure, self._sentence or None, self.live.image.value)
        return {**super()._repr_mimebundle_(**options), "text/html": still}

    def _refresh(self, change: Any = None) -> None:
        with self.live.lock:
            if self._held:
                return
            try:
                self._sentence = self.update(**self.values()) or ""
                self.live.draw()
            except Exception as error:  # said where the reader looks, then raised for the kernel's log
                self.error.say(f"{type(error).__name__}: {error}")
                raise
            self.error.say()
            self.readout.value = hidden(figures.alt(self.live.figure)) + below(self._sentence, role="status")


def panel(figure: Figure, update: Callable[..., str | None], /, **inputs: W.Widget) -> Panel:
    """A live figure under sliders: shown by a cell that ends with it.

    - figure: from `figures.new`, with what stands still already drawn, and described (`figures.describe`),
      by `update` at the latest
    - update: gets the inputs' values by name, changes artists (`line.set_ydata`), and returns one sentence
      with the numbers; a listener hears it, everyone else reads it under the image
    - inputs: widgets, as from `slider`, `log_slider`, `among`, `choose`; the names are update's arguments

    An exception in `update` is shown in the panel in one line, and raised. Raises ValueError on a figure
    without alt text.
    """
    return Panel(figure, update, inputs)


def player(
    figure: Figure,
    update: Callable[..., str | None],
    frames: int,
    /,
    *,
    label: str = "step",
    interval: int = 100,
    **inputs: W.Widget,
) -> Panel:
    """A panel over something that was computed beforehand: play, pause, and a slider over its frames.

    - update: as in `panel`; its first argument, `step`, is the frame, from 0 to frames - 1
    - interval: milliseconds from a frame to the next
    """
    if frames < 2:
        raise ValueError(f"player: {frames} frames are nothing to play: at least 2")
    step = slider(label, 0, frames - 1, 0)
    play = W.Play(min=0, max=frames - 1, interval=interval, description="play")
    W.jslink((play, "value"), (step, "value"))  # in the page, so that it runs while the kernel is busy
    return Panel(figure, update, {"step": step, **inputs}, extra=[play])


def button(
    label: str,
    job: Callable[[], Axes | Figure | str],
    working: str = "working …",
    icon: str = "play",
) -> W.VBox:
    """A button for what takes seconds or longer: says that it works, then shows the figure or sentence it
    got.

    - job: called without arguments; returns a figure (or Axes) with alt text, or a sentence

    An exception in `job` is shown under the button in one line, and raised.
    """
    start = W.Button(description=label, icon=icon, layout=W.Layout(width="auto", min_width="160px"))
    status, error, result = W.HTML(), ErrorLine(), W.HTML()

    def run(_: Any) -> None:
        start.disabled, status.value = True, below(working, MUTED, role="status")
        error.say()
        try:
            found = job()
            result.value = below(found) if isinstance(found, str) else figures.page(found)
        except Exception as failure:
            error.say(f"{type(failure).__name__}: {failure}")
            raise
        finally:
            start.disabled, status.value = False, ""

    start.on_click(run)
    return W.VBox([W.HBox([start, status]), error, result])


def _align(widgets: Iterable[W.Widget], width: str = INPUT_WIDTH) -> None:
    """One width for all labels, the longest one's: none is cut and the inputs stand in columns."""
    widgets = list(widgets)
    longest = max((len(widget.description) for widget in widgets), default=0)
    for widget in widgets:
        if getattr(widget, "indent", True):  # a box to tick without one has its label behind it
            widget.style.description_width = f"{0.9 * longest + 1:.1f}ch"
        widget.layout.width = width


def _inside(label: str, low: float, high: float, value: float) -> None:
    if not low <= value <= high or low == high:
        raise ValueError(f"slider {label!r}: value is {value}, but it goes from {low} to {high}")


def below(text: str, color: str = "inherit", role: str = "note") -> str:
    """A line of text under something, for `W.HTML`."""
    return f'<div role="{role}" style="color: {color}; line-height: 1.4">{html.escape(text)}</div>'


def hidden(text: str) -> str:
    """Text for a screen reader alone (ipywidgets' Image knows no alt text)."""
    away = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"
    return f'<div style="{away}">Image: {html.escape(text)}</div>'
