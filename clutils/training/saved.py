"""Saved runs, a folder each: `save_run` writes one, for the command, the training lab and Python alike.

A run's folder holds `checkpoint.pt` (for `training.resume`), `history.csv` (a row a step) and `config.json`
(settings, data, versions, machine). What was seen on the way, or at the end, is beside them: `measured.csv`
(step, kNN, effective rank) and `map.npz` (positions of a fixed sample of images).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clutils import files, processes
from clutils.settings import within
from clutils.training import interrupts, migrations
from clutils.training.provenance import provenance

if TYPE_CHECKING:
    import pandas as pd

    from clutils.training.run import Run

CHECKPOINT, HISTORY, CONFIG = "checkpoint.pt", "history.csv", "config.json"
MEASURED, MAP = "measured.csv", "map.npz"
WRITTEN = (CONFIG, HISTORY, MEASURED, MAP, "replay.html", "noise_maps.npz")  # beside a checkpoint
COLUMNS = ("step", "knn", "effective_rank")
LONGEST_NAME = 80
PART = ("resumed_at_step", "device", "processes", "date", "machine", "cores", "python", "versions", "commit")
# what every config.json has
FIXED = {"loss": dict, "method": str, "data": str, "steps": int, "batch_size": int, "encoder": str}
OWN = ("loss", "data", "encoder")  # None where it was an object of the caller's own
MOST = 2**28  # bytes of a map, unpacked


@dataclass(frozen=True, eq=False)
class Map:
    """Where a sample of images lay at a step: `positions` (N, 2), `labels` (N,), `class_names`."""

    positions: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...] = ()
    step: int = 0


@dataclass(frozen=True, eq=False)
class SavedRun:
    """A run as its folder has it; `problem` says in one line why it can't be read, None where it can.

    - path: None of a run that is in no folder
    - configuration: of config.json; history: a row a step
    - measured: columns step, knn, effective_rank; no rows where nobody watched
    - map: None where nobody watched
    """

    name: str
    path: Path | None
    configuration: dict[str, Any] = field(default_factory=dict)
    history: pd.DataFrame = field(default_factory=lambda: table_of(()))
    measured: pd.DataFrame = field(default_factory=lambda: table_of(()))
    map: Map | None = None
    problem: str | None = None


Comparable = Any  # a `SavedRun`, or a run of this session that has a name and the same tables


def table_of(measured: Iterable[Mapping[str, float]], also: Sequence[str] = ()) -> pd.DataFrame:
    """Measurements as a table: step, knn, effective_rank, and `also`."""
    import pandas as pd

    return pd.DataFrame(list(measured), columns=[*COLUMNS, *also])


def taken(history: pd.DataFrame) -> pd.DataFrame:
    """A history's steps, without the row 0 of what was looked at before the first."""
    return history[history["step"] > 0]


# ---- to a folder -------------------------------------------------------------------------------------------


Writer = Callable[["Run", Path], object]  # writes a file more of a run into its folder


def save_run(run: Run, folder: str | Path, writers: Iterable[Writer] = (), replace: bool = False) -> None:
    """Write a run into a folder: checkpoint.pt, history.csv, config.json, and what the writers add.

    `python -m clutils train`, the training lab and a loop of your own write a run by it:

    >>> run = training.Run(data="digits", steps=200)
    >>> watcher = training.watching(run, "digits")
    >>> while not run.done:
    ...     run.step()
    ...     watcher.after_step(run)
    >>> training.save_run(run, "runs/mine", [watcher.write, explorers.Replay(watcher).write])

    - writers: called with the run and the folder before the checkpoint is written. There are `Watcher.write`
      (measured.csv and map.npz), `noise_maps.NoiseRecorder.write` (noise_maps.npz) and
      `explorers.Replay.write` (replay.html)
    - replace: the folder may have files of this run from earlier, as of a checkpoint on the way; each is
      replaced at once and whole. config.json says where this part of the run began, and stays

    Raises ValueError where the run has made no step, and unless `replace` where something is in the folder
    already; OSError on a full disk. A folder that was new is then as it was.
    """
    if not str(folder).strip():
        raise ValueError(f"saved: the folder is {str(folder)!r}, but must have a name")
    folder = Path(folder)
    if not run.steps_done:
        raise ValueError("saved: the run has made no step yet, so there is nothing to keep")
    if not replace:
        _refuse_taken(folder)
    made = not folder.exists()
    try:
        if not _is_described(run, folder):
            describe(run, folder)
        for write in writers:
            write(run, folder)
        try:
            run.save(folder / CHECKPOINT)
        except BaseException:
            with contextlib.suppress(OSError):  # a full disk: the first error is the one to tell
                list_steps(run, folder)  # also of a run whose weights broke: it shows where
            raise
        list_steps(run, folder)  # last: killed in between, it is behind the checkpoint, which has it too
    except BaseException:
        if not replace and folder.is_dir():
            shutil.rmtree(folder)
            if not made:
                folder.mkdir()
        raise


class Checkpoints:
    """Save a run into a folder as `save_run` does: at the end, and after every so many steps.

    - every: steps; None = at the end alone
    - writers: see `save_run`

    Raises ValueError before the first step where the folder has files of another run, or files of their
    names that are no run's.
    """

    def __init__(self, folder: str | Path, every: int | None = None, writers: Iterable[Writer] = ()) -> None:
        within("Checkpoints", "every", every, 1, whole=True, also=(None,))
        self.folder, self.every, self.writers = Path(folder), every, tuple(writers)
        self._saved_at: int | None = None  # step of the last save

    def before_run(self, run: Run) -> None:
        if self._saved_at is None and not run.resumed_at_step:
            demand_free(self.folder)
        if not run.done:
            describe(run, self.folder)
        if run.steps_done:
            list_steps(run, self.folder)  # a resumed run lists its history so far again

    def after_step(self, run: Run) -> None:
        if self.every is not None and run.steps_done % self.every == 0:
            self.save(run)

    def after_run(self, run: Run) -> None:
        if self._saved_at != run.steps_done:
            with interrupts.deferred():
                self.save(run)

    def save(self, run: Run) -> None:
        """Save it as it is now, unless it has made no step: the next try shall find the folder free."""
        if run.steps_done:
            save_run(run, self.folder, self.writers, replace=True)
            self._saved_at = run.steps_done


def describe(run: Run, folder: str | Path) -> None:
    """Write config.json: the run's settings, its data, device, versions and machine.

    Of a run that was resumed, where its steps before were made is kept under "earlier", a part each.
    """
    path, earlier = Path(folder) / CONFIG, []
    if run.resumed_at_step:
        with contextlib.suppress(OSError, ValueError):  # what can't be read is not kept
            before = _configuration(path)
            earlier = [*before.get("earlier", []), {name: before.get(name) for name in PART}]
    config = {
        **run.configuration,
        "schedules": {name: asdict(schedule) for name, schedule in run.schedules.items()},
        "data_source": getattr(run.data, "source", None),
        "pictures": list(run.images.shape),
        "device": str(run.device),
        "processes": processes.number(),
        "resumed_at_step": run.resumed_at_step,
        **provenance(),
        "earlier": earlier,
    }
    files.write_atomically(path, json.dumps(config, indent=2) + "\n")


def demand_free(folder: str | Path) -> None:
    """Raise ValueError where a new run would replace another's checkpoint, or a file that no run wrote.

    What a run without a checkpoint left there, its config.json says so, may be replaced.
    """
    folder = Path(folder)
    if (folder / CHECKPOINT).exists():
        raise ValueError(
            f"{folder / CHECKPOINT} exists already: continue it with --resume, or choose another folder"
        )
    found = [name for name in WRITTEN if (folder / name).exists()]
    try:
        if found:
            _configuration(folder / CONFIG)
    except (OSError, ValueError) as error:
        said = f"{folder / found[0]} is no run's, and would be replaced: choose another folder"
        raise ValueError(said) from error


def list_steps(run: Run, folder: str | Path) -> None:
    """Write history.csv."""
    files.write_atomically(Path(folder) / HISTORY, run.history.to_csv(index=False))


def add_evaluations(folder: str | Path, measured: pd.DataFrame, seen: Map) -> None:
    """Write evaluations of a run into its folder: rows of measured.csv, and map.npz.

    - measured: columns step, knn, effective_rank, and perhaps more; the file's rows of steps before them stay
    - seen: the last map of the sample
    """
    import pandas as pd

    path = Path(folder) / MEASURED
    if path.exists():
        before = _table(path, COLUMNS)
        measured = pd.concat([before[before["step"] < measured["step"].min()], measured])
    further = [name for name in measured if name not in COLUMNS]
    files.write_atomically(path, measured.reindex(columns=[*COLUMNS, *further]).to_csv(index=False))
    own: dict[str, Any] = {"positions": np.asarray(seen.positions, np.float32), "labels": seen.labels}
    own |= {"class_names": np.array(seen.class_names, dtype=str), "step": seen.step}
    files.write_atomically(Path(folder) / MAP, partial(np.savez_compressed, **own))


def place(folder: str | Path, name: str) -> Path:
    """The folder of a new run called `name` inside `folder`.

    Raises ValueError on a name that is no plain one, and on one that is taken.
    """
    name = unicodedata.normalize("NFC", name).strip()
    plain = re.fullmatch(r"[\w.=+, -]+", name) and not name.startswith(".") and not name.endswith(".")
    if not plain or len(name.encode()) > LONGEST_NAME:
        raise ValueError(
            f"a run's name is {name!r}, but must be 1 to {LONGEST_NAME} letters, digits, spaces or any of "
            ". _ - = + , and neither start nor end with a dot"
        )
    found = Path(folder) / name
    _refuse_taken(found)
    return found


def _is_described(run: Run, folder: Path) -> bool:
    """True where config.json is of this part of the run, or of an earlier one that nothing was added to."""
    with contextlib.suppress(OSError, ValueError):
        of = _configuration(folder / CONFIG).get("resumed_at_step") or 0
        return run.steps_done == run.resumed_at_step or of >= run.resumed_at_step
    return False


def is_taken(folder: Path) -> bool:
    """True where something is there that is no empty folder."""
    return folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir())))


def _refuse_taken(folder: Path) -> None:
    if is_taken(folder):
        raise ValueError(f"{folder} is there already, and nothing is written over: choose another name")


# ---- from a folder -----------------------------------------------------------------------------------------


def read(folder: str | Path) -> SavedRun:
    """The run in a folder, from its tables: its weights stay on the disk (`training.resume` has them).

    Raises FileNotFoundError where there is no run; ValueError, in one line, where its files are damaged.
    """
    folder = Path(folder)
    for name in (CHECKPOINT, HISTORY, CONFIG):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no whole run: there is no {name} in it")
    if not zipfile.is_zipfile(folder / CHECKPOINT):
        raise ValueError(f"{folder / CHECKPOINT} is damaged: it does not end as a checkpoint does")
    measured = _table(folder / MEASURED, COLUMNS) if (folder / MEASURED).exists() else table_of(())
    return SavedRun(
        name=folder.name,
        path=folder,
        configuration=_configuration(folder / CONFIG),
        history=migrations.of_history(_table(folder / HISTORY, ("step", "loss")), measured),
        measured=measured,
        map=_map(folder / MAP) if (folder / MAP).exists() else None,
    )


def listed(folder: str | Path) -> list[SavedRun]:
    """All runs in folders below this one, newest last; a damaged one with its `problem`, in one line.

    A folder that is not there has none.
    """
    base, marks = Path(folder), {CHECKPOINT, HISTORY, CONFIG}
    found = [Path(path) for path, _, names in os.walk(base) if marks & set(names)]
    runs = []
    for path in sorted(found, key=lambda path: (_when(path, marks), path)):
        name = path.name if path == base else str(path.relative_to(base))
        try:
            runs.append(replace(read(path), name=name))
        except Exception as error:  # whatever a file of somebody else makes a reader raise
            runs.append(SavedRun(name=name, path=path, problem=" ".join(str(error).split())))
    return runs


def _when(path: Path, names: Iterable[str]) -> float:
    """When a run was last written: its newest file."""
    times = [0.0]
    for name in names:
        with contextlib.suppress(OSError):  # missing, or not ours to look at: reading it will say so
            times.append((path / name).stat().st_mtime)
    return max(times)


def _configuration(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    for name, kind in FIXED.items():
        if not isinstance(found, dict) or name not in found:
            raise ValueError(f"{path} describes no run: it has no {name!r}")
        if not isinstance(found[name], kind | (None if name in OWN else kind)):
            raise ValueError(f"{path} describes no run: its {name!r} is {found[name]!r}")
    return found


def _table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        found = pd.read_csv(path)
    except ValueError as error:  # an empty or half-written file (ParserError is one); bytes that are no text
        raise ValueError(f"{path} is damaged: {error}") from error
    for name in columns:
        if name not in found or not pd.api.types.is_numeric_dtype(found[name]):
            raise ValueError(f"{path} is damaged: it has no numbers in a column {name!r}")
    return found


def _map(path: Path) -> Map:
    try:
        kept = files.arrays(path, MOST)
        positions, labels = kept["positions"], kept["labels"]
        names, step = tuple(map(str, kept["class_names"])), int(kept["step"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    whole = labels.ndim == 1 and labels.dtype.kind in "iu"
    if not whole or positions.shape != (len(labels), 2) or not np.isfinite(positions).all():
        came = f"{positions.shape} and {labels.shape} {labels.dtype}"
        raise ValueError(f"{path} is damaged: a map is (N, 2) finite and (N,) whole numbers, not {came}")
    return Map(positions, labels, names, step)
