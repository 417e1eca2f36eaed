"""Vectors of the reader's own: arrays, DataFrames, or files .npy, .npz, .csv and .tsv, as they are."""

import zipfile
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clutils.data import tables
from clutils.data.downloads import human
from clutils.data.sets import VectorSet, asked, own_file
from clutils.settings import one_of

TABLES = (".csv", ".tsv", ".txt")  # of which pandas writes
SUFFIXES = (".npy", ".npz", *TABLES)
MOST_CLASSES = 1_000_000  # each has a name: a number that is no label, a date say, would fill the memory
UNPACKED, PACKED = 1 << 30, 100  # bytes of an archive that are always read, and how often it may be unpacked
MISSING = ("NoneType", "NAType", "NaTType")  # types of what stands in place of a label, beside NaN
SIGNS = ("-1", "1")  # what the two classes are called where these are all labels
VECTORS = ("x", "vectors")  # what an .npz may call them, in any case


def vector_set(
    vectors: Any,
    labels: Tensor | np.ndarray | Sequence[int | str] | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "vectors of your own",
    label: str | None = None,
    test: float | None = None,
    split: str = "train",
) -> VectorSet:
    """A `VectorSet` of these numbers, (N, D), as float32: an array, a tensor, rows, or a pandas DataFrame.

    - `labels`: (N,) integers from 0 on, or class names; below 0, "" and NaN: no label, but -1 and 1 alone are
      two classes. None: nobody has one, or of a DataFrame the column `label`, by default that of a usual name
    - `class_names`: by default the names in alphabetical order, or '0', '1', ... up to the largest label
    - `test`: this share of every class, drawn with seed 0, is the split "test", the rest "train"; columns of
      numbers are then less their mean and divided by their deviation in the training part

    A DataFrame may have categories and missing values: see `tables`; `source` then says what was made of
    them.

    >>> train = data.vector_set(frame, label="species", test=0.25)
    >>> rest = data.vector_set(frame, label="species", test=0.25, split="test")

    Raises ValueError where they are not (N, D) finite numbers, or labels and names don't fit them.
    """
    who = "vector_set"
    if hasattr(vectors, "columns") and hasattr(vectors, "iloc"):
        table = tables.from_frame(who, vectors, label if labels is None else "")
        if labels is not None:
            table = table._replace(labels=labels)  # type: ignore[arg-type]
    elif label is not None:
        raise ValueError(f"{who}: label is {label!r}, but only a DataFrame has columns of that name")
    else:
        values = _numbers(who, vectors).astype(np.float64)
        D = values.shape[1]
        table = tables.Table(values, (), (), np.ones(D, bool), labels, [])  # type: ignore[arg-type]
    return _divided(who, table, class_names, source, test, split)


def read(path: str, split: str, limit: int | None) -> VectorSet:
    """The vectors in a file, all of them 'train' unless a test part is asked for; the first `limit` of them.

    - .npy: one array (N, D)
    - .npz: an array `vectors` or `X` (N, D) and, where there are any, labels (N,) of a usual name
    - .csv, .tsv, .txt: a row a vector, its columns parted by commas, semicolons or tabs; without commas
      between them numbers may have a decimal comma. The first line may name the columns. The column of a
      usual name (`tables.LABEL_COLUMNS`) holds the labels; 'PATH?label=kind' says another one, by its name
      or, without names, its number from 1; 'PATH?label=' says that there is none. Columns without a name and
      row numbers (`tables.NUMBERED`) are left out. Categories and missing values: see `tables`.

    'PATH?test=0.25', or behind a label '&test=0.25', makes a test part: see `vector_set`.

    Labels that are -1 and 1 become 0 and 1; a missing label, and any other below 0, is -1. `source` says
    which columns or arrays were taken for what, and how many vectors have no label; also where a column says
    the same as the labels, or may hold them under a name that is not usual. Pickled objects are not opened.

    Raises `Unavailable` where there is no such file; ValueError for what is in it, naming the column.
    """
    path, wanted = asked(path, ("label", "test"))
    name, label = f"vectors:array:{path}", wanted.get("label")
    test = _share(name, wanted["test"]) if "test" in wanted else None
    file = own_file("vectors:array", path, "train")
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        others = "data.vector_set takes a DataFrame, as of pandas.read_parquet or pandas.read_excel"
        raise ValueError(
            f"{name}: {file.suffix or 'no suffix'}; one of {', '.join(SUFFIXES)} is needed; {others}"
        )
    if suffix in TABLES:
        table = tables.from_csv(name, file, label)
    elif label is not None:
        raise ValueError(f"{name}: ?label={label} names a column, but only a .csv has names of columns")
    else:
        vectors, labels, notes = _read_numpy(name, file)
        values = _numbers(name, vectors).astype(np.float64)
        table = tables.Table(values, (), (), np.ones(values.shape[1], bool), labels, notes)
    whole = _divided(name, table, None, f"the file {file}", test, split)
    return whole.subset(slice(limit))


def _share(name: str, given: str) -> float:
    try:
        return float(given)
    except ValueError as error:
        raise ValueError(f"{name}: test is {given!r}, but must be a share, as 0.25") from error


def _divided(
    name: str,
    table: tables.Table,
    class_names: Sequence[str] | None,
    origin: str,
    test: float | None,
    split: str,
) -> VectorSet:
    """A table as a set, or one of its two parts; `source` says what was done."""
    labels, notes, N = table.labels, list(table.notes), len(table.vectors)
    codes, names = np.full(N, -1), tuple(class_names or ())
    if labels is not None:
        codes, names = codes_of(name, labels, N, class_names)
        if table.columns or name != "vector_set":  # labels that were found, not given
            if without := int((codes < 0).sum()):
                notes.append(f"{without:,} have no label")
            if names == SIGNS:
                notes.append("labels -1 and 1 are the classes 0 and 1")
            empty = len(names) - len(set(codes.tolist()) - {-1})
            if empty > 1:  # of labels from 1 on, 0 is one
                notes.append(f"{empty:,} of {len(names):,} classes are empty")
    rows = np.ones(N, bool)
    if test is not None:
        one_of(name, "split", split, ("train", "test"))
        rows = tables.divided(codes, test)
        notes.append(
            f"{test:g} of each class, drawn with seed {tables.SEED}, is the test part; split {split}"
        )
    elif split != "train":
        raise ValueError(f"{name} has no split {split!r}, only 'train': test=0.25 makes one of a quarter")
    values = tables.filled(table, rows, scale=test is not None)
    wanted = rows if split == "train" else ~rows
    source = origin
    if name != "vector_set":
        how = "as they are" if test is None else "less their mean, by their deviation in the training part"
        source = f"{wanted.sum():,} vectors of {values.shape[1]:,} numbers from {origin}, {how}"
    return VectorSet(
        torch.from_numpy(_numbers(name, values[wanted])),
        torch.from_numpy(codes[wanted]),
        names,
        "; ".join([source, *notes]),
        table.columns,
        table.groups if len(set(table.groups)) < len(table.groups) else (),
    )


def _read_numpy(name: str, file: Path) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Vectors, labels, and what `source` has to say of the arrays. Raises ValueError where two may be one."""
    try:
        _refuse_bomb(file)
        with open(file, "rb") as opened:
            stored = np.load(opened, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return stored, None, []
            known = {"vectors": VECTORS, "labels": tables.LABEL_COLUMNS}
            found = {
                what: [k for k in stored.files if tables.plain(k) in names] for what, names in known.items()
            }
            for what, keys in found.items():
                if len(keys) > 1:
                    raise ValueError(f"{' and '.join(map(repr, keys))} may be the {what}: keep one of them")
            arrays = {what: stored[keys[0]] for what, keys in found.items() if keys}
    except MemoryError as error:
        raise ValueError(f"{name} claims an array that is larger than the memory: {error}") from error
    except Exception as error:  # a broken file makes NumPy raise nearly anything
        said = " ".join(str(error).split())
        why = "it holds Python objects, whose pickles can run code" if "pickle" in said else said
        mended = "may be the" in said or "unpacks from" in said
        mend = "" if mended else "; save plain numbers with numpy.save"
        raise ValueError(f"{name} can't be read: {why}{mend}") from error
    if "vectors" not in arrays:
        raise ValueError(
            f"{name} holds {', '.join(stored.files) or 'nothing'}; "
            "numpy.savez(path, vectors=..., labels=...) is needed"
        )
    left = [key for key in stored.files if [key] not in found.values()]
    has = f"labels: {found['labels'][0]!r}" if "labels" in arrays else "no labels"
    left_out = [f"left out: {', '.join(map(repr, left))}"] * bool(left)
    return arrays["vectors"], arrays.get("labels"), [has, *left_out]


def _refuse_bomb(file: Path) -> None:
    """Raise ValueError where an archive is very small for what it unpacks to."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            unpacked, packed = sum(entry.file_size for entry in archive.infolist()), file.stat().st_size
        if unpacked > max(UNPACKED, PACKED * packed):
            raise ValueError(
                f"it unpacks from {human(packed)} to {human(unpacked)}: made up, or mostly zeros, which "
                "numpy.savez saves without packing"
            )


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


def codes_of(
    name: str, labels: Any, n: int, class_names: Sequence[str] | None, what: str = "vectors"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as int64 indices (N,), and the names that they are indices of.

    Below 0, "", None and NaN are no label; but where -1 and 1 are all that there are, these are two classes.
    """
    given = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if given.shape != (n,):
        raise ValueError(f"{name}: labels are {given.shape} for {n} {what}; ({n},) is needed")
    if given.dtype.kind == "O":  # as pandas holds names, and what is missing
        gone = np.array([type(each).__name__ in MISSING or each != each for each in given], bool)
        known = given[~gone].tolist()
        if all(isinstance(label, str) for label in known):
            given = np.where(gone, "", given).astype(str)
        elif all(isinstance(label, Real) for label in known):
            given = np.where(gone, np.nan, given).astype(np.float64)
    if given.dtype.kind == "U":
        names = tuple(sorted(set(given.tolist()) - {""})) if class_names is None else tuple(class_names)
        if unknown := set(given.tolist()) - set(names) - {""}:
            raise ValueError(
                f"{name}: labels {sorted(unknown)[:5]} are none of the classes {', '.join(names)}"
            )
        place = {label: code for code, label in enumerate(names)}
        return np.array([place.get(label, -1) for label in given.tolist()], np.int64), names
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{name}: labels are {given.dtype}; whole numbers or names are needed")
    whole = np.isfinite(given) & (given == np.floor(given))
    if (wrong := given[~whole & (given == given)]).size:
        raise ValueError(f"{name}: labels hold {wrong[0]:g}, but must be classes: whole numbers or names")
    known = set(given[given == given].tolist())
    if known == {-1, 1} and (class_names is None or len(class_names) == 2):
        codes = np.where(given == 1, 1, np.where(given == -1, 0, -1))
        return codes, SIGNS if class_names is None else tuple(class_names)
    given = np.where(given == given, given, -1)
    if class_names is None and given.max(initial=0) >= MOST_CLASSES:
        raise ValueError(
            f"{name}: labels go up to {given.max():,.0f}, but must stay below {MOST_CLASSES:,}: each up "
            "to the largest is a class"
        )
    codes = given.astype(np.int64).clip(min=-1)
    numbers = range(int(codes.max()) + 1)
    return codes, tuple(map(str, numbers) if class_names is None else class_names)
