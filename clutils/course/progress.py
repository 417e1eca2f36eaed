"""Which exercises are solved, by notebook.

    from clutils.course import progress
    progress.show()
    progress.reset()   # no exercise is solved

`Exercise.check` keeps each try in a file of the reader's own, progress.json in the folder where the notebook
runs. $CLUTILS_PROGRESS names another file; where it is empty nothing is kept.
"""

from __future__ import annotations

import html
from itertools import groupby
from typing import Any

from clutils.course import exercise


class Progress:
    """A row for each notebook: number and title, how many exercises are solved, which (✓ solved, · not).

    Shows itself in a cell as a table.
    """

    def __init__(self, kept: dict[str, dict[str, Any]]) -> None:
        every = [e for some in exercise.catalogue().values() for e in some]
        notebooks = groupby(sorted(every, key=lambda e: e.notebook), key=lambda e: e.notebook)
        self.rows = [_row(title, {e.name: kept.get(e.name) for e in own}) for title, own in notebooks]

    def __repr__(self) -> str:
        width = max(len(title) for title, *_ in self.rows)
        return "\n".join(f"{title:{width}}  {solved}  {which}" for title, solved, which in self.rows)

    def _repr_html_(self) -> str:
        cell = "<td style='text-align:left'>{}</td>".format
        rows = ("".join(cell(html.escape(text)) for text in row) for row in self.rows)
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def show() -> Progress:
    """What is solved of the course's exercises. Raises ValueError where the file is no progress file."""
    return Progress(exercise.read_progress()["exercises"])


def reset() -> Progress:
    """Remove the file: no exercise is solved or was tried. Raises ValueError where it is no progress file."""
    exercise.read_progress()
    if file := exercise.progress_file():
        file.unlink(missing_ok=True)
    return show()


def _row(title: str, own: dict[str, dict[str, Any] | None]) -> tuple[str, str, str]:
    which, solved = [], 0
    for name, entry in own.items():
        right, tries = (entry["right"], entry["tries"]) if entry else (None, 0)
        solved += bool(right)
        tried = f" (tries: {tries})" if tries and not right else ""
        which.append(f"{'✓' if right else '·'} {name}{tried}")
    return title, f"{solved} of {len(own)}", "  ".join(which)
