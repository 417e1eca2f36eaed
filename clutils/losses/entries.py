"""Description of a loss or a method: entry in the catalogue, docstring, card in a notebook."""

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from clutils.settings import PLAIN

COMPARES = {
    "both views": "both views as anchors, against the 2B - 2 views of other images",
    "other view": "both views as anchors, against the B - 1 other images of the opposite view",
    "one way": "the first view as anchors, against the B - 1 other images of the second",
    "own view": "the two views of each image, and nothing else",
    "whole batch": "the two views of each image, and each view's batch with what it should look like",
    "features": "each feature of one view with every feature of the other, over the batch",
}


@dataclass(frozen=True)
class Entry:
    """One line of a catalogue; a method's level, pairs and further arguments are its loss's: empty here."""

    cls: Any  # the class itself
    paper: str
    year: int
    equation: str = ""
    level: str = ""
    compares: str = ""
    accepts: tuple[str, ...] = ()

    @classmethod
    def of(cls, described: Any) -> Self:
        """Entry of a class."""
        source = described, described.paper, described.year, described.equation
        if not hasattr(described, "level"):
            return cls(*source)
        compares = COMPARES[described.comparison] + described.extra_negatives
        return cls(*source, described.level, compares, tuple(sorted(described.accepts)))


ASKED = ("paper", "year", "equation", "as_written")  # of a loss
TAKEN = {"training", "generator", "learning_rate"}  # what torch, a step and a run call something else
KNOWN = {  # what these of a loss may be
    "comparison": frozenset(COMPARES),
    "level": frozenset({"similarity", "feature", "batch"}),
    "accepts": frozenset({"queue", "labels", "extra_views", "index"}),
}


def check_declared(classes: Iterable[Any], asked: Iterable[str] = ASKED, formula: bool = True) -> None:
    """Raise TypeError, naming the class, where a loss or a method of the package lacks what is asked of it.

    Its docstring (with the formula and the function that computes it, where it is a loss), what is `asked`,
    a `setting` for each number in its body, and a name of its own: no other's in other case, either. Its
    settings have no name that the base class needs, and what it compares and accepts is known.
    """
    modules: dict[str, str] = {}
    for cls in classes:
        who = f"{cls.__module__}.{cls.__name__}"
        if (other := modules.setdefault(cls.__name__.lower(), cls.__module__)) != cls.__module__:
            raise TypeError(f"two are called {cls.__name__}, one in {other} and {who}: rename one")
        lacking = [name for name in asked if not getattr(cls, name, None)]
        if formula and cls.formula.__qualname__ == "Loss.formula":  # the base's, which computes nothing
            lacking.append("formula")
        if lacking:
            raise TypeError(f"{who} has no {', '.join(lacking)}: CONTRIBUTING.md shows each")
        written = cls.__doc__ or ("$$" if sys.flags.optimize > 1 else "")  # python -OO has no docstrings
        if not written.strip() or (formula and "$$" not in written):
            raise TypeError(
                f"{who} has no docstring{' with its formula between $$ and $$' if formula else ''}"
            )
        for name, kind in inspect.get_annotations(cls).items():
            if kind in (*PLAIN, "float", "int", "bool") and name not in cls.ranges:
                raise TypeError(f"{who}.{name} is no setting: declare it as {name}: ... = setting(...)")
        above = [base for base in cls.__mro__[1:] if base.__module__ != cls.__module__]
        for name in cls.ranges:
            others = [
                base for base in above if name in vars(base) and name not in getattr(base, "ranges", ())
            ]
            if others or name in TAKEN:
                raise TypeError(f"{who}.{name} is taken: every loss or method has something of that name")
        if formula:
            written_down = inspect.getattr_static(cls, "as_written")
            if not isinstance(written_down, staticmethod):
                raise TypeError(f"{who}.as_written is no static method: put @staticmethod above it")
            for name, known in KNOWN.items():
                given = getattr(cls, name)
                unknown = {given} - known if isinstance(given, str) else set(given) - known
                if unknown:
                    said = ", ".join(sorted(known))
                    raise TypeError(f"{who}.{name} has {', '.join(map(repr, sorted(unknown)))}, of {said}")


def document(cls: Any) -> None:
    """Append to a class's docstring its `ranges`, each with its help, and for ours its `example`."""
    if not cls.__doc__ or not hasattr(cls, "paper"):
        return
    if cls.ranges:
        cls.__doc__ = inspect.cleandoc(cls.__doc__) + "\n\nRanges:\n"
        for name, own in cls.ranges.items():
            symbol, help = f" ({own.symbol})" if own.symbol else "", f"; {own.about}" if own.about else ""
            cls.__doc__ += f"\n- {name}{symbol}: {own}{help}"
    if cls.__module__.startswith(("clutils.losses.", "clutils.methods.")):
        lines = "".join(f"\n    >>> {line}" for line in cls.example())
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__)}\n\nExample:\n{lines}"


def card(of: Any, values: Mapping[str, Any]) -> str:
    """Markdown of a loss or a method: the formula of its docstring, present settings, source."""
    cls = type(of)
    text = inspect.cleandoc(cls.__doc__ or "")
    formula = re.search(r"\$\$.*?\$\$", text, re.DOTALL)
    symbols = {name: own.symbol for name, own in cls.ranges.items()}
    settings = (
        f"{symbols.get(name) or ''} `{name}` = {value!r}".strip()
        for name, value in values.items()
        if not isinstance(value, dict) or value
    )
    source = ", ".join(str(part) for part in (cls.paper, cls.year, getattr(cls, "equation", "")) if part)
    parts = (f"**{cls.__name__}**", formula and formula.group(), ", ".join(settings), f"*{source}*")
    return "\n\n".join(part for part in parts if part)
