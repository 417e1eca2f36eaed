"""Variants of exercises by a student's number, and the file that keeps it: see `student`."""

import datetime
import hashlib
import inspect
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

from clutils import files

EVERYBODY = "everybody"  # a number without variants: a teacher's
ENOUGH = 8  # variants beside which multiples of a result add nothing
FACTORS = {1: "", 2: "twice ", 3: "three times ", 10: "ten times ", 0.5: "half "}
MULTIPLES = tuple(f"{times}that" for times in FACTORS.values() if times)


class Convention(NamedTuple):
    """Another way of giving arguments.

    - words: what is given; arguments: the names of those that are
    - forth, back: everybody's value -> this one, and back
    - letter: what stands in names for such an argument, and what for what is given
    """

    words: str
    arguments: tuple[str, ...]
    forth: Callable[[Any], Any]
    back: Callable[[Any], Any]
    letter: tuple[str, str] = ("", "")


class Variant(NamedTuple):
    """What one student is asked in place of what everybody is.

    - words: to be said after the question
    - change: what the answer gives -> what this variant's gives
    - right: the wrong answer to everybody's question, by name, that is right here; "" = everybody's
    - given: place of an argument -> how it is given
    """

    words: str
    change: Callable[[Any], Any]
    right: str = ""
    given: Mapping[int, Convention] = MappingProxyType({})

    def case(self, case: Sequence[Any], back: bool = False) -> tuple[Any, ...]:
        """Everybody's arguments as this variant gives them; or the other way round."""
        own = list(case)
        for place, convention in self.given.items():
            own[place] = (convention.back if back else convention.forth)(own[place])
        return tuple(own)

    def named(self, part: str) -> str:
        """The name of what is observed of an answer, such as "gradient by s⁺", by what is given."""
        for convention in self.given.values():
            ours, theirs = convention.letter
            if ours and theirs not in part:
                part = part.replace(ours, theirs)
        return part


CONVENTIONS = (
    Convention(
        "the temperature is given as its inverse 1/τ", ("temperature",), lambda t: 1 / t, lambda b: 1 / b
    ),
    Convention(
        "similarities s of unit vectors are given as their squared distances 2 - 2s",
        ("positives", "negatives", "similarities"),
        lambda s: 2 - 2 * s,
        lambda d: 1 - d / 2,
        (" by s", " by 2 - 2s"),
    ),
    Convention("embeddings are given as columns", ("z1", "z2", "p1", "p2"), lambda z: z.T, lambda z: z.T),
    Convention("the mask is True on the background", ("mask",), torch.logical_not, torch.logical_not),
    Convention(
        "the adjacency is given with its loops, as A + I",
        ("adjacency",),
        lambda a: a + torch.eye(len(a), dtype=a.dtype),
        lambda a: a - torch.eye(len(a), dtype=a.dtype),
    ),
)


# ---- the file ----------------------------------------------------------------------------------------------


def file() -> Path:
    """Where progress is kept."""
    return Path(os.environ.get("CLUTILS_PROGRESS", "progress.json"))


def number() -> str | None:
    """The number that was given, None before `begin`."""
    kept = read()
    return kept["number"] if kept else None


def note(exercise: str, right: bool) -> None:
    """Keep that an answer was tried. A file that can't be written is said in a line, and nothing is lost."""
    try:
        kept = read()
        if kept is None:
            return
        entry = kept["exercises"].setdefault(exercise, {"tries": 0, "right": None})
        entry["tries"] += 1
        if right and entry["right"] is None:
            entry["right"] = datetime.date.today().isoformat()
        write(kept)
    except (OSError, ValueError) as error:
        print(f"Progress was not kept: {error}")


def read() -> dict[str, Any] | None:
    try:
        kept = json.loads(file().read_text("utf-8"))
        entries = kept["exercises"].values()
        if isinstance(kept["number"], str) and all({"tries", "right"} <= entry.keys() for entry in entries):
            return kept
    except FileNotFoundError:
        return None
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        pass
    raise ValueError(f"student: {file().absolute()} is no file of progress; move it away to begin anew")


def write(kept: dict[str, Any]) -> None:
    files.write_atomically(file(), json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


# ---- variants ----------------------------------------------------------------------------------------------


def variant(exercise: Any, of: str | None = None) -> Variant | None:
    """The variant of an exercise for a number; None = what everybody is asked.

    None too where a property is judged, which different answers have, and for a single word.

    - exercise: an `Exercise`; of: the number, None = the one that was given
    """
    of = number() if of is None else of
    if of in (None, EVERYBODY):
        return None
    choices = every(exercise)
    if not choices:
        return None
    drawn = int.from_bytes(hashlib.sha256(f"{of}/{exercise.name}".encode()).digest()[:8])
    choices = choices[drawn % len(choices) :] + choices[: drawn % len(choices)]
    return next((choice for choice in choices if exercise.differs(choice)), None)


def every(exercise: Any) -> list[Variant]:
    """All variants of an exercise, one of which a number draws.

    A function is asked for another quantity, or takes its arguments in another way, where it can be, and
    gives it in another convention: by its sign, a factor, the order of rows.
    """
    if exercise.judge is not None:
        return []
    if not callable(exercise.answer):
        return _orders(exercise.answer)
    cases = list(exercise.cases() if exercise.cases else [()])
    asked = {"": "", **exercise.others}
    ways: list[tuple[str, Mapping[int, Convention]]] = [("", {}), *_ways(exercise.answer, cases)]
    returned = [("", lambda given: given), *_conventions([exercise.answer(*case) for case in cases])]
    more = len(asked) + len(ways) > 2
    found = []
    for (right, what), (how, given), (words, change) in itertools.product(asked.items(), ways, returned):
        if what or how or (words and not more):
            found.append(Variant("; ".join(filter(None, (what, how, words))), change, right, given))
    plain = [variant for variant in found if not any(times in variant.words for times in MULTIPLES)]
    return plain if len(plain) >= ENOUGH else found


def _orders(answer: Any) -> list[Variant]:
    """A list of words in each other order."""
    if not isinstance(answer, tuple | list) or not all(isinstance(word, str) for word in answer):
        return []
    return [
        Variant(f"give everybody's list in the order {', '.join(str(p + 1) for p in order)}", _ordered(order))
        for order in list(itertools.permutations(range(len(answer))))[1:]
    ]


def _ways(
    function: Callable[..., Any], cases: Sequence[tuple[Any, ...]]
) -> list[tuple[str, Mapping[int, Convention]]]:
    """Other ways in which a function's arguments may be given."""
    names = list(inspect.signature(function).parameters)[: min(map(len, cases))]
    found = []
    for convention in CONVENTIONS:
        places = [place for place, name in enumerate(names) if name in convention.arguments]
        if places:
            found.append((convention.words, dict.fromkeys(places, convention)))
    return found


def _conventions(returned: Sequence[Any]) -> list[tuple[str, Callable[[Any], Any]]]:
    """Signs, factors and orders in which a function may return what everybody's returns."""
    if isinstance(returned[0], tuple) and all(
        isinstance(x, torch.Tensor) and not x.ndim for x in returned[0]
    ):
        return [("return the second first", lambda given: tuple(reversed(given)))]
    first = returned[0][0] if isinstance(returned[0], tuple) else returned[0]
    if isinstance(first, bool) or (isinstance(first, torch.Tensor) and first.dtype == torch.bool):
        pairs = ((False, True), (0, 1), (1, -1), (-1, 1), (1, 2), (2, 1))
        return [
            (f"return {yes} in place of True, and {no} in place of False", _either(yes, no))
            for yes, no in pairs
        ]
    if isinstance(first, list):
        return [("return the last first", lambda given: list(reversed(given)))]
    if not isinstance(first, int | float | torch.Tensor):
        return []
    that = "the first of them, the rest as it is" if isinstance(returned[0], tuple) else "that"
    rows = all(isinstance(one, torch.Tensor) and one.ndim and len(one) > 1 for one in returned)
    choices = []
    for sign, (factor, times), reverse in itertools.product((1, -1), FACTORS.items(), (False, True)):
        if (sign, factor) == (1, 1) or (reverse and not rows):
            continue
        words = f"return {'minus ' if sign < 0 else ''}{times}{that}"
        choices.append((words + (", the last row first" if reverse else ""), _scaled(sign * factor, reverse)))
    return choices


def _ordered(order: Sequence[int]) -> Callable[[Any], Any]:
    return lambda given: [given[p] for p in order] if len(given) == len(order) else given


def _either(yes: Any, no: Any) -> Callable[[Any], Any]:
    return lambda given: yes if given else no


def _scaled(factor: float, reverse: bool) -> Callable[[Any], Any]:
    def change(given: Any) -> Any:
        if isinstance(given, tuple):
            return (change(given[0]), *given[1:])
        flip = reverse and isinstance(given, torch.Tensor) and given.ndim
        return factor * (given.flip(0) if flip else given)

    return change
