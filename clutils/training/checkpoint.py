"""Read a run's checkpoint: whole and unchanged, or refused."""

from __future__ import annotations

import contextlib
import math
import pickle
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clutils.checkpoints import reading
from clutils.training import migrations
from clutils.training.state import RunState

FORMAT = "clutils run 1"
FINGERPRINT = 2  # its version
PARTS = {"configuration": dict, "pictures": list, "steps_done": int, "method": dict, "optimiser": dict}
PARTS |= {"history": list, "fingerprint": dict, "looks": dict, "schedules": dict}
BLOCK = 8192  # rows at a time


def fingerprint(run: RunState) -> dict[str, Any]:
    """Checksums of all images of a run, all labels (None where there are none) and the names of the classes.

    CRC-32 of what is in memory, at 2 GB/s on one core: 0.07 s for CIFAR's 50,000 images (150 MB), 1.3 s for
    STL-10's 100,000 without labels (2.7 GB). A run computes it once, for its first checkpoint.
    """
    if run.data_fingerprint is None:
        names: tuple[str, ...] = getattr(run.data, "class_names", ())
        joined = "\n".join(names).encode(errors="surrogatepass")
        run.data_fingerprint = {
            "version": FINGERPRINT,
            "images": _checksum(run.images),
            "labels": None if run.labels is None else _checksum(run.labels),
            "class_names": zlib.crc32(joined) if names else None,
        }
    return run.data_fingerprint


def sampled(images: Tensor) -> list[int]:
    """Fingerprint of version 1: the shape of a set, and a checksum of 256 images spread over it."""
    some = images[:: max(1, len(images) // 256)].contiguous().cpu().numpy()
    return [*images.shape, zlib.crc32(some.data)]


def demand_same_data(run: RunState, state: Mapping[str, Any], path: str | Path) -> None:
    """Raise ValueError unless a run has the images, labels and class names that its checkpoint's run had.

    A file from before version 2 of the fingerprint is compared by version 1. Labels and names are compared
    where both have them: images without may be given as a tensor.
    """
    before = state["fingerprint"]
    if before.get("version") != FINGERPRINT or sampled(run.images) != state["pictures"]:
        changed = ["images"] * (sampled(run.images) != state["pictures"])
    else:
        now = fingerprint(run)
        told = {"images": "images", "labels": "labels", "class_names": "class names"}
        changed = [
            words
            for part, words in told.items()
            if None not in (before[part], now[part]) and before[part] != now[part]
        ]
    if changed:
        shape = tuple(run.images.shape)
        raise ValueError(
            f"resume: the {' and '.join(changed)} now given, {shape}, are not those that {path} was "
            "trained on"
        )


def _checksum(rows: Tensor) -> int:
    found = zlib.crc32(f"{rows.dtype} {tuple(rows.shape)}".encode())
    for part in rows.split(BLOCK):  # of a GPU's images no second copy in memory
        found = zlib.crc32(part.contiguous().cpu().numpy().data, found)
    return found


def read(path: str | Path) -> dict[str, Any]:
    """The state in a run's checkpoint, or in its folder. Errors as `training.resume`."""
    path = Path(path) / "checkpoint.pt" if Path(path).is_dir() else Path(path)  # as a run leaves it there
    if not path.is_file():
        raise FileNotFoundError(f"resume: there is no file {path}")
    try:
        kind = reading.demand_harmless(path, most=math.inf)  # a long run has a long history
        with path.open("rb") as file:  # by its name torch opens none that is not UTF-8
            state = torch.load(file, map_location="cpu", weights_only=True) if kind == "torch" else None
    except (reading.Refused, RuntimeError, pickle.UnpicklingError) as error:
        reason = reading.one_line(error).removeprefix(f"{path} ")
        raise ValueError(f"resume: {path} is damaged, or no checkpoint of a run: {reason}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"resume: {path} is not a checkpoint that Run.save wrote ({FORMAT})")
    state = migrations.of_checkpoint(state)
    for name, kind_of_it in PARTS.items():
        if not isinstance(state.get(name), kind_of_it):
            what = f"a {type(state[name]).__name__}" if name in state else "not there"
            raise ValueError(f"resume: {path} is damaged: its {name!r} is {what}")
    if not all(isinstance(row, dict) for row in state["history"]):
        raise ValueError(f"resume: {path} is damaged: its 'history' is no table")
    return state


@contextlib.contextmanager
def damage_said(path: str | Path) -> Iterator[None]:
    """Context manager: errors of values that no run has become a ValueError in one line."""
    try:
        yield
    except (KeyError, TypeError, AttributeError, IndexError, RuntimeError) as error:
        reason = f"{type(error).__name__}: {reading.one_line(error)}"
        raise ValueError(f"resume: {path} is damaged, or of another version ({reason})") from error
