"""Exams: the notebooks' exercises alone, solutions removed, in nbgrader's format, and what marks a hand-in.

    exams/source/02_temperature/02_temperature.ipynb      the teacher's, with solutions
    exams/release/02_temperature/02_temperature.ipynb     the students'
    exams/nbgrader_config.py

`nbgrader autograde` marks hand-ins of these; `mark` does so without nbgrader. Everybody is asked the variant
of a number of their own (`student`), so the course's solutions may stay public.
"""

import itertools
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from clutils import files
from clutils.course import exercise, student
from clutils.course.book import running
from clutils.course.exercise import Exercise

ROOT = Path(__file__).resolve().parents[3] / "notebooks"
LEFT_OUT = {"what_sscl_calls_tau": "its answer stands in the notebook's own table"}
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"  # what nbgrader takes for one
ASKED = re.compile(r"^(?:print\(.*\n)?((?:.*\n)*?)\s*lesson\.(\w+)\.check\(\w+\)\s*$")
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
SECONDS = 600  # for a cell of a hand-in


class Asked(NamedTuple):
    """One exercise as a notebook asks it: its words, the stub that a student fills in, the exercise."""

    words: str
    stub: str
    exercise: Exercise


class Mark(NamedTuple):
    """A hand-in's points: number of the student, name -> what `check` said; right ones begin with ✓."""

    number: str
    said: dict[str, str]

    @property
    def points(self) -> int:
        return sum(words.startswith("✓") for words in self.said.values())

    def __str__(self) -> str:
        lines = [f"  {words}" for words in self.said.values()]
        return "\n".join([f"number {self.number}: {self.points} of {len(self.said)}", *lines])


def notebooks(names: Sequence[str] = ()) -> list[Path]:
    """The course's notebooks whose names begin so, as '02'; all where none is named.

    Raises ValueError on a beginning that none has.
    """
    every = sorted(path for path in ROOT.glob("*.ipynb") if path.stem[:2].isdigit())
    if odd := [name for name in names if not any(path.stem.startswith(name) for path in every)]:
        raise ValueError(
            f"exam: no notebook is called {odd[0]!r}; there are {', '.join(p.stem for p in every)}"
        )
    return [path for path in every if not names or path.stem.startswith(tuple(names))]


def asked(path: Path) -> tuple[list[Asked], dict[str, str]]:
    """A notebook's exercises that stand on their own, and those that don't: name -> why not."""
    known = {e.name: e for every in exercise.catalogue().values() for e in every}
    found, left = [], {}
    for before, cell in itertools.pairwise(nbformat.read(path, 4).cells):
        match = ASKED.match(cell.source) if cell.cell_type == "code" else None
        if match is None:
            continue
        stub, name = match.groups()
        if before.cell_type != "markdown":
            left[name] = "it asks about what the notebook computes"
        elif name in LEFT_OUT:
            left[name] = LEFT_OUT[name]
        else:
            shown = cell.source.partition("\n")[0] + "\n" if cell.source.startswith("print(") else ""
            words = re.sub(r"^## Your turn.*\n+", "", before.source)
            found.append(Asked(words, (shown + stub).rstrip() + "\n", known[name]))
    return found, left


def build(folder: str | Path, names: Sequence[str] = ()) -> dict[str, tuple[int, dict[str, str]]]:
    """Write the exams; name of each -> how many exercises it has, and what was left out and why.

    - folder: `source`, `release` and nbgrader's configuration land there
    - names: of notebooks, by their beginnings; () = all

    Raises ValueError on a name that is none; OSError where the folder can't be written.
    """
    folder, done = Path(folder), {}
    for path in notebooks(names):
        found, left = asked(path)
        if not found:
            continue
        for kind in ("source", "release"):
            made = _notebook(path, found, with_solutions=kind == "source")
            files.write_atomically(folder / kind / path.stem / path.name, nbformat.writes(made) + "\n")
        done[path.stem] = (len(found), left)
    files.write_atomically(
        folder / "nbgrader_config.py",
        "c = get_config()\n"
        'c.CourseDirectory.course_id = "contrastive_learning"\n'
        f'c.ClearSolutions.begin_solution_delimeter = "{BEGIN.removeprefix("### ")}"\n'
        f'c.ClearSolutions.end_solution_delimeter = "{END.removeprefix("### ")}"\n',
    )
    return done


def mark(path: str | Path) -> Mark:
    """Run a hand-in, a stranger's code, in a kernel of its own, and mark it by tests of ours, not by its own.

    Raises ValueError, naming the file, on one that is no exam of this course, gives no number, or hangs.
    """
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    try:
        handed = nbformat.read(path, 4)
    except (ValueError, AttributeError, nbformat.ValidationError) as error:
        raise ValueError(f"exam: {path} is no notebook: {str(error).splitlines()[0]:.80}") from error
    lesson = handed.metadata.get("clutils_exam")
    known = {e.name for e in exercise.catalogue().get(lesson, ())}
    answers = {name: cell for cell in handed.cells if (name := _solution(cell)) in known}
    numbers = [cell for cell in handed.cells if _solution(cell) == "number"]
    if not answers or len(numbers) != 1:
        raise ValueError(f"exam: {path} is no exam of this course, as `python -m clutils exam` writes it")
    cells = [new_code_cell(_opening(lesson)), numbers[0], new_code_cell("print(student.number())")]
    for name, cell in answers.items():
        judged = f"from clutils.course import {lesson} as lesson\nlesson.{name}.check({name})"
        cells += [cell, new_code_cell(judged)]
    whole = new_notebook(cells=cells, metadata=KERNEL)
    with tempfile.TemporaryDirectory() as apart:
        own = {"CLUTILS_PROGRESS": str(Path(apart) / "progress.json")}
        try:
            ran, _ = running.execute(whole, Path(apart), timeout=SECONDS, allow_errors=True, **own)
        except (CellTimeoutError, DeadKernelError) as error:
            raise ValueError(f"exam: {path} did not run to its end: {type(error).__name__}") from error
    number = _said(ran.cells[2])
    if number == "None" or not number.isalnum():
        raise ValueError(
            f"exam: {path} gives no number, but {numbers[0].source.strip()!r}: a student's own goes there, "
            f"in letters and digits; with {student.EVERYBODY!r} it is what everybody is asked"
        )
    return Mark(number, dict(zip(answers, map(_said, ran.cells[4::2]), strict=True)))


# ---- inside ------------------------------------------------------------------------------------------------


def _notebook(path: Path, found: list[Asked], with_solutions: bool) -> NotebookNode:
    lesson = next(name for name, every in exercise.catalogue().items() if found[0].exercise in every)
    number = student.EVERYBODY if with_solutions else "your number"
    title = path.stem.partition("_")[2].replace("_", " ")
    cells = [
        new_markdown_cell(
            f"# Exam: {title}\n\nGive your number in the second cell, and run it: what you are asked in each "
            "exercise depends on it. Each answer is checked at once, as often as you like. Sections that a "
            f"question names are those of {path.stem}."
        ),
        _cell(new_code_cell(_opening(lesson)), "opening"),
        _cell(new_code_cell(f'student.begin("{number}")'), "number", solution=True),
    ]
    for words, stub, own in found:
        answer = stub
        if with_solutions:
            answer = f"{BEGIN}\n{str(own.solution()).rstrip()}\n{END}"
        call = f"lesson.{own.name}.check({own.name})"
        cells += [
            _cell(new_markdown_cell(words), f"{own.name}_asked"),
            _cell(new_code_cell(f"lesson.{own.name}.check(None)"), f"{own.name}_variant"),
            _cell(new_code_cell(answer.rstrip()), own.name, solution=True),
            _cell(new_code_cell(f"found = {call}\nprint(found)\nassert found"), f"{own.name}_test", points=1),
        ]
    for number, cell in enumerate(cells):
        cell["id"] = f"cell{number:03}"
    return new_notebook(cells=cells, metadata={"clutils_exam": lesson, **KERNEL})


def _opening(lesson: str) -> str:
    return f"""import os

os.environ["CLUTILS_EXAM"] = "1"

import math

import torch
import torch.nn.functional as F

from clutils import losses, maps, measures, similarities
from clutils.course import student
from clutils.course import {lesson} as lesson"""


def _cell(cell: NotebookNode, name: str, solution: bool = False, points: int = 0) -> NotebookNode:
    """A cell as nbgrader's schema 3 has it: a student may change a solution and nothing else."""
    own: dict[str, Any] = {"grade_id": name, "schema_version": 3, "task": False, "solution": solution}
    own |= {"grade": bool(points), "locked": not solution}
    cell.metadata["nbgrader"] = own | ({"points": points} if points else {})
    return cell


def _solution(cell: NotebookNode) -> str | None:
    """The name of what a student filled in there."""
    own = cell.metadata.get("nbgrader", {})
    return own.get("grade_id") if own.get("solution") else None


def _said(cell: NotebookNode) -> str:
    """What a cell that ran says at its end: its value, its text, or its error."""
    for output in reversed(cell.outputs):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
        if "data" in output:
            return " ".join(output.data["text/plain"].split())
        if output.output_type == "stream":
            return output.text.strip()
    return ""
