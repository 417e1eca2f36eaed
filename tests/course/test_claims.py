"""A verdict follows the evidence; the page has every claim that a cell tests, with the cell's own verdict."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from clutils.course import claims


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """Two notebooks that test three claims."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    first = [
        new_markdown_cell("# A title\n\n## ▸ 1 · Where it is shown\n\ntext"),
        new_code_cell('x = 1\nclaims.test(\n    "MACL",\n    "eq. 7: it grows",\n    x > 0, "x"\n);'),
        new_markdown_cell("### ▸ The answer in figures", metadata={"tags": ["answer"]}),
        new_code_cell('claims.test("MACL", "eq. 8: it " "shrinks", False, "y")\nother.test("a", "b")'),
    ]
    second = [new_markdown_cell("# Other"), new_code_cell('claims.test("SSCL", "table 4: <b>", True, "z")')]
    for name, cells in (("04_a", first), ("06_b", second), ("claims", second)):
        nbformat.write(new_notebook(cells=cells), folder / f"{name}.ipynb")
    return folder


def write(folder: Path, paper: str, claim: str, verdict: str) -> None:
    folder.mkdir(exist_ok=True)
    entry = {"paper": paper, "claim": claim, "verdict": verdict, "evidence": "derived"}
    text = json.dumps(entry | {"shown_by": f"by {folder.name}"})
    (folder / f"{claims.slug(paper, claim)}.json").write_text(text)


def test_claims_are_read_from_the_cells_with_their_section(course, tmp_path):
    found = claims.collect(course, recorded=None, own=tmp_path / "none")
    assert [(c.paper, c.claim, c.notebook, c.section) for c in found] == [
        ("MACL", "eq. 7: it grows", "04_a", "1 · Where it is shown"),
        ("MACL", "eq. 8: it shrinks", "04_a", "1 · Where it is shown"),
        ("SSCL", "table 4: <b>", "06_b", "Other"),
    ]
    cells = nbformat.read(course / "04_a.ipynb", 4).cells
    assert [c.link for c in found[:2]] == [f"04_a.ipynb#cell-id={cell.id}" for cell in (cells[1], cells[3])]
    assert {c.origin for c in found} == {"not run yet"} and all(c.verdict is None for c in found)


def test_a_verdict_of_this_machine_goes_before_the_recorded_one(course, tmp_path):
    recorded, own = tmp_path / "recorded", tmp_path / "own"
    write(recorded, "MACL", "eq. 7: it grows", "holds")
    write(recorded, "SSCL", "table 4: <b>", "fails")
    write(own, "MACL", "eq. 7: it grows", "holds when x is 1")
    write(own, "MACL", "eq. 99: that no cell tests", "holds")
    found = claims.collect(course, recorded, own)
    assert [(c.verdict, c.origin) for c in found] == [
        ("holds when x is 1", "run here"),
        (None, "not run yet"),
        ("fails", "recorded"),
    ]
    page = claims.page(found)
    assert page.index("eq. 7") < page.index("holds when x is 1") < page.index("eq. 8") < page.index("fails")
    assert "eq. 99" not in page and "&lt;b&gt;" in page and f'href="{found[2].link}"' in page
    assert page.count("Control: none but each step") == 2, "a row names no control"


def test_a_claim_that_is_no_plain_string_is_quoted(tmp_path):
    cell = new_code_cell('claims.test("MACL", f"eq. {n}", True, "x")')
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "01_x.ipynb")
    with pytest.raises(ValueError, match=r"01_x\.ipynb.*eq\. \{n\}"):
        claims.collect(tmp_path, None, tmp_path)


def test_the_record_holds_a_verdict_for_each_claim_of_the_course_and_no_other():
    tested = {f"{claims.slug(c.paper, c.claim)}.json" for c in claims.collect()}
    assert len(tested) == len(claims.collect()), "two claims share a file"
    assert tested == {file.name for file in claims.RECORDED.glob("*.json")}


def settings(tree: ast.Module, known: dict[str, ast.expr]) -> dict[str, ast.expr]:
    """Names with a number or a text, `x = 40` or `x = training.fewer(40)`, after a cell: name -> value."""
    for statement in tree.body:
        stored = [node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and not reads(node)]
        known = {name: value for name, value in known.items() if name not in stored}
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = statement.value
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "training.fewer":
                value = value.args[0]  # the record is of a full run
            if isinstance(value, ast.Constant | ast.JoinedStr | ast.BinOp):
                known[statement.targets[0].id] = value
    return known


def reads(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def wording(node: ast.expr | None, known: dict[str, ast.expr]) -> str:
    """A regular expression of a text that a cell writes: constant words and settings, anything between."""
    if isinstance(node, ast.Constant):
        return re.escape(str(node.value))
    if isinstance(node, ast.JoinedStr):
        return "".join(wording(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Name):
        number = known.get(node.value.id)
        if isinstance(number, ast.Constant) and isinstance(number.value, int | float):
            spec = ast.literal_eval(node.format_spec) if node.format_spec else ""
            return re.escape(format(number.value, spec))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return wording(node.left, known) + wording(node.right, known)
    if isinstance(node, ast.Name) and node.id in known:
        return wording(known[node.id], known)
    return ".*"


def unlike_their_record(cells: list[str], folder: Path) -> list[str]:
    """The claims whose record another text wrote: other words, or another number of steps or epochs."""
    known: dict[str, ast.expr] = {}
    found = []
    for tree in map(ast.parse, cells):
        known = settings(tree, known)
        for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
            if ast.unparse(call.func) != "claims.test":
                continue
            paper, claim, *_ = (ast.literal_eval(each) for each in call.args[:2])
            record = json.loads((folder / f"{claims.slug(paper, claim)}.json").read_text("utf-8"))
            for argument in [each for each in call.keywords if each.arg in ("shown_by", "control")]:
                text, pattern = record.get(argument.arg, ""), wording(argument.value, known)
                if not re.fullmatch(pattern, text, flags=re.DOTALL):
                    found.append(f"{paper}: {claim}: {argument.arg} on record: {text!r}")
    return found


@pytest.mark.parametrize("path", sorted(claims.NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_record_has_the_words_and_the_settings_of_its_cell(path):
    code = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    stale = unlike_their_record(code, claims.RECORDED)
    assert not stale, f"run: python benchmarks/claims.py notebooks/{path.name}\n" + "\n".join(stale)


@pytest.mark.parametrize(
    ("before", "said", "stale"),
    [
        ("steps = 25", 'f"after {steps} steps: {x:.2f}"', False),
        ("steps = training.fewer(25)", 'f"after {steps} steps: {x:.2f}"', False),
        ("steps = 80", 'f"after {steps} steps: {x:.2f}"', True),
        (
            "steps = 80\nsteps = length()",
            'f"after {steps} steps: {x:.2f}"',
            False,
        ),  # not known before it runs
        ("end = 'steps: 0.46'", 'f"after {steps} " + end', False),
        ("end = 'steps, 0.46'", 'f"after {steps} " + end', True),
        ("", '"after 25 steps: " + number', False),
        ("", 'f"{x}; and more"', True),
    ],
)
def test_another_word_or_setting_than_on_record_is_found(before, said, stale, tmp_path):
    entry = {"shown_by": "after 25 steps: 0.46"}
    (tmp_path / f"{claims.slug('A', 'b')}.json").write_text(json.dumps(entry), "utf-8")
    cells = [before, f'claims.test("A", "b", "derived", True, shown_by={said})']
    assert bool(unlike_their_record(cells, tmp_path)) == stale


@pytest.mark.parametrize(
    ("evidence", "always", "holds_when", "verdict"),
    [
        ("derived", True, None, "holds"),
        ("derived", False, None, "fails"),
        ("the paper's numbers", False, None, "fails"),
        ("constructed case", False, True, "holds when K is 1"),
        ("constructed case", False, False, "fails"),
        ("derived", None, None, "not decided here"),
        ("forces", True, None, "holds"),
        ("forces", False, None, "not decided here"),
        ("runs here", False, False, "not decided here"),
        ("runs here", None, True, "holds when K is 1"),
        ("runs here", True, None, "holds"),
    ],
)
def test_a_verdict_is_no_stronger_than_its_evidence(
    evidence, always, holds_when, verdict, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("CLUTILS_CLAIMS", str(tmp_path))
    when = None if holds_when is None else "K is 1"
    found = claims.test(
        "MACL", "W is monotone", evidence, always, "a sweep", when, holds_when, control="a known one"
    )
    (file,) = tmp_path.glob("*.json")
    kept = json.loads(file.read_text("utf-8"))
    assert found == verdict == kept["verdict"] and kept["evidence"] == evidence
    said = capsys.readouterr().out
    assert f"verdict: {verdict} ({evidence})" in said and "control: a known one" in said


@pytest.mark.parametrize(
    ("evidence", "said"), [("hearsay", "'hearsay'; there are derived"), ("runs here", "W is")]
)
def test_evidence_is_of_a_known_kind_and_runs_have_a_control(evidence, said, tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_CLAIMS", str(tmp_path))
    with pytest.raises(ValueError, match=said):
        claims.test("MACL", "W is monotone", evidence, True, "a sweep")
    assert not list(tmp_path.glob("*"))


@pytest.mark.parametrize(
    ("ours", "recorded", "same"),
    [
        ("agree to 4e-14", "agree to 2e-14", True),  # what rounding leaves
        ("the gap is 2e-03", "the gap is 4e-03", False),
        ("70% of the anchors", "71% of the anchors", True),
        ("70% of the anchors", "75% of the anchors", False),
        ("from 0.00 to 0.41 nats", "from 0.00 to 0.42 nats", True),
        ("from 0.00 to 0.41 nats", "from 0.00 to 0.55 nats", False),
        ("of 557,159 pairs", "of 557,159 pairs", True),
        ("of 557,159 pairs", "of 457,159 pairs", False),
        ("it is -0.33", "it is +0.33", False),
        ("it rises", "it falls", False),
        ("2 of 8", "2 of 8, and more", False),
    ],
)
def test_evidence_is_the_same_word_by_word_and_to_the_last_digit(ours, recorded, same):
    assert claims.same_evidence(ours, recorded) == same


def test_the_books_link_to_a_claim_leads_to_its_card():
    from clutils.course.book import pages

    claim = claims.collect()[0]
    (there,) = re.findall(r'href="([^"]+)"', pages.TO_NOTEBOOK.sub(pages.to_page, f'href="{claim.link}"'))
    page, _, card = there.partition("#")
    assert page == f"{claim.notebook}.html" and card in set(claims.anchors().values())
    shown = claims.Card(claim.paper, claim.claim, "holds", "derived", "a sweep", None)._repr_html_()
    assert f'id="{card}"' in shown


def test_a_condition_needs_its_evidence(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUTILS_CLAIMS", str(tmp_path))
    with pytest.raises(ValueError, match="go together"):
        claims.test("MACL", "W is monotone", "derived", False, "a sweep", when="K is 1")
    assert not list(tmp_path.glob("*"))
