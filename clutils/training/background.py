"""A run that trains in a thread of its own, so that sliders, plots and a stop button answer meanwhile.

background = Background(run).start()
with background.lock:                  # between two steps
    run.loss.temperature = 0.5         # from the next one on, and the history says so
background.history                     # so far
background.stop()                      # after the step under way; start() goes on

Nothing here draws or knows of widgets.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import pandas as pd

    from clutils.training.run import Run


class Background:
    """A run, and the thread that trains it.

    - run: from `training.Run`; it may have steps behind it
    - on_step: called with the run after each step, in the training thread and without the lock
    - on_end: called likewise with this object when the training has ended, for whatever reason

    `.error` is the exception that ended the training, None where there was none; `.lock` is free between two
    steps only: hold it (`with background.lock:`) to change settings or to use the weights.
    """

    def __init__(
        self,
        run: Run,
        on_step: Callable[[Run], object] | None = None,
        on_end: Callable[[Background], object] | None = None,
    ) -> None:
        self.run, self.on_step, self.on_end = run, on_step, on_end
        self.lock = Turns()
        self.error: BaseException | None = None
        self._asked_to_stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Background:
        """Train until done or stopped; returns at once.

        Raises ValueError where all steps are done, and while this or another run trains in this process.
        """
        if self.run.done and not self.running:
            raise ValueError(
                f"training: all {self.run.steps:,} steps are done; set run.steps higher to go on"
            )
        self.run.claim()
        try:
            self.error = None
            self._asked_to_stop.clear()
            self._thread = threading.Thread(target=self._train, name="clutils training", daemon=True)
            self._thread.start()
        except BaseException:
            self.run.release()
            raise
        return self

    def stop(self) -> Background:
        """End the training after the step under way, and wait for that; what was learned is kept.

        Where nothing trains it does nothing. Called by `on_step` it only asks for the end.
        """
        self._asked_to_stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the training has ended, after at most `timeout` seconds, None = as long as it takes.

        Raises the exception that ended it, if one did. Interrupting the wait does not stop the run.
        """
        if self._thread is not None:
            self._thread.join(timeout)
        if self.running:
            return False
        if self.error is not None:
            raise self.error
        return True

    @property
    def running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def history(self) -> pd.DataFrame:
        """`run.history` so far: whole rows, also while a step is under way."""
        return self.run.history

    @property
    def status(self) -> str:
        """One line: how far it is, and whether it trains, was stopped, is done, or what ended it."""
        where = f"step {self.run.steps_done:,} of {self.run.steps:,}"
        if self.running:
            return where
        if self.error is not None:
            return f"{where}, ended by {type(self.error).__name__}: {' '.join(str(self.error).split())}"
        if self.run.done:
            return f"{where}, done"
        return f"{where}, {'not started' if self._thread is None else 'stopped'}"

    # ---- the thread ------------------------------------------------------------------------------------

    def _train(self) -> None:
        if self.run.device.type == "cuda":
            torch.cuda.set_device(self.run.device)  # which is a thread's own
        atexit.register(self.stop)  # torch does not survive an interpreter that goes away under it
        try:
            self._steps()
        except BaseException as error:
            self.error = error
        finally:
            self.run.release()
        try:
            if self.on_end is not None:
                self.on_end(self)
        except BaseException as error:
            self.error = self.error or error
        finally:
            atexit.unregister(self.stop)

    def _steps(self) -> None:
        while not self._asked_to_stop.is_set():
            with self.lock:
                if self.run.done:
                    return
                self.run.step()
            if self.on_step is not None:
                self.on_step(self.run)


class Turns:
    """A lock that is handed on: who waits gets it before who had it last takes it again.

    With a plain lock, a loop that releases it and takes it again leaves no one else a chance. A thread that
    holds it may take it again.
    """

    def __init__(self) -> None:
        self._next, self._held = threading.Lock(), threading.Lock()
        self._holder: int | None = None
        self._depth = 0

    def __enter__(self) -> Turns:
        if self._holder != threading.get_ident():
            with self._next:  # at most one waits here for the holder; the others, the loop too, queue behind
                self._held.acquire()
            self._holder = threading.get_ident()
        self._depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self._holder = None
            self._held.release()
