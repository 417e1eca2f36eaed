"""Notebooks executed once, and kept for whoever shows their outputs: book, slides and tests."""

import hashlib
import os
import tempfile
from collections.abc import Iterable
from copy import deepcopy
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from clutils import files

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
KEPT = ROOT / "build" / "notebooks"
TIMEOUT = 1800  # seconds a cell
QUIET = ["--log-level=ERROR"]  # of a kernel: no warning that it listens on this machine
NO_OUTPUT = (
    "book",
    "commands",
    "report/page.html",
    "notes.md",
)  # parts of clutils that no cell's output shows


def sources(folder: Path = NOTEBOOKS) -> list[Path]:
    """The course's notebooks, lessons first, in their order; copies for the stage are none."""
    return [*sorted(folder.glob("[0-9]*.ipynb")), folder / "claims.ipynb"]


def execute(
    notebook: NotebookNode,
    folder: Path,
    first: str = "",
    timeout: float = TIMEOUT,
    allow_errors: bool = False,
    **variables: str,
) -> tuple[NotebookNode, list[NotebookNode]]:
    """Run a copy of it from a clean kernel in this folder -> the copy with its outputs, and those of `first`.

    - first: code that the kernel runs before all else
    - timeout: seconds, of a cell
    - allow_errors: go on after a cell that raised; else nbclient's CellExecutionError
    - variables: of the kernel's environment, beside those that are set
    """
    notebook = deepcopy(notebook)
    notebook.cells.insert(0, new_code_cell(first))
    client = NotebookClient(
        notebook, timeout=timeout, allow_errors=allow_errors, resources={"metadata": {"path": str(folder)}}
    )
    client.extra_arguments = QUIET
    client.execute(env=os.environ | variables)
    before = notebook.cells.pop(0)
    return notebook, before.outputs


def keep(notebook: NotebookNode, name: str, folder: Path = KEPT) -> None:
    """Write an executed notebook where `book` and `slides` look for it."""
    files.write_atomically(folder / f"{name}.ipynb", nbformat.writes(notebook) + "\n")


def executed(names: Iterable[str] | None = None, folder: Path = KEPT) -> Path:
    """Run the notebooks whose outputs are missing or out of date -> the folder with all of them.

    A kept notebook is out of date when the notebook or the package has changed since. Cells run in a folder
    of their own: nothing is left beside the notebooks. Claims of this run go before the recorded ones.
    """
    state = _package_state()
    for path in sources():
        if names is not None and path.stem not in names:
            continue
        notebook = nbformat.read(path, 4)
        key = hashlib.sha256((state + nbformat.writes(strip_tags(notebook))).encode()).hexdigest()
        kept = folder / path.name
        if kept.exists() and nbformat.read(kept, 4).metadata.get("clutils_state") == key:
            continue
        print(f"running {path.name}", flush=True)
        with tempfile.TemporaryDirectory() as work:
            done, _ = execute(
                notebook, Path(work), CLUTILS_CLAIMS=str(folder.absolute() / "claims"), CLUTILS_SVG="1"
            )
        done.metadata["clutils_state"] = key
        keep(done, path.stem, folder)
    return folder


def strip_tags(notebook: NotebookNode) -> NotebookNode:
    """A copy whose cells have no metadata: tags change no output."""
    notebook = deepcopy(notebook)
    for cell in notebook.cells:
        cell.metadata = NotebookNode()
    return notebook


def _package_state() -> str:
    """A number for the package's files that a cell may run or read, and whether runs are shortened."""
    state = hashlib.sha256(os.environ.get("CLUTILS_FAST", "").encode())
    package = ROOT / "clutils"
    for file in sorted([*package.rglob("*.*"), *(ROOT / "benchmarks" / "records").rglob("*.*")]):
        inside = file.relative_to(ROOT).as_posix()
        if file.is_file() and "__pycache__" not in inside and not any(part in inside for part in NO_OUTPUT):
            state.update(inside.encode() + file.read_bytes())
    return state.hexdigest()
