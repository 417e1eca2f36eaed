"""Vectors of the reader's own: made from arrays, or read from .npy, .npz or .csv. Nothing is rescaled."""

import csv
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from clutils.data.sets import VectorSet, own_file, shortlist
from clutils.settings import did_you_mean

SUFFIXES = (".npy", ".npz", ".csv")
MOST_CLASSES = 1_000_000  # each has a name: a number that is no label, a date say, would fill the memory
VECTORS = ("x", "vectors")  # what an .npz may call them, in any case
LABEL_COLUMNS = (  # what a file may call the labels: in any case, without blanks, '_' and '-'
    *("label", "labels", "labelid", "labelname", "truelabel", "target", "targets", "targetname", "y"),
    *("class", "classes", "classid", "classname", "classlabel", "cls", "category", "categoryid", "species"),
    *("groundtruth", "gt", "outcome", "diagnosis"),
)
NAMELESS = re.compile(r"(Unnamed: \d+(\.\d+)*(_level_\d+)?)?")  # pandas' word for a column without a name
# whole numbers, of which no two are equal, under such a name are no feature: patient_id, PatientId
NUMBERED = re.compile(r"(?i:(.*[ _.-])?(index|idx|id|row|rownames?|level_\d))|.*[a-z](Id|ID)")
FEW = 100  # different whole numbers that may be classes
MISSING = ("", "nan", "na", "n/a", "<na>", "null", "none", "?")
LABEL = "?label="  # behind a path: which column of a .csv has the labels


def vector_set(
    vectors: Tensor | np.ndarray | Sequence[Sequence[float]],
    labels: Tensor | np.ndarray | Sequence[int | str] | None = None,
    class_names: Sequence[str] | None = None,
    source: str = "vectors of your own",
) -> VectorSet:
    """A `VectorSet` of these numbers, (N, D), as float32.

    - `labels`: (N,) integers from 0 on, or class names; below 0, and "": no label. None: nobody has one
    - `class_names`: by default the names in alphabetical order, or '0', '1', ... up to the largest label

    Raises ValueError where they are not (N, D) finite numbers, or labels and names don't fit them.
    """
    return _set("vector_set", vectors, labels, class_names, source)


def read(path: str, split: str, limit: int | None) -> VectorSet:
    """The vectors in a file, all of them 'train'; the first `limit` of them.

    - .npy: one array (N, D)
    - .npz: an array `vectors` or `X` (N, D) and, where there are any, labels (N,) of a usual name
    - .csv: a row a vector, separated by commas (semicolons, tabs); the first line may name the columns. The
      column of a usual name (`LABEL_COLUMNS`) holds the labels; 'PATH?label=kind' says another one, by its
      name or, without names, its number from 1; 'PATH?label=' says that there is none. Columns without a name
      and row numbers (`NUMBERED`) are left out.

    Labels that are -1 and 1 become 0 and 1; a missing label, and any other below 0, is -1. `source` says
    which columns or arrays were taken for what, and how many vectors have no label; also where a column says
    the same as the labels, or may hold them under a name that is not usual. Pickled objects are not opened.

    Raises `Unavailable` where there is no such file; ValueError for what is in it, naming the column: missing
    values, categories and booleans are no numbers.
    """
    path, asked, column = path.partition(LABEL)
    name, file = f"vectors:array:{path}", own_file("vectors:array", path, split)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{name}: {file.suffix or 'no suffix'}; one of {', '.join(SUFFIXES)} is needed")
    if suffix == ".csv":
        vectors, labels, notes = _read_csv(name, file, column if asked else None)
    elif asked:
        raise ValueError(f"{name}: {LABEL}{column} names a column, but only a .csv has names of columns")
    else:
        vectors, labels, notes = _read_numpy(name, file)
    class_names = None
    if labels is not None and labels.dtype.kind in "if":
        labels = labels.astype(np.float64)
        given = ~np.isnan(labels)
        if set(labels[given]) == {-1, 1}:
            labels, class_names = np.where(given, labels > 0, -1), ("-1", "1")
            notes.append("labels -1 and 1 are the classes 0 and 1")
        else:
            labels = np.where(given, labels, -1)
    whole = _set(name, vectors, labels, class_names, "")
    without = int((whole.labels < 0).sum())
    if labels is not None and without:
        notes.append(f"{without:,} have no label")
    empty = len(whole.class_names) - len(set(whole.labels.tolist()) - {-1})
    if empty > 1:  # of labels from 1 on, 0 is one
        notes.append(f"{empty:,} of {len(whole.class_names):,} classes are empty")
    n, numbers = whole.vectors.shape
    said = "".join(f"; {note}" for note in notes)
    whole.source = f"{n:,} vectors of {numbers:,} numbers from the file {file}, as they are{said}"
    return whole.subset(slice(limit))


def _set(name: str, vectors: Any, labels: Any, class_names: Sequence[str] | None, source: str) -> VectorSet:
    values = _numbers(name, vectors)
    codes, names = np.full(len(values), -1), tuple(class_names or ())
    if labels is not None:
        codes, names = _codes(name, labels, len(values), class_names)
    return VectorSet(torch.from_numpy(values), torch.from_numpy(codes), names, source)


def _read_numpy(name: str, file: Path) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Vectors, labels, and what `source` has to say of the arrays. Raises ValueError where two may be one."""
    try:
        with open(file, "rb") as opened:
            stored = np.load(opened, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return stored, None, []
            known = {"vectors": VECTORS, "labels": LABEL_COLUMNS}
            found = {what: [k for k in stored.files if _plain(k) in names] for what, names in known.items()}
            for what, keys in found.items():
                if len(keys) > 1:
                    raise ValueError(f"{' and '.join(map(repr, keys))} may be the {what}: keep one of them")
            arrays = {what: stored[keys[0]] for what, keys in found.items() if keys}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        why = "it holds Python objects, whose pickles can run code" if "pickle" in str(error) else error
        mend = "" if "may be the" in str(error) else "; save plain numbers with numpy.save"
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


def _read_csv(name: str, file: Path, column: str | None) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Vectors, labels (NaN or "" where one is missing), and what `source` has to say of the columns.

    column: of the labels; "" = there are none, None = that of a usual name.
    """
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            first = lines.readline()
            lines.seek(0)
            delimiter = next((mark for mark in ",;\t" if mark in first), ",")
            rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} is no text in UTF-8 with commas: {error}") from error
    fields = [field.strip() for field in rows[0]] if rows else []
    if _are_names(fields, rows[1] if len(rows) > 1 else ()):
        rows.pop(0)
    else:
        fields = [str(at + 1) for at in range(len(fields))]
    if not rows:
        raise ValueError(f"{name} holds no row of numbers")
    for at, row in enumerate(rows, start=1):
        if len(row) != len(fields):
            raise ValueError(f"{name}: row {at} has {len(row)} fields, the first line has {len(fields)}")
    columns = [[field.strip() for field in column] for column in zip(*rows, strict=True)]
    at_label = _label_column(name, fields, column)
    labels, kept, left = None, [], []
    for at, (title, values) in enumerate(zip(fields, columns, strict=True)):
        if at == at_label:
            labels = _labels(name, title, values)
        elif NAMELESS.fullmatch(title):
            left.append("a column without a name")
        elif NUMBERED.fullmatch(title) and _all_different(values):
            left.append(f"row numbers, {title!r}")
        else:
            kept.append(at)
    if not kept:
        raise ValueError(f"{name}: {', '.join(map(repr, fields))} are its columns, none of them a feature")
    vectors = np.array([_feature(name, fields[at], columns[at]) for at in kept]).T
    has = "no labels" if at_label is None else f"labels: {fields[at_label]!r}"
    notes = [f"columns: {shortlist([fields[at] for at in kept], 20)}", has]
    if at_label is not None:
        notes += [
            f"{fields[at]!r} tells the labels: it has one value for each class"
            for at in kept
            if _tells(columns[at], columns[at_label])
        ]
    elif column is None:
        coded = [fields[at] for at in kept if _may_be_labels(columns[at])]
        if 0 < len(coded) < len(kept) / 2 and coded[0] in (fields[kept[0]], fields[kept[-1]]):
            notes.append(f"if {coded[0]!r}, a few whole numbers, holds labels: {name}{LABEL}{coded[0]}")
    return vectors, labels, notes + [f"left out: {', '.join(left)}"] * bool(left)


def _are_names(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a table's first line names its columns: text where numbers follow, or pandas' 0, 1, 2, ...

    A line with a decimal number is a row, unless a column of the labels is named, or numbers follow its text.
    """
    words = [at for at, field in enumerate(first) if not _is_number(field)]
    if not words:
        return len(first) > 2 and list(first) == [str(at) for at in range(len(first))]
    decimal = any(_is_number(field) and not field.lstrip("+-").isdigit() for field in first)
    followed = any(at < len(second) and _is_number(second[at]) for at in words)
    return not decimal or followed or any(_plain(field) in LABEL_COLUMNS for field in first)


def _tells(values: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether a column says the same as the labels: of two classes or more, which have three rows or more."""
    pairs = Counter(zip(values, labels, strict=True))
    names = set(labels)
    return len(names) > 1 and len(pairs) == len(names) == len(set(values)) and min(pairs.values()) > 2


def _may_be_labels(values: Sequence[str]) -> bool:
    """Whether these are few whole numbers from 0 or 1 on, none left out, each twice or more."""
    counts = Counter(values)
    if not 1 < len(counts) <= FEW or min(counts.values()) < 2:
        return False
    lowest = 0 if "0" in counts else 1
    return set(counts) == set(map(str, range(lowest, lowest + len(counts))))


def _labels(name: str, title: str, values: Sequence[str]) -> np.ndarray:
    """Labels as numbers, NaN where one is missing; or as names, "" where one is."""
    missing = [value.lower() in MISSING for value in values]
    numbered = all(gone or _is_number(value) for gone, value in zip(missing, values, strict=True))
    words = MISSING if numbered else ("nan", "<na>")  # 'none' may be the name of a class
    given = ["" if value.lower() in words else value for value in values]
    if not all(value == "" or _is_number(value) for value in given):
        return np.array(given)
    numbers = np.array([value or "nan" for value in given], np.float64)
    found = numbers[~np.isnan(numbers)]
    if (found != np.floor(found)).any():
        wrong = f"{found[found != np.floor(found)][0]:g}"
        raise ValueError(
            f"{name}: column {title!r} was taken for the labels, but holds {wrong}, which is no class: "
            f"{name}{LABEL} takes all columns as features"
        )
    return numbers


def _plain(title: str) -> str:
    return re.sub(r"[ _-]", "", title.lower())


def _label_column(name: str, titles: Sequence[str], asked: str | None) -> int | None:
    """Which column holds the labels, None = none. Raises ValueError where it is not there, or two may."""
    if asked == "":
        return None
    if asked is not None:
        for alike in (str, str.lower):
            if found := [at for at, title in enumerate(titles) if alike(title) == alike(asked.strip())]:
                return found[0]
        raise ValueError(f"{name}: no column {asked!r}{did_you_mean(asked, titles, listed=True)}")
    plain = [_plain(title) for title in titles]
    found = [at for at, title in enumerate(plain) if title in LABEL_COLUMNS]
    if len(found) > 1 or "x" in plain:  # beside x, y is a coordinate
        found = [at for at in found if plain[at] != "y"]
    if len(found) > 1:
        names = " and ".join(repr(titles[at]) for at in found)
        raise ValueError(
            f"{name}: {names} may be the labels: say which, as in {name}{LABEL}{titles[found[0]]}, and leave "
            "the others out of the file: they would be features"
        )
    return found[0] if found else None


def _feature(name: str, title: str, values: Sequence[str]) -> np.ndarray:
    """A column of a .csv as numbers. Raises ValueError, naming it, for any other value."""
    who, lower = f"{name}: column {title!r}", [value.lower() for value in values]
    gone = [at for at, value in enumerate(lower, 1) if value in MISSING]
    if gone:
        many = f"{len(gone):,} of {len(values):,} rows, first in row {gone[0]}"
        raise ValueError(f"{who} has no value in {many}: fill them in, or leave out the rows or the column")
    if set(lower) <= {"true", "false"}:
        raise ValueError(f"{who} holds true and false, but must hold numbers: write 1 and 0")
    wrong = next(((at, value) for at, value in enumerate(values, 1) if not _is_number(value)), None)
    if wrong is not None:
        raise ValueError(
            f"{who} holds {wrong[1]!r} in row {wrong[0]}, but must hold numbers: make each category a column "
            f"of 0 and 1, as pandas.get_dummies does; if these are the labels: {name}{LABEL}{title}"
        )
    numbers = np.array(values, np.float64)
    if not np.isfinite(numbers).all():
        at = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise ValueError(f"{who} holds {values[at]!r} in row {at + 1}, but must hold finite numbers")
    return numbers


def _all_different(values: Sequence[str]) -> bool:
    """Whether these are whole numbers of which no two are equal."""
    return len(set(values)) == len(values) and all(value.lstrip("+-").isdecimal() for value in values)


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
    if given.dtype.kind == "O" and all(isinstance(label, str) for label in given):  # as pandas holds names
        given = given.astype(str)
    if given.shape != (n,):
        raise ValueError(f"{name}: labels are {given.shape} for {n} vectors; ({n},) is needed")
    if given.dtype.kind == "U":
        names = tuple(sorted(set(given.tolist()) - {""})) if class_names is None else tuple(class_names)
        if unknown := set(given.tolist()) - set(names) - {""}:
            raise ValueError(
                f"{name}: labels {sorted(unknown)[:5]} are none of the classes {', '.join(names)}"
            )
        place = {label: code for code, label in enumerate(names)}
        return np.array([place.get(label, -1) for label in given.tolist()], np.int64), names
    if given.dtype.kind not in "biuf" or not np.isfinite(given).all() or (given != np.floor(given)).any():
        raise ValueError(f"{name}: labels are {given.dtype}; whole numbers or names are needed")
    if class_names is None and given.max(initial=0) >= MOST_CLASSES:
        raise ValueError(
            f"{name}: labels go up to {given.max():,.0f}, but must stay below {MOST_CLASSES:,}: each up "
            "to the largest is a class"
        )
    codes = given.astype(np.int64).clip(min=-1)
    numbers = range(int(codes.max()) + 1)
    return codes, tuple(map(str, numbers) if class_names is None else class_names)
