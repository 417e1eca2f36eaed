"""A student's number, given once: it gives every exercise a variant, and keeps what was solved in a file.

    from clutils.course import student
    student.begin("20261234")   # once, in any notebook
    student.progress()          # what is solved

The file is the student's own: progress.json beside the notebooks, or where $CLUTILS_PROGRESS says. Nothing is
kept, and exercises are what they are for everybody, until `begin` is called.
"""

from __future__ import annotations

import html
from typing import Any

from clutils.course import exercise, variants
from clutils.course.variants import EVERYBODY, file, number

__all__ = ["EVERYBODY", "begin", "file", "number", "progress"]

LONGEST = 64  # signs in a number


def begin(number: str | int) -> Progress:
    """Give your number: any word of at most 64 letters and digits. What was solved stays kept.

    Raises ValueError on another, or where the file has one already: a variant changes with its number.
    """
    own = str(number).strip()
    if not own.isalnum() or len(own) > LONGEST or isinstance(number, float | bool):
        raise ValueError(f"student: number is {number!r}, but must be up to {LONGEST} letters and digits")
    kept = variants.read() or {"number": own, "exercises": {}}
    if kept["number"] != own:
        raise ValueError(
            f"student: number is {own!r}, but {file().absolute()} was begun with {kept['number']!r}: "
            "move that file away to begin another"
        )
    variants.write(kept)
    return progress()


class Progress:
    """What is solved, a line a notebook; shows itself in a cell as a table."""

    def __init__(self, of: str | None, solved: dict[str, list[tuple[str, str | None, int]]]) -> None:
        self.of, self.solved = of, solved

    def __repr__(self) -> str:
        if self.of is None:
            return 'No progress is kept yet: student.begin("your number") begins it.'
        lines = [f"{self._said(folder)}: {self._names(folder)}" for folder in self.solved]
        return "\n".join([f"Number {self.of}", *lines])

    def _repr_html_(self) -> str:
        if self.of is None:
            return f"<p>{html.escape(repr(self))}</p>"
        rows = "".join(
            f"<tr><td style='text-align:left'>{self._said(folder)}</td>"
            f"<td style='text-align:left'>{html.escape(self._names(folder))}</td></tr>"
            for folder in self.solved
        )
        return f"<p>Number {html.escape(self.of)}</p><table>{rows}</table>"

    def _said(self, folder: str) -> str:
        own = self.solved[folder]
        return f"{folder.replace('_', ' ')} {sum(right is not None for _, right, _ in own)} of {len(own)}"

    def _names(self, folder: str) -> str:
        marks = {True: "✓", False: "·"}
        return "  ".join(
            f"{marks[right is not None]} {name}" + (f" ({tries} tries)" if tries and not right else "")
            for name, right, tries in self.solved[folder]
        )


def progress() -> Progress:
    """What is solved of every exercise in the course. Raises ValueError where the file is none of ours."""
    kept = variants.read()
    done: dict[str, Any] = {} if kept is None else kept["exercises"]
    fresh = {"right": None, "tries": 0}
    solved = {
        folder: [(e.name, *(done.get(e.name, fresh)[key] for key in ("right", "tries"))) for e in every]
        for folder, every in exercise.catalogue().items()
    }
    return Progress(None if kept is None else kept["number"], solved)
