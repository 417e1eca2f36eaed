"""Exercises: a question with its answer, and the wrong answers that readers really give."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

AS_TENSOR = "make it a tensor (torch.maximum or .clamp in place of Python's max, no float() and no .item())"
SECTION = re.compile(r"^(##?) (.+)\n((?:(?!##? ).*\n?)*)", re.MULTILINE)  # a heading, and what is under it


@dataclass(frozen=True)
class Wrong:
    """A common wrong answer, recognised and named.

    - answer: of the same kind as the right one (a function, or a value)
    - why: one sentence to the reader who gave it
    """

    name: str
    answer: Any
    why: str


@dataclass(frozen=True)
class Result:
    """Outcome of `check`. True in a condition when the answer is right."""

    right: bool
    message: str

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        return self.message

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Text for IPython: a notebook would break longer lines within words."""
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
    - observe: what of a function is compared: (function, *case) -> name -> value, as `value_and_gradients`
      has it; None = what it returns
    - judge: for a question with many right answers: takes the reader's value, returns None where it has
      what is asked for, else the name of a known wrong answer, or a sentence on what it lacks
    - by_hand: arguments for which a page asks what the function returns, where `cases` are too long for that
    - notebook: number and title of the notebook that asks it, as in "00 · Start here"

    `observe` and `judge` may raise: `Lacks` with a sentence to the reader, or whatever the reader's own code
    raises, which is reported.
    """

    name: str
    question: str
    answer: Any
    hints: Sequence[str]
    wrong: Sequence[Wrong] = ()
    cases: Callable[[], Sequence[tuple[Any, ...]]] | None = None
    tolerance: float = 1e-6
    observe: Callable[..., Mapping[str, Any]] | None = None
    judge: Callable[[Any], str | None] | None = None
    by_hand: tuple[Any, ...] = ()
    notebook: str = ""
    _given: list[int] = field(default_factory=lambda: [0], repr=False)

    def check(self, answer: Any) -> Result:
        """Try an answer; what was found shows itself in a notebook. Never raises on what a reader writes.

        An untouched `...` is no try.
        """
        parts = answer if isinstance(answer, tuple | list) else [answer]
        if answer is None or any(part is Ellipsis for part in parts):
            said = f"{self.name}: nothing here yet. {self.question} (`.hint()` helps.)"
            return Result(False, said)
        wanted = callable(self.answer)
        if not callable(answer) if wanted else inspect.isroutine(answer):  # a loss is a value, and callable
            kind = "a function" if wanted else "a value"
            return Result(False, f"{self.name}: expected {kind}, got {answer!r}.")
        try:
            if self.judge is not None:
                return self._judge_property(self.judge(answer))
            if not callable(self.answer):
                return self._judge_values([answer], [self.answer], [[w.answer] for w in self.wrong], [()])
            cases = list(self.cases() if self.cases else [()])
            given = []
            for case in cases:
                given.append(self._seen(answer, case))
        except PlainNumber as number:
            right = self._same(number.value, self.answer(*cases[len(given)]))
            said = f"the number is right: {AS_TENSOR}." if right else str(number)
            return Result(False, f"✗ {self.name}: not yet: {said}")
        except Nothing as nothing:
            said = f"{self.name}: {nothing} {self.question} (`.hint()` helps.)"
            return Result(False, said)
        except Lacks as lack:
            return Result(False, f"✗ {self.name}: not yet: {lack}")
        except Exception as error:  # whatever a reader's own code raises is an answer to report on
            return Result(False, f"{self.name}: your code raised {type(error).__name__}: {error}")
        expected = [self._seen(self.answer, case) for case in cases]
        wrongs = [[self._seen_wrong(wrong, case) for case in cases] for wrong in self.wrong]
        return self._judge_values(given, expected, wrongs, cases)

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

    def _seen(self, function: Callable[..., Any], case: tuple[Any, ...]) -> Any:
        """Compared values of a function on one case."""
        case = tuple(part.clone() if isinstance(part, torch.Tensor) else part for part in case)
        watched = unchanging(function, inspect.signature(self.answer).parameters)
        if self.observe is not None:
            return self.observe(watched, *case)
        return something(watched(*case))

    def _seen_wrong(self, wrong: Wrong, case: tuple[Any, ...]) -> Any:
        try:
            return self._seen(wrong.answer, case)
        except Lacks as lack:
            return str(lack)

    def _judge_property(self, lacks: str | None) -> Result:
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
        tried = zip(cases, given, expected, strict=True)
        case, g, e = next(each for each in tried if not self._same(*each[1:]))
        names = inspect.signature(self.answer).parameters if case else ()
        where = ", ".join(f"{name} = {_show(value)}" for name, value in zip(names, case, strict=False))
        if isinstance(e, Mapping):
            on = f" for {where}" if case else ""
            return Result(False, f"✗ {self.name}: not yet{on}: {self._parts(g, e)}")
        if not case:
            return Result(False, f"✗ {self.name}: not yet; {_show(g)} is not it. `.hint()` helps.")
        problem = _shape_problem(g, e) or _apart(g, e)
        return Result(False, f"✗ {self.name}: not yet for {where}: {problem}.")

    def _parts(self, given: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
        """Parts that differ, with the first one's numbers, and which are right."""
        off = [part for part in expected if not self._same(given.get(part), expected[part])]
        right = ", ".join(part for part in expected if part not in off) or "nothing"
        first = given.get(off[0]), expected[off[0]]
        first = _shape_problem(*first) or _apart(*first)
        return f"{' and '.join(off)} {'differs' if len(off) == 1 else 'differ'} ({first}); right: {right}."

    def _same(self, given: Any, expected: Any) -> bool:
        if isinstance(expected, Mapping):
            return isinstance(given, Mapping) and all(
                self._same(given.get(part), value) for part, value in expected.items()
            )
        if isinstance(expected, str):
            return isinstance(given, str) and spelled(given) == spelled(expected)
        if isinstance(expected, bool):
            plain = given.item() if getattr(given, "shape", None) == () else given  # of torch or numpy
            return type(plain) is bool and plain == expected
        if isinstance(expected, tuple | list):
            if isinstance(given, torch.Tensor | np.ndarray) and given.ndim:
                given = list(given)
            return (
                isinstance(given, tuple | list)
                and len(given) == len(expected)
                and all(self._same(g, e) for g, e in zip(given, expected, strict=True))
            )
        try:
            g, e = torch.as_tensor(given), torch.as_tensor(expected).double()
        except (TypeError, ValueError, RuntimeError):
            return False
        if g.shape != e.shape or g.is_complex():
            return False
        near = (g.double() - e).abs() <= self.tolerance * e.abs().clamp(min=1)
        return bool(((near & e.isfinite()) | (g.double() == e) | (g.isnan() & e.isnan())).all())


def written(module: str) -> Callable[..., Exercise]:
    """A maker of exercises whose words stand beside their module, in the file of its name that ends in .md.

    There, under a heading with the notebook's number and title ("# 00 · Start here"), a heading for each
    exercise with its name ("## cosine"): the question in one line, the hints, numbered, and of each wrong
    answer why it is, as in "- **half of it**: both views count". The maker takes what `Exercise` does but
    the words; its `wrong` is name -> answer.

    - module: its `__file__`

    The maker raises ValueError where text and module name different wrong answers.
    """
    texts, notebook = {}, ""
    for level, name, text in SECTION.findall(Path(module).with_suffix(".md").read_text("utf-8")):
        if level == "#":
            notebook = name
        else:
            texts[name] = notebook, text.strip()

    def exercise(name: str, answer: Any, wrong: Mapping[str, Any], **options: Any) -> Exercise:
        if name not in texts:
            raise ValueError(f"exercise {name}: {Path(module).stem}.md has no heading '## {name}'")
        notebook, text = texts[name]
        why = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", text, re.MULTILINE))
        if odd := sorted(why.keys() ^ wrong.keys()):
            lacks = "text" if odd[0] in wrong else "module"
            raise ValueError(f"exercise {name}: the wrong answer {odd[0]!r} is missing in its {lacks}")
        explained = [Wrong(each, given, why[each]) for each, given in wrong.items()]
        hints = re.findall(r"^\d+\. (.+)$", text, re.MULTILINE)
        question = text.splitlines()[0]
        return Exercise(name, question, answer, hints, explained, notebook=notebook, **options)

    return exercise


class Lacks(Exception):
    """An answer is incomplete; the message is a sentence to the reader who gave it."""


class Nothing(Lacks):
    """Nothing was returned; the question follows."""


class PlainNumber(Lacks):
    """A Python or NumPy number in place of a tensor: `check` says whether the number is right."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(f"a tensor is asked for, got {value!r:.60}: {AS_TENSOR}")


def something(returned: Any) -> Any:
    """Returned value of a reader's function; raises Nothing where that is nothing yet."""
    if returned is None or returned is Ellipsis:
        raise Nothing("your function returned nothing yet.")
    return returned


def a_tensor(returned: Any) -> torch.Tensor:
    """The tensor that a reader's function returned.

    Raises `Nothing` where that is nothing yet, `PlainNumber` on a number, `Lacks` on anything else.
    """
    value = something(returned)
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, int | float | np.number):
        raise PlainNumber(value)
    raise Lacks(f"a tensor is asked for, got {value!r:.60}.")


def unchanging(function: Callable[..., Any], names: Iterable[str]) -> Callable[..., Any]:
    """The function, which raises `Lacks` where it changes a tensor that it was given; names: of these."""

    def watched(*given: Any) -> Any:
        before = [part.detach().clone() if isinstance(part, torch.Tensor) else part for part in given]
        returned = function(*given)
        for name, was, now in zip(names, before, given, strict=False):
            if isinstance(was, torch.Tensor) and not torch.equal(was, now):
                raise Lacks(
                    f"your function changes the {name} that it was given, which its caller still needs: "
                    "work on a copy (x.clone())"
                )
        return returned

    return watched


def value_and_gradients(*names: str) -> Callable[..., dict[str, Any]]:
    """An `observe`: a function's value, and its gradient by its first arguments, which bear these names.

    The value is a tensor, and its elements are summed with fixed weights before the gradient is taken; 0
    where none flows. Raises as `a_tensor`.
    """

    def observe(function: Callable[..., Any], *case: Any) -> dict[str, Any]:
        leaves = [argument.detach().clone().requires_grad_() for argument in case[: len(names)]]
        value = a_tensor(function(*leaves, *case[len(names) :]))
        weights = 1 + torch.arange(value.numel(), dtype=value.dtype).view(value.shape) / 8
        by = zip(names, gradients((value * weights).sum(), leaves), strict=True)
        return {"value": value.detach()} | {f"gradient by {name}": gradient for name, gradient in by}

    return observe


def gradients(value: torch.Tensor, leaves: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Gradients of a scalar by each leaf; 0 where none flows."""
    found: Sequence[torch.Tensor | None] = [None] * len(leaves)
    if value.requires_grad:
        found = torch.autograd.grad(value, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found, strict=True)]


class _Text(str):
    """Text that a notebook shows as it is, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _shape_problem(given: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor):
        return ""
    wanted = tuple(expected.shape)
    try:
        shape = tuple(torch.as_tensor(given).shape)
    except (TypeError, ValueError, RuntimeError):
        return f"your result is of type {type(given).__name__}, expected a tensor of shape {wanted}"
    return "" if shape == wanted else f"your result has shape {shape}, expected shape {wanted}"


def spelled(word: str) -> str:
    """Normal form of a word: normalization is normalisation, color colour, and class-prior a class prior."""
    word = word.casefold().replace("iz", "is").replace("color", "colour")
    return " ".join(word.replace("-", " ").replace("_", " ").split())


def _without_annotations(source: str) -> str:
    """A function's source that runs where nothing but torch is imported: no decorator, no types."""
    function = ast.parse(source).body[0]
    lines = source.splitlines()[function.lineno - 1 :]
    body = function.body[0].lineno - function.lineno
    for argument in (*function.args.args, *function.args.kwonlyargs):
        argument.annotation = None
    return "\n".join([f"def {function.name}({ast.unparse(function.args)}):", *lines[body:]]) + "\n"


def _apart(given: Any, expected: Any) -> str:
    """Given and expected value: of long tensors from the first number that differs, as exact as it takes."""
    start = 0
    if all(isinstance(x, torch.Tensor) and x.numel() > 4 for x in (given, expected)):
        off = ~torch.isclose(given.detach().flatten().to(expected.dtype), expected.detach().flatten())
        start = int(off.int().argmax())
    digits = 4 if _show(given, 4, start) != _show(expected, 4, start) else 10
    return f"got {_show(given, digits, start)}, expected {_show(expected, digits, start)}"


def _show(value: Any, digits: int = 4, start: int = 0) -> str:
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool and not value.ndim:
        return str(bool(value))
    if isinstance(value, torch.Tensor):
        shown = value.detach().flatten()[start : start + 4].tolist()
        numbers = ", ".join(["…"] * (start > 0) + [f"{v:.{digits}g}" for v in shown])
        more = ", …" if value.numel() > start + 4 else ""
        return f"[{numbers}{more}]" if value.ndim else numbers
    if isinstance(value, tuple | list):
        return f"({', '.join(_show(part, digits) for part in value)})"
    return f"{value:.{digits}g}" if isinstance(value, float) else repr(value)


def catalogue() -> dict[str, list[Exercise]]:
    """Folder of the course (one a notebook) -> its exercises, in order."""
    folders = sorted(file.parent.name for file in Path(__file__).parent.glob("*/exercises.py"))
    return {name: importlib.import_module(f"clutils.course.{name}.exercises").EXERCISES for name in folders}
