"""The training lab: choose a method, a loss and data; start; turn τ while it learns; stop; keep; go on."""

from __future__ import annotations

import atexit
import contextlib
import html
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ipywidgets as W
import torch
from torch import nn

from clutils import data as datasets
from clutils import (
    encoders,
    figures,
    live_measures,
    losses,
    maps,
    methods,
    one_run,
    saved_runs,
    training,
    views,
)
from clutils.background import Background
from clutils.controls.live import LiveFigure
from clutils.controls.panels import MUTED, _below, _error_line, _hidden, choose, log_slider, slider
from clutils.figures.lab import SYMBOLS, LabFigure
from clutils.figures.maps import embedding_map
from clutils.live_measures import Watcher
from clutils.saved_runs import Map, SavedRun
from clutils.training import Run

PAUSE = 0.3  # seconds between two looks at how far the run is: at most three pictures a second
SCALE = 1.5  # picture pixels to a pixel of the page: sharp enough, and drawn in half the time of 2
PACE = 5.0  # seconds over which the images a second are counted
ITS_OWN = "the method's own"
FITTING = "what suits the pictures"
FOLDER = "a folder of your own"
OWN = "your own"
BATCH_SIZES = (32, 64, 128, 256, 512, 1024)
NARROW, WIDE = "250px", "470px"

# name -> lowest, highest, and how the slider goes between them
RANGES: dict[str, tuple[float, float, str]] = {
    "temperature": (0.01, 5, "log"),
    "minimum_temperature": (0.001, 5, "log"),
    "alpha": (0, 2, "even"),
    "alignment_threshold": (-1, 1, "even"),
    "class_prior": (0, 0.9, "even"),
    "beta": (0, 5, "even"),
    "ratio": (0.1, 100, "log"),
    "d_pos": (0.05, 20, "log"),
    "d_neg": (0.05, 20, "log"),
    "margin": (0, 2, "even"),
    "off_diagonal": (0.0001, 1, "log"),
    "hardest": (1, 4096, "doubling"),
    "synthetic": (0, 4096, "doubling"),
    "query_mixed": (0, 4096, "doubling"),
    "momentum": (0, 1, "near one"),
    "penalty": (0, 10, "even"),
    "share": (0.05, 1, "even"),
    "strength": (0, 2, "even"),
    "clean": (0, 2, "even"),
    "learning_rate": (0.00001, 0.1, "log"),
}
NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.98, 0.99, 0.995, 0.996, 0.999, 0.9999, 1.0)

_panels: list[tuple[str | None, weakref.ref[Lab]]] = []


@dataclass(eq=False)
class LabRun:
    """A run of this session, stopped or done: what `controls.compare_runs` and `Lab.keep` take.

    - changes: (step, name, new value) of what was turned while it trained
    """

    name: str
    run: Run
    background: Background
    watcher: Watcher
    changes: list[tuple[int, str, float]] = field(default_factory=list)
    source: str | None = None

    @property
    def configuration(self) -> dict[str, Any]:
        return self.run.configuration | {"data_source": self.source}

    @property
    def history(self):
        return self.run.history

    @property
    def measured(self):
        return self.watcher.table

    @property
    def map(self) -> Map | None:
        if not self.watcher.looks:
            return None
        seen, pictures = self.watcher.looks[-1], self.watcher.pictures
        return Map(seen.positions, pictures.labels.numpy(), pictures.class_names, seen.step)


class Lab(W.VBox):
    """The panel of `training_lab`; all that its buttons and sliders do can be called.

    - run, background: of the last start; None before the first
    - runs: those of this session that were stopped or are done (`LabRun`), oldest first
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
        self.folder, self.runs = Path(folder), []
        self.current: LabRun | None = None
        self.lock = threading.RLock()  # of what buttons do: callbacks may come in threads of their own
        self._held = self._closed = False
        self._last_turn: tuple[int, str, Any] | None = None
        self._follower: threading.Thread | None = None
        self._pictures: dict[Any, tuple] = {}
        self._given = dict(run_settings)
        self._own_data = None if isinstance(data, str) else data
        self._menus(data, method, loss, steps)
        self._buttons()
        self.sliders: dict[str, W.Widget] = {}
        self.slider_row = W.Box(layout=W.Layout(flex_flow="row wrap"))
        self.error = W.HTML(layout=W.Layout(display="none"))
        self.error.add_class("clutils-panel-error")
        self.status, self.alt = W.HTML(), W.HTML()
        self.tsne = W.HTML()
        self.live = LiveFigure(LabFigure(steps if isinstance(steps, int) and steps > 0 else 1).figure, SCALE)
        self.picture = W.Box([self.live.image])
        self._rebuild()
        self.live.draw()
        self._at_rest()
        self._say("Not started.")
        super().__init__(
            [
                *(self.menu_row, self.more, self.button_row, self.slider_row),
                *(self.error, self.status, self.picture, self.alt, self.tsne),
            ]
        )

    # ---- what is chosen --------------------------------------------------------------------------------

    def _menus(self, data: Any, method: str, loss: str | nn.Module | None, steps: int) -> None:
        if method not in methods.catalogue():
            raise ValueError(
                f"training_lab: no method is called {method!r}; there are {', '.join(methods.catalogue())}"
            )
        names = [name for name in datasets.NAMES if name != "folder:PATH"]
        options = {name: name for name in [*names, "vectors:digits"]} | {FOLDER: FOLDER}
        path = ""
        if self._own_data is not None:
            options = {OWN: OWN} | options
            chosen = OWN
        elif data.startswith("folder:"):
            chosen, path = FOLDER, data.removeprefix("folder:")
        elif data in options.values() or data.startswith("vectors:"):
            chosen = data
            options |= {data: data}
        else:
            raise ValueError(f"training_lab: no data called {data!r}; there are {', '.join(options)}")
        given = self._given
        encoder, augmentation = given.get("encoder"), given.get("augmentation")
        own_encoder = {} if encoder is None or isinstance(encoder, str) else {OWN: encoder}
        own_augmentation = (
            {} if augmentation is None or isinstance(augmentation, str) else {OWN: augmentation}
        )
        batch_size, seed = given.get("batch_size", 256), given.get("seed", 0)
        sizes = sorted({*BATCH_SIZES, batch_size})
        self.menus: dict[str, W.Widget] = {
            "method": choose("method", list(methods.catalogue()), method),
            "loss": W.Dropdown(description="loss"),
            "data": choose("data", options, chosen),
            "path": W.Text(path, description="folder", placeholder="of class-named folders of pictures"),
            "steps": W.IntText(steps, description="steps"),
            "augmentation": choose(
                "augmentation",
                own_augmentation | {FITTING: FITTING} | {name: name for name in views.PRESETS},
                FITTING if augmentation is None else augmentation,
            ),
            "encoder": choose(
                "encoder",
                own_encoder | {FITTING: FITTING} | {name: name for name in encoders.NAMES},
                FITTING if encoder is None else encoder,
            ),
            "batch_size": choose("batch size", {f"{size:,}": size for size in sizes}, batch_size),
            "seed": W.IntText(seed, description="seed"),
        }
        self._own_loss = loss if isinstance(loss, nn.Module) else None
        if self._own_loss is not None and type(loss).__name__ not in losses.catalogue():
            known = ", ".join(losses.catalogue())
            raise ValueError(f"training_lab: loss is {type(loss).__name__}, but the panel knows {known}")
        self._offer_losses(type(loss).__name__ if isinstance(loss, nn.Module) else loss)
        _align(self.menus.values())
        for name in ("steps", "seed", "batch_size"):
            self.menus[name].layout.width = "170px"
        self.menus["path"].layout.width = "390px"
        first = [self.menus[name] for name in ("method", "loss", "data", "path", "steps")]
        more = [self.menus[name] for name in ("augmentation", "encoder", "batch_size", "seed")]
        wrap = W.Layout(flex_flow="row wrap", align_items="center")
        self.menu_row = W.Box(first, layout=wrap)
        self.more = W.Accordion([W.Box(more, layout=wrap)], titles=("more settings",), selected_index=None)
        self._show_path()
        self.menus["data"].observe(self._show_path, "value")
        self.menus["method"].observe(self._method_chosen, "value")
        for name in ("loss", "encoder", "data"):
            self.menus[name].observe(self._chosen, "value")

    def _offer_losses(self, wanted: str | None) -> None:
        kind = methods.catalogue()[self.menus["method"].value]
        fitting = [name for name, entry in losses.catalogue().items() if kind.fits(entry.loss)]
        if wanted is not None and wanted not in fitting:
            method, known = self.menus["method"].value, ", ".join(fitting)
            raise ValueError(f"training_lab: loss is {wanted!r}, but {method} takes {known}")
        self.menus["loss"].options = [ITS_OWN, *fitting]
        self.menus["loss"].value = ITS_OWN if wanted is None else wanted

    def _show_path(self, change: Any = None) -> None:
        self.menus["path"].layout.display = "" if self.menus["data"].value == FOLDER else "none"

    def _method_chosen(self, change: Any = None) -> None:
        kind, now = methods.catalogue()[self.menus["method"].value], self.menus["loss"].value
        self._held = True
        try:
            stays = now != ITS_OWN and kind.fits(losses.catalogue()[now].loss)
            self._offer_losses(now if stays else None)
        finally:
            self._held = False
        self._rebuild()

    def _chosen(self, change: Any = None) -> None:
        if not self._held:
            self._rebuild()

    @property
    def data_name(self) -> str | None:
        """The chosen set, as `data.load` has it; None for an object of the caller's own."""
        chosen = self.menus["data"].value
        if chosen == FOLDER:
            return f"folder:{self.menus['path'].value.strip()}"
        return None if chosen == OWN else chosen

    def _loss(self) -> nn.Module:
        """A fresh one of the chosen loss, at its own defaults."""
        name = self.menus["loss"].value
        own = self._own_loss
        if own is not None and name == type(own).__name__:
            return losses.catalogue()[name].loss(**{key: getattr(own, key) for key in own.hyperparameters()})
        if name == ITS_OWN:
            return self._kind.default_loss(**self._method_settings())
        return losses.catalogue()[name].loss()

    @property
    def _kind(self) -> type[methods.Method]:
        return methods.catalogue()[self.menus["method"].value]

    def _method_settings(self) -> dict[str, Any]:
        """Those given at the start that the chosen method has."""
        given = self._given.get("method_settings") or {}
        return {name: value for name, value in given.items() if name in self._kind.setting_names()}

    def _live_defaults(self) -> dict[str, Any]:
        """Everything that can be turned while a run trains, and what it starts from."""
        import inspect

        loss = self._loss()
        found = {name: getattr(loss, name) for name in loss.hyperparameters()}
        parameters, given = inspect.signature(self._kind.__init__).parameters, self._method_settings()
        for name in self._kind.live:
            usual = parameters[name].default
            if name == "penalty" and usual is None:
                usual = 1.0  # of PiNDA's, on pictures
            found[name] = given.get(name, usual)
        rate = self._given.get("learning_rate")
        if rate is None:
            name = self.menus["encoder"].value
            if name == FITTING:
                name = "mlp" if self._of_vectors() else "conv16"
            rate = training.LEARNING_RATES.get(str(name), 1e-3)
        return {name: value for name, value in found.items() if value is not None} | {"learning_rate": rate}

    def _of_vectors(self) -> bool:
        own = getattr(self._own_data, "vectors", self._own_data)
        of_own = isinstance(own, torch.Tensor) and own.ndim == 2
        return (
            of_own
            if self.menus["data"].value == OWN
            else str(self.menus["data"].value).startswith("vectors:")
        )

    def _rebuild(self) -> None:
        """Sliders for what the chosen method and loss can turn; a value that stays, stays."""
        wanted = self._live_defaults()
        self.sliders = {name: _turner(name, value) for name, value in wanted.items()}
        for name, widget in self.sliders.items():
            widget.observe(lambda change, name=name: self._moved(name, change["new"]), "value")
        _align(self.sliders.values(), WIDE)
        self.slider_row.children = tuple(self.sliders.values())

    # ---- what is turned --------------------------------------------------------------------------------

    def set(self, **settings: Any) -> None:
        """Turn live settings, as their sliders do: from the next step on.

        Raises ValueError on a name that can't be turned, and on a value out of range: the run goes on with
        the old one, and the panel says so.
        """
        for name, value in settings.items():
            if name not in self.sliders:
                self._complain(
                    error := ValueError(f"lab.set: {name!r} is not live; there are {', '.join(self.sliders)}")
                )
                raise error
            try:
                self._turn(name, value)
            except ValueError as error:
                self._complain(error)
                raise
            self._place(name, value)

    def _moved(self, name: str, value: Any) -> None:
        """A slider's callback: an error is shown, and the slider goes back."""
        if self._held:
            return
        try:
            self._turn(name, value)
        except ValueError as error:
            self._complain(error)
            self._place(name, self._present(name))

    def _turn(self, name: str, value: Any) -> None:
        """Set it in the run that trains; where none does, only check it: the next start takes it."""
        background = self.background
        if background is None or not background.running:
            loss = self._loss()
            if name in loss.hyperparameters():
                setattr(loss, name, value)
                loss.settings()
            elif name == "learning_rate":
                _check_rate(value)
            self._quiet()
            return
        with background.lock:
            self._apply(name, value)
        self._quiet()

    def _apply(self, name: str, value: Any) -> None:
        """With the run's lock held, or at rest."""
        run, record = self.run, self.current
        owner = _owner(run, name)
        before = getattr(owner, name)
        if before == value:
            return
        if name == "learning_rate":
            _check_rate(value)
        setattr(owner, name, value)
        try:
            if owner is run.loss and hasattr(owner, "settings"):
                owner.settings()
        except ValueError:
            setattr(owner, name, before)
            raise
        step = run.steps_done + 1
        if record.changes and record.changes[-1][:2] == (step, name):
            record.changes.pop()
        record.changes.append((step, name, value))
        self._last_turn = (step, name, before)

    def _present(self, name: str) -> Any:
        if self.run is not None and self.background.running:
            return getattr(_owner(self.run, name), name)
        return self._live_defaults()[name]

    def _place(self, name: str, value: Any) -> None:
        """Put a slider where the value is, without a callback; its range grows where it must."""
        widget, self._held = self.sliders[name], True
        try:
            if isinstance(widget, W.SelectionSlider):
                if value not in [number for _, number in widget.options]:
                    options = [*widget.options, (f"{value:g}", value)]
                    widget.options = sorted(options, key=lambda option: option[1])
            elif not isinstance(widget, W.Checkbox):
                widget.max, widget.min = max(widget.max, value), min(widget.min, value)
            widget.value = value
        finally:
            self._held = False

    # ---- what is done ----------------------------------------------------------------------------------

    @property
    def run(self) -> Run | None:
        return None if self.current is None else self.current.run

    @property
    def background(self) -> Background | None:
        return None if self.current is None else self.current.background

    def start(self) -> Lab:
        """A new run with what is chosen now; returns at once (data are loaded before).

        Raises ValueError while this or another run trains, and on settings that can't be;
        `data.Unavailable` where the data is not on this machine. The panel says the same.
        """
        with self.lock:
            try:
                one_run.check_free()
                self._finish_following()
                self._quiet()
                self._say(f"Loading {self.data_name or 'the data'} …")
                record = self._built()
                picture, raw = self._first_picture(record)
                record.background.start()
            except Exception as error:
                self._say("Not started.")
                self._complain(error)
                raise
            self.current, self._last_turn = record, None
            self._show(picture)
            self._follow(picture, raw)
        return self

    def go_on(self) -> Lab:
        """Continue the run that was stopped, with the sliders as they stand.

        Raises ValueError where there is none, where it is done, and while a run trains.
        """
        with self.lock:
            try:
                self._finish_following()
                if self.run is None:
                    raise ValueError("the lab has no run to go on with: start one")
                one_run.check_free()
                for name, widget in self.sliders.items():
                    if _owner(self.run, name, None) is not None:
                        self._apply(name, widget.value)
                self.background.start()
            except Exception as error:
                self._complain(error)
                raise
            self._quiet()
            self._follow(self._drawn, None)
        return self

    def stop(self) -> Lab:
        """End the training after the step under way; it is then in `runs`, and `go_on` continues it."""
        if self.background is not None:
            self.background.stop()
            self._finish_following()
        return self

    def wait(self, timeout: float | None = None) -> bool:
        """Whether the run has ended, after at most `timeout` seconds; raises the exception that ended it."""
        if self._follower is not None:
            self._follower.join(timeout)
            if self._follower.is_alive():
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
        try:
            if record is None:
                raise ValueError("the lab has no run to keep: start one")
            path = saved_runs.place(self.folder, self.name.value if name is None else name)
            seen = record.map
            with record.background.lock:
                kept = saved_runs.write(
                    record.run,
                    path,
                    record.measured,
                    None if seen is None else seen.positions,
                    None if seen is None else seen.labels,
                    () if seen is None else seen.class_names,
                )
        except (ValueError, OSError) as error:
            self._complain(error)
            raise
        self._quiet()
        self.kept.value = _below(html.escape(f"Kept in {path}."), MUTED, role="status")
        return kept

    def draw_tsne(self) -> threading.Thread | None:
        """t-SNE of the sample of pictures, in a thread of its own; the picture comes below the charts."""
        record = self.current
        if record is None:
            self._complain(ValueError("the lab has no run to draw a map of: start one"))
            return None
        self.tsne_button.disabled = True
        thread = threading.Thread(target=self._tsne, args=(record,), name="clutils t-SNE", daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        """Stop the run and take the panel off the page."""
        self._closed = True
        if self.background is not None:
            self.background.stop()
        super().close()

    # ---- a start ---------------------------------------------------------------------------------------

    def _built(self) -> LabRun:
        name = self.data_name
        if name is not None:
            _check_here(name)
        given = {key: value for key, value in self._given.items() if key != "method_settings"}
        given |= {key: self.menus[key].value for key in ("encoder", "augmentation", "batch_size", "seed")}
        given |= {key: None for key in ("encoder", "augmentation") if given[key] == FITTING}
        values = {key: widget.value for key, widget in self.sliders.items()}
        loss = self._loss()
        for key in loss.hyperparameters():
            if key in values:
                setattr(loss, key, values[key])
        if hasattr(loss, "settings"):
            loss.settings()
        live = {key: values[key] for key in self._kind.live if key in values}
        if "penalty" in live and "penalty" not in self._method_settings() and live["penalty"] == 1.0:
            del live["penalty"]  # untouched: PiNDA chooses by its network
        run = Run(
            method=self.menus["method"].value,
            loss=loss,
            data=self._own_data if name is None else name,
            steps=self.menus["steps"].value,
            method_settings=self._method_settings() | live,
            **given | {"learning_rate": values["learning_rate"]},
        )
        # runs of the same pictures share them
        key = (name, str(run.device), tuple(run.images.shape))
        run.data, run.images, run.labels = self._pictures.setdefault(key, (run.data, run.images, run.labels))
        if training.fast() and run.steps > training.FAST_STEPS:
            self.note.value = _below(
                f"CLUTILS_FAST=1: {training.FAST_STEPS} steps instead of {run.steps}", MUTED
            )
            run.steps = training.FAST_STEPS
        else:
            self.note.value = ""
        watched = _as_set(run)
        watcher = Watcher(*live_measures.parts(watched, name))
        what = getattr(run.data, "source", "your own data")
        number = len(self.runs) + 1
        title = (
            f"{number}: {self.menus['method'].value}, {type(loss).__name__}, {name or OWN}, seed {run.seed}"
        )
        record = LabRun(title, run, Background(run), watcher, source=what)
        return record

    def _first_picture(self, record: LabRun) -> tuple[LabFigure, float]:
        """The charts of a run at rest, before its first step, with what an untrained encoder is worth."""
        run, watcher = record.run, record.watcher
        seen, raw = watcher.look(run, free=True), watcher.raw()
        chance = run.method.chance(run.batch_size)
        number = len(watcher.pictures)
        picture = LabFigure(
            run.steps,
            chance,
            watcher.ceiling,
            {"untrained": seen.knn, "raw pixels" if run.images.ndim == 4 else "raw vectors": raw},
            watcher.pictures.labels,
            watcher.pictures.class_names,
            watcher.measures_knn,
            f"PCA of {number} {'test ' if 'split test' in watcher.pictures.source else ''}pictures",
        )
        picture.update((), watcher.table.to_dict("records"), watcher.positions)
        return picture, raw

    def _show(self, picture: LabFigure) -> None:
        self._drawn = picture
        self.live = LiveFigure(picture.figure, SCALE)
        self.live.draw()
        self.picture.children = (self.live.image,)
        self.tsne.value = self.kept.value = ""

    # ---- beside the run --------------------------------------------------------------------------------

    def _follow(self, picture: LabFigure, raw: float | None) -> None:
        self._training(True)
        threads = torch.get_num_threads()
        self._follower = threading.Thread(
            target=self._followed, args=(self.current, picture, threads), name="clutils lab", daemon=True
        )
        self._follower.start()

    def _followed(self, record: LabRun, picture: LabFigure, threads: int) -> None:
        """In its own thread: measure and draw until the run ends, within their share of the time."""
        torch.set_num_threads(1)  # of this thread: the run has the other core
        atexit.register(record.background.stop)
        try:
            self._watch(record, picture)
        except Exception as error:  # a picture that can't be drawn must not leave a panel that seems to train
            record.background.stop()
            self._complain(error)
        finally:
            atexit.unregister(record.background.stop)
            torch.set_num_threads(threads)
            if record not in self.runs:
                self.runs.append(record)
            self._at_rest()

    def _watch(self, record: LabRun, picture: LabFigure) -> None:
        run, background, watcher = record.run, record.background, record.watcher
        pace: deque[tuple[float, int]] = deque([(time.perf_counter(), run.steps_done)])
        while True:
            while background.running:
                time.sleep(PAUSE)
                began = time.perf_counter()
                now = time.perf_counter()
                pace.append((now, run.steps_done))
                while len(pace) > 2 and now - pace[0][0] > PACE:
                    pace.popleft()
                self._say(_progress(record, pace))
                watcher.spend(time.perf_counter() - began)
                if not background.running:
                    break
                if watcher.due(run):
                    watcher.look(run, background.lock)
                if watcher.room(run):
                    began = time.perf_counter()
                    self._draw(record, picture)
                    watcher.spend(time.perf_counter() - began)
            background.stop()  # its thread has ended, or is about to
            if not self._taken_back(record):
                break
        if run.steps_done:
            watcher.look(run, free=True)
        self._draw(record, picture)
        if background.error is not None:
            self._complain(background.error)
        self._say(f"{_capital(background.status)}. {_numbers(record)}")

    def _taken_back(self, record: LabRun) -> bool:
        """Whether the run ended for a setting just turned; it then goes on with the old one."""
        run, background, turn = record.run, record.background, self._last_turn
        refused = isinstance(background.error, ValueError) and turn is not None
        if not refused or turn[0] != run.steps_done + 1 or self._closed:
            return False
        error, (_, name, before) = background.error, turn
        setattr(_owner(run, name), name, before)
        record.changes.pop()
        self._last_turn = None
        self._place(name, before)
        try:
            background.start()
        except ValueError:
            return False
        self._complain(ValueError(f"{error}; the run goes on with {name} = {before}"))
        return True

    def _draw(self, record: LabRun, picture: LabFigure) -> None:
        live = self.live
        with live.lock:
            measured = record.watcher.table.to_dict("records")
            picture.update(list(record.run.rows), measured, record.watcher.positions, record.changes)
            live.draw()
        self.alt.value = _hidden(figures.alt(picture.figure))

    def _tsne(self, record: LabRun) -> None:
        try:
            self.tsne.value = _below("Drawing t-SNE …", MUTED, role="status")
            lock = record.background.lock
            step, features = record.watcher.features(record.run, lock)
            pictures = record.watcher.pictures
            found = maps.tsne(features, perplexity=min(30.0, (len(features) - 1) / 3))
            title = f"t-SNE of {len(features)} pictures, step {step}"
            self.tsne.value = figures.page(embedding_map(found, pictures.labels, pictures.class_names, title))
        except Exception as error:
            self.tsne.value = ""
            self._complain(error)
        finally:
            self.tsne_button.disabled = False

    def _finish_following(self) -> None:
        """Wait until the last run's final picture is there."""
        follower = self._follower
        if (
            follower is not None
            and follower is not threading.current_thread()
            and not (self.background is not None and self.background.running)
        ):
            follower.join()

    # ---- what is shown ---------------------------------------------------------------------------------

    def _buttons(self) -> None:
        def made(label: str, icon: str, tip: str, job: Callable[[], object], style: str = "") -> W.Button:
            found = W.Button(description=label, icon=icon, tooltip=tip, button_style=style)
            found.layout.width = "auto"
            found.on_click(lambda _: self._pressed(job))
            return found

        self.start_button = made("start", "play", "A new run with what is chosen", self.start, "primary")
        self.stop_button = made("stop", "stop", "End it after this step; what was learned is kept", self.stop)
        self.continue_button = made("continue", "forward", "Go on with the run that was stopped", self.go_on)
        self.keep_button = made("keep checkpoint", "save", "Write it into its folder", self.keep)
        self.tsne_button = made("draw t-SNE", "map-o", "A map of the sample as it is now", self.draw_tsne)
        self.name = W.Text("run-1", description="as", layout=W.Layout(width="190px"))
        self.name.style.description_width = "3ch"
        self.kept, self.note = W.HTML(), W.HTML()
        row = [self.start_button, self.stop_button, self.continue_button]
        row += [self.keep_button, self.name, self.tsne_button, self.kept, self.note]
        self.button_row = W.Box(row, layout=W.Layout(flex_flow="row wrap", align_items="center"))

    def _pressed(self, job: Callable[[], object]) -> None:
        """A button's callback: what is the reader's to mend is shown in the panel, and nowhere else."""
        with contextlib.suppress(ValueError, OSError):
            job()

    def _training(self, now: bool) -> None:
        for widget in self.menus.values():
            widget.disabled = now
        self.start_button.disabled, self.stop_button.disabled = now, not now
        self.continue_button.disabled = now or self.run is None or self.run.done
        self.keep_button.disabled = self.tsne_button.disabled = self.run is None

    def _at_rest(self) -> None:
        self._training(False)

    def _say(self, text: str) -> None:
        self.status.value = _below(html.escape(text), role="status")

    def _complain(self, error: BaseException) -> None:
        line = " ".join(str(error).split())
        shown = type(error)(line) if isinstance(error, ValueError) and type(error) is ValueError else error
        self.error.value, self.error.layout.display = _error_line(shown), ""

    def _quiet(self) -> None:
        self.error.value, self.error.layout.display = "", "none"

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        """The widget, and beside it the picture as it stands, for an export where no kernel runs."""
        still = figures.page(self.live.figure, None, self.live.image.value)
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

    A cell that is run again stops what its panel trained before. Of panels in several cells one trains at a
    time: the others refuse to start. With CLUTILS_FAST=1 in the environment a run is shortened, and says so.
    Raises ValueError on a name that there is not.
    """
    cell = _cell()
    for known, panel in list(_panels):
        earlier = panel()
        if earlier is None or (cell is not None and known == cell):
            _panels.remove((known, panel))
            if earlier is not None:
                earlier.close()
    made = Lab(data, method, loss, steps, folder, **run_settings)
    _panels.append((cell, weakref.ref(made)))
    return made


def _cell() -> str | None:
    """Which notebook cell runs, where the front end tells."""
    from IPython import get_ipython

    parent = getattr(get_ipython(), "get_parent", dict)() or {}
    return (parent.get("metadata") or {}).get("cellId")


# ---- pieces ------------------------------------------------------------------------------------------------


def _turner(name: str, value: Any) -> W.Widget:
    """A slider, or a box to tick, for a live setting."""
    label = f"{SYMBOLS[name]} {name.replace('_', ' ')}" if name in SYMBOLS else name.replace("_", " ")
    if name == "learning_rate":
        label = "learning rate"
    if isinstance(value, bool):
        return W.Checkbox(value, description=label, indent=False)
    low, high, kind = RANGES.get(name, (0, max(1.0, 2 * value), "even"))
    low, high = min(low, value), max(high, value)
    if kind == "log":
        made = log_slider(label, low, high, value)
    elif kind == "doubling":
        numbers = {low, *(2**k for k in range(13) if low <= 2**k <= high), value}
        made = W.SelectionSlider(
            options=[(f"{number:,}", number) for number in sorted(numbers)], value=value, description=label
        )
    elif kind == "near one":
        numbers = sorted({*NEAR_ONE, value})
        made = W.SelectionSlider(
            options=[(f"{number:g}", number) for number in numbers], value=value, description=label
        )
    else:
        made = slider(label, float(low), float(high), float(value), step=0.05)
    made.continuous_update = False  # a value that the slider only passes is no setting
    return made


def _owner(run: Run, name: str, default: Any = ValueError) -> Any:
    """What of a run has the setting: its loss, its method, or itself."""
    if name == "learning_rate":
        return run
    if name in getattr(run.loss, "hyperparameters", tuple)():
        return run.loss
    if name in run.method.live:
        return run.method
    if default is ValueError:
        raise ValueError(f"this run has no setting {name!r}: its loss is {type(run.loss).__name__}")
    return default


def _check_rate(value: Any) -> None:
    if not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"learning_rate is {value!r}, but must be a positive number")


def _check_here(name: str) -> None:
    """Raise where a set would have to be downloaded: a panel does not fetch gigabytes at a button."""
    if name.startswith("vectors:"):
        datasets.load_vectors(name.removeprefix("vectors:"), limit=1, download=False)
    elif name not in ("scenes", "scenes-hard"):
        datasets.load(name, limit=1, download=False)


def _as_set(run: Run) -> datasets.ImageSet | datasets.VectorSet:
    """The run's pictures as a set; a bare tensor has no labels."""
    if not isinstance(run.data, torch.Tensor):
        return run.data
    none = torch.full((len(run.data),), -1)
    if run.data.ndim == 2:
        return datasets.VectorSet(run.data, none, (), "your own vectors")
    return datasets.ImageSet(run.data, none, (), None, "your own pictures")


def _progress(record: LabRun, pace: deque[tuple[float, int]]) -> str:
    run = record.run
    (since, before), (now, steps) = pace[0], pace[-1]
    each = (now - since) / (steps - before) if steps > before else math.nan
    parts = [f"Step {run.steps_done:,} of {run.steps:,}"]
    if math.isfinite(each):
        left = (run.steps - run.steps_done) * each
        parts += [f"{run.batch_size / each:,.0f} images/s", f"{_duration(left)} left"]
    return f"{', '.join(parts)}. {_numbers(record)}"


def _numbers(record: LabRun) -> str:
    run, parts = record.run, []
    if run.rows:
        row = run.rows[-1]
        chance = "" if math.isnan(row["chance"]) else f" (chance {row['chance']:.3f})"
        parts.append(f"Loss {row['loss']:.3f}{chance}")
        now = row.get("effective_temperature", row.get("temperature"))
        parts += [] if now is None else [f"τ {now:.3g}"]
    if not record.watcher.measures_knn:
        parts.append("no kNN, for the data has no labels")
    parts.append(f"data: {record.source}")
    return f"{'; '.join(parts)}."


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _align(widgets: Any, width: str = NARROW) -> None:
    """One width for all labels, so that none is cut and the inputs stand in columns."""
    widgets = list(widgets)
    longest = max(len(widget.description) for widget in widgets)
    for widget in widgets:
        if not isinstance(widget, W.Checkbox):
            widget.style.description_width = f"{0.9 * longest + 1:.1f}ch"
        widget.layout.width = width
