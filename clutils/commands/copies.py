"""The reader's own copies of the notebooks, so that an evening with them changes no file of the project."""

import hashlib
import json
import shutil
from pathlib import Path

FOLDER = "mine"  # inside notebooks/, ignored by git
RECORD = ".copied.json"  # name -> what was copied, as `print_of`


def follow(notebooks: Path) -> tuple[Path, list[str]]:
    """Copy notebooks into their folder `mine` -> that folder, and a line for each that stays behind.

    A copy in which no cell was changed follows the project's notebook, outputs or not; one that was worked in
    is kept as it is. Raises OSError where nothing can be written.
    """
    mine = notebooks / FOLDER
    record = mine / RECORD
    mine.mkdir(exist_ok=True)
    copied = json.loads(record.read_text("utf-8")) if record.is_file() else {}
    behind = []
    for original in sorted(notebooks.glob("[0-9c]*.ipynb")):  # not what `lab --stage` writes
        own, text = mine / original.name, moved(original.read_text("utf-8"))
        new, known = print_of(text), copied.get(original.name)
        there = print_of(own.read_text("utf-8", errors="replace")) if own.is_file() else None
        if there not in (None, known):
            if new != known:
                behind.append(
                    f"{own.name} has changed in the project since; your copy with your work stays "
                    "(rename or delete it to get the new one)"
                )
        elif there is None or new != known:
            own.write_text(text, "utf-8")
            copied[original.name] = new
    record.write_text(json.dumps(copied, indent=1), "utf-8")
    if (notebooks / "my_runs").exists() and not (mine / "my_runs").exists():  # from before there were copies
        shutil.move(notebooks / "my_runs", mine / "my_runs")
    return mine, behind


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
