"""The lab's sliders: which of them turns what, from where to where, and which values can be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as W
from torch import nn

from clutils.controls.panels import _align, log_slider, slider
from clutils.figures.lab import SYMBOLS
from clutils.training import Run

# name -> lowest, highest, and how the slider goes between them
RANGES: dict[str, tuple[float, float, str]] = {
    "temperature": (0.01, 5, "log"),
    "minimum_temperature": (0.001, 5, "log"),
    "alpha": (0, 2, "even"),
    "alignment_threshold": (-1, 1, "even"),
    "class_prior": (0, 0.9, "even"),
    "beta": (0, 5, "even"),
    "ratio": (0.1, 100, "log"),
    "d_pos": (0.05, 20, "log"),
    "d_neg": (0.05, 20, "log"),
    "margin": (0, 2, "even"),
    "off_diagonal": (0.0001, 1, "log"),
    "hardest": (1, 4096, "doubling"),
    "synthetic": (0, 4096, "doubling"),
    "query_mixed": (0, 4096, "doubling"),
    "momentum": (0, 1, "near one"),
    "penalty": (0, 10, "even"),
    "share": (0.05, 1, "even"),
    "strength": (0, 2, "even"),
    "clean": (0, 2, "even"),
    "learning_rate": (0.00001, 0.1, "log"),
}
NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.98, 0.99, 0.995, 0.996, 0.999, 0.9999, 1.0)


class Dials:
    """The sliders for what can be turned while a run trains.

    - row: all of them, as the panel shows them
    - sliders: setting -> its slider, or its box to tick
    - moved: called with a setting and its new value when the reader moves one
    """

    def __init__(self, moved: Callable[[str, Any], object]) -> None:
        self.moved = moved
        self.sliders: dict[str, W.Widget] = {}
        self.row = W.Box(layout=W.Layout(flex_flow="row wrap"))
        self._held = False

    def build(self, values: Mapping[str, Any]) -> None:
        """New ones for these settings, at these values."""
        symbols = SYMBOLS | ({"temperature": "τ₀"} if "alignment_threshold" in values else {})  # MACL moves τ
        self.sliders = {name: _dial(name, value, symbols) for name, value in values.items()}
        for name, widget in self.sliders.items():
            widget.observe(lambda change, name=name: self._moved(name, change["new"]), "value")
        _align(self.sliders.values())
        self.row.children = tuple(self.sliders.values())

    def values(self) -> dict[str, Any]:
        return {name: widget.value for name, widget in self.sliders.items()}

    def place(self, name: str, value: Any) -> None:
        """Put a slider where the value is, without a callback; its range grows where it must."""
        widget, self._held = self.sliders[name], True
        try:
            if isinstance(widget, W.SelectionSlider):
                if value not in [number for _, number in widget.options]:
                    options = [*widget.options, (f"{value:g}", value)]
                    widget.options = sorted(options, key=lambda option: option[1])
            elif not isinstance(widget, W.Checkbox):
                widget.max, widget.min = max(widget.max, value), min(widget.min, value)
            widget.value = value
        finally:
            self._held = False

    def _moved(self, name: str, value: Any) -> None:
        if not self._held:
            self.moved(name, value)


def owners(run: Run) -> dict[str, Any]:
    """Setting -> what of a run has it: its method, its loss, or itself."""
    found = dict.fromkeys(run.method.live, run.method)
    found |= dict.fromkeys(getattr(run.loss, "hyperparameters", tuple)(), run.loss)
    return found | {"learning_rate": run}


def owner(run: Run, name: str) -> Any:
    """What of a run has the setting. Raises ValueError where nothing has."""
    found = owners(run)
    if name not in found:
        raise ValueError(f"this run has no setting {name!r}: its loss is {type(run.loss).__name__}")
    return found[name]


def turn(run: Run, name: str, value: Any) -> Any:
    """Set it in a run that is between two steps; returns what it was.

    Raises ValueError on a value that can't be; the old one then stays. (What only a step can refuse, its
    step refuses.)
    """
    of = owner(run, name)
    before = getattr(of, name)
    if before == value:
        return before
    if name == "learning_rate":
        _check_rate(value)
    setattr(of, name, value)
    try:
        if of is run.loss and hasattr(of, "settings"):
            of.settings()
    except ValueError:
        setattr(of, name, before)
        raise
    return before


def check(loss: nn.Module, name: str, value: Any) -> None:
    """Raise ValueError where a run of this loss could not start with it; the loss is changed by that."""
    if name in loss.hyperparameters():
        setattr(loss, name, value)
        loss.settings()
    elif name == "learning_rate":
        _check_rate(value)


def _check_rate(value: Any) -> None:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"learning_rate is {value!r}, but must be a positive number")


def _dial(name: str, value: Any, symbols: Mapping[str, str]) -> W.Widget:
    """A slider, or a box to tick, for a live setting."""
    label = f"{symbols[name]} {name.replace('_', ' ')}" if name in symbols else name.replace("_", " ")
    if name == "learning_rate":
        label = "learning rate"
    if isinstance(value, bool):
        return W.Checkbox(value, description=label, indent=False)
    low, high, kind = RANGES.get(name, (0, max(1.0, 2 * value), "even"))
    low, high = min(low, value), max(high, value)
    if kind == "log":
        made = log_slider(label, low, high, value)
    elif kind == "doubling":
        numbers = {low, *(2**k for k in range(13) if low <= 2**k <= high), value}
        made = W.SelectionSlider(
            options=[(f"{number:,}", number) for number in sorted(numbers)], value=value, description=label
        )
    elif kind == "near one":
        numbers = sorted({*NEAR_ONE, value})
        made = W.SelectionSlider(
            options=[(f"{number:g}", number) for number in numbers], value=value, description=label
        )
    else:
        made = slider(label, float(low), float(high), float(value), step=0.05)
    made.continuous_update = False  # a value that the slider only passes is no setting
    return made
