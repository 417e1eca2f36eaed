"""Background training: one thread owns the run; others post functions, done between two steps.

background = Background(run).start()
background.call(lambda run: setattr(run.loss, "temperature", 0.5))    # from the next step on
weights = background.call(lambda run: copy.deepcopy(run.encoder)).result()
background.run.history                 # so far: whole rows, also while a step is under way
background.stop()                      # after the step under way; start() goes on
"""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch

from clutils.training.callbacks import begun_and_ended, checked

if TYPE_CHECKING:
    from clutils.training.run import Run

T = TypeVar("T")


class Background:
    """A run, and the thread that trains it and alone touches it meanwhile.

    - run: from `training.Run`; it may have steps behind it
    - callbacks: as of `Run.finish`, called in the training thread
    - on_refused: called there with the ValueError of a step that was not taken; returns True to go on, with
      what it changed

    `.error` is the exception that ended the training, None where there was none. `Background.now` is the one
    that trains in this process, None where none does.
    """

    now: ClassVar[Background | None] = None

    def __init__(
        self,
        run: Run,
        callbacks: Iterable[Any] = (),
        on_refused: Callable[[ValueError], bool] | None = None,
    ) -> None:
        self.run, self.callbacks, self.on_refused = run, checked(callbacks), on_refused
        self.error: BaseException | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()  # what is waited for: an interrupted `Thread.join` says 'not alive'
        self._ended.set()
        self._place = ExitStack()  # of the run that trains in this process
        self._posted: deque[tuple[Callable[[Run], object], Future]] = deque()
        self._ownership = threading.RLock()  # of whether a thread runs, and of the run while none does

    def call(self, function: Callable[[Run], T]) -> Future[T]:
        """Have `function(run)` done by the thread that owns the run, between two steps; its result to come.

        Where the run is at rest, and from within a function that was posted, it is done before this returns.
        What it raises, `.result()` raises; so it does the exception that ends the training before its turn.
        """
        future: Future[T] = Future()
        with self._ownership:
            if self.running and threading.current_thread() is not self._thread:
                self._posted.append((function, future))
            else:
                self._do(function, future)
        return future

    def start(self) -> Background:
        """Train until done or stopped; returns at once.

        Raises ValueError where all steps are done, and while this or another run trains in this process.
        """
        with self._ownership, ExitStack() as place:
            if self.run.done and not self.running:
                raise ValueError(
                    f"training: all {self.run.steps:,} steps are done; set run.steps higher to go on"
                )
            place.enter_context(self.run.alone())
            self.error, self._stopping = None, False
            self._thread = threading.Thread(target=self._train, name="clutils training", daemon=True)
            self._thread.start()  # it ends within the lock, so not before what follows
            self._ended.clear()
            self._place = place.pop_all()
            Background.now = self
            atexit.register(self.stop)  # torch does not survive an interpreter that goes away under it
        return self

    def stop(self) -> Background:
        """End the training after the step under way, and wait for that; what was learned is kept.

        Where nothing trains it does nothing. Called in the training thread it only asks for the end.
        """
        self._stopping = True
        if self._thread is not None and self._thread is not threading.current_thread():
            self._ended.wait()
            self._thread.join()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """True once the training has ended, after at most `timeout` seconds, None = as long as it takes.

        Raises the exception that ended it, if one did. Interrupting the wait does not stop the run.
        """
        if not self._ended.wait(timeout):
            return False
        if self.error is not None:
            raise self.error
        return True

    @property
    def running(self) -> bool:
        return not self._ended.is_set()

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
        try:
            if self.run.device.type == "cuda":
                torch.cuda.set_device(self.run.device)  # which is a thread's own
            with begun_and_ended(self.callbacks, self.run):
                while not self._stopping and not self.run.done:
                    self._do_posted()
                    self._step()
        except BaseException as error:
            self.error = error
        if not self.run.done:  # else its last step did
            self.run.give_back_memory()
        with self._ownership:
            self._do_posted()
            atexit.unregister(self.stop)
            Background.now = None
            self._place.close()
            self._ended.set()

    def _step(self) -> None:
        try:
            self.run.step()
        except ValueError as error:
            if self.on_refused is None or not self.on_refused(error):
                raise
            return
        for callback in self.callbacks:
            callback.after_step(self.run)

    def _do_posted(self) -> None:
        while self._posted:
            self._do(*self._posted.popleft())

    def _do(self, function: Callable[[Run], object], future: Future) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            if self.running and self.error is not None:
                raise self.error
            future.set_result(function(self.run))
        except BaseException as error:
            future.set_exception(error)
