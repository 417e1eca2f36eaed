"""Read a run's checkpoint: whole and unchanged, or refused."""

import pickle
import zipfile
import zlib
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FORMAT = "clutils run 1"


def fingerprint(images: Tensor) -> list[int]:
    """The shape of a set and a checksum of (at most) 256 of its images, spread over it."""
    some = images[:: max(1, len(images) // 256)].contiguous().cpu().numpy()
    return [*images.shape, zlib.crc32(some.data)]


def read(path: str | Path) -> dict[str, Any]:
    path = Path(path) / "checkpoint.pt" if Path(path).is_dir() else Path(path)  # as a run leaves it there
    if not path.is_file():
        raise FileNotFoundError(f"resume: there is no file {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch itself does not look at the checksums
        if damaged is not None:
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (zipfile.BadZipFile, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"resume: {path} is damaged, or no checkpoint of a run: {reason}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"resume: {path} is not a checkpoint that Run.save wrote ({FORMAT})")
    return state
