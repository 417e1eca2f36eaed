"""Exercises accept the right answer and tell the known wrong ones apart."""

import ast
import functools
import importlib
import inspect
import math
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import torch

from clutils.course import exercise
from clutils.course.attention_nce import exercises as attention_nce
from clutils.course.book import running
from clutils.course.checkpoint import exercises as checkpoint
from clutils.course.exercise import Exercise, Wrong
from clutils.course.macl import exercises as macl
from clutils.course.vectors import exercises as vectors


@functools.cache
def imported_where(call: str) -> dict:
    """What the notebook that makes this call has imported: the names a reader's own cell can use."""
    for path in running.sources():
        code = [c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
        if any(call in source for source in code):
            lines = [line for source in code if "%" not in source for line in ast.parse(source).body]
            imports = [line for line in lines if isinstance(line, ast.Import | ast.ImportFrom)]
            scope: dict = {}
            exec(compile(ast.Module(imports, []), path.name, "exec"), scope)
            return scope
    raise AssertionError(f"no notebook says {call}")


EVERY = [pytest.param(e, id=f"{room}.{e.name}") for room, es in exercise.catalogue().items() for e in es]


def vandal(*arguments):
    for argument in arguments:
        if isinstance(argument, torch.Tensor):
            argument.zero_()


@pytest.mark.parametrize("exercise", EVERY)
def test_its_own_answer_is_right_also_after_one_that_changed_its_cases(exercise):
    if callable(exercise.answer):
        exercise.check(vandal)
    result = exercise.check(exercise.answer)
    assert result, result
    assert "right" in repr(result)


@pytest.mark.parametrize("exercise", EVERY)
def test_every_known_wrong_answer_is_rejected_by_name(exercise):
    assert exercise.wrong, f"{exercise.name} knows no wrong answer"
    for wrong in exercise.wrong:
        result = exercise.check(wrong.answer)
        assert not result, f"{exercise.name} accepts {wrong.name}"
        assert wrong.name in repr(result), f"{exercise.name}: {wrong.name} is taken for {result}"
        assert wrong.why in repr(result)


LAZY = {
    "max": max,
    "min": min,
    "the largest of the first": lambda *given: max(given[0]),
    "the smallest of the first": lambda *given: min(given[0]),
    "the first, as it came": lambda *given: given[0],
    "the last, as it came": lambda *given: given[-1],
    "the mean of the first": lambda *given: given[0].mean(),
    "zeros": lambda *given: torch.zeros_like(given[0]),
    "ones": lambda *given: torch.ones_like(given[0]),
    "zero": lambda *given: 0.0,
    "one": lambda *given: 1.0,
    "True": lambda *given: True,
    "False": lambda *given: False,
    "an empty list": lambda *given: [],
    "words": lambda *given: "not decided here",
}


ANSWERED = [
    # each answer of `rescue` is 80 steps of a run; that it takes no lazy one is shown by its own tests
    pytest.param(*each.values, id=each.id, marks=[pytest.mark.sweep] if each.id == "lab.rescue" else [])
    for each in EVERY
    if callable(each.values[0].answer)
]


@pytest.mark.parametrize("exercise", ANSWERED)
def test_no_lazy_answer_is_taken(exercise):
    alone = len(inspect.signature(exercise.answer).parameters) == 1  # then the last argument is the first
    tried = {name: answer for name, answer in LAZY.items() if not (alone and "last" in name)}
    taken = [name for name, answer in tried.items() if exercise.check(answer)]
    assert taken == []


@pytest.mark.parametrize("exercise", EVERY)
def test_an_empty_answer_and_rubbish_are_told_kindly(exercise):
    assert not exercise.check(None)
    assert not exercise.check(...)
    assert "nothing here yet" in repr(exercise.check([..., ...]))
    assert not exercise.check("rubbish") or isinstance(exercise.answer, str)
    if callable(exercise.answer):
        assert "returned nothing" in repr(exercise.check(lambda *a: None))

        def broken(*args):
            raise IndexError("off the end")

        assert "IndexError: off the end" in repr(exercise.check(broken))
        for constant in (0.5, math.nan, torch.tensor(-0.5)):
            assert not exercise.check(lambda *a, constant=constant: constant)
        assert not exercise.check(lambda: 1)


@pytest.mark.parametrize("exercise", EVERY)
def test_it_has_hints_and_a_solution_that_shows_code(exercise):
    assert exercise.hints
    shown = repr(exercise.solution())
    assert exercise.name in shown
    if callable(exercise.answer):
        assert f"def {exercise.name}(" in shown
        scope = dict(imported_where(f"lesson.{exercise.name}.check("))
        exec(compile(shown, "pasted", "exec", dont_inherit=True), scope)  # as in a reader's own cell
        assert exercise.check(scope[exercise.name]), "the printed solution does not pass its own check"


def test_every_exercise_is_tried_by_its_lessons_own_tests():
    files = [file for file in Path(__file__).parent.rglob("test_*.py") if file.name != Path(__file__).name]
    named = set(re.findall(r"\w+", "\n".join(file.read_text("utf-8") for file in files)))
    lacking = [each.id for each in EVERY if each.values[0].name not in named]
    assert not lacking, f"{', '.join(lacking)}: further answers and mistakes in tests/course/test_<folder>.py"


def test_names_are_unique_and_each_lesson_has_its_exercises_by_name():
    names = [e.name for es in exercise.catalogue().values() for e in es]
    assert len(names) == len(set(names))
    for room, exercises in exercise.catalogue().items():
        lesson = importlib.import_module(f"clutils.course.{room}")
        assert all(getattr(lesson, e.name) is e for e in exercises), room


def double(x):
    return 2 * x


SAMPLE = Exercise(
    name="double",
    question="Twice the number.",
    answer=double,
    hints=["one", "two"],
    wrong=[Wrong("its square", lambda x: x * x, "you multiplied it by itself.")],
    cases=lambda: [(torch.tensor([1.0, 2.0, 3.0]),), (torch.tensor([0.5, 7.0]),)],
)


def test_an_answer_that_changes_what_it_was_given_is_told_so():
    def in_place(x, chosen, rows):
        x[chosen] = x.gather(0, rows)[chosen]
        return x

    result = vectors.CORRUPT.check(in_place)
    assert not result and "changes the x that it was given" in repr(result)
    assert vectors.CORRUPT.check(lambda x, chosen, rows: in_place(x.clone(), chosen, rows))


def test_feedback_names_the_case_the_shape_and_the_value():
    assert "its square" in repr(SAMPLE.check(lambda x: x * x))
    assert "has shape (2,), expected shape (3,)" in repr(SAMPLE.check(lambda x: 2 * x[:2]))
    assert "for x = [1, 2, 3]: got [3, 6, 9], expected [2, 4, 6]" in repr(SAMPLE.check(lambda x: 3 * x))
    long = replace(SAMPLE, cases=lambda: [(torch.arange(9.0),)])
    wrong = long.check(lambda x: 2 * x * (x != 5))
    assert "got […, 0, 12, 14, 16], expected […, 10, 12, 14, 16]" in repr(wrong)
    assert not SAMPLE.check(lambda x: complex(2, 0) * x)
    assert "expected a function" in repr(SAMPLE.check(4.0))
    assert not SAMPLE.check(lambda x: x * torch.nan)
    endless = replace(SAMPLE, wrong=[Wrong("a division by zero", lambda x: x / 0, "0 divides nothing.")])
    assert "a division by zero" in repr(endless.check(lambda x: x / 0))
    assert "a division by zero" not in repr(endless.check(lambda x: 3 * x)), "infinity is near nothing"


def test_feedback_shows_a_tuple_by_its_numbers_and_not_by_its_repr():
    both = replace(SAMPLE, answer=lambda x: (x, x.sum()), wrong=[])
    told = repr(both.check(lambda x: (x, x.mean())))
    assert "got ([1, 2, 3], 2), expected ([1, 2, 3], 6)" in told and "dtype" not in told


def test_hints_come_one_by_one_and_the_last_stays():
    assert [str(SAMPLE.hint()) for _ in range(3)] == [
        "Hint 1 of 2: one",
        "Hint 2 of 2: two",
        "Hint 2 of 2: two",
    ]


EVEN = Exercise(
    name="even",
    question="An even number above 10.",
    answer=12,
    hints=["twice something"],
    wrong=[Wrong("an odd number", 13, "it leaves one over.")],
    judge=lambda n: (
        "a whole number is asked for."
        if not isinstance(n, int)
        else "an odd number"
        if n % 2
        else None
        if n > 10
        else f"{n} is not above 10."
    ),
)


def test_a_question_with_many_answers_takes_any_that_has_the_property():
    assert EVEN.check(12)
    assert EVEN.check(400)
    assert "odd number: it leaves one over" in repr(EVEN.check(15))
    assert "8 is not above 10" in repr(EVEN.check(8))
    assert not EVEN.check("rubbish")
    assert not EVEN.check(None)


def test_a_wrong_number_is_called_wrong_whatever_its_type():
    asked = Exercise(
        "half",
        "half of x",
        answer=lambda x: x / 2,
        hints=["halve it"],
        wrong=[Wrong("twice", lambda x: 2 * x, "that is twice.")],
        cases=lambda: [(torch.tensor(3.0, dtype=torch.float64),)],
    )
    assert asked.check(lambda x: float(x) / 2)
    assert "got 1, expected 1.5" in repr(asked.check(lambda x: 1.0))
    assert "your result has shape (2,), expected shape ()" in repr(asked.check(lambda x: [1.0, 2.0]))
    assert "of type str" in repr(asked.check(lambda x: "one and a half"))


def test_words_are_right_in_any_case_hyphenated_or_not_and_with_spaces_around():
    asked = Exercise("word", "which?", "class prior", ["look"], [Wrong("the other", "temperature", "no.")])
    for word in (" Class Prior ", "class-prior", "class_prior"):
        assert asked.check(word)
    assert "the other" in repr(asked.check("TEMPERATURE"))


def test_where_gradients_are_observed_a_right_value_with_a_wrong_gradient_is_told_apart():
    posed = Exercise(
        name="held",
        question="x², as a constant weight times x.",
        answer=lambda x: x.detach() * x,
        hints=["detach one"],
        wrong=[Wrong("no constant", lambda x: x * x, "hold one of them.")],
        cases=lambda: [(torch.tensor([1.0, 2.0]),)],
        observe=exercise.value_and_gradients("x"),
    )
    one = replace(posed, cases=lambda: [(torch.tensor(2.0),)])
    assert posed.check(lambda x: x * x.detach())
    assert "no constant: hold one" in repr(posed.check(lambda x: x**2))
    assert "gradient by x differs (got [0, 0], expected [1, 2.25]); right: value." in repr(
        posed.check(lambda x: (x * x).detach())
    )
    assert "value and gradient by x differ" in repr(posed.check(lambda x: 3 * x))
    assert "a tensor is asked for, got 1.0: make it a tensor" in repr(posed.check(lambda x: 1.0))
    assert "the number is right: make it a tensor" in repr(one.check(lambda x: (x * x).item()))
    assert "the number is right" not in repr(one.check(lambda x: (3 * x).item()))
    assert not one.check(lambda x: (x * x).item()), "a number has no gradient"
    assert "a tensor is asked for, got 'x'" in repr(posed.check(lambda x: "x"))
    assert "returned nothing yet" in repr(posed.check(lambda x: None))
    assert "ZeroDivisionError" in repr(posed.check(lambda x: 1 / 0))


def test_an_exercise_has_its_words_from_the_file_beside_its_module(tmp_path):
    text = "# One\n\n## half\n\nHalf of x?\n\n1. Divide.\n2. By 2.\n\n- **twice of it**: divide: /, not *.\n"
    (tmp_path / "exercises.md").write_text(text, "utf-8")
    made = exercise.written(str(tmp_path / "exercises.py"))
    cases = {"cases": lambda: [(3.0,), (8.0,)]}
    half = made("half", lambda x: x / 2, {"twice of it": lambda x: 2 * x}, **cases)
    assert half.question == "Half of x?" and half.hints == ["Divide.", "By 2."]
    assert half.check(lambda x: x / 2)
    assert "This is twice of it: divide: /, not *." in half.check(lambda x: 2 * x).message
    odd = {"'twice of it' is missing in its module": {}}
    odd |= {"'its square' is missing in its text": {"twice of it": abs, "its square": abs}}
    for words, wrong in odd.items():
        with pytest.raises(ValueError, match=f"exercise half: the wrong answer {words}"):
            made("half", lambda x: x / 2, wrong, **cases)
    with pytest.raises(ValueError, match=r"exercise third: exercises.md has no heading '## third'"):
        made("third", lambda x: x / 3, {}, **cases)


def test_each_exercise_is_tried_with_more_than_its_own_answers():
    """By `ANSWERS` or `MISTAKES` of its lesson's tests, or by name."""
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    names = [each.name for some in exercise.catalogue().values() for each in some]
    assert [name for name in names if not re.search(rf'"{name}": \[|\.{name}\.check\(', tests)] == []


def test_the_numbers_that_a_question_names_are_those_it_is_judged_by():
    asked = {each.name: each.question for some in exercise.catalogue().values() for each in some}
    for number in (macl.HIGH, macl.COLD, f"{macl.HOT:g}", macl.LOW):
        assert str(number) in asked["counter_example"]
    assert f"{attention_nce.GAP:g}" in asked["both_sides"]
    assert all(word in asked["what_happened"] for word in checkpoint.WORDS)
