"""The stage paths and their notes: enough to give a lecture from, and never in the notebook's way."""

import json
import re

import nbformat
import pytest

from clutils.course.book import running, slides, stage

LESSONS = [path for path in running.sources() if path.stem[0].isdigit()]
each_lesson = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def shown(notebook, minutes: int) -> list:
    return [notebook.cells[number] for number in stage.path(notebook, minutes)]


@each_lesson
def test_a_path_opens_with_the_title_ends_with_what_was_found_and_asks_before_each_control(path):
    notebook = nbformat.read(path, 4)
    long, short = stage.path(notebook, 50), stage.path(notebook, 20)
    assert long and short, "no cell is tagged 'stage', or none 'stage-20'"
    assert long[0] == short[0] == 0 and set(short) < set(long)
    assert 20 <= len(long) <= 48 and 12 <= len(short) <= 24
    for minutes in stage.CUTS:
        asked = False
        for cell in shown(notebook, minutes):
            tags = cell.metadata.get("tags", [])
            assert not {"exercise", "solution", "claim"} & set(tags), f"{cell.id} is no cell for the stage"
            asked = asked or "predict" in tags
            assert asked or "control" not in tags, f"{cell.id} is a control without a question before it"


@each_lesson
def test_the_speaker_has_notes_for_every_need(path):
    said = slides.notes(path.stem)
    lacking = [part for part in slides.PARTS if not said.get(part)]
    assert not lacking, f"notes.md lacks these headings, or a text below them: {lacking}"
    assert "50 minutes" in said["Timing"] and "20 minutes" in said["Timing"]
    beliefs = re.findall(r"^\d\. \*(.+?)\*(.+)$", said["What students believe wrongly"], re.MULTILINE)
    assert len(beliefs) >= 3
    for belief, rest in beliefs:
        source = re.search(
            r"\d{4}|section|step|derive|notebook|exercise|no study known|lecture|documentation", rest
        )
        assert source, f"neither a source nor that there is none: {belief}"
    on_stage = {cell.id for cell in shown(nbformat.read(path, 4), 50)}
    assert set(said) - set(slides.PARTS) <= on_stage, "a note at a slide that is not shown"


def test_a_notebook_without_notes_is_told_by_name():
    with pytest.raises(ValueError, match="no speaker notes for 99_nothing"):
        slides.notes("99_nothing")


@each_lesson
def test_off_the_path_nothing_is_lost_and_all_is_folded(path):
    notebook = nbformat.read(path, 4)
    copy = stage.folded(notebook)
    assert [c.source for c in copy.cells if c.cell_type == "code"] == [
        c.source for c in notebook.cells if c.cell_type == "code"
    ], "Run All must run the same code in the same order"
    assert {c.id for c in notebook.cells} <= {c.id for c in copy.cells}
    on_stage = {cell.id for cell in shown(notebook, 50)}
    hidden = answer = False
    for cell in copy.cells:  # as JupyterLab folds: up to the next heading
        if cell.cell_type == "markdown" and re.search(r"^#+ ", cell.source, re.MULTILINE):
            hidden = cell.metadata.get(stage.FOLDED, False)
            answer = hidden and "answer" in cell.metadata.get("tags", [])
        elif cell.id in on_stage:
            assert not hidden or answer, f"{cell.id} is on stage, and folded away"
        elif cell.id in {c.id for c in notebook.cells}:
            assert hidden, f"{cell.id} is for reading at home, and stands open"


def test_the_copy_for_the_stage_leaves_the_notebook_as_it_was(tmp_path):
    original = tmp_path / LESSONS[2].name
    original.write_bytes(LESSONS[2].read_bytes())
    copy = stage.write("2", tmp_path, minutes=20)
    assert copy.parent == tmp_path and copy.name == f"stage_{original.name}"
    assert original.read_bytes() == LESSONS[2].read_bytes()
    nbformat.validate(nbformat.read(copy, 4))
    assert copy not in running.sources(tmp_path), "the course's notebooks are the originals alone"


def test_the_stages_settings_are_the_readers_own_in_large_type(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTERLAB_SETTINGS_DIR", str(tmp_path))
    own = tmp_path / "@jupyterlab" / "apputils-extension" / "themes.jupyterlab-settings"
    own.parent.mkdir(parents=True)
    own.write_text('{"theme": "JupyterLab Dark", "overrides": {"code-font-family": "Iosevka"}}')
    folder = stage.settings()
    written = json.loads((folder / own.relative_to(tmp_path)).read_text("utf-8"))
    assert written["theme"] == "JupyterLab Dark" and written["overrides"]["code-font-family"] == "Iosevka"
    assert written["overrides"]["content-font-size1"] == "20px" and "20px" not in own.read_text()


def test_an_unknown_number_names_the_known_ones():
    with pytest.raises(FileNotFoundError, match="no notebook '77': there are 00, 01, 02"):
        stage.find("77")


def test_a_long_table_is_dealt_over_slides_with_its_head_and_nothing_is_lost():
    rows = [f"<tr><td>row {k}</td></tr>" for k in range(29)]
    head = "<table><thead><tr><th>head</th></tr></thead><tbody>"
    page = f'<div class="text"><p>before<br></p>{head}{"".join(rows)}</tbody></table><p>after</p></div>'
    dealt = slides.parts(page)
    assert len(dealt) == 3 and re.findall(r"<tr><td>.*?</tr>", "".join(dealt)) == rows
    for k, part in enumerate(dealt):
        assert head in part and part.count("<tr><td>") <= slides.MOST_ROWS
        assert all(part.count(f"<{tag}") == part.count(f"</{tag}>") for tag in ("div", "table", "tbody"))
        assert ("before" in part, "after" in part) == (k == 0, k == 2)
    assert slides.parts(head + "".join(rows[:5]) + "</tbody></table>") == [
        head + "".join(rows[:5]) + "</tbody></table>"
    ]
