"""Settings: what each may be, its symbol, slider, default and line of help, declared once where it belongs.

In the body of a loss, a method or a dataclass:

    temperature: float = setting(1e-6, 1e6, "τ", dial=(0.01, 5, "log"), default=0.5)

Checks, docstrings, sliders, explorers and options of the command line read that line. What is only an
argument of a function is checked by `within`, `one_of` and `one_device`.
"""

import difflib
import inspect
import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn

PLAIN: tuple[type, ...] = (int, float, bool)  # numbers that a file can hold
SYNONYMS = {  # what people type -> the name here
    **dict.fromkeys(("tau", "τ", "temp", "t"), "temperature"),
    **{"lr": "learning_rate", "wd": "weight_decay", "bs": "batch_size", "optimizer": "optimiser"},
    **{
        "dataset": "data",
        "model": "encoder",
        "backbone": "encoder",
        "arch": "encoder",
        "views": "extra_views",
        "queue": "queue_size",
    },
    **dict.fromkeys(("infonce", "nt-xent", "nt_xent", "simclr", "moco"), "ntxent"),  # losses, in lower case
    **{"hcl": "hardnegative", "dcl": "decoupled", "byol": "regression", "simsiam": "regression"},
}


@dataclass(frozen=True)
class Setting:
    """Range of a setting, as in Setting(0, 10, "α", dial=(0, 2, "even")); `str` of it says so in words.

    - lowest, highest: ends of its range, which belong to it unless it is open there
    - symbol: the paper's
    - dial: where its slider goes from and to, and how: "even", "log", "doubling" or "near one"
    - whole: whole numbers alone
    - also: values beside the range, None or infinity
    - switch: True and False alone
    - choices: these alone, beside `also`
    - entries: names of a tuple's numbers, each of which is in the range; rising: none below the one before
    - anything: what it may be is checked elsewhere
    - about: a line of help; unset: what stands for None, in the same line
    """

    lowest: float = -math.inf
    highest: float = math.inf
    symbol: str = ""
    dial: tuple[float, float, str] | None = None
    whole: bool = False
    open_below: bool = False
    open_above: bool = False
    also: tuple[float | None, ...] = ()
    switch: bool = False
    choices: tuple[Any, ...] | None = None
    entries: tuple[str, ...] = ()
    rising: bool = False
    anything: bool = False
    about: str = ""
    unset: str = ""

    def __post_init__(self) -> None:
        """Raise ValueError on a range without numbers, or a dial that leaves it or moves in no known way."""
        if not self.lowest <= self.highest:
            raise ValueError(f"setting: the range goes from {self.lowest:g} to {self.highest:g}")
        if self.dial is not None:
            low, high, how = self.dial
            one_of("setting: the dial", "last part", how, ("even", "log", "doubling", "near one"))
            allowed = all(map(replace(self, dial=None, entries=()).allows, (low, high)))
            if not allowed or low >= high or (how == "log" and low <= 0):
                said = f"setting: the dial goes from {low:g} to {high:g} ({how}), the range is {self}"
                raise ValueError(f"{said}; log starts above 0" if how == "log" and low <= 0 else said)

    def allows(self, value: Any) -> bool:
        if self.anything:
            return True
        if self.entries:
            several = isinstance(value, Sequence) and len(value) == len(self.entries)
            fits = several and all(map(replace(self, entries=()).allows, value))
            return fits and (not self.rising or list(value) == sorted(value))
        if self.choices is not None:
            return value in (*self.choices, *self.also)
        if self.switch or isinstance(value, bool):
            return self.switch and isinstance(value, bool)
        right: Any = numbers.Integral if self.whole else numbers.Real
        if not isinstance(value, right) or value == math.inf:
            return isinstance(value, float | None) and value in self.also
        if value == self.lowest or value == self.highest:
            return not (self.open_below if value == self.lowest else self.open_above)
        return self.lowest < value < self.highest

    def __str__(self) -> str:
        if self.entries:
            each = f"({', '.join(self.entries)}), each {replace(self, entries=())}"
            return f"{each}, rising" if self.rising else each
        if self.choices is not None:
            return f"one of {', '.join(map(str, [*self.choices, *self.also]))}"
        if self.switch:
            return "True or False"
        low, high = f"{self.lowest:g}", f"{'below ' if self.open_above else ''}{self.highest:g}"
        words = f"above {low}" if self.open_below else f"from {low}"
        if self.highest < math.inf:
            ends = high if self.open_above else f"at most {high}"
            words += f" and {ends}" if self.open_below else f" to {high}"
        elif not self.open_below:
            words += " on"
        kind = "a whole number" if self.whole else "a number"
        return ", or ".join([f"{kind} {words}", *map(str, self.also)])

    def check(self, who: str, name: str, value: Any) -> None:
        """Raise ValueError, quoting `who`, name and value, unless the value is allowed."""
        if not self.allows(value):
            meant = did_you_mean(value, self.choices or ()) if isinstance(value, str) else ""
            raise ValueError(f"{who}: {name} is {value!r}, but must be {self}{meant}")


SWITCH = Setting(switch=True)


# ---- declared in a class's body ----------------------------------------------------------------------------


def setting(
    within: Setting | float | None = -math.inf,
    *further: Any,
    default: Any = MISSING,
    kw_only: bool = False,
    metadata: Mapping[str, Any] | None = None,
    **options: Any,
) -> Any:
    """A dataclass's field with what it may be: `q: float = setting(0, 1, "q", default=0.5)`.

    - within: a `Setting` to start from, or the lowest value; None = it is checked elsewhere
    - further, options: of a `Setting`
    - default: without one the argument must be given; kw_only, metadata: as of `dataclasses.field`
    """
    if within is None:
        within = Setting(anything=True)
    own = replace(within, **options) if isinstance(within, Setting) else Setting(within, *further, **options)
    stated = default is not MISSING and default is not None and not isinstance(default, Mapping)
    if stated and not own.allows(default):
        raise ValueError(f"setting: the default is {default!r}, but must be {own}")
    given: Any = {"default_factory": dict} if isinstance(default, Mapping) else {"default": default}
    return field(**given, kw_only=kw_only, metadata={"setting": own, **(metadata or {})})


def ranges_of(cls: Any) -> Mapping[str, Setting]:
    """The settings that a dataclass, or a class of `collect`, declares: name -> what it may be."""
    declared = cls.arguments if hasattr(cls, "arguments") else {own.name: own for own in fields(cls)}
    known = {name: own.metadata["setting"] for name, own in declared.items() if "setting" in own.metadata}
    return MappingProxyType(known)


def collect(cls: Any) -> Any:
    """A decorator that reads a class's arguments from the fields in its body, as `dataclass` does.

    But it writes no `__init__`, since a torch module has more to do there: that calls `bind`. It leaves
    `arguments`, each field by name; `ranges`, what `setting` said of it; the defaults as class attributes,
    and the signature for `inspect`. A subclass, for which its base's `__init_subclass__` calls this, has the
    base's arguments in their places, then its own. One that its body gives a plain value keeps that value,
    and is an argument no longer. Raises TypeError on a setting without a default.
    """
    body, annotations = dict(vars(cls)), inspect.get_annotations(cls)
    declared = dict(getattr(cls, "arguments", {}))
    for name, value in body.items():
        if isinstance(value, Field):
            value.name, value.type = name, annotations.get(name, value.type)
            declared[name] = value
            if "setting" in value.metadata and value.default is value.default_factory is MISSING:
                raise TypeError(f"{cls.__name__}.{name} needs a default: setting(..., default=...)")
            if value.default is MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)
        else:
            declared.pop(name, None)
    cls.arguments = declared
    cls.ranges = ranges_of(cls)
    own_init = "__init__" in body and not any(isinstance(value, Field) for value in body.values())
    cls.__signature__ = inspect.signature(partial(cls.__init__, None)) if own_init else _signature(cls)
    return cls


class Declared(type):
    """Metaclass of modules with declared settings: once one is made, `demand_known` knows it by `_made`."""

    def __call__(cls, *given: Any, **by_name: Any) -> Any:
        made = super().__call__(*given, **by_name)
        vars(made)["_made"] = True
        return made


def demand_known(of: Any, name: str, value: object) -> None:
    """Raise AttributeError where a module that was made, or a dataclass, gets an attribute that it lacks.

    So no misspelt setting goes unnoticed. A module may get tensors, modules and names that begin with an
    underscore at any time. A class of one's own declares others in its body, or sets them in `__init__`.
    """
    if not getattr(of, "_made", False) or name.startswith("_") or isinstance(value, Tensor | nn.Module):
        return
    if not hasattr(of, name) and name not in getattr(of, "__dataclass_fields__", ()):
        hint = did_you_mean(name, ranges_of(type(of)), listed=True)
        raise AttributeError(f"{type(of).__name__} has no setting {name!r}{hint}")


class OnlyFields:
    """Base of a dataclass that refuses an attribute which is no field of it, as `demand_known` does."""

    _made = True

    def __setattr__(self, name: str, value: Any) -> None:
        demand_known(self, name, value)
        super().__setattr__(name, value)


def _signature(cls: Any) -> inspect.Signature:
    one = inspect.Parameter
    parameters = [
        one(
            name,
            one.KEYWORD_ONLY if own.kw_only is True else one.POSITIONAL_OR_KEYWORD,
            default=one.empty if own.default is MISSING else own.default,
            annotation=own.type,
        )
        for name, own in cls.arguments.items()
    ]
    return inspect.Signature(sorted(parameters, key=lambda parameter: parameter.kind))


def bind(cls: Any, /, *given: Any, **by_name: Any) -> dict[str, Any]:
    """Bound arguments of a call of a class of `collect`, or their defaults. TypeError, naming it."""
    try:
        bound = _signature(cls).bind(*given, **by_name)
    except TypeError as error:
        wrong = [name for name in by_name if name not in cls.arguments]
        hint = did_you_mean(wrong[0], cls.arguments) if wrong else ""
        raise TypeError(f"{cls.__name__}: {error}{hint}") from None
    bound.apply_defaults()
    return bound.arguments


def check(who: str, of: Any, ranges: Mapping[str, Setting] | None = None) -> None:
    """Raise ValueError, quoting `who`, name and value, where one of these attributes is out of its range.

    ranges: None = those that its class declares. Numbers of other kinds, as NumPy's, become Python's own.
    """
    for name, own in (ranges_of(type(of)) if ranges is None else ranges).items():
        value = getattr(of, name)
        own.check(who, name, value)
        if isinstance(value, numbers.Real) and type(value) not in PLAIN:
            object.__setattr__(of, name, int(value) if isinstance(value, numbers.Integral) else float(value))


# ---- arguments of a function -------------------------------------------------------------------------------


def within(
    who: str, name: str, value: object, lowest: float, highest: float = math.inf, **options: Any
) -> None:
    """Raise ValueError, quoting it, unless the value is in this range; options: of a `Setting`."""
    if not lowest <= highest:
        ends = f"at least {lowest:g} and at most {highest:g}"
        raise ValueError(
            f"{who}: {name} is {value!r}, but it would have to be {ends}: too few rows or numbers"
        )
    Setting(lowest, highest, **options).check(who, name, value)


def demand_room(who: str, what: str, numbers: float) -> None:
    """Raise ValueError, before it is allocated, where so many float32 numbers are more than the memory."""
    try:
        have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # a system that does not say
        return
    if 4 * numbers > have:
        need = f"{4e-9 * numbers:,.0f} GB, and this machine has {have / 1e9:,.0f} GB of memory"
        raise ValueError(f"{who}: {what} would take {need}")


def one_of(who: str, name: str, value: object, known: Iterable[str]) -> None:
    """Raise ValueError unless the value is among the known ones, which the error lists."""
    Setting(choices=tuple(known)).check(who, name, value)


def one_device(who: str, **given: Any) -> None:
    """Raise ValueError, naming each, where these are no tensors of one device."""
    for name, value in given.items():
        if not isinstance(value, Tensor):
            what = "None" if value is None else f"of type {type(value).__name__}"
            raise ValueError(f"{who}: {name} is {what}, but must be a torch.Tensor")
    if len({value.device for value in given.values()}) > 1:
        said = ", ".join(f"{name} on {value.device}" for name, value in given.items())
        raise ValueError(
            f"{who}: {said}, but they must be on one device: `.to(device)` or `.cpu()` moves one"
        )


def did_you_mean(name: object, known: Iterable[Any], listed: bool = False) -> str:
    """The end of an error message: '; did you mean ...?', or nothing; listed: what is known, too."""
    known = list(map(str, known))
    lower = {k.rsplit(":", 1)[-1].lower(): k for k in known} | {k.lower(): k for k in known}
    word = str(name).lower()
    synonym = [meant] if (meant := SYNONYMS.get(word)) in lower else []
    close = synonym or difflib.get_close_matches(word, lower, n=1, cutoff=0.6)
    meant = f"; did you mean {lower[close[0]]!r}?" if close else ""
    return f"{meant or '.'} Known: {', '.join(known) or 'none'}" if listed else meant
