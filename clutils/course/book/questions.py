"""Exercises in the book: words to choose and numbers, answered in the page, and those that need a kernel.

A function whose cases hold few numbers becomes a question for the number that it returns in one of them. The
page says what `check` says. The answers stand there as salted hashes, what is said of them in base64: that
hides them from a glance and from the search, and from nobody who wants to know.
"""

import base64
import html
import inspect
import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from nbformat import NotebookNode
from nbformat.v4 import new_output

from clutils.course import exercise
from clutils.course.exercise import Exercise, Wrong

CHECKED = re.compile(r"lesson\.(\w+)\.check\(")
MOST_NUMBERS = 8  # of a case that a reader reckons by hand
MOST_ANSWERS = 5000
DIGITS = {int: 12, float: 3}  # that an answer must have right
WRITTEN = "To be written: in JupyterLab this cell judges it at once, and says what is wrong with it."
NOT_IT = "is not it. `.hint()` helps."


def put_in(notebook: NotebookNode) -> None:
    """Give cells that check an exercise a form, or its hints, in place of what `check` said of no answer."""
    known = {e.name: e for every in exercise.catalogue().values() for e in every}
    for cell in notebook.cells:
        found = CHECKED.search(cell.source) if cell.cell_type == "code" else None
        if found:
            made = form(known[found[1]]) or to_be_written(known[found[1]])
            cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
            cell.outputs.append(new_output("display_data", {"text/html": made}))


def form(asked: Exercise) -> str:
    """An exercise as a form, HTML; "" where it is of neither kind."""
    if words := choices(asked):
        return _form(asked, asked.question, _chosen(asked, *words), words)
    if case := by_hand(asked):
        one, given = case
        digits = DIGITS[type(one.answer)]
        how = "A whole number." if digits == DIGITS[int] else "Three digits do."
        question = f"By hand, in one case: what does `{one.name}` return for {given}? {how}"
        return _form(one, question, _reckoned(one, digits), digits=digits)
    return ""


def to_be_written(asked: Exercise) -> str:
    """HTML below an exercise that only a kernel can judge: where that is, and its hints."""
    hints = "".join(
        f"<details><summary>hint {number}</summary>{_code(hint)}</details>"
        for number, hint in enumerate(asked.hints, 1)
    )
    return f'<div class="question"><p>{WRITTEN}</p>{hints}</div>'


# ---- words -------------------------------------------------------------------------------------------------


def choices(asked: Exercise) -> tuple[list[str], int] | None:
    """The words that an exercise offers, and how many it asks for; None where its answer is no words."""
    answers = [_listed(answer) for answer in (asked.answer, *(w.answer for w in asked.wrong))]
    words = sorted({word for answer in answers for word in answer if isinstance(word, str)})
    slots = len(answers[0])
    plain = all(isinstance(word, str) for answer in answers for word in answer)
    return (words, slots) if words and plain and len(words) ** slots <= MOST_ANSWERS else None


def _chosen(asked: Exercise, words: Sequence[str], slots: int) -> dict[str, str]:
    """Every choice there is, as the page writes it -> what is said of it."""
    all_ = itertools.product(words, repeat=slots)
    return {
        "\n".join(own): asked.check(own[0] if isinstance(asked.answer, str) else list(own)).message
        for own in all_
    }


def _listed(answer: Any) -> list[Any]:
    return list(answer) if isinstance(answer, tuple | list) else [answer]


# ---- numbers -----------------------------------------------------------------------------------------------


def by_hand(asked: Exercise) -> tuple[Exercise, str] | None:
    """A function's exercise as a question for a number, and the arguments in words.

    That is in the case that the exercise names for it, else in the one of its cases with few numbers in and
    one out that separates most wrong answers from the right one. None where it has neither, and where more
    than what a function returns is compared. Of several numbers that it returns the first is asked for.
    """
    if not callable(asked.answer):
        return None
    if not asked.by_hand and (asked.observe or asked.judge or not asked.cases):
        return None
    found = []
    for case in [asked.by_hand] if asked.by_hand else asked.cases():
        case = tuple(_short(value) for value in case)
        few = asked.by_hand or 0 < sum(map(_numbers, case)) <= MOST_NUMBERS
        right = _number(asked.answer(*case), bool(asked.by_hand)) if few else None
        if right is None:
            continue
        wrong = [Wrong(w.name, _number(w.answer(*case), bool(asked.by_hand)), w.why) for w in asked.wrong]
        apart = [
            w for w in wrong if w.answer is not None and spelled(w.answer, right) != spelled(right, right)
        ]
        names = inspect.signature(asked.answer).parameters
        given = ", ".join(f"`{name} = {_written(value)}`" for name, value in zip(names, case, strict=False))
        if _number(asked.answer(*case)) is None:
            given += " (give its first number)"
        one = replace(asked, answer=right, wrong=apart, cases=None, observe=None, judge=None)
        found.append((one, given))
    return max(found, key=lambda one: len(one[0].wrong), default=None)


def spelled(value: float, like: float) -> str:
    """A number as the page compares it: so many digits of an answer like this one."""
    mantissa, exponent = f"{value + 0.0:.{DIGITS[type(like)] - 1}e}".split("e")  # -0.0 is 0
    return f"{mantissa}e{int(exponent)}"


def _reckoned(asked: Exercise, digits: int) -> dict[str, str]:
    """The right number, its neighbours in the last digit, and the known wrong ones -> what is said."""
    right = asked.answer
    values = [right, *(w.answer for w in asked.wrong)]
    said = {spelled(value, right): asked.check(value).message for value in reversed(values)}
    unit = 10.0 ** (int(spelled(right, right).split("e")[1]) + 1 - digits)
    for near in (right - unit, right + unit) if digits < DIGITS[int] else ():
        said.setdefault(spelled(near, right), asked.check(right).message)
    return said


def _short(value: Any) -> Any:
    """Numbers of a case to be reckoned by hand: at most two decimals, where there is more than one."""
    several = isinstance(value, torch.Tensor) and value.is_floating_point()
    return torch.round(value.double() * 100) / 100 if several else value


def _numbers(value: Any) -> int:
    if isinstance(value, torch.Tensor):
        return value.numel()
    return 1 if isinstance(value, int | float) else MOST_NUMBERS + 1


def _number(returned: Any, first: bool = False) -> int | float | None:
    """One number, of torch or of Python; None for anything else. `first`: of several, the first."""
    if first and isinstance(returned, torch.Tensor):
        returned = returned.flatten()[0]
    if isinstance(returned, torch.Tensor) and returned.numel() == 1:
        returned = returned.item()
    return returned if type(returned) in DIGITS and abs(returned) < 1e12 else None


def _written(value: Any) -> str:
    plain = value.tolist() if isinstance(value, torch.Tensor) else value
    if isinstance(plain, dict):
        return f"{{{', '.join(f'{key}: {own}' for key, own in plain.items())}}}"
    return json.dumps(plain) if isinstance(plain, list) else f"{plain:g}"


# ---- the page ----------------------------------------------------------------------------------------------


def _form(
    asked: Exercise,
    question: str,
    said: dict[str, str],
    words: tuple[list[str], int] = ([], 0),
    digits: int = 0,
) -> str:
    """- said: answers, as the page writes them -> what is said; of all others one sentence is"""
    own = {answer: message for answer, message in said.items() if not message.endswith(NOT_IT)}
    texts = list(dict.fromkeys(own.values()))
    keys = {hashed(f"{asked.name}\n{answer}"): texts.index(message) for answer, message in own.items()}
    if len(keys) < len(own):
        raise ValueError(f"exercise {asked.name}: two of its answers have one hash")
    nothing = asked.check(None).message.replace(asked.question, question)
    data = {"name": asked.name, "digits": digits, "hints": list(asked.hints), "said": texts, "keys": keys}
    data |= {"nothing": nothing, "other": f"✗ {asked.name}: not yet; … {NOT_IT}"}
    text = (
        json.dumps(data, ensure_ascii=False).replace(". `.hint()`", ". A hint").replace("`.hint()`", "a hint")
    )
    inside = base64.b64encode(text.encode()).decode()
    if digits:
        field = '<input name="answer" autocomplete="off" aria-label="your number">'
    else:
        options = "".join(f"<option>{html.escape(word)}</option>" for word in words[0])
        field = "".join(
            f'<select aria-label="answer {k + 1} of {words[1]}"><option value="">…</option>{options}</select>'
            for k in range(words[1])
        )
    buttons = '<button>check</button><button type="button">hint</button>'
    return (
        f'<form class="question" data-asked="{inside}"><p>{_code(question)}</p><p>{field}{buttons}</p>'
        '<output role="status"></output></form>'
    )


def _code(text: str) -> str:
    """A sentence as HTML, what stands in backquotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def hashed(text: str) -> str:
    """FNV-1a of 32 bits, as the page reckons it."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 % 2**32
    return f"{value:x}"
