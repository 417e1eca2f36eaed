"""Exams: solutions removed, nbgrader's format, and a marked example that comes back right."""

import re

import nbformat
import pytest

from clutils.__main__ import main
from clutils.course import exercise
from clutils.course.book import exam

KNOWN = {e.name: e for every in exercise.catalogue().values() for e in every}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exams")
    return folder, exam.build(folder)


def cells(folder, kind, name):
    return nbformat.read(folder / kind / name / f"{name}.ipynb", 4).cells


def handed_in(folder, target, answers, number="20261234"):
    """A hand-in of notebook 02's exam: what a student writes in place of each stub."""
    made = nbformat.read(folder / "release" / NAME / f"{NAME}.ipynb", 4)
    for cell in made.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name == "number":
            cell.source = f'student.begin("{number}")' if number else "..."
        elif name in answers:
            cell.source = answers[name]
    nbformat.write(made, target)
    return target


NAME = "02_temperature_and_gradient_scaling"


def test_every_notebook_has_an_exam_without_solutions(built):
    folder, done = built
    assert len(done) == len(exam.notebooks())
    for name, (number, left) in done.items():
        released, source = cells(folder, "release", name), cells(folder, "source", name)
        text = "\n".join(cell.source for cell in released)
        assert exam.BEGIN not in text and ".solution(" not in text and ".hint(" not in text
        asked = [c.metadata.nbgrader.grade_id for c in released if exam._solution(c) in KNOWN]
        assert len(asked) == number and not left.keys() & set(asked)
        assert sum(c.source.count(exam.BEGIN) for c in source) == number
        for cell in released:
            if exam._solution(cell) in KNOWN:
                assert "..." in cell.source and ".check(" not in cell.source


def test_cells_are_as_nbgraders_schema_has_them(built):
    folder, done = built
    for name in done:
        made = nbformat.read(folder / "release" / name / f"{name}.ipynb", 4)
        nbformat.validate(made)
        own = [cell.metadata.nbgrader for cell in made.cells[1:]]
        assert all(
            {"grade", "grade_id", "locked", "schema_version", "solution", "task"} <= each.keys()
            for each in own
        )
        assert {each.schema_version for each in own} == {3}
        names = [each.grade_id for each in own]
        assert len(set(names)) == len(names) and all(re.fullmatch(r"[a-zA-Z0-9_\-]+", each) for each in names)
        assert all(each.grade == ("points" in each) for each in own)
        assert all(each.locked != each.solution for each in own)


def test_a_marked_example_comes_back_right(built, tmp_path, capsys):
    folder, _ = built
    asked = KNOWN["pull"].of("20261234").question
    assert "number, W itself is asked for; similarities s of unit vectors are given as" in asked
    pull = str(KNOWN["pull"].solution()).replace("def pull(", "def everybodys(")
    answers = {
        "pull": f"{pull}\n\ndef pull(s, n, t):\n    return t * everybodys(1 - s / 2, 1 - n / 2, t)",
        "negatives_to_open": str(KNOWN["negatives_to_open"].solution()),  # everybody's
        "hot_limit": "raise SystemError('no idea')",
    }
    first = handed_in(folder, tmp_path / "first.ipynb", answers)
    found = exam.mark(first)
    assert found.number == "20261234" and found.points == 1
    assert found.said["pull"].startswith("✓") and "everybody" in found.said["negatives_to_open"]
    assert found.said["hot_limit"].startswith("NameError")
    nameless = handed_in(folder, tmp_path / "nameless.ipynb", answers, number=None)
    (tmp_path / "text.ipynb").write_text("{")
    assert main(["exam", "--mark", str(first), str(nameless), str(tmp_path / "text.ipynb")]) == 1
    said = capsys.readouterr().out
    assert (
        "1 of 3" in said and "nameless.ipynb gives no number, but '...'" in said and "is no notebook" in said
    )


def test_the_solutions_are_marked_as_what_everybody_is_asked(built):
    folder, _ = built
    (solved,) = (folder / "source").glob("02_*/*.ipynb")
    found = exam.mark(solved)
    assert found.number == "everybody" and found.points == len(found.said) == 3


def test_what_is_no_notebook_of_the_course_is_refused_in_a_line(tmp_path, capsys):
    assert main(["exam", "99", "--out", str(tmp_path)]) == 2
    assert "no notebook is called '99'" in capsys.readouterr().err
    with pytest.raises(ValueError, match="is no exam of this course"):
        exam.mark(exam.ROOT / f"{NAME}.ipynb")
