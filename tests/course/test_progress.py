"""Progress: what was solved is kept and shown by notebook; no file of a reader's is lost."""

import ast
import json
import re

import nbformat
import pytest

from clutils.course import exercise, progress
from clutils.course.book import running

EVERY = {e.name: e for every in exercise.catalogue().values() for e in every}
LESSONS = [path for path in running.sources() if path.stem[0].isdigit()]


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_notebook_s_untouched_answers_are_no_tries_and_stand_under_its_title(path, kept):
    cells = nbformat.read(path, 4).cells
    title = next(line for cell in cells for line in cell.source.splitlines() if line.startswith("# "))
    asked = []
    for cell in cells:
        found = re.search(r"^lesson\.(\w+)\.check\(", cell.source, re.MULTILINE)
        if cell.cell_type == "code" and found:
            body = ast.parse(cell.source).body
            stub = [line for line in body if isinstance(line, ast.FunctionDef | ast.Assign)]
            exec(compile(ast.Module(stub, []), path.name, "exec"), scope := {})
            assert found[1] in scope, f"the cell of exercise {found[1]} has to leave its answer open: ..."
            assert not EVERY[found[1]].check(scope[found[1]])
            asked.append(found[1])
    assert not kept.exists(), kept.read_text()
    rows = [row for row in progress.show().rows if f"# {row[0]}" == title]
    assert len(rows) == 1, f"`progress.show()` has no exercise of the lesson '{title[2:]}'"
    (row,) = rows
    assert row[1] == f"0 of {len(asked)}" and sorted(re.findall(r"\w+", row[2])) == sorted(asked)


def test_what_was_solved_is_kept_and_shown_until_it_is_reset(kept):
    cosine, tau = EVERY["cosine"], EVERY["what_tau_changes"]
    cosine.check(max)
    tau.check(("yes", "yes"))
    cosine.check(cosine.answer)
    cosine.check(max)
    entry = json.loads(kept.read_text())["exercises"]["cosine"]
    assert entry["tries"] == 3 and entry["right"], "a later wrong try takes the solution away"
    shown = "00 · Start here", "1 of 2", "✓ cosine  · what_tau_changes (tries: 1)"
    assert progress.show().rows[0] == shown
    assert all(text in repr(progress.show()) and text in progress.show()._repr_html_() for text in shown)
    assert progress.reset().rows[0][1] == "0 of 2" and not kept.exists()
    progress.reset()


def test_a_file_from_the_time_of_student_numbers_is_read_and_goes_on(kept):
    old = {"number": "20261234", "exercises": {"cosine": {"tries": 2, "right": "2026-03-01"}}}
    kept.write_text(json.dumps(old, indent=1) + "\n")
    assert progress.show().rows[0][2].startswith("✓ cosine")
    EVERY["pull"].check(max)
    old["exercises"]["pull"] = {"tries": 1, "right": None}
    assert json.loads(kept.read_text()) == old


@pytest.mark.parametrize("broken", ["{", "[]", '{"exercises": []}', '{"exercises": {"cosine": {}}}'])
def test_a_file_that_is_none_of_progress_is_refused_and_kept(kept, capsys, broken):
    kept.write_text(broken)
    for call in (progress.show, progress.reset):
        with pytest.raises(ValueError, match=r"progress.json is not a progress file"):
            call()
    EVERY["cosine"].check(max)
    assert "Progress was not kept" in capsys.readouterr().out and kept.read_text() == broken


def test_where_no_file_is_named_nothing_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLUTILS_PROGRESS", "")
    EVERY["cosine"].check(max)
    assert progress.reset().rows[0][1] == "0 of 2" and not [*tmp_path.iterdir()]
    monkeypatch.delenv("CLUTILS_PROGRESS")
    EVERY["cosine"].check(max)
    assert [*tmp_path.iterdir()] == [tmp_path / "progress.json"]
