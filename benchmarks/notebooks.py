"""How long each notebook takes from a clean kernel, and the book; keeps the time at a notebook's top true.

python benchmarks/notebooks.py [NOTEBOOK ... | book] [--repeats N] [--record] [--conditions TEXT]

Prints a line a notebook (median and range of the repeats). --record writes the median to
benchmarks/records/notebook_times.csv and to the notebook's own first lines. "book" is the book's pages, after
the notebooks were run for it, which is not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from clutils.course import records

FOLDER = records.ROOT / "notebooks"
CLAIM = re.compile(r"about \d+ s to run from a clean kernel on \d+ cores")


def seconds(path: Path) -> float:
    """Wall time of one run, the kernel's start included."""
    notebook = nbformat.read(path, 4)
    began = time.perf_counter()
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(path.parent)}}).execute()
    return time.perf_counter() - began


def seconds_of_the_book() -> float:
    """Wall time of `clutils book` after the notebooks were run, shortened: its pages are the same."""
    fast = os.environ | {"CLUTILS_FAST": "1"}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "timed"):
            began = time.perf_counter()
            command = [sys.executable, "-m", "clutils", "book", "--out", f"{folder}/{name}"]
            subprocess.run(command, cwd=records.ROOT, env=fast, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def rounded(measured: float) -> int:
    """Seconds as a reader is told: whole ones up to 10, then steps of five."""
    return max(1, round(measured)) if measured < 10 else 5 * round(measured / 5)


def write_claim(path: Path, measured: float, cores: int) -> None:
    """Put the time into the notebook's own text and the README's table, touching nothing else."""
    notebook = nbformat.read(path, 4)
    text = f"about {rounded(measured)} s to run from a clean kernel on {cores} cores"
    for cell in notebook.cells[:3]:
        cell.source, found = CLAIM.subn(text, cell.source)
        if found:
            nbformat.write(notebook, path)
            break
    else:
        raise SystemExit(f"{path.name} does not say how long it takes: its first cells lack 'about N s …'")
    readme = records.ROOT / "README.md"
    row = re.compile(rf"(\(notebooks/{path.name}\).*\| )\d+ s( \|)")
    readme.write_text(row.sub(rf"\g<1>{rounded(measured)} s\g<2>", readme.read_text("utf-8")), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--conditions", default="nothing else running", help="what else the machine did")
    options = parser.parse_args()
    for path in options.notebooks or sorted(FOLDER.glob("[0-9]*.ipynb")):
        book = path.name == "book"
        times = [seconds_of_the_book() if book else seconds(path) for _ in range(options.repeats)]
        median = statistics.median(times)
        print(
            f"{path.name:45} {median:6.1f} s  ({min(times):.1f} to {max(times):.1f}, {len(times)} runs)",
            flush=True,
        )
        if options.record:
            row = {"notebook": path.stem, "seconds": round(median, 1), "runs": len(times)}
            row["conditions"] = options.conditions
            file = records.append("notebook_times", row)
            if not book:
                write_claim(path, median, records.provenance()["cores"])
            print(f"  written to {file.relative_to(records.ROOT)}{'' if book else ' and to the notebook'}")


if __name__ == "__main__":
    main()
