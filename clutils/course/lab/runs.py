"""A run of the lab: its background, its periodic evaluation, and the settings changed while it trained."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clutils import explorers, training
from clutils.course.lab.background import Background
from clutils.training import Run, saved
from clutils.training.saved import Map, SavedRun
from clutils.training.settings import check_rate
from clutils.training.watcher import SOON, Watcher, watching


@dataclass(eq=False)
class LabRun:
    """A run of this session, stopped or done: what `compare_runs` and `Lab.keep` take.

    - source: what its data really is
    - changes: (step, name, new value) of what was turned while it trained
    - equal_views: a sentence where the two views of each sample are equal, else ""
    """

    name: str
    run: Run
    background: Background
    watcher: Watcher
    source: str
    changes: list[tuple[int, str, float]] = field(default_factory=list)
    equal_views: str = field(init=False)
    _last_turn: tuple[int, str, Any] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        self.equal_views = self.run.equal_views()

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
        return self.watcher.map

    def tables(self) -> SavedRun:
        """Tables and settings of the run, without weights and images."""
        seen = {"history": self.history, "measured": self.measured, "map": self.map}
        return SavedRun(self.name, None, self.configuration, **seen)

    def write(self, path: Path) -> SavedRun:
        """Write it, what was seen of it and its replay.html into a folder, between two steps.

        Errors as in `training.save_run`.
        """

        def write(run: Run) -> SavedRun:
            replay = explorers.Replay(self.watcher, title=self.name, source=self.source)
            training.save_run(run, path, [self.watcher.write, replay.write])
            return saved.read(path)

        return self.background.call(write).result()

    def turn(self, name: str, value: Any) -> None:
        """Set it from the next step on.

        Raises ValueError on a setting that the run does not have, and on a value that can't be; the old one
        then stays. (What only a step can refuse, its step refuses.)
        """
        self.background.call(lambda run: self._turn(run, name, value)).result()

    def _turn(self, run: Run, name: str, value: Any) -> None:
        if name not in run.live():
            raise ValueError(f"this run has no setting {name!r}: its loss is {type(run.loss).__name__}")
        of, step = run.live()[name], run.steps_done + 1
        before = getattr(of, name)
        if before == value:
            return
        if name == "learning_rate":
            check_rate(value)
        setattr(of, name, value)
        try:
            if of is run.loss and hasattr(of, "check_hyperparameters"):
                of.check_hyperparameters()
        except ValueError:
            setattr(of, name, before)
            raise
        if self.changes and self.changes[-1][:2] == (step, name):
            self.changes.pop()
        self.changes.append((step, name, value))
        self._last_turn = (step, name, before)
        self.watcher.request(run.steps_done + SOON)

    def take_back(self) -> tuple[str, Any] | None:
        """Undo what was turned for the step that did not come to pass: its name and the old value.

        None where nothing was.
        """
        if self._last_turn is None or self._last_turn[0] != self.run.steps_done + 1:
            return None
        _, name, before = self._last_turn
        setattr(self.run.live()[name], name, before)
        self.changes.pop()
        self._last_turn = None
        return name, before


def watched(run: Run, title: str, data_name: str | None) -> LabRun:
    """A run that is to train in the background, and be watched.

    - data_name: of its set, as `data.load` has it; None for an object of the caller's own
    """
    source = getattr(run.data, "source", "your own data")
    watcher = watching(run, data_name)
    return LabRun(title, run, Background(run, [watcher]), watcher, source)


def free_name(folder: str | Path, name: str) -> str:
    """This name, or where it is taken the next one that is not: run-1, run-2, ..."""
    name = name.strip()
    while saved.is_taken(Path(folder) / name):
        stem, _, number = name.rpartition("-")
        name = f"{stem}-{int(number) + 1}" if number.isdecimal() and stem else f"{name}-2"
    return name
