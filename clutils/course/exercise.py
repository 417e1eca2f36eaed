"""What an exercise is: a question with its answer, and the wrong answers that readers really give."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch


@dataclass(frozen=True)
class Wrong:
    """A wrong answer that is met often, told apart by name.

    - answer: of the same kind as the right one (a function, or a value)
    - why: one sentence to the reader who gave it
    """

    name: str
    answer: Any
    why: str


@dataclass(frozen=True)
class Result:
    """What `check` found. True in a condition when the answer is right."""

    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """As IPython shows it: a notebook would break longer lines within words."""
        printer.text(textwrap.fill(self.message, 100))


@dataclass(frozen=True)
class Exercise:
    """A question whose answer is checked at once.

    - name: as in `lesson.<name>`
    - answer: the right answer: a function, or a value
    - hints: one after another, each call of `hint()` gives the next
    - wrong: known wrong answers
    - cases: arguments that a function is tried on; tuples, made by a function so that they are fresh
    - tolerance: relative to the larger of 1 and the right value
    - judge: for a question with many right answers: takes the reader's value, returns None where it has
      what is asked for, else the name of a known wrong answer, or a sentence on what it lacks
    """

    name: str
    question: str
    answer: Any
    hints: Sequence[str]
    wrong: Sequence[Wrong] = ()
    cases: Callable[[], Sequence[tuple[Any, ...]]] | None = None
    tolerance: float = 1e-6
    judge: Callable[[Any], str | None] | None = None
    _given: list[int] = field(default_factory=lambda: [0], repr=False)

    def check(self, answer: Any) -> Result:
        """Try an answer; what was found shows itself in a notebook. Never raises on what a reader writes."""
        return self._judge(answer)

    def hint(self) -> str:
        """The next hint; after the last one, the last one again."""
        index = min(self._given[0], len(self.hints) - 1)
        self._given[0] += 1
        return _Text(f"Hint {index + 1} of {len(self.hints)}: {self.hints[index]}")

    def solution(self) -> str:
        """The answer, as code or as a value."""
        if callable(self.answer):
            source = _without_annotations(textwrap.dedent(inspect.getsource(self.answer)))
            return _Text(source.replace(f"def {self.answer.__name__}(", f"def {self.name}(", 1))
        return _Text(f"{self.name} = {self.answer!r}")

    # ---- judging ---------------------------------------------------------------------------------------

    def _judge(self, answer: Any) -> Result:
        if answer is None or answer is Ellipsis:
            return Result(False, f"{self.name}: nothing here yet. {self.question} (`.hint()` helps.)")
        if callable(self.answer) != callable(answer):
            kind = "a function" if callable(self.answer) else "a value"
            return Result(False, f"{self.name}: expected {kind}, got {answer!r}.")
        if self.judge is not None:
            return self._judge_property(answer)
        if not callable(self.answer):
            return self._judge_values([answer], [self.answer], [[w.answer] for w in self.wrong], [()])
        cases = list(self.cases() if self.cases else [()])
        given = []
        for case in cases:
            try:
                given.append(answer(*_copy(case)))
            except Exception as error:  # whatever a reader's own code raises is an answer to report on
                return Result(False, f"{self.name}: your code raised {type(error).__name__}: {error}")
            if given[-1] is None or given[-1] is Ellipsis:
                return Result(False, f"{self.name}: your function returned nothing yet. {self.question}")
        expected = [self.answer(*_copy(case)) for case in cases]
        wrongs = [[w.answer(*_copy(case)) for case in cases] for w in self.wrong]
        return self._judge_values(given, expected, wrongs, cases)

    def _judge_property(self, answer: Any) -> Result:
        lacks = self.judge(answer)
        if lacks is None:
            return Result(True, f"✓ {self.name}: right.")
        why = {wrong.name: wrong.why for wrong in self.wrong}
        if lacks in why:
            return Result(False, f"✗ {self.name}: not yet. This is {lacks}: {why[lacks]}")
        return Result(False, f"✗ {self.name}: not yet: {lacks}")

    def _judge_values(self, given: list, expected: list, wrongs: list[list], cases: list) -> Result:
        if all(self._same(g, e) for g, e in zip(given, expected, strict=True)):
            on = f" on {len(cases)} cases" if cases != [()] else ""
            return Result(True, f"✓ {self.name}: right{on}.")
        for wrong, values in zip(self.wrong, wrongs, strict=True):
            if all(self._same(g, v) for g, v in zip(given, values, strict=True)):
                return Result(False, f"✗ {self.name}: not yet. This is {wrong.name}: {wrong.why}")
        for case, g, e in zip(cases, given, expected, strict=True):
            if not self._same(g, e):
                problem = _shape_problem(g, e) or f"got {_show(g)}, expected {_show(e)}"
                where = f" for {', '.join(_show(a) for a in case)}" if case else ""
                if not case:
                    return Result(False, f"✗ {self.name}: not yet; {_show(g)} is not it. `.hint()` helps.")
                return Result(False, f"✗ {self.name}: not yet{where}: {problem}.")
        raise RuntimeError("unreachable: some case differs")  # pragma: no cover

    def _same(self, given: Any, expected: Any) -> bool:
        if isinstance(expected, str):
            return isinstance(given, str) and _spelled(given) == _spelled(expected)
        if isinstance(expected, bool):
            plain = given.item() if getattr(given, "shape", None) == () else given  # of torch or numpy
            return type(plain) is bool and plain == expected
        if isinstance(expected, tuple | list):
            return (
                isinstance(given, tuple | list)
                and len(given) == len(expected)
                and all(self._same(g, e) for g, e in zip(given, expected, strict=True))
            )
        try:
            g, e = torch.as_tensor(given).double(), torch.as_tensor(expected).double()
        except (TypeError, ValueError, RuntimeError):
            return False
        if g.shape != e.shape:
            return False
        return bool(((g - e).abs() <= self.tolerance * e.abs().clamp(min=1)).all())


class _Text(str):
    """Text that a notebook shows as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _copy(case: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a.clone() if isinstance(a, torch.Tensor) else a for a in case)


def _shape_problem(given: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor):
        return ""
    try:
        shape = tuple(torch.as_tensor(given).shape)
    except (TypeError, ValueError, RuntimeError):
        return f"your result is of type {type(given).__name__}, expected a tensor {tuple(expected.shape)}"
    return (
        "" if shape == tuple(expected.shape) else f"your result is {shape}, expected {tuple(expected.shape)}"
    )


def _spelled(word: str) -> str:
    """As it counts: normalization is normalisation, and class-prior a class prior."""
    return " ".join(word.casefold().replace("iz", "is").replace("-", " ").replace("_", " ").split())


def _without_annotations(source: str) -> str:
    """A function's source that runs where nothing but torch is imported: no decorator, no types."""
    function = ast.parse(source).body[0]
    lines = source.splitlines()[function.lineno - 1 :]
    body = function.body[0].lineno - function.lineno
    for argument in (*function.args.args, *function.args.kwonlyargs):
        argument.annotation = None
    return "\n".join([f"def {function.name}({ast.unparse(function.args)}):", *lines[body:]]) + "\n"


def _show(value: Any) -> str:
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool and not value.ndim:
        return str(bool(value))
    if isinstance(value, torch.Tensor):
        numbers = ", ".join(f"{v:.4g}" for v in value.detach().flatten()[:4].tolist())
        more = ", …" if value.numel() > 4 else ""
        return f"[{numbers}{more}]" if value.ndim else numbers
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def catalogue() -> dict[str, list[Exercise]]:
    """Folder of the course (one a notebook) -> its exercises, in order."""
    import clutils.course as course

    folders = sorted(found.name for found in pkgutil.iter_modules(course.__path__) if found.ispkg)
    with_exercises = [name for name in folders if find_spec(f"{course.__name__}.{name}.exercises")]
    return {
        name: importlib.import_module(f"{course.__name__}.{name}.exercises").EXERCISES
        for name in with_exercises
    }
