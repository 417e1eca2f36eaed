"""Evenings: what is open in notebooks 00 to 03, and in those of a paper, is short enough for one sitting."""

import ast
import builtins
import re
import symtable

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from clutils.course.book import running, stage

MOST_WORDS = {  # notebooks of an evening -> words of text, tables and formulas in all their open cells
    ("00", "01", "02", "03"): 5_000,
    ("04",): 1_700,
    ("05",): 1_700,
    ("06",): 1_700,
    ("09", "10"): 2_800,
    ("17",): 2_200,
}
EVENING = [path for path in running.sources() if path.stem[:2] in sum(MOST_WORDS, ())]
LONG = 20  # lines of code: a cell that long is a check, an exercise or folded
each_of_them = pytest.mark.parametrize("path", EVENING, ids=lambda path: path.stem)


def on_path(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if "evening" in cell.metadata.get("tags", [])]


def read(cell: nbformat.NotebookNode) -> str:
    """The text of a cell, without the description of an image that is seen."""
    return re.sub(r"!\[[^]]*\]\([^)]*\)", "", cell.source)


@each_of_them
def test_what_the_evening_reads_is_what_stands_open(path):
    notebook = nbformat.read(path, 4)
    tagged, open_ones = (
        [cell.id for cell in cells] for cells in (on_path(notebook), stage.standing_open(notebook))
    )
    assert not set(open_ones) - set(tagged), "stand open without the tag evening: tag them, or fold them"
    assert not set(tagged) - set(open_ones), "have the tag evening, but are folded"
    for cell in notebook.cells:
        if cell.metadata.get(stage.FOLDED):
            assert stage.HEADING.fullmatch(cell.source), f"{cell.id}: text below the heading stays open"
            assert f"# {stage.ASIDE}" in cell.source, f"{cell.id}: no ▸ for where nothing folds"


@pytest.mark.parametrize("numbers", MOST_WORDS, ids=" ".join)
def test_an_evening_is_short_and_asks_for_one_exercise_a_notebook(numbers):
    words = 0
    for path in [path for path in EVENING if path.stem[:2] in numbers]:
        cells = on_path(nbformat.read(path, 4))
        words += sum(len(read(cell).split()) for cell in cells if cell.cell_type == "markdown")
        asked = [c.id for c in cells if c.cell_type == "code" and ".check(" in c.source]
        assert len(asked) == 1, f"{path.stem}: exercises {asked}"
    assert words <= MOST_WORDS[numbers]


def test_a_fold_reaches_to_the_next_heading_that_is_not_deeper():
    folded = new_markdown_cell("## ▸ aside", metadata={stage.FOLDED: True})
    cells = [folded, new_markdown_cell("### deeper"), new_code_cell("1"), new_markdown_cell("## next")]
    assert stage.standing_open(new_notebook(cells=cells)) == [cells[-1]]


def names(code: str, nested: bool) -> tuple[set[str], set[str]]:
    """The names that this code binds, and those that it reads: at once, or later in a function's body."""
    top = symtable.symtable(code, "cell", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    read = {s.get_name() for s in top.get_symbols() if s.is_referenced()}
    if nested:
        inner = list(top.get_children())
        for table in inner:
            inner.extend(table.get_children())
        read = {s.get_name() for table in inner for s in table.get_symbols() if s.is_global()}
    return bound, read


def missing(sources: list[str]) -> list[str]:
    """The names that cells read before any of them has bound them, each with the number of its cell."""
    known, found = {*dir(builtins), "display"}, []
    for number, source in enumerate(sources):
        for statement in ast.parse(source).body:
            bound, read = names(ast.unparse(statement), nested=False)
            simple = isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign)
            found += [f"{number}: {name}" for name in sorted(read - known - (set() if simple else bound))]
            known |= bound
        found += [f"{number}: {name}" for name in sorted(names(source, nested=True)[1] - known)]
    return found


@pytest.mark.parametrize("path", running.sources(), ids=lambda path: path.stem)
def test_open_cells_need_no_name_of_a_folded_one(path):
    """So a reader may pass a closed heading. `make test-all` runs the open cells of an evening, too."""
    cells = stage.standing_open(nbformat.read(path, 4))
    assert missing([cell.source for cell in cells if cell.cell_type == "code"]) == []


@pytest.mark.parametrize(
    ("aside", "open_cell", "found"),
    [
        ("x = 1", "print(x)", ["0: x"]),
        ("x = 1", "x = x + 1", ["0: x"]),
        ("import math", "def f():\n    return math.pi", ["0: math"]),
        ("x = 1", "[y * x for y in (1, 2)]", ["0: x"]),
        ("", "for x in range(3):\n    print(x)", []),
        ("", "def f(n):\n    return n and f(n - 1)", []),
    ],
)
def test_a_name_of_an_aside_is_found(aside, open_cell, found):
    assert missing([open_cell]) == found and missing([aside, open_cell]) == []


@each_of_them
def test_long_code_on_the_path_is_a_check_or_is_folded(path):
    for cell in on_path(nbformat.read(path, 4)):
        if cell.cell_type == "code" and len(cell.source.splitlines()) >= LONG:
            hidden = cell.metadata.get("jupyter", {}).get("source_hidden")
            lesson = {"check", "exercise", "derive"} & set(cell.metadata.get("tags", []))
            assert hidden or lesson or "watch(" in cell.source, f"{cell.id} is long, and open"
