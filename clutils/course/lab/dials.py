"""The lab's sliders: which of them turns what, from where to where, and which values can be."""

from collections.abc import Callable, Mapping
from typing import Any

import ipywidgets as W
from torch import nn

from clutils.course.lab.figures import BY_SYMBOL
from clutils.course.panels import _align, among, log_slider, slider
from clutils.settings import Setting
from clutils.training.settings import LEARNING_RATE, check_rate

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

    def build(self, values: Mapping[str, Any], ranges: Mapping[str, Setting]) -> None:
        """New ones for these settings, at these values; ranges: as their method and loss declare them."""
        ranges = {**ranges, "learning_rate": LEARNING_RATE}
        self.sliders = {name: _dial(name, value, ranges[name]) for name, value in values.items()}
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


def check(loss: nn.Module, name: str, value: Any) -> None:
    """Raise ValueError where a run of this loss could not start with it; the loss is changed by that."""
    if name in loss.hyperparameters():
        setattr(loss, name, value)
        loss.check_hyperparameters()
    elif name == "learning_rate":
        check_rate(value)


def _dial(name: str, value: Any, own: Setting) -> W.Widget:
    """A slider, or a box to tick, for a live setting."""
    label = name.replace("_", " ")
    if name in BY_SYMBOL:
        label = f"{own.symbol} {label}"
    if isinstance(value, bool):
        return W.Checkbox(value, description=label, indent=False)
    low, high, kind = own.dial
    low, high = min(low, value), max(high, value)
    if kind == "log":
        made = log_slider(label, low, high, value)
    elif kind == "doubling":
        made = among(label, {low, *(2**k for k in range(13) if low <= 2**k <= high)}, value)
    elif kind == "near one":
        made = among(label, NEAR_ONE, value)
    else:
        made = slider(label, float(low), float(high), float(value), step=0.05)
    made.continuous_update = False  # a value that the slider only passes is no setting
    return made
