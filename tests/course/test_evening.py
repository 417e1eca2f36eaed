"""The evening: what is open in notebooks 00 to 03 is short enough for one sitting."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from clutils.course.book import running, stage

EVENING = [path for path in running.sources() if path.stem[:2] in ("00", "01", "02", "03")]
MOST_WORDS = 5_000  # of text, tables and formulas in the open cells of all four
LONG = 12  # lines of code: a cell that long is a check, an exercise or folded
each_of_them = pytest.mark.parametrize("path", EVENING, ids=lambda path: path.stem)


def on_path(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if "evening" in cell.metadata.get("tags", [])]


def read(cell: nbformat.NotebookNode) -> str:
    """The text of a cell, without the description of an image that is seen."""
    return re.sub(r"!\[[^]]*\]\([^)]*\)", "", cell.source)


@each_of_them
def test_what_the_evening_reads_is_what_stands_open(path):
    notebook = nbformat.read(path, 4)
    assert [cell.id for cell in on_path(notebook)] == [cell.id for cell in stage.standing_open(notebook)]
    for cell in notebook.cells:
        if cell.metadata.get(stage.FOLDED):
            assert stage.HEADING.fullmatch(cell.source), f"{cell.id}: text below the heading stays open"
            assert f"# {stage.ASIDE}" in cell.source, f"{cell.id}: no ▸ for where nothing folds"


def test_an_evening_is_short_and_asks_for_one_exercise_a_notebook():
    words = 0
    for path in EVENING:
        cells = on_path(nbformat.read(path, 4))
        words += sum(len(read(cell).split()) for cell in cells if cell.cell_type == "markdown")
        asked = [c.id for c in cells if c.cell_type == "code" and ".check(" in c.source]
        assert len(asked) == 1, f"{path.stem}: exercises {asked}"
    assert words <= MOST_WORDS


def test_a_fold_reaches_to_the_next_heading_that_is_not_deeper():
    folded = new_markdown_cell("## ▸ aside", metadata={stage.FOLDED: True})
    cells = [folded, new_markdown_cell("### deeper"), new_code_cell("1"), new_markdown_cell("## next")]
    assert stage.standing_open(new_notebook(cells=cells)) == [cells[-1]]


@each_of_them
def test_long_code_on_the_path_is_a_check_or_is_folded(path):
    for cell in on_path(nbformat.read(path, 4)):
        if cell.cell_type == "code" and len(cell.source.splitlines()) >= LONG:
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
            lesson = {"check", "exercise", "derive"} & set(cell.metadata.get("tags", []))
            assert hidden or lesson or "watch(" in cell.source, f"{cell.id} is long, and open"
