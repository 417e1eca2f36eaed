"""The notebooks' exercises: `exercises.NAME.check(answer)`, `.hint()`, `.solution()`.

One file a notebook, each with a list EXERCISES; `catalogue()` gives all of them.
"""

from __future__ import annotations

import importlib
import pkgutil

from clutils.exercises.exercise import Exercise, Result, Wrong

__all__ = ["Exercise", "Result", "Wrong", "catalogue"]


def catalogue() -> dict[str, list[Exercise]]:
    """File name (one a notebook) -> its exercises, in order."""
    rooms = [m.name for m in pkgutil.iter_modules(__path__) if m.name != "exercise"]
    return {room: importlib.import_module(f"{__name__}.{room}").EXERCISES for room in sorted(rooms)}


def __getattr__(name: str) -> Exercise:
    if name.startswith("_"):
        raise AttributeError(name)
    known = {exercise.name: exercise for room in catalogue().values() for exercise in room}
    if name not in known:
        raise AttributeError(f"no exercise {name!r}: there are {', '.join(sorted(known))}")
    return known[name]
