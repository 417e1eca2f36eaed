"""Provenance of a report: what it takes to make the page again."""

import hashlib
from datetime import date
from pathlib import Path

import torch

import clutils
from clutils.checkpoints import Opened
from clutils.data import ImageSet
from clutils.files import printable
from clutils.report.preprocessing import NORMALISATIONS, Shift

LISTED = 8  # tensors that are not used, at most


def facts(
    opened: Opened, gallery: ImageSet, judged: ImageSet, shift: Shift, seed: int, command: str
) -> dict[str, str]:
    """Heading -> words: file, encoder, images and how they are fed; hash, versions and seed."""
    found = {"file": opened.path or "none: a module handed over", "encoder": str(opened)}
    if opened.size:
        found["read as"] = f"{opened.kind}, {opened.size / 1e6:.1f} MB; nothing in it was run"
    found["images"] = f"{len(gallery):,} labelled neighbours, {len(judged):,} test images: {judged.source}"
    if not len(gallery):
        found["images"] = f"{len(judged):,} without labels: {judged.source}"
    elif gallery.source != judged.source:
        found["labelled neighbours"] = gallery.source
    plain = shift == NORMALISATIONS["none"]
    fed_as = "images in [0, 1] as they are" if plain else "mean {}, std {}".format(*shift)
    fed_as += f", resized to {opened.side}x{opened.side}" if opened.side else ""
    copied = judged.images.shape[1] == 1 and opened.channels == 3
    found["fed as"] = fed_as + (", grey copied to 3 channels" if copied else "")
    left = [*opened.unexpected, *(f"{name} ({count})" for name, count in opened.dropped.items())]
    if left:
        more = f" and {len(left) - LISTED} more" * (len(left) > LISTED)
        found["not used"] = f"tensors {', '.join(left[:LISTED])}{more}"
    if opened.path:
        with Path(opened.path).open("rb") as file:
            found["SHA-256"] = hashlib.file_digest(file, "sha256").hexdigest()
    if opened.epoch is not None:
        found["epoch or step"] = f"{opened.epoch:g}, as the file says"
    versions = f"clutils {clutils.__version__}, torch {torch.__version__}"
    found |= {"command": command, "made with": f"{versions}, seed {seed}, {date.today()}"}
    return {heading: printable(words) for heading, words in found.items()}
