"""Hyper-parameters: range, symbol and slider of each, declared once, on the loss or method that has it."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Hyperparameter:
    """The values that a hyper-parameter may have, as in Hyperparameter(0, 10, "α", dial=(0, 2, "even")).

    - lowest, highest: ends of its range, which belong to it unless it is open there
    - symbol: the paper's
    - dial: where its slider goes from and to, and how: "even", "log", "doubling" or "near one"
    - whole: whole numbers alone
    - also: values beside the range, None or infinity
    - switch: True and False alone

    `str` of it says the range in words.
    """

    lowest: float
    highest: float = math.inf
    symbol: str = ""
    dial: tuple[float, float, str] | None = None
    whole: bool = False
    open_below: bool = False
    open_above: bool = False
    also: tuple[float | None, ...] = ()
    switch: bool = False

    def allows(self, value: object) -> bool:
        if self.switch or isinstance(value, bool):
            return self.switch and isinstance(value, bool)
        if not isinstance(value, numbers.Integral if self.whole else numbers.Real) or value == math.inf:
            return isinstance(value, float | None) and value in self.also
        if value == self.lowest or value == self.highest:
            return not (self.open_below if value == self.lowest else self.open_above)
        return self.lowest < value < self.highest

    def __str__(self) -> str:
        if self.switch:
            return "True or False"
        low, high = f"{self.lowest:g}", f"{'below ' if self.open_above else ''}{self.highest:g}"
        if self.whole and self.highest == self.lowest + 1:
            return f"{low} or {high}"
        words = f"above {low}" if self.open_below else f"from {low}"
        if self.highest < math.inf:
            ends = high if self.open_above else f"at most {high}"
            words += f" and {ends}" if self.open_below else f" to {high}"
        elif not self.open_below:
            words += " on"
        kind = "a whole number" if self.whole else "a number"
        return ", or ".join([f"{kind} {words}", *map(str, self.also)])


def declare(**ranges: Hyperparameter) -> Mapping[str, Hyperparameter]:
    """The `ranges` of a class, by name."""
    return MappingProxyType(ranges)


SWITCH = Hyperparameter(0, 1, switch=True)
# between these temperatures every loss of the family is finite in float32
TEMPERATURE = Hyperparameter(1e-6, 1e6, "τ", dial=(0.01, 5, "log"))


def check(of: Any, ranges: Mapping[str, Hyperparameter], who: str) -> None:
    """Raise ValueError, quoting `who`, name and value, where one of these attributes is out of its range.

    Numbers of other kinds, as NumPy's, become Python's own.
    """
    for name, declared in ranges.items():
        value = getattr(of, name)
        if not declared.allows(value):
            raise ValueError(f"{who}: {name} is {value!r}, but must be {declared}")
        if isinstance(value, numbers.Real) and type(value) not in (int, float, bool):
            object.__setattr__(of, name, int(value) if isinstance(value, numbers.Integral) else float(value))


def document(kind: type) -> None:
    """Append its `ranges` to a class's docstring, a line each."""
    if kind.__doc__ and kind.ranges:
        kind.__doc__ = inspect.cleandoc(kind.__doc__) + "\n\nRanges:\n"
        for name, declared in kind.ranges.items():
            kind.__doc__ += f"\n- {name}{f' ({declared.symbol})' if declared.symbol else ''}: {declared}"
