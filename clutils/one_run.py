"""One run at a time in a process: two would share its cores, and their times and sliders be mixed up."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clutils.training import Run

_taken = threading.Lock()
_training: Run | None = None


def claim(run: Run) -> None:
    """From now on this run trains, until `release`. Raises ValueError while one trains already."""
    global _training
    if not _taken.acquire(blocking=False):
        raise ValueError(_busy())
    _training = run


def check_free() -> None:
    """Raise ValueError while a run trains, as `claim` does: for what takes long before it can claim."""
    if _taken.locked():
        raise ValueError(_busy())


def _busy() -> str:
    now = _training
    which = "" if now is None else f", at step {now.steps_done:,} of {now.steps:,}"
    stop = "stop it first (that of a panel by its button or by `lab.stop()`), or wait for its end"
    return f"training: a run is training already{which}: {stop}"


def release() -> None:
    """The run that claimed this process has stopped. May be called from another thread than `claim` was."""
    global _training
    _training = None
    _taken.release()


@contextmanager
def alone(run: Run) -> Iterator[None]:
    """`claim` within, `release` after."""
    claim(run)
    try:
        yield
    finally:
        release()
