"""The reader's own copies of the notebooks, so that an evening with them changes no file of the project."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from clutils.files import write_atomically

FOLDER = "mine"  # inside notebooks/, ignored by git
RECORD = ".copied.json"  # name -> what was copied, as `print_of`
COMING = "coming"  # in the record: name -> what was about to be copied when it was written


def follow(notebooks: Path) -> tuple[Path, list[str]]:
    """Copy notebooks into their folder `mine` -> that folder, and a line for each that stays behind.

    A copy in which no cell was changed follows the project's notebook, outputs or not; one that was worked in
    is kept as it is. Raises OSError where nothing can be written.
    """
    mine = notebooks / FOLDER
    mine.mkdir(exist_ok=True)
    copied, coming = _recorded(mine / RECORD)
    behind, due = [], {}
    for original in sorted(notebooks.glob("[0-9c]*.ipynb")):  # not what `lab --stage` writes
        name, text = original.name, moved(original.read_text("utf-8"))
        own, new = mine / name, print_of(text)
        there = print_of(own.read_text("utf-8", errors="replace")) if own.is_file() else None
        if there in (None, new, copied.get(name), coming.get(name)):
            if there is not None:
                copied[name] = there
            if there != new:
                due[name] = text
        elif new != copied.get(name):
            behind.append(
                f"{name} has changed in the project since; your copy with your work stays "
                "(rename or delete it to get the new one)"
            )
    coming = {name: print_of(text) for name, text in due.items()}
    if due:  # said first: a copy made just before a kill is known for one
        _record(mine / RECORD, copied | {COMING: coming})
    for name, text in due.items():
        write_atomically(mine / name, text)
    _record(mine / RECORD, copied | coming)
    if (notebooks / "my_runs").exists() and not (mine / "my_runs").exists():  # from before there were copies
        shutil.move(notebooks / "my_runs", mine / "my_runs")
    return mine, behind


def _recorded(record: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Prints of what was copied, and of what was about to be; none where the record is damaged."""
    try:
        copied = json.loads(record.read_text("utf-8"))
        return copied, copied.pop(COMING, {})
    except (FileNotFoundError, ValueError, AttributeError, TypeError):
        return {}, {}


def _record(record: Path, copied: Mapping[str, object]) -> None:
    write_atomically(record, json.dumps(copied, indent=1))


def moved(text: str) -> str:
    """The notebook's text, its links to files outside `notebooks` and to its images one folder deeper."""
    return text.replace("](../", "](../../").replace("](pictures/", "](../pictures/")


def print_of(text: str) -> str:
    """A fingerprint of a notebook's cells without outputs; of the whole text of any other file."""
    try:
        cells = json.loads(text)["cells"]
        said = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells])
    except (ValueError, KeyError, TypeError):
        said = text
    return hashlib.sha256(said.encode("utf-8", errors="surrogatepass")).hexdigest()
