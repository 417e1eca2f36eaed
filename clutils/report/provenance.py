"""Provenance of a report: what it takes to make the page again."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import torch

import clutils
from clutils.checkpoints import Opened

SETTINGS = 16  # of a file's own, at most so many are listed
LONGEST = 60  # characters of one of them


def facts(opened: Opened, command: str, seed: int) -> dict[str, str]:
    """Heading -> words: the file's hash, its epoch and settings, the command, versions, date and seed."""
    found = {}
    if opened.path:
        found["SHA-256"] = digest(opened.path)
    if opened.epoch is not None:
        found["epoch or step"] = f"{opened.epoch:g}, as the file says"
    told = {name: value for name, value in opened.settings.items() if len(str(value)) <= LONGEST}
    if told:
        listed = ", ".join(f"{name} {told[name]}" for name in list(told)[:SETTINGS])
        found["its settings"] = listed + (f", and {len(told) - SETTINGS} more" * (len(told) > SETTINGS))
    found["command"] = command
    found["made with"] = (
        f"clutils {clutils.__version__}, torch {torch.__version__}, seed {seed}, {date.today()}"
    )
    return found


def digest(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
