"""Defer SIGINT and SIGTERM (Ctrl-C, the stop button, a scheduler) during a critical section."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def deferred() -> Iterator[None]:
    """A signal that arrives within is handled at the end.

    Python hands signals to the main thread; in any other there is nothing to defer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {number: handler for number in HELD if callable(handler := signal.getsignal(number))}
    caught = []
    for number in usual:
        signal.signal(number, lambda *what: caught.append(what))
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
    if caught:
        number, frame = caught[-1]
        usual[number](number, frame)


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """Within, SIGTERM (a scheduler wants its machine back) acts as Ctrl-C: what was learned is kept.

    Also where Ctrl-C itself is ignored, as in the background of a shell.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, usual)
