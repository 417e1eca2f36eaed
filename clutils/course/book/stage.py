"""The stage path of a notebook: the cells that carry its argument in a lecture, by their tags.

A cell tagged `stage` is shown in a lecture of 50 minutes, one tagged `stage-20` too in one of 20. All other
cells still run: they are for the student alone, and fold away.
"""

import itertools
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell

from clutils.course.book.running import NOTEBOOKS, sources

CUTS = {50: "stage", 20: "stage-20"}  # minutes -> the tag of its cells
FOLDED = "jp-MarkdownHeadingCollapsed"  # JupyterLab's: what stands under this heading is folded
ASIDE = "▸ "  # before the name of a section that opens folded
# JupyterLab opens a fold at Shift+Enter if code or a heading comes first in it. At a plain text it scrolls to
# the notebook's top instead, so such a text begins with an empty heading.
OPENS = "<h6 hidden></h6>\n\n"
SETTINGS = {  # of JupyterLab's extensions: one document, no bar below it, no button under a fold
    "@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {"showHiddenCellsButton": False},
    "@jupyterlab/application-extension/shell.jupyterlab-settings": {"startMode": "single"},
    "@jupyterlab/statusbar-extension/plugin.jupyterlab-settings": {"visible": False},
}
WORKSPACE = {  # no file browser beside it
    "data": {"layout-restorer:data": {"left": {"collapsed": True, "visible": True, "widgets": []}}},
    "metadata": {"id": "default"},
}
LARGE = {"code-font-size": "17px", "content-font-size1": "20px", "ui-font-size1": "16px"}
BAR = "from clutils.course.book import stage\n\nstage.progress"  # the code that shows it
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def path(notebook: NotebookNode, minutes: int = 50) -> list[int]:
    """The numbers of the cells on stage in a lecture of so many minutes, 50 or 20.

    What a cell announces, with a colon at its end or a heading, comes along with it; so does what a cell
    tagged `predict` asks about, the next code.
    """
    tagged = [CUTS[minutes] in cell.metadata.get("tags", []) for cell in notebook.cells]
    for n in range(1, len(tagged)):
        tagged[n] |= tagged[n - 1] and _announces(notebook.cells[n - 1])
    code = [n for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    asking = [
        n for n in range(len(tagged)) if tagged[n] and "predict" in notebook.cells[n].metadata.get("tags", [])
    ]
    for n in asking:
        tagged[next((k for k in code if k > n), n)] = True
    return [n for n, on_stage in enumerate(tagged) if on_stage]


def _announces(cell: NotebookNode) -> bool:
    last = cell.source.rstrip().rpartition("\n")[2]
    return cell.cell_type == "markdown" and (last.endswith(":") or last.startswith("#"))


def find(number: str, notebooks: Path = NOTEBOOKS) -> Path:
    """The notebook of this number, as in '02'.

    Raises FileNotFoundError where there is none, with the numbers that there are.
    """
    found = {file.stem[:2]: file for file in sources(notebooks) if file.stem[:2].isdigit()}
    if not number or number.zfill(2) not in found:
        raise FileNotFoundError(f"no notebook {number!r}: there are {', '.join(sorted(found))}")
    return found[number.zfill(2)]


def folded(notebook: NotebookNode, minutes: int = 50) -> NotebookNode:
    """A copy for the stage: code folded, and every run of cells off the path under a small arrow.

    JupyterLab folds what stands under a heading up to the next one, so a cell on the path without one gets a
    line of its own above it: the heading it stands under in the notebook, where that has been folded. What is
    folded as an answer stays so. No cell is moved, changed or left out: *Run All* runs them all.
    """
    on_stage = set(path(notebook, minutes))
    closed = {number: inside for number, inside in answers(notebook).items() if on_stage & inside}
    behind = set().union(*closed.values())  # an answer
    cells: list[NotebookNode] = []
    aside: list[NotebookNode] = []

    def put_away() -> bool:
        """Fold what stands aside; whether there was anything."""
        if aside:
            cells.append(new_markdown_cell("###### ▸", metadata={FOLDED: True}))
            cells.extend(map(_flat, aside))
        return bool(aside) and not aside.clear()

    for number, cell in enumerate(notebook.cells):
        if number in closed:
            put_away()
            cells.append(nbformat.from_dict({**cell, "source": f"###### {cell.source.lstrip('# ')}"}))
        elif number in behind:
            cells.append(_shown(_flat(cell)))
        elif number not in on_stage:
            aside.append(cell)
        else:
            over = _heading_over(cell, aside)
            if (put_away() or number - 1 in behind) and (over or heading_depth(cell) > 6):
                cells.append(new_markdown_cell(over or "###### &nbsp;"))
            cells.append(_shown(cell))
    if put_away():  # *Run All* ends in the last cell, and would open its fold
        cells.append(new_markdown_cell("###### The end of the path"))
    return nbformat.from_dict({**notebook, "cells": cells})


def standing_open(notebook: NotebookNode) -> list[NotebookNode]:
    """The cells that a fresh JupyterLab shows: all but folded headings and what stands under them.

    A fold reaches to the next heading that is not deeper; of a cell with several headings the first counts.
    """
    cells, folded_at = [], 0
    for cell in notebook.cells:
        depth = heading_depth(cell)
        folded_at = 0 if depth <= folded_at else folded_at
        if not folded_at and cell.metadata.get(FOLDED):
            folded_at = depth
        elif not folded_at:
            cells.append(cell)
    return cells


def answers(notebook: NotebookNode) -> dict[int, set[int]]:
    """The folded headings that are tagged `answer` -> the cells under each, all by number."""
    found: dict[int, set[int]] = {}
    for number, cell in enumerate(notebook.cells):
        if cell.metadata.get(FOLDED) and "answer" in cell.metadata.get("tags", []):
            depth, rest = heading_depth(cell), range(number + 1, len(notebook.cells))
            end = next((k for k in rest if heading_depth(notebook.cells[k]) <= depth), len(notebook.cells))
            found[number] = set(range(number + 1, end))
    return found


def heading_depth(cell: NotebookNode) -> int:
    """How deep the first heading of a cell is, from 1 to 6; of a cell without one, 7."""
    found = HEADING.search(cell.source) if cell.cell_type == "markdown" else None
    return len(found[0]) - len(found[0].lstrip("#")) if found else 7


def _heading_over(cell: NotebookNode, aside: list[NotebookNode]) -> str:
    """The last heading in `aside`, where the cell after it is a part of that section; of an exercise none."""
    texts = [c for c in aside if c.cell_type == "markdown" and HEADING.search(c.source)]
    if not texts or "exercise" in texts[-1].metadata.get("tags", []):
        return ""
    heading = [found[0] for found in HEADING.finditer(texts[-1].source)][-1]
    depth = len(heading) - len(heading.lstrip("#"))
    return heading.replace(f"# {ASIDE}", "# ") if depth < heading_depth(cell) else ""


def _shown(cell: NotebookNode) -> NotebookNode:
    """On the path nothing is folded but code, and no heading says that it is."""
    metadata = {name: value for name, value in cell.metadata.items() if name != FOLDED}
    if cell.cell_type == "code":
        metadata["jupyter"] = {**metadata.get("jupyter", {}), "source_hidden": True}
    source = cell.source
    if cell.cell_type == "markdown":
        source = source.removeprefix(OPENS).replace(f"# {ASIDE}", "# ")
    return nbformat.from_dict({**cell, "metadata": metadata, "source": source})


def _flat(cell: NotebookNode) -> NotebookNode:
    """Off the path a heading would end the fold above it, so its `#` become bold text."""
    if cell.cell_type != "markdown":
        return cell
    source = HEADING.sub(r"**\1**", cell.source.removeprefix(OPENS))
    metadata = {name: value for name, value in cell.metadata.items() if name != FOLDED}
    return nbformat.from_dict({**cell, "metadata": metadata, "source": source})


def write(number: str, notebooks: Path = NOTEBOOKS, minutes: int = 50, executed: Path | None = None) -> Path:
    """Write the stage copy beside the notebook, and return its path; the notebook itself is only read.

    The copy is git-ignored, and each call replaces it: a lecturer's changes in it are gone the next time.

    - executed: the folder of notebooks with outputs, as from `running.executed`; the copy then has them, and
      JupyterLab trusts it. A live panel is a still until its cell is run
    """
    source = find(number, notebooks)
    copy = source.with_name(f"stage_{source.name}")
    notebook = nbformat.read(source if executed is None else executed / source.name, 4)
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("application/vnd.jupyter.widget-view+json", None)
    shown = folded(notebook, minutes)
    code = sum(cell.cell_type == "code" for cell in shown.cells)
    bar = new_code_cell(f"{BAR}({code})", id="stage-bar", metadata={"jupyter": {"source_hidden": True}})
    shown.cells.insert(1, bar)  # below the title
    if executed is not None:
        NotebookNotary().sign(shown)
    nbformat.write(shown, copy)
    return copy


def progress(cells: int) -> None:
    """Show a bar in this cell's output: how many of so many code cells after it have run.

    It follows every cell that runs from now on: to 'all have run', or to the first that raises.
    """
    from IPython import get_ipython
    from IPython.display import HTML, display

    events, run = get_ipython().events, itertools.count()  # this cell is the first to end

    def line(done: int, says: str) -> HTML:
        return HTML(f'<progress value="{done}" max="{cells}" style="width: 60%"></progress> {says}')

    def after(result: Any) -> None:
        done = next(run)
        failed, ended = not result.success, done == cells
        says = "a cell has raised an error" if failed else "all cells have run" if ended else "running"
        bar.update(line(done, f"{done} of {cells}: {says}"))
        if failed or ended:
            events.unregister("post_run_cell", after)

    bar = display(line(0, f"0 of {cells}"), display_id=True)
    events.register("post_run_cell", after)


def settings() -> Path:
    """A folder of JupyterLab settings for the stage: a copy of the reader's own, in large type; a workspace.

    (JupyterLab takes sizes from a user's settings alone, not from defaults that a server brings.)
    """
    from jupyter_core.paths import jupyter_config_dir
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    own = Path(
        os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(jupyter_config_dir(), "lab", "user-settings")
    )
    folder = Path(tempfile.mkdtemp(prefix="clutils_stage_"))
    if own.is_dir():
        shutil.copytree(own, folder, dirs_exist_ok=True)
    file = folder / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        chosen = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):  # none, or one with comments, which JupyterLab allows
        chosen = {}
    file.write_text(json.dumps({**chosen, "overrides": {**chosen.get("overrides", {}), **LARGE}}), "utf-8")
    for name, values in SETTINGS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(values), "utf-8")
    WorkspacesManager(str(folder)).save("default", json.dumps(WORKSPACE))
    return folder
