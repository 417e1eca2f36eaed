"""Vectors of the reader's own: made from arrays, or read from .npy, .npz or .csv. Nothing is rescaled."""

import csv
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clutils.data.sets import VectorSet, own_file

SUFFIXES = (".npy", ".npz", ".csv")
MOST_CLASSES = 1_000_000  # each has a name: a number that is no label, a date say, would fill the memory
KEYS = {"X": "vectors", "y": "labels", "vectors": "vectors", "labels": "labels"}  # in an .npz: what they are
LABEL_COLUMNS = ("label", "labels")  # what a .csv calls the column that is no feature


def vector_set(
    vectors: Tensor | np.ndarray | Sequence[Sequence[float]],
    labels: Tensor | np.ndarray | Sequence[int | str] | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "vectors of your own",
) -> VectorSet:
    """A `VectorSet` of these numbers, (N, D), as float32.

    - `labels`: (N,) integers from 0 on (-1: none), or class names; None: nobody has one
    - `class_names`: by default the names in alphabetical order, or '0', '1', ... up to the largest label

    Raises ValueError where they are not (N, D) finite numbers, or labels and names don't fit them.
    """
    return _set("vector_set", vectors, labels, class_names, source)


def read(path: str, split: str, limit: int | None) -> VectorSet:
    """The vectors in a file, all of them 'train'; the first `limit` of them.

    - .npy: one array (N, D)
    - .npz: an array `vectors` (N, D) and, where there are any, `labels` (N,); `X` and `y` do as well
    - .csv: a row a vector, separated by commas; the first line may name the columns, and one called `label`
      holds the labels

    Pickled objects are not opened. Raises `Unavailable` where there is no such file; ValueError for what is
    in it.
    """
    name, file = f"vectors:array:{path}", own_file("vectors:array", path, split)
    if file.suffix.lower() not in SUFFIXES:
        raise ValueError(f"{name}: {file.suffix or 'no suffix'}; one of {', '.join(SUFFIXES)} is needed")
    vectors, labels = _read_csv(name, file) if file.suffix.lower() == ".csv" else _read_numpy(name, file)
    whole = _set(name, vectors, labels, None, "")
    n, numbers = whole.vectors.shape
    whole.source = f"{n:,} vectors of {numbers:,} numbers from the file {file}, as they are"
    return whole.subset(slice(limit))


def _set(name: str, vectors: Any, labels: Any, class_names: Sequence[str] | None, source: str) -> VectorSet:
    values = _numbers(name, vectors)
    codes, names = np.full(len(values), -1), tuple(class_names or ())
    if labels is not None:
        codes, names = _codes(name, labels, len(values), class_names)
    return VectorSet(torch.from_numpy(values), torch.from_numpy(codes), names, source)


def _read_numpy(name: str, file: Path) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with open(file, "rb") as opened:
            stored = np.load(opened, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return stored, None
            arrays = {KEYS[key]: stored[key] for key in KEYS if key in stored.files}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        why = "it holds Python objects, whose pickles can run code" if "pickle" in str(error) else error
        raise ValueError(f"{name} can't be read: {why}; save plain numbers with numpy.save") from error
    if "vectors" not in arrays:
        raise ValueError(
            f"{name} holds {', '.join(stored.files) or 'nothing'}; "
            "numpy.savez(path, vectors=..., labels=...) is needed"
        )
    return arrays["vectors"], arrays.get("labels")


def _read_csv(name: str, file: Path) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            rows = [row for row in csv.reader(lines) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} is no text in UTF-8 with commas: {error}") from error
    header = rows.pop(0) if rows and not all(map(_is_number, rows[0])) else None
    if not rows:
        raise ValueError(f"{name} holds no row of numbers")
    width = len(header or rows[0])
    for at, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"{name}: row {at} has {len(row)} fields, the first line has {width}")
    titles = [title.strip().lower() for title in header or ()]
    at_label = next((titles.index(title) for title in LABEL_COLUMNS if title in titles), None)
    labels = None
    if at_label is not None:
        labels = np.array([row.pop(at_label).strip() for row in rows])
        if all(map(_is_number, labels)):
            labels = labels.astype(np.float64)
    try:
        return np.array(rows, dtype=np.float64), labels
    except ValueError as error:
        wrong = next((n, field) for n, row in enumerate(rows, 1) for field in row if not _is_number(field))
        raise ValueError(
            f"{name}: row {wrong[0]} holds {wrong[1]!r}; numbers are needed, "
            f"beside a column called {LABEL_COLUMNS[0]!r}"
        ) from error


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _numbers(name: str, vectors: Any) -> np.ndarray:
    """Any array of finite real numbers (N, D) as float32, a copy."""
    try:
        given = np.asarray(vectors.detach().cpu() if isinstance(vectors, Tensor) else vectors)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name}: vectors are no array: {error}") from error
    if given.dtype.kind not in "biuf" or given.ndim != 2 or 0 in given.shape:
        raise ValueError(f"{name}: vectors are {given.dtype} {given.shape}; numbers (N, D) are needed")
    with np.errstate(over="ignore"):
        values = np.array(given, np.float32, order="C")
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise ValueError(
            f"{name}: row {row}, column {column} of {given.shape} is {given[row, column]}; "
            "finite numbers of at most 3e38 are needed"
        )
    return values


def _codes(
    name: str, labels: Any, n: int, class_names: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as int64 indices (N,), and the names that they are indices of."""
    given = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if given.shape != (n,):
        raise ValueError(f"{name}: labels are {given.shape} for {n} vectors; ({n},) is needed")
    if given.dtype.kind == "U":
        names = tuple(sorted(set(given.tolist()))) if class_names is None else tuple(class_names)
        if unknown := set(given.tolist()) - set(names):
            raise ValueError(
                f"{name}: labels {sorted(unknown)[:5]} are none of the classes {', '.join(names)}"
            )
        place = {label: code for code, label in enumerate(names)}
        return np.array([place[label] for label in given.tolist()], np.int64), names
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all() or (given != np.floor(given)).any():
        raise ValueError(f"{name}: labels are {given.dtype}; whole numbers or names are needed")
    if class_names is None and given.max(initial=0) >= MOST_CLASSES:
        raise ValueError(
            f"{name}: labels go up to {given.max():,.0f}, but must stay below {MOST_CLASSES:,}: each up "
            "to the largest is a class"
        )
    codes = given.astype(np.int64)
    numbers = range(int(codes.max()) + 1)
    return codes, tuple(map(str, numbers) if class_names is None else class_names)
