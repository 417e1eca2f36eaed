"""Exercises tried with other ways of writing an answer, and with mistakes that one case alone gives away.

Mistakes that an exercise knows by name are tried in `test_exercise.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any

import pytest


@dataclass
class Mistake:
    """A mistake, and words that are to be said of it: these, or one of these."""

    answer: Any
    said: str | tuple[str, ...]


def judged(
    lesson: ModuleType,
    answers: Mapping[str, Sequence[Any]],
    mistakes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
) -> Callable[[str], None]:
    """The test that each exercise of the lesson takes its answers and none of its mistakes."""

    @pytest.mark.parametrize("name", sorted({*answers, *mistakes}))
    def takes_other_ways_and_no_mistake(name: str) -> None:
        exercise = getattr(lesson, name)
        for number, answer in enumerate(answers.get(name, ())):
            assert exercise.check(answer), f"{name}, answer {number}: {exercise.check(answer)}"
        for number, mistake in enumerate(mistakes.get(name, ())):
            known = mistake if isinstance(mistake, Mistake) else Mistake(mistake, "")
            result = exercise.check(known.answer)
            assert not result, f"{name} takes mistake {number}"
            words = (known.said,) if isinstance(known.said, str) else known.said
            assert any(each in repr(result) for each in words), f"{name}, mistake {number}: {result}"

    return takes_other_ways_and_no_mistake
