"""Hyper-parameters: range, symbol and slider of each, declared once, on the loss or method that has it."""

import inspect
import math
import numbers
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple


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

    def allows(self, value: Any) -> bool:
        if self.switch or isinstance(value, bool):
            return self.switch and isinstance(value, bool)
        right: Any = numbers.Integral if self.whole else numbers.Real
        if not isinstance(value, right) or value == math.inf:
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


class Declared(NamedTuple):
    """A hyper-parameter in a class's body: its range and its default."""

    within: Hyperparameter | None
    default: Any


def hyperparameter(within: Hyperparameter | float | None, *further: Any, default: Any, **options: Any) -> Any:
    """One of a loss or method: `q: float = hyperparameter(0, 1, "q", default=0.5)`.

    - within: a range that stands already, or its own arguments; None = no number, checked elsewhere
    """
    if isinstance(within, int | float):
        within = Hyperparameter(within, *further, **options)
    return Declared(within, default)


LAST = ("check_inputs", "hidden")  # in every signature


def gather(kind: Any) -> None:
    """Make `ranges`, defaults and signature of a class from what its body declares by `hyperparameter`.

    Those of the class that it is made from come first, in their places where they are declared anew. One that
    the body gives a plain value keeps that, and is an argument no longer.
    """
    body, before = vars(kind), kind.declared.parameters
    own = {name: value for name, value in body.items() if isinstance(value, Declared)}
    fixed = {name for name in kind.ranges if name in before and name in body and name not in own}
    if "__init__" in body and not own:
        kind.__signature__ = None  # inspect then reads it from `__init__`
    elif own or fixed:
        annotations = inspect.get_annotations(kind)
        ranges = {name: within for name, within in kind.ranges.items() if name not in fixed}
        parameters = {name: parameter for name, parameter in before.items() if name not in fixed}
        for name, (within, default) in own.items():
            setattr(kind, name, default)
            parameters[name] = argument(name, annotations[name], default)
            if within is not None:
                ranges[name] = within
        kind.ranges = declare(**ranges)
        in_order = sorted(parameters.values(), key=lambda parameter: parameter.name in LAST)
        kind.declared = kind.__signature__ = inspect.Signature(in_order)


def argument(name: str, annotation: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """One of a signature."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def arguments(kind: Any, /, *given: Any, **by_name: Any) -> dict[str, Any]:
    """What a call gives a class's declared arguments, or their defaults. Raises TypeError, naming it."""
    try:
        bound = kind.declared.bind(*given, **by_name)
    except TypeError as error:
        raise TypeError(f"{kind.__name__}: {error}") from None
    bound.apply_defaults()
    return bound.arguments


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
        value, plain = getattr(of, name), {int, float, bool}
        if not declared.allows(value):
            raise ValueError(f"{who}: {name} is {value!r}, but must be {declared}")
        if isinstance(value, numbers.Real) and not plain & {type(value)}:
            object.__setattr__(of, name, int(value) if isinstance(value, numbers.Integral) else float(value))


def one_of(who: str, name: str, value: object, known: Iterable[str]) -> None:
    """Raise ValueError unless the value is among the known ones, which the error lists."""
    known = tuple(known)
    if value not in known:
        from clutils.data.sets import did_you_mean

        listed = ", ".join(known) + did_you_mean(value, known)
        raise ValueError(f"{who}: {name} is {value!r}, but must be one of {listed}")


def within(
    who: str, name: str, value: object, lowest: float, highest: float = math.inf, **options: Any
) -> None:
    """Raise ValueError, quoting it, unless the value is in this range; options: of a `Hyperparameter`."""
    allowed = Hyperparameter(lowest, highest, **options)
    if not allowed.allows(value):
        raise ValueError(f"{who}: {name} is {value!r}, but must be {allowed}")


def document(kind: Any) -> None:
    """Append to a class's docstring its `ranges`, a line each, and for one of the package its `example`."""
    if not kind.__doc__ or not hasattr(kind, "paper"):
        return
    if kind.ranges:
        kind.__doc__ = inspect.cleandoc(kind.__doc__) + "\n\nRanges:\n"
        for name, declared in kind.ranges.items():
            kind.__doc__ += f"\n- {name}{f' ({declared.symbol})' if declared.symbol else ''}: {declared}"
    if kind.__module__.startswith(("clutils.losses.", "clutils.methods.")):
        lines = "".join(f"\n    >>> {line}" for line in kind.example())
        kind.__doc__ = f"{inspect.cleandoc(kind.__doc__)}\n\nExample:\n{lines}"


def card(of: Any, values: Mapping[str, Any]) -> str:
    """Markdown of a loss or a method: the formula of its docstring, present settings, source."""
    kind = type(of)
    text = inspect.cleandoc(kind.__doc__ or "")
    formula = re.search(r"\$\$.*?\$\$", text, re.DOTALL)
    symbols = {name: declared.symbol for name, declared in kind.ranges.items()}
    settings = (
        f"{symbols.get(name) or ''} `{name}` = {value!r}".strip()
        for name, value in values.items()
        if not isinstance(value, dict) or value
    )
    source = ", ".join(str(part) for part in (kind.paper, kind.year, getattr(kind, "equation", "")) if part)
    parts = (f"**{kind.__name__}**", formula and formula.group(), ", ".join(settings), f"*{source}*")
    return "\n\n".join(part for part in parts if part)
