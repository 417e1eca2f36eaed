"""A run of the lab: what trains and what watches it, and what was turned meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clutils.course.lab.dials import owner, turn
from clutils.training import Run, saved
from clutils.training.background import Background
from clutils.training.saved import Map, SavedRun
from clutils.training.watcher import SOON, Watcher, watching


@dataclass(eq=False)
class LabRun:
    """A run of this session, stopped or done: what `compare_runs` and `Lab.keep` take.

    - changes: (step, name, new value) of what was turned while it trained
    """

    name: str
    run: Run
    background: Background
    watcher: Watcher
    changes: list[tuple[int, str, float]] = field(default_factory=list)
    source: str | None = None
    _last_turn: tuple[int, str, Any] | None = field(default=None, init=False, repr=False)

    @property
    def configuration(self) -> dict[str, Any]:
        beside = {"data_source": self.source, "pictures": list(self.run.images.shape)}
        return self.run.configuration | beside | {"device": str(self.run.device), "processes": 1}

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
        return Map(seen.positions, pictures.labels.cpu().numpy(), pictures.class_names, seen.step)

    def write(self, path: Path) -> SavedRun:
        """Look at it, and write it into a folder, between two steps. Errors as in `saved.write`."""
        if self.run.steps_done:
            self.watcher.look(self.run, self.background.lock, free=True)
        seen = self.map
        with self.background.lock:
            return saved.write(
                self.run,
                path,
                self.measured,
                None if seen is None else seen.positions,
                None if seen is None else seen.labels,
                () if seen is None else seen.class_names,
                None if seen is None else seen.step,
            )

    def turn(self, name: str, value: Any) -> None:
        """Set it from the next step on: with the background's lock held, or at rest.

        Raises ValueError on a setting that the run does not have, and on a value that can't be.
        """
        before = turn(self.run, name, value)
        if before == value:
            return
        step = self.run.steps_done + 1
        if self.changes and self.changes[-1][:2] == (step, name):
            self.changes.pop()
        self.changes.append((step, name, value))
        self._last_turn = (step, name, before)
        self.watcher.want(self.run.steps_done + SOON)

    def take_back(self) -> tuple[str, Any] | None:
        """Undo what was turned for the step that did not come to pass: its name and the old value.

        None where nothing was.
        """
        if self._last_turn is None or self._last_turn[0] != self.run.steps_done + 1:
            return None
        _, name, before = self._last_turn
        setattr(owner(self.run, name), name, before)
        self.changes.pop()
        self._last_turn = None
        return name, before


def watched(run: Run, title: str, data_name: str | None) -> LabRun:
    """A run that is to train in the background, and be watched.

    - data_name: of its set, as `data.load` has it; None for an object of the caller's own
    """
    watcher = watching(run, data_name)
    source = getattr(run.data, "source", "your own data")
    return LabRun(title, run, Background(run), watcher, source=source)
