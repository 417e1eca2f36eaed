"""Callbacks: objects that act around the steps of a run, the same for the command, the lab and Python.

run.finish([training.Checkpoints("runs/mine", every=100), watcher, my_function])

A callback has one or more of these methods; a plain function is called after each step.

- before_run(run): once, before the first step
- after_step(run): after each step; `run.rows[-1]` is its row of the history
- after_run(run): once, after the last step, and also where the run was stopped or a step failed; in reverse
  order, so that `Checkpoints` at the end of the list saves what the others did in a step, and saves first
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

from tqdm import tqdm

from clutils.training.state import RunState

EVENTS = ("before_run", "after_step", "after_run")


def checked(callbacks: Iterable[Any]) -> list[Any]:
    """The callbacks, each with all three methods; a plain function is an `after_step`.

    Raises ValueError on what has none of the three methods and can't be called, on a class, and on no list.
    """
    if not isinstance(callbacks, Iterable):
        raise ValueError(f"callbacks is {callbacks!r}, but must be a list: callbacks=[...]")
    found = []
    for callback in callbacks:
        if isinstance(callback, type):
            name = callback.__name__
            raise ValueError(f"callbacks has the class {name}, but must have an object: {name}(...)")
        if not any(hasattr(callback, event) for event in EVENTS):
            if not callable(callback):
                raise ValueError(f"callbacks has {callback!r}, which has no method {', '.join(EVENTS)}")
            callback = SimpleNamespace(after_step=callback)
        found.append(SimpleNamespace(**{event: partial(_call, callback, event) for event in EVENTS}))
    return found


def _call(callback: Any, event: str, run: RunState) -> None:
    getattr(callback, event, lambda run: None)(run)


@contextmanager
def begun_and_ended(callbacks: Iterable[Any], run: RunState) -> Iterator[None]:
    """Context manager: `before_run` of each callback in order, and `after_run` of each in reverse order.

    Each callback that began has its `after_run` called, also where the block or another one raises; the first
    error is the one raised.
    """
    with ExitStack() as ends:
        for callback in callbacks:
            callback.before_run(run)
            ends.push(partial(_end, callback, run))
        yield


def _end(callback: Any, run: RunState, _: Any, first: BaseException | None, trace: Any) -> None:
    try:
        callback.after_run(run)
    except BaseException:
        if first is None:  # else that is raised: on a full disk the others fail, too
            raise


class Progress:
    """A bar with the loss and its chance level; without a bar only remarks on data and method.

    A remark is a sentence on what keeps the run from learning, such as equal views.
    """

    def __init__(self, bar: bool = True) -> None:
        self.shows_bar = bar

    def before_run(self, run: RunState) -> None:
        form = "{bar:20} {n_fmt}/{total_fmt} steps [{elapsed}, {remaining} left]{postfix}"
        shown: dict[str, Any] = {"file": sys.stdout, "bar_format": form, "mininterval": 0.5, "miniters": 1}
        self.bar = tqdm(total=run.steps, initial=run.steps_done, disable=not self.shows_bar, **shown)

    def after_step(self, run: Any) -> None:
        self.bar.set_postfix_str(in_words(run), refresh=False)
        self.bar.update()
        if run.steps_done == 1:
            for said in filter(None, (run.equal_views(), run.method.hindrance(run.kind, run.differing))):
                tqdm.write(said, file=sys.stdout)

    def after_run(self, run: Any) -> None:
        self.bar.close()
        if not run.done:
            print(f"stopped after {run.steps_done} of {run.steps} steps; what was learned is kept")


def in_words(run: RunState) -> str:
    """The last loss and its chance level: 'loss 3.1416 (chance 5.5413)'."""
    if not run.rows:
        return "no loss yet"
    last = run.rows[-1]
    chance = "" if math.isnan(last["chance"]) else f" (chance {last['chance']:.4f})"
    return f"loss {last['loss']:.4f}{chance}"
