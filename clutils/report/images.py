"""Table of a report, a row for each image: its nearest one, what it is a copy of, its neighbours' class."""

import csv
import io
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import measures
from clutils.files import printable
from clutils.report.facts import Examination

COLUMNS = ("file", "nearest", "distance", "duplicate_of", "neighbours_class")
SIDE = 32  # images are brought to this width before their pixels are compared
COPY = 0.99  # correlation of the pixels from which on two images count as duplicates
FLAT = 1.0  # grey levels: below this deviation an image is one colour, and no correlation means anything


def table(found: Examination) -> str:
    """CSV, `COLUMNS`: of the test images and the labelled ones, sorted by file.

    - nearest, distance: the image with the largest cosine similarity of features s, and 1 - s
    - duplicate_of: the first image whose pixels are the same or nearly so; empty for most
    - neighbours_class: the class that the nearest labelled images vote for, an image itself left out

    A place is empty where something is not known: without labels the class, without directions the nearest.
    """
    names, z = _names(found), torch.cat([found.z, found.gallery_z])
    copied = duplicates(found.judged.images, found.gallery.images)
    known = found.has_directions and bool((z.norm(dim=1) > 0).all())
    nearest = [rows.max(dim=1) for rows in _others(z)] if known else []
    apart, at = (torch.cat(parts).tolist() for parts in zip(*nearest, strict=True)) if nearest else ([], [])
    voted = _voted(found) if found.predicted is not None else None
    rows = []
    for k, name in enumerate(names):
        first = copied[k]
        row = [name, "", "", "" if first is None else names[first], ""]
        if known:
            row[1:3] = names[at[k]], f"{max(0.0, 1 - apart[k]):.4f}"
        if voted is not None:
            row[4] = printable(found.judged.class_names[int(voted[k])])
        rows.append(row)
    csv.writer(written := io.StringIO(), lineterminator="\n").writerows([COLUMNS, *sorted(rows)])
    return written.getvalue()


def duplicates(*images: Tensor) -> list[int | None]:
    """For each image the number of the first one with nearly the same pixels before it, or None.

    images: uint8 (N, C, H, W), numbered on from one to the next. By the correlation of the pixels at 32 x 32,
    which neither brightness nor contrast nor size changes; two images of one colour are duplicates where
    they are equal there.
    """
    parts = [part for given in images if len(given) for part in given.split(256)]
    small = torch.cat([F.interpolate(part.float(), (SIDE, SIDE), mode="area").flatten(1) for part in parts])
    centred = small - small.mean(dim=1, keepdim=True)
    plain = centred.square().mean(dim=1).sqrt() < FLAT
    unit = F.normalize(centred, dim=1).masked_fill(plain[:, None], 0.0)
    first: dict[bytes, int] = {}
    found: list[int | None] = []
    for start in range(0, len(unit), 1000):
        alike = (unit[start : start + 1000] @ unit.T >= COPY).tril(start - 1)
        hit, at = alike.max(dim=1)
        found += [int(j) if yes else None for yes, j in zip(hit.tolist(), at.tolist(), strict=True)]
    for k in plain.nonzero()[:, 0].tolist():
        before = first.setdefault(small[k].numpy().tobytes(), k)
        found[k] = before if before != k else None
    return found


def _names(found: Examination) -> list[str]:
    """Names of the files, test images first; numbers where there are none."""
    judged, gallery = found.judged, found.gallery
    asked = list(judged.files) or [f"{k:05}" for k in range(len(judged))]
    known = list(gallery.files) or [f"{k:05}" for k in range(len(gallery))]
    if set(asked) & set(known):
        asked, known = [f"test/{name}" for name in asked], [f"labelled/{name}" for name in known]
    return [printable(name) for name in (*asked, *known)]


def _others(z: Tensor) -> Iterator[Tensor]:
    """Cosine similarities to all rows, a thousand rows at a time; to itself -2."""
    unit = F.normalize(z, dim=1)
    for start in range(0, len(unit), 1000):
        similarity = unit[start : start + 1000] @ unit.T
        at = torch.arange(len(similarity))
        similarity[at, at + start] = -2
        yield similarity


def _voted(found: Examination) -> Tensor:
    """The vote of the labelled images, of the test images and then of the labelled ones themselves."""
    assert found.predicted is not None
    labels = found.gallery.labels
    k = min(found.found.neighbours or 1, len(labels) - 1)
    votes = [measures.knn_vote(rows, labels, k) for rows in _others(found.gallery_z)]
    return torch.cat([found.predicted, *votes])
