"""The lab's sliders: which of them turns what, from where to where, and which values can be."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import ipywidgets as W
from torch import nn

from clutils.course.panels import _align, among, dial
from clutils.settings import Setting
from clutils.training.settings import LEARNING_RATE, check_rate

WIDTH = "300px"  # of a slider: three stand side by side in a JupyterLab cell on a laptop


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
        # numbers alone: None and infinity are no places to turn to
        ranges = {
            name: replace(own, also=()) for name, own in {**ranges, "learning_rate": LEARNING_RATE}.items()
        }
        self.sliders = {
            name: dial(name, value, ranges[name]) for name, value in values.items() if name in ranges
        }
        for name, widget in self.sliders.items():
            widget.continuous_update = False  # a value that the slider only passes is no setting
            widget.observe(lambda change, name=name: self._moved(name, change["new"]), "value")
        _align(self.sliders.values(), WIDTH)
        self.row.children = tuple(self.sliders.values())

    def values(self) -> dict[str, Any]:
        return {name: widget.value for name, widget in self.sliders.items()}

    def place(self, name: str, value: Any) -> None:
        """Put a slider where the value is, without a callback; its range grows where it must."""
        widget, self._held = self.sliders[name], True
        try:
            if isinstance(widget, W.SelectionSlider):
                numbers = [number for _, number in widget.options]
                if value not in numbers:
                    widget.options = among("", numbers, value).options
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
