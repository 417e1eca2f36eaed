"""Defer SIGINT and SIGTERM (Ctrl-C, the stop button, a scheduler) during a critical section."""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def handled(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Context manager: these signal handlers, in the main thread; in other threads nothing changes."""
    here = threading.current_thread() is threading.main_thread()
    usual = {number: signal.signal(number, handler) for number, handler in handlers.items() if here}
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)


@contextmanager
def deferred() -> Iterator[None]:
    """A signal that arrives within is handled at the end."""
    caught: list[Any] = []
    usual = {number: handler for number in HELD if callable(handler := signal.getsignal(number))}
    with handled(dict.fromkeys(usual, lambda *what: caught.append(what))):
        yield
    if caught:
        number, frame = caught[-1]
        usual[number](number, frame)


def termination_as_interrupt() -> AbstractContextManager[None]:
    """Context manager: SIGTERM (a scheduler wants its machine back) acts as Ctrl-C.

    Also where Ctrl-C itself is ignored, as in the background of a shell.
    """
    return handled({signal.SIGTERM: signal.default_int_handler})
