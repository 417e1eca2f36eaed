"""The stage paths and their notes: enough to give a lecture from, and never in the notebook's way."""

import itertools
import json
import re

import nbformat
import pytest
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from clutils.course.book import running, slides, stage
from clutils.explorers import controls
from clutils.figures import style

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
    beliefs = re.findall(r"^\d\. \*(.+?)\*(.+)$", said["What students believe wrongly"], re.MULTILINE)
    assert len(beliefs) >= 3
    for belief, rest in beliefs:
        source = re.search(
            r"\d{4}|section|step|derive|notebook|exercise|no study known|lecture|documentation", rest
        )
        assert source, f"neither a source nor that there is none: {belief}"
    on_stage = {cell.id for cell in shown(nbformat.read(path, 4), 50)}
    listed = slides.listed(path.stem)
    on_stage |= {cell for slide in listed for cell, _ in slide.cells} | {slide.title for slide in listed}
    assert set(said) - {*slides.PARTS, "Slides"} <= on_stage, "a note at a slide that is not shown"


@each_lesson
def test_an_explorer_on_a_slide_has_the_two_controls_that_its_question_needs(path):
    families = map(controls.of_loss, controls.FAMILY)
    known = {c.name for of in (*families, *(e.controls for e in controls.EXPLORERS.values())) for c in of}
    sources = {cell.id: cell.source for cell in nbformat.read(path, 4).cells}
    for slide in slides.listed(path.stem):
        shown = "".join(sources.get(cell, "") for cell, _ in slide.cells)  # or a number: a title image
        live = re.search(r'frame\(\s*"(W|matrix)|dilemma\(|sphere\.circle\((?!.*menus=False)', shown)
        named = {name.removeprefix("beside_") for name in slide.controls.split(",") if name}
        wanted = 2 if live and slide.title else 0
        assert named <= known and len(set(filter(None, slide.controls.split(",")))) == wanted, slide.title


def test_a_formula_on_a_slide_has_the_figures_colours():
    shown = slides.markdown(
        r"$W$: $$\text{push}_j = \frac W\tau\,\hat p_j, \quad W = 1 - p^+, \quad \text{Wide}$$"
    )
    painted = re.findall(r'mathcolor="(#\w+)"\]\{(\w)\}', shown)
    assert painted == [
        (style.VERMILLION, "W"),
        (style.readable(style.ORANGE), "p"),
        painted[0],
        (style.BLUE, "p"),
    ]


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


@each_lesson
def test_shift_enter_opens_every_fold_and_does_not_scroll_to_the_top(path):
    cells = nbformat.read(path, 4).cells
    for fold, first in itertools.pairwise(cells):
        if fold.metadata.get(stage.FOLDED) and first.cell_type == "markdown":
            assert stage.HEADING.search(first.source) or first.source.startswith(stage.OPENS), first.id
    assert not any(stage.OPENS in cell.source for cell in stage.folded(nbformat.read(path, 4)).cells)


def test_a_cell_on_stage_keeps_the_heading_that_it_stands_under():
    cells = [
        new_markdown_cell("# Title\n\nand a sentence", metadata={"tags": ["stage"]}),
        new_markdown_cell("## ▸ An aside\n\nof words", metadata={stage.FOLDED: True}),
        new_markdown_cell("Its figure", metadata={"tags": ["stage"]}),
        new_code_cell("1"),
        new_markdown_cell("And more", metadata={"tags": ["stage"]}),
        new_markdown_cell("### Exercise", metadata={"tags": ["exercise"]}),
        new_markdown_cell("Of no exercise", metadata={"tags": ["stage"]}),
        new_markdown_cell("### Deeper"),
        new_markdown_cell("## Another", metadata={"tags": ["stage"]}),
    ]
    copy = stage.folded(new_notebook(cells=cells))
    above = {cell.source: before.source for before, cell in itertools.pairwise(copy.cells)}
    assert above["Its figure"] == "## An aside"
    assert above["And more"] == above["Of no exercise"] == "###### &nbsp;"
    assert above["## Another"] == "**Deeper**"


def test_the_copy_for_the_stage_leaves_the_notebook_as_it_was(tmp_path):
    original = tmp_path / LESSONS[2].name
    original.write_bytes(LESSONS[2].read_bytes())
    copy = stage.write("2", tmp_path, minutes=20)
    assert copy.parent == tmp_path and copy.name == f"stage_{original.name}"
    code = [
        cell
        for cell in nbformat.read(copy, 4).cells
        if cell.id in {c.id for c in shown(nbformat.read(original, 4), 20)}
    ]
    assert all(c.metadata["jupyter"]["source_hidden"] for c in code if c.cell_type == "code"), "code is open"
    assert original.read_bytes() == LESSONS[2].read_bytes()
    nbformat.validate(nbformat.read(copy, 4))
    assert copy not in running.sources(tmp_path), "the course's notebooks are the originals alone"


def test_a_copy_with_outputs_has_them_at_once_and_is_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "trust"))
    (tmp_path / LESSONS[2].name).write_bytes(LESSONS[2].read_bytes())
    ran = nbformat.read(LESSONS[2], 4)
    still = {"text/html": "<p>still</p>", "application/vnd.jupyter.widget-view+json": {"model_id": "1"}}
    for cell in ran.cells:
        if cell.cell_type == "code":
            cell.outputs = [new_output("display_data", still)]
    (tmp_path / "ran").mkdir()
    nbformat.write(ran, tmp_path / "ran" / LESSONS[2].name)
    copy = nbformat.read(stage.write("2", tmp_path, executed=tmp_path / "ran"), 4)
    first, *code = [cell for cell in copy.cells if cell.cell_type == "code"]
    assert first.source.endswith(f"stage.progress({len(code)})") and copy.cells[1] is first
    assert all(cell.outputs[0].data == {"text/html": "<p>still</p>"} for cell in code)
    assert NotebookNotary().check_signature(copy)


@pytest.mark.parametrize(
    ("sources", "said"),
    [(["1", "2"], "2 of 2: all cells have run"), (["1", "1 / 0", "2"], "2 of 3: a cell has raised an error")],
)
def test_the_bar_says_how_many_cells_have_run(tmp_path, sources, said):
    bar = f"{stage.BAR}({len(sources)})"
    notebook = new_notebook(cells=[new_code_cell(source) for source in (bar, *sources)])
    done, _ = running.execute(notebook, tmp_path, allow_errors=True)
    assert said in done.cells[0].outputs[0].data["text/html"]


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


@each_lesson
def test_on_the_path_an_answer_stands_after_its_question(path):
    for minutes in stage.CUTS:
        asked = False
        for cell in shown(nbformat.read(path, 4), minutes):
            tags = cell.metadata.get("tags", [])
            if "predict" in tags or re.search("Before you|Say what you expect", cell.source):
                asked = True
            elif "answer" in tags and cell.cell_type == "markdown":
                assert asked, f"{cell.id} answers what nobody has asked in {minutes} minutes"
                asked = False


POINTS = re.compile(  # words of a text that stands beside a figure, a table or what was printed
    r"\b(the figure|the panel|these curves|the (?:last )?lines?|each line|printed|in (?:the|a) title|"
    r"the legend|dashed|dotted|solid|by rows|read a row|left of its|right of its|the triangle|the arrows?|"
    r"(?:above|below|beneath)(?=[,:;]))(?!\w)"
)


PICTURE = re.compile(  # what a cell calls that draws: nothing is run here
    r"\bfigures\.(?:show|new)\(|\bexplorers\.frame\(|\bsphere\.circle\(|lesson\.watch\(|^found$",
    re.MULTILINE,
)
NO_CHARTS = ("lesson.search(",)  # panels without one


def shows_a_picture(name: str, cells: dict) -> bool:
    """A figure, an explorer, a panel or an image; a table, a formula or printed lines are none."""
    if slides.TITLE.fullmatch(name):
        return True
    cell = cells[name]
    if cell.cell_type == "markdown":  # of a text with a table a slide shows the table
        return bool(slides.IMAGE.search(cell.source)) and "\n|" not in cell.source
    live = "control" in cell.metadata.get("tags", []) and not any(no in cell.source for no in NO_CHARTS)
    return bool(PICTURE.search(cell.source)) or live


@each_lesson
def test_at_most_one_slide_in_four_has_no_figure(path):
    """The outline is one of them. A question stands alone where its figure would answer it."""
    cells = {cell.id: cell for cell in nbformat.read(path, 4).cells}
    found = slides.listed(path.stem)
    bare = [one.title for one in found if not any(shows_a_picture(name, cells) for name, _ in one.cells)]
    assert 4 * (len(bare) + 1) <= len(found) + 1, (
        f"of {len(found) + 1} slides: the outline, {', '.join(bare)}"
    )


@each_lesson
def test_every_slide_has_a_sentence_to_say_of_its_own(path):
    _, *found = slides.listed(path.stem)
    said = [slide.say for slide in found]
    assert len(set(said)) == len(said), "a sentence is said twice"
    for slide in found:
        assert 5 <= len(slide.say.split()) <= 35 and slide.say[-1] in ".?!", f"{slide.title!r}: {slide.say!r}"
        assert slide.say not in slide.text, f"{slide.title!r} reads its slide aloud"


@each_lesson
def test_a_slide_has_a_title_few_words_and_what_its_text_points_at(path):
    notebook = nbformat.read(path, 4)
    cells = {cell.id: cell for cell in notebook.cells}
    opening, *found = slides.listed(path.stem)
    assert opening.cells, "the title slide has no picture"
    for minutes, most in ((50, 25), (20, 12)):
        shown = [slide for slide in found if minutes == 50 or slide.short]
        assert 8 <= len(shown) + 2 <= most, (
            f"{len(shown) + 2} slides, with title and outline, in {minutes} minutes"
        )
        assert shown[-1].section == "What we found", "a deck ends with what was found"
    for slide in (opening, *found):
        unknown = [name for name, _ in slide.cells if name not in cells and not slides.TITLE.fullmatch(name)]
        assert not unknown, f"{slide.title!r} shows {unknown}, which is no cell of {path.name}"
        own = f"{slide.title} {re.sub(r'[$]{2}.*?[$]{2}', '', slide.text)}"
        assert len(own.split()) <= 60, f"{slide.title!r} has {len(own.split())} words"
        drawn = [shows_a_picture(name, cells) or "\n|" in cells[name].source for name, _ in slide.cells]
        drawn += [cells[name].cell_type == "code" for name, _ in slide.cells if name in cells]
        pointing = POINTS.search(slide.text.lower())
        assert any(drawn) or not pointing, f"{slide.title!r} says {pointing[0]!r}, and shows no figure"


@each_lesson
def test_the_title_slide_does_not_show_what_a_later_slide_asks(path):
    cells = nbformat.read(path, 4).cells
    code = [n for n, cell in enumerate(cells) if cell.cell_type == "code"]
    asking = [n for n, cell in enumerate(cells) if "predict" in cell.metadata.get("tags", [])]
    answers = {cells[next(k for k in code if k > n)].id for n in asking}
    assert not answers & {name for name, _ in slides.listed(path.stem)[0].cells}


@each_lesson
def test_a_slide_that_ends_with_a_question_has_its_answer_later_in_the_same_deck(path):
    cells = nbformat.read(path, 4).cells
    places = {cell.id: n for n, cell in enumerate(cells)}
    asking = [n for n, cell in enumerate(cells) if "predict" in cell.metadata.get("tags", [])]
    _, *found = slides.listed(path.stem)
    for minutes in stage.CUTS:
        deck = [slide for slide in found if minutes == 50 or slide.short]
        drawn = {places[name] for slide in deck for name, _ in slide.cells if name in places}
        for asked in drawn & set(asking):
            answering = range(asked + 1, min((n for n in asking if n > asked), default=len(cells)))
            assert drawn & set(answering), f"{cells[asked].id} has no answer in {minutes} minutes"
        for slide, after in itertools.pairwise(deck):
            if (slide.text or slide.title).endswith("?"):
                where = f"{slide.title!r} in {minutes} minutes"
                assert after.section == slide.section, f"{where}: no answer before the section ends"
                at, then = (places.get(one.cells[0][0]) if one.cells else None for one in (slide, after))
                assert at is None or then is None or at <= then, f"{where}: what comes next stands before it"


@each_lesson
def test_the_times_are_those_of_the_decks_sections_and_fill_the_lecture(path):
    _, *found = slides.listed(path.stem)
    for minutes in stage.CUTS:
        deck = [slide for slide in found if minutes == 50 or slide.short]
        times = slides.timing(deck, minutes)
        assert all(end > start for start, end in times.values()), f"a section has no minutes: {times}"
        assert [*times.values()][-1][1] == minutes
        given = {slide.section for slide in found if slide.minutes[minutes == 20]}
        assert given == set(times), f"minutes of sections without a slide: {given - set(times)}"


@each_lesson
def test_no_note_is_empty_and_none_is_a_neighbours(path):
    notebook = nbformat.read(path, 4)
    page = slides.deck(notebook, path.stem, "A deck", 20)
    told = re.findall(r'<aside class="notes">(.*?)</aside>', page, re.DOTALL)
    assert len(told) == page.count("<section") and all(told)
    for slide in slides.listed(path.stem)[1:]:
        others = {cell for other in slides.listed(path.stem)[1:] for cell, _ in other.cells}
        own = {cell for cell, _ in slide.cells}
        for cell in notebook.cells:
            text = " ".join(cell.source.split())[:60]
            if cell.id in others - own and cell.cell_type == "markdown" and len(text) > 40:
                notes = " ".join(" ".join(tell(slide, notebook, path.stem)).split())
                assert text not in notes, f"{slide.title!r} tells {cell.id}"


def tell(slide, notebook, stem):
    places = {cell.id: n for n, cell in enumerate(notebook.cells)}
    taken = {places[cell] for other in slides.listed(stem) for cell, _ in other.cells if cell in places}
    return slides.around(slide, taken, notebook, places)


def test_a_line_that_is_no_slide_is_quoted(monkeypatch):
    said = {"Slides": "Why?\n### One [50]\n- `cell-1` **A title**: a sentence\n- a sentence alone"}
    monkeypatch.setattr(slides, "notes", lambda stem: said)
    with pytest.raises(ValueError, match="'- a sentence alone' is no slide"):
        slides.listed("02")
    said["Slides"] = "Why?\n### One\n- **A title**"
    with pytest.raises(ValueError, match="'### One' has no minutes"):
        slides.listed("02")
    said["Slides"] = "- **A title**"
    with pytest.raises(ValueError, match="a question as the first line"):
        slides.listed("02")


def test_a_deck_shows_the_figure_of_a_cell_its_code_where_asked_and_refuses_a_cell_without_output(
    monkeypatch,
):
    figures = "".join(f'<figure><img alt="{n}" width="400" height="300"></figure>' for n in (1, 2))
    output = nbformat.v4.new_output("display_data", {"text/html": figures})
    text = nbformat.v4.new_output("stream", text="some printed lines")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("draw()", id="drawn", outputs=[text, output]),
            nbformat.v4.new_code_cell("silent()", id="silent"),
        ]
    )
    notebook.cells[0].metadata["tags"] = ["stage"]
    said = {}
    monkeypatch.setattr(slides, "notes", lambda stem: said)
    said["Slides"] = (
        "`drawn` Why?\n### One [50, 20]\n- 20 `drawn.2` **Second**: read it\n- `drawn` code **Both**"
    )
    long, short = (slides.deck(notebook, "02", "A deck", minutes) for minutes in (50, 20))
    assert "Second" in short and "Both" not in short and "Both" in long
    second = re.search(r"<section[^>]*><p class=.where.>One</p><h2>Second.*?</section>", short, re.DOTALL)[0]
    assert 'alt="2"' in second and 'alt="1"' not in second and "read it" in second
    assert "printed lines" not in long, "beside a figure what a cell printed is noise"
    assert long.count('class="code"') == 1
    said["Slides"] += "\n- `silent` **Nothing**"
    with pytest.raises(ValueError, match="'Nothing' shows the cell 'silent', which has no output"):
        slides.deck(notebook, "02", "A deck", 50)
