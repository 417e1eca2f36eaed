"""The training lab: choose a method, a loss and data; start; turn τ while it learns; stop; keep; go on."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as W
from torch import nn

from clutils import figures, training
from clutils.course.lab.background import Background
from clutils.course.lab.choices import FOLDER, ITS_OWN, OWN, Choices
from clutils.course.lab.dials import Dials, check
from clutils.course.lab.figures import LabFigure
from clutils.course.lab.runs import LabRun, free_name, watched
from clutils.course.lab.thread import Following, Screen, first_charts
from clutils.course.live import beside_cells
from clutils.course.panels import MUTED, below
from clutils.training import Run, saved
from clutils.training.saved import SavedRun

__all__ = ["FOLDER", "ITS_OWN", "Lab", "LabRun", "training_lab"]

_panels: list[tuple[str | None, weakref.ref[Lab]]] = []


class Lab(W.VBox):
    """The panel of `training_lab`; all that its buttons and sliders do can be called.

    - run, background: of the last start; None before the first
    - runs: those of this session that were stopped or are done, oldest first: the last a `LabRun`, of those
      before it their tables, as of a kept run; their weights and images are let go
    - menus, sliders: name -> what the reader chooses and turns
    """

    def __init__(
        self,
        data: Any = "scenes",
        method: str = "simclr",
        loss: str | nn.Module | None = None,
        steps: int = 600,
        folder: str | Path = "my_runs",
        **run_settings: Any,
    ) -> None:
        self.folder = Path(folder)
        self.runs: list[LabRun | SavedRun] = []
        self.current: LabRun | None = None
        self._closed = False
        self._following: Following | None = None
        self.choices = Choices(data, method, loss, steps, run_settings, self._rebuild)
        self.menus = self.choices.menus
        self.dials = Dials(self._moved)
        self.screen = Screen(LabFigure(steps if isinstance(steps, int) and steps > 0 else 1))
        self.error, self.status = self.screen.error, self.screen.status
        self.picture, self.alt, self.tsne = self.screen.picture, self.screen.alt, self.screen.tsne
        self.menus["batch_size"].observe(self._fewer_negatives, "value")
        self._buttons()
        self._rebuild()
        self._training(False)
        other = " Another panel's run is training: stop ends it." if Background.now is not None else ""
        self.screen.say(f"Not started.{other}")
        self._untrained()
        beside_cells(self.choices.menus.values(), self.button_row.children)
        super().__init__(
            [
                *(self.choices.row, self.choices.more, self.button_row, self.dials.row),
                *(self.error, self.status, self.picture, self.alt, self.tsne),
            ]
        )

    @property
    def run(self) -> Run | None:
        return None if self.current is None else self.current.run

    @property
    def background(self) -> Background | None:
        return None if self.current is None else self.current.background

    @property
    def sliders(self) -> dict[str, W.Widget]:
        return self.dials.sliders

    # ---- what is turned --------------------------------------------------------------------------------

    def _rebuild(self) -> None:
        """Sliders for what the chosen method and loss can turn."""
        ranges = {**self.choices.method_class.ranges, **self.choices.loss().ranges}
        self.dials.build(self.choices.live_defaults(), ranges)
        beside_cells(self.dials.sliders.values())

    def _fewer_negatives(self, change: Any) -> None:
        """A smaller batch was chosen: there may be fewer negatives than the hardest that are asked for."""
        most = self.choices.negatives()
        if "hardest" in self.sliders and self.sliders["hardest"].value > most:
            self.dials.place("hardest", most)

    def set(self, **settings: Any) -> None:
        """Turn live settings, as their sliders do: from the next step on.

        Raises ValueError on a name that can't be turned, and on a value out of range: the run goes on with
        the old one, and the panel says so.
        """
        for name, value in settings.items():
            with self.screen.complaining():
                if name not in self.sliders:
                    raise ValueError(f"lab.set: {name!r} is not live; there are {', '.join(self.sliders)}")
                self._turn(name, value)

    def _moved(self, name: str, value: Any) -> None:
        """A slider's callback: an error is shown, and the slider goes back."""
        try:
            self._turn(name, value)
        except Exception as error:
            self.screen.complain(error)
            self.dials.place(name, self._present(name))
            if not self._shown_alone(error):
                raise

    def _turn(self, name: str, value: Any) -> None:
        """Set it in the run that trains; where none does, only check it: the next start takes it."""

        def turn(run: Run | None) -> None:
            if run is None:
                check(self.choices.loss(), name, value)
            else:
                self.current.turn(name, value)
            self.error.say()  # before the next step, which may refuse the value and say so
            self.dials.place(name, value)

        if not self._trains() or self.run.done:  # no step is left to act on
            turn(None)
        else:
            self.background.call(turn).result()

    def _present(self, name: str) -> Any:
        if self._trains():
            return getattr(self.run.live()[name], name)
        return self.choices.live_defaults()[name]

    def _taken_back(self, record: LabRun, error: ValueError) -> bool:
        """True where a step was refused for a setting just turned; the run has the old one then."""
        turned = record.take_back()
        if turned is None:
            return False
        name, before = turned
        self.dials.place(name, before)
        self.screen.complain(ValueError(f"{error}; the run goes on with {name} = {before}"))
        return True

    # ---- what is done ----------------------------------------------------------------------------------

    def reset(self) -> Lab:
        """Menus and dials as the panel was called with. Raises ValueError while its run trains."""
        if self._trains():
            raise ValueError("lab.reset: a run is training here, and its menus are locked: stop it first")
        self.choices.reset()
        return self

    def start(self) -> Lab:
        """A new run with what is chosen now; returns at once (data are loaded before).

        Raises ValueError while this or another run trains, and on settings that can't be;
        `data.Unavailable` where the data is not on this machine. The panel says the same.
        """
        try:
            with self.screen.complaining():
                Run.check_free()
                self._finish_following()
                self._loading()
                self.error.say()
                self.screen.say(f"Loading {self.choices.data_name or 'the data'} …")
                record = self._built()
                self.screen.show(first_charts(record))
                self._begin(record)
        except BaseException:
            self._training(self._trains())
            if not self._trains():
                self.screen.say("Not started.")
            raise
        self.kept.value = ""
        return self._follow(record)

    def go_on(self) -> Lab:
        """Continue the run that was stopped, with the sliders as they stand.

        Raises ValueError where there is none, where it is done, and while a run trains.
        """
        with self.screen.complaining():
            self._finish_following()
            if self.run is None:
                raise ValueError("the lab has no run to go on with: start one")
            Run.check_free()
            for name, value in self.dials.values().items():
                if name in self.run.live():
                    self.current.turn(name, value)
            self.error.say()
            self._begin(self.current)
        return self._follow(self.current)

    def stop(self) -> Lab:
        """End the training after the step under way; it is then in `runs`, and `go_on` continues it.

        Where this panel trains nothing, it ends what trains in the background of this process: a cell that
        was run again may have taken that run's own panel off the page.
        """
        if not self._trains() and (other := Background.now) is not None:
            other.stop()
            self.screen.say(f"The run that was training was stopped at step {other.run.steps_done:,}.")
            self._training(False)
        elif self.background is not None:
            self.background.stop()
            self._finish_following()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """True once the run has ended, after at most `timeout` seconds; raises what ended it."""
        if self._following is not None and not self._following.wait(timeout):
            return False
        if self.background is not None and self.background.error is not None:
            raise self.background.error
        return True

    def keep(self, name: str | None = None) -> SavedRun:
        """Write the run as it is now into the panel's folder; it may train on meanwhile.

        - name: of its folder; None = as the field says

        Raises ValueError on a name that is taken or no plain one, and where there is no run.
        """
        record = self.current
        with self.screen.complaining():
            if record is None:
                raise ValueError("the lab has no run to keep: start one")
            path = saved.place(self.folder, self.name.value if name is None else name)
            kept = record.write(path)
        self.error.say()
        self.kept.value = below(f"Kept in {path}.", MUTED, role="status")
        self.name.value = free_name(self.folder, self.name.value.strip() or "run-1")
        return kept

    def draw_tsne(self) -> threading.Thread | None:
        """t-SNE of the sample of images, in a thread of its own; the image comes below the charts."""
        record = self.current
        if record is None:
            self.screen.complain(ValueError("the lab has no run to draw a map of: start one"))
            return None
        self.tsne_button.disabled = True

        def draw() -> None:
            try:
                self.screen.draw_tsne(record)
            finally:
                self.tsne_button.disabled = False

        thread = threading.Thread(target=draw, name="clutils t-SNE", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Stop the run, which is then in `runs`, and take the panel off the page."""
        self._closed = True
        if self._trains():
            self.stop()
        super().close()

    # ---- before a start --------------------------------------------------------------------------------

    def _untrained(self) -> None:
        """The charts of what is chosen, before its first step; empty ones where its data is not here."""
        if Background.now is not None:  # a run that trains has the processor
            return
        with contextlib.suppress(ValueError, OSError):  # what can't be is said at the start
            record = self._built()
            self.screen.show(first_charts(record))
            shown = self.choices.data_name or "your own data"  # the menus may move on
            self.screen.say(f"Not started. Shown: {shown}, by the encoder before its first step.", record)

    # ---- a start ---------------------------------------------------------------------------------------

    def _built(self) -> LabRun:
        name = self.choices.data_name
        run = self.choices.run(name, self.dials.values())
        shorter = training.shorten(run)
        self.note.value = below(shorter, MUTED) if shorter else ""
        method, loss = self.menus["method"].value, type(run.loss).__name__
        title = f"{len(self.runs) + 1}: {method}, {loss}, {name or OWN}, seed {run.settings.seed}"
        return watched(run, title, name)

    def _begin(self, record: LabRun) -> None:
        """Train it, where the panel still is: its cell may have been run again while it loaded."""
        if self._closed:
            raise ValueError("the lab was closed before its run began: none trains")
        record.background.on_refused = lambda error: self._taken_back(record, error)
        record.background.start()
        if record is not self.current:
            self.runs[:] = [run.tables() if isinstance(run, LabRun) else run for run in self.runs]
        self.current = record
        if self._closed:  # by another thread, before there was anything for it to stop
            record.background.stop()

    def _follow(self, record: LabRun) -> Lab:
        self._training(True)
        self._following = Following(record, self.screen, lambda: self._ended(record))
        self._following.start()
        return self

    def _ended(self, record: LabRun) -> None:
        if record not in self.runs:
            self.runs.append(record)
        self._training(False)

    def _finish_following(self) -> None:
        """Wait until the last run's final image is there."""
        if self._following is not None:
            self._following.finish()

    # ---- the buttons -----------------------------------------------------------------------------------

    def _buttons(self) -> None:
        def made(label: str, icon: str, tip: str, job: Callable[[], object], style: str = "") -> W.Button:
            found = W.Button(description=label, icon=icon, tooltip=tip, button_style=style)
            found.layout.width = "auto"
            found.on_click(lambda _: self._pressed(found, job))
            return found

        self.start_button = made("start", "play", "A new run with what is chosen", self.start, "primary")
        self.stop_button = made("stop", "stop", "End it after this step; what was learned is kept", self.stop)
        self.continue_button = made("continue", "forward", "Go on with the run that was stopped", self.go_on)
        self.keep_button = made("keep checkpoint", "save", "Write it into its folder", self.keep)
        self.tsne_button = made("draw t-SNE", "map-o", "A map of the sample as it is now", self.draw_tsne)
        free = free_name(self.folder, "run-1")
        self.name = W.Text(free, description="as", layout=W.Layout(width="190px"))
        self.name.style.description_width = "3ch"
        self.kept, self.note = W.HTML(), W.HTML()
        row = [self.start_button, self.stop_button, self.continue_button]
        row += [self.keep_button, self.name, self.tsne_button, self.kept, self.note]
        self.button_row = W.Box(row, layout=W.Layout(flex_flow="row wrap", align_items="center"))

    def _pressed(self, button: W.Button, job: Callable[[], object]) -> None:
        """A button's callback.

        A press that waited while the one before it was answered (the second of a double click) is dropped
        where that one left the button off.
        """
        if button.disabled:
            return
        try:
            job()
        except Exception as error:
            if not self._shown_alone(error):
                raise

    def _shown_alone(self, error: Exception) -> bool:
        """True for errors of which the panel says enough: those that the reader can mend."""
        ended = None if self.background is None else self.background.error
        return isinstance(error, ValueError | OSError) or error is ended

    def _trains(self) -> bool:
        return self.background is not None and self.background.running

    def _loading(self) -> None:
        """Nothing to be chosen or pressed while a start is under way."""
        for widget in (*self.menus.values(), self.start_button, self.stop_button, self.continue_button):
            widget.disabled = True

    def _training(self, now: bool) -> None:
        """Let be chosen and pressed what can be while a run trains, or while none does."""
        for widget in self.menus.values():
            widget.disabled = now
        self.start_button.disabled = now
        self.stop_button.disabled = Background.now is None  # another panel's run, too, can be stopped here
        self.continue_button.disabled = now or self.run is None or self.run.done
        self.keep_button.disabled = self.tsne_button.disabled = self.run is None

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and beside it the image as it stands, for an export where no kernel runs."""
        still = figures.page(self.screen.live.figure, None, self.screen.live.image.value)
        return {**super()._repr_mimebundle_(**options), "text/html": still}


def training_lab(
    data: Any = "scenes",
    method: str = "simclr",
    loss: str | nn.Module | None = None,
    steps: int = 600,
    folder: str | Path = "my_runs",
    **run_settings: Any,
) -> Lab:
    """The panel that starts, turns, stops and keeps a run, and shows it: a cell ends with it.

    - data, method, loss, steps: what the menus stand at; loss also as a name of `losses.catalogue()`
    - folder: where checkpoints are kept
    - run_settings: further ones of `training.Run`, such as batch_size, seed or method_settings

    A cell that is run again stops what its panel trained before, and keeps its `runs`. Of panels in several
    cells one trains at a time: the others refuse to start. With CLUTILS_FAST=1 in the environment a run is
    shortened, and says so.
    Raises ValueError on a name that there is not.
    """
    cell = _cell()
    earlier = next((panel() for known, panel in _panels if cell is not None and known == cell), None)
    stopped = None
    if earlier is not None:
        stopped = earlier.current if earlier._trains() else None
        earlier.close()
    made = Lab(data, method, loss, steps, folder, **run_settings)
    if earlier is not None:
        made.runs = list(earlier.runs)
    if stopped is not None:
        step = f"step {stopped.run.steps_done:,}"
        made.screen.say(f"Not started; the run that trained here was stopped at {step}.")
    _panels[:] = [(known, panel) for known, panel in _panels if panel() not in (None, earlier)]
    _panels.append((cell, weakref.ref(made)))
    return made


def _cell() -> str | None:
    """Which notebook cell runs, where the front end tells."""
    from IPython import get_ipython

    parent = getattr(get_ipython(), "get_parent", dict)() or {}
    return (parent.get("metadata") or {}).get("cellId")
