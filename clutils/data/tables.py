"""Tables as vectors: a DataFrame, an array or a tensor; files .csv by pandas, .npy and .npz by NumPy.

A category is a column of 0 and 1 for each of its values (`pandas.get_dummies`); a number that may be missing
is followed by such a column, which says where it is. Columns that were one share a group: a view changes them
together (`views.vectors.Corruption`). Splits and scaling are scikit-learn's.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from clutils.data.labels import SIGNS, as_array, codes_of, names_of_splits
from clutils.data.sets import VectorSet, own_file, shortlist, text_of
from clutils.files import demand_one_reading
from clutils.settings import did_you_mean, one_of, within

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".tsv", ".txt")
SUFFIXES = (".npy", ".npz", *TABLES)
LABEL_COLUMNS = (  # what a file may call the labels: in any case, without blanks, '_' and '-'
    *("label", "labels", "labelid", "labelname", "truelabel", "target", "targets", "targetname", "y"),
    *("class", "classes", "classid", "classname", "classlabel", "cls", "category", "categoryid", "species"),
    *("groundtruth", "gt", "outcome", "diagnosis"),
)
VECTORS = ("x", "vectors")  # what an .npz may call them, in any case
NAMELESS = re.compile(r"(Unnamed: \d+(\.\d+)*(_level_\d+)?)?")  # pandas' word for a column without a name
# whole numbers, of which no two are equal, under such a name are no feature
NUMBERED = re.compile(r"(?i:(.*[ _.-])?(index|idx|id|row|rownames?|level_\d))|.*[a-z](Id|ID)")
PARTS = re.compile(r"(?i)split|fold|partition|subset|(is_?)?(train|test|val)(ing|idation)?")
MISSING = ("", "nan", "na", "n/a", "<na>", "null", "none", "nat", "?")
MISSING_NAMES = ("", "nan", "NaN", "<NA>")  # 'none' and 'NA' may be names of classes
MARKED = re.compile(r" *[+-]?[\d.,]*\d *")  # a number with marks, as 1,5 or 1.234,5
UNPACKED = 2e9  # bytes that the arrays of an .npz may take, or twice its own
MOST_VALUES = 64  # of a category
MOST_ROWS = 10  # of a toy, whose categories need not repeat
FEW = 100  # different whole numbers that may be classes
SEED = 0  # of which rows are the test part


class Table(NamedTuple):
    """Columns as numbers (N, D) float64, NaN where one is missing; their titles, groups, and labels.

    - measured: (D,) bool, columns of numbers, which have a scale; the others hold 0 and 1
    - labels: one a row, as of `labels.codes_of`; None: there are none
    - notes: what `source` has to say of the columns
    """

    vectors: np.ndarray
    columns: tuple[str, ...]
    groups: tuple[int, ...]
    measured: np.ndarray
    labels: Any
    notes: list[str]


def vector_set(
    table: Any,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
    source: str = "vectors of your own",
    label: str | None = None,
    test: float | None = None,
    split: str = "train",
) -> VectorSet:
    """A `VectorSet` of a table (N, D), as float32: a pandas DataFrame, an array, a tensor, or rows.

    - `labels`: (N,) integers from 0 on, or class names, as a list, an array or a Series; below 0, "" and NaN:
      no label, but -1 and 1 alone are two classes. None: nobody has one, or of a DataFrame the column
      `label`, by default that of a usual name; label="" says that there is none
    - `class_names`: by default the names in alphabetical order, or '0', '1', ... up to the largest label
    - `test`: this share of every class, drawn with seed 0 (`sklearn.model_selection.train_test_split`), is
      the split "test", the rest "train"; columns of numbers are then scaled by the training part
      (`sklearn.preprocessing.StandardScaler`)

    A DataFrame may have categories and missing values: see `tables`; `source` says what was made of them.

    >>> train = data.vector_set(frame, label="species", test=0.25)
    >>> rest = data.vector_set(frame, label="species", test=0.25, split="test")

    Raises ValueError where they are not (N, D) finite numbers, or labels and names don't fit them.
    """
    import pandas as pd

    who = "vector_set"
    if isinstance(table, pd.DataFrame):
        built = build(who, table, label, labels)
    elif label is not None:
        raise ValueError(f"{who}: label is {label!r}, but only a DataFrame has columns of that name")
    else:
        built = _array(who, table, labels)
    return _divided(who, built, class_names, source, test, split)


def read(path: str, split: str, limit: int | None) -> VectorSet:
    """The vectors in a file, all of them 'train' unless a test part is asked for; the first `limit` of them.

    - .npy: one array (N, D)
    - .npz: an array `vectors` or `X` (N, D) and, where there are any, labels (N,) of a usual name
    - .csv, .tsv, .txt: a row a vector, read by `pandas.read_csv`. The column of a usual name
      (`LABEL_COLUMNS`) holds the labels; 'PATH?label=kind' says another one, by its name or, in a file
      without names, its number from 1; 'PATH?label=' says that there is none. 'PATH?decimal=,' reads 1,5

    'PATH?test=0.25', or behind a label '&test=0.25', makes a test part: see `vector_set`. Labels that are -1
    and 1 become 0 and 1; a missing label, and any other below 0, is -1. `source` says which columns or arrays
    were taken for what. Pickled objects are not opened.

    Raises `Unavailable` where there is no such file; ValueError for what is in it, naming the column.
    """
    name, file, wanted = own_file("vectors:array", path, known=("label", "test", "decimal"))
    try:
        test = float(wanted["test"]) if "test" in wanted else None
    except ValueError as error:
        raise ValueError(f"{name}: test is {wanted['test']!r}, but must be a share, as 0.25") from error
    suffix, label = file.suffix.lower(), wanted.get("label")
    if suffix not in SUFFIXES:
        others = "data.vector_set takes a DataFrame, as of pandas.read_parquet or pandas.read_excel"
        raise ValueError(
            f"{name}: {file.suffix or 'no suffix'}; one of {', '.join(SUFFIXES)} is needed; {others}"
        )
    if suffix in TABLES:
        table = build(name, frame_of(name, file, label, wanted.get("decimal", ".")), label)
    elif label is not None:
        raise ValueError(f"{name}: ?label={label} names a column, but only a .csv has names of columns")
    else:
        vectors, labels, notes = _read_numpy(name, file)
        table = _array(name, vectors, labels)
        table = table._replace(notes=[*notes, *table.notes])
    return _divided(name, table, None, f"the file {file}", test, split).subset(slice(limit))


def frame_of(name: str, file: Path, label: str | None = None, decimal: str = ".", ids: bool = False) -> Any:
    """A text file's columns by `pandas.read_csv`, titled '1', '2', ... where the file has no titles.

    The column of the labels and, with `ids`, the first that has a title are kept as text. Raises ValueError,
    quoting pandas, and where a first line may be titles or a row.
    """
    import pandas as pd

    text = text_of(name, file)
    first, mark = delimiter_of(text)
    rows = [line.split() for line in first] if mark == r"\s+" else fields(first, mark)
    named = bool(rows) and _is_heading(name, rows, label)
    # without index_col pandas would take the first field of longer lines as the row's name
    options: dict[str, Any] = {"sep": mark, "header": 0 if named else None, "index_col": False}
    options |= {"skipinitialspace": True, "low_memory": False}
    texts = texts_of(name, text, **options)
    with _quoted(name):
        frame = pd.read_csv(io.StringIO(text), na_values=["?"], decimal=decimal, **options)
    shown = [str(title) if named else str(title + 1) for title in frame.columns]
    frame = frame.set_axis(shown, axis=1)
    kept = [at for at in (label_column(name, shown, label),) if at is not None]
    if ids:
        kept.append(next((at for at, title in enumerate(shown) if not NAMELESS.fullmatch(title)), 0))
    for at in kept:  # None and NA are names there, which `na_values` and `converters` would take out
        frame.isetitem(at, texts.iloc[:, at].str.strip())
    if mark == r"\s+" and (short := texts.iloc[:, -1] == "").any():  # which column is missing?
        row = " ".join(texts[short].iloc[0]).strip()
        raise ValueError(f"{name}: the row {row!r} has fewer columns than {len(shown)}, parted by blanks")
    frame = frame[(frame.notna() & (frame != "")).any(axis=1)]  # lines of marks alone, which Excel leaves
    for title in frame.select_dtypes(exclude="number").columns.difference([shown[at] for at in kept]):
        if decimal == "," and frame[title].dropna().astype(str).str.fullmatch(MARKED).mean() >= 0.9:
            raise ValueError(
                f"{name}: column {title!r} holds {frame[title].dropna().iloc[0]!r}, with a mark between "
                'thousands, it seems: pandas.read_csv(..., decimal=",", thousands=".") reads such numbers'
            )
    if not len(frame):
        raise ValueError(f"{name} holds no row of numbers below its first line, {first[0][:60]!r}")
    return frame.reset_index(drop=True)


def texts_of(name: str, text: str, **options: Any) -> pd.DataFrame:
    """A text's columns by `pandas.read_csv`, each cell as text. Raises ValueError, quoting pandas."""
    import pandas as pd

    with _quoted(name):
        return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False, **options).fillna("")


@contextlib.contextmanager
def _quoted(name: str) -> Iterator[None]:
    """Context manager: errors and warnings of pandas' parser are ValueErrors that quote it."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except (ValueError, pd.errors.ParserWarning, OverflowError) as error:
        said = " ".join(str(error).split())
        mend = ": each line must have as many columns" if "Expected" in said else ""
        raise ValueError(f"{name}: pandas.read_csv: {said}{mend}") from error


def delimiter_of(text: str) -> tuple[list[str], str]:
    """The first two lines, and the mark that parts columns: both have equally many by it; or blanks."""
    first = [line for line in text.split("\n", 50)[:50] if line.strip()][:2]
    for mark in "\t;,":
        widths = set(map(len, fields(first, mark)))
        if len(widths) == 1 and widths != {1}:
            return first, mark
    return first, next((mark for mark in ",;\t" if first and mark in first[0]), r"\s+")


def fields(lines: Sequence[str], mark: str) -> list[list[str]]:
    """The fields of lines that this mark parts. Raises ValueError where one is too long for a table."""
    try:
        return list(csv.reader(lines, delimiter=mark))
    except csv.Error as error:
        raise ValueError(f"its first lines, {lines[0][:60]!r}, are no rows of a table: {error}") from error


def build(name: str, frame: pd.DataFrame, label: str | None, labels: Any = None) -> Table:
    """A DataFrame as a table of numbers, without its index.

    - label: which column has the labels; "" = there are none, None = that of a usual name (`LABEL_COLUMNS`),
      unless `labels` are given

    Raises ValueError, naming the column, for what is neither numbers nor a category; and for a category
    where nobody has said which column has the labels: it may be that one.
    """
    import pandas as pd

    fields = [str(title) for title in frame.columns]
    columns = [frame.iloc[:, at] for at in range(len(fields))]
    if not fields or not len(frame):
        raise ValueError(f"{name}: the table is {frame.shape}, but must have rows and columns")
    given = labels is not None
    if given:
        _demand_same_order(name, frame, labels)
    at_label = label_column(name, fields, "" if given and label is None else label)
    if at_label is not None and not given:
        labels = labels_of(name, fields[at_label], columns[at_label])
    kept, left = [], [] if frame.index.name is None else [f"the index, {frame.index.name!r}"]
    for at, (title, values) in enumerate(zip(fields, columns, strict=True)):
        if at == at_label and (label is not None or given or not names_of_splits(values)):
            continue
        if NAMELESS.fullmatch(title):
            left.append("a column without a name")
        elif NUMBERED.fullmatch(title) and values.dtype.kind in "iu" and values.is_unique:
            left.append(f"row numbers, {title!r}")
        elif PARTS.fullmatch(title) or names_of_splits(values):
            raise ValueError(
                f"{name}: column {title!r} holds {shortlist(sorted(map(str, values.unique())))}, the part "
                "that a row belongs to, which is neither a feature nor a class: take the rows of one part "
                "and leave it out"
            )
        else:
            kept.append(at)
    if not kept:
        raise ValueError(f"{name}: {', '.join(map(repr, fields))} are its columns, none of them a feature")
    known = labels is not None or label is not None
    parts = [_feature(name, fields[at], columns[at], known) for at in kept]
    has = "labels given" if given else "no labels"
    notes = [
        f"columns: {shortlist([fields[at] for at in kept], 20)}",
        has if at_label is None else f"labels: {fields[at_label]!r}",
        *(
            f"{fields[at]!r} tells the labels: it has one value for each class"
            for at in kept
            if labels is not None and _tells(columns[at], labels)
        ),
    ]
    whole = pd.concat([part for part, _ in parts], axis=1)
    is_number = (whole.dtypes == np.float64).to_numpy()
    numbers = {title: values.to_numpy() for title, values in whole.loc[:, is_number].items()}
    notes += _doubts(name, numbers, known)
    notes += [note for _, note in parts if note] + [f"left out: {', '.join(left)}"] * bool(left)
    groups = tuple(group for group, (part, _) in enumerate(parts) for _ in part)
    return Table(whole.to_numpy(np.float64), tuple(whole), groups, is_number, labels, notes)


def impute_and_scale(table: Table, is_train: np.ndarray, scale: bool) -> np.ndarray:
    """The table's vectors with a column's mean where a number is missing.

    - scale: numbers less their column's mean, divided by its deviation

    Mean and deviation are those of the training rows. Columns of 0 and 1 stay what they are.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    found = table.vectors.copy()
    if scale and table.measured.any():
        scaler = StandardScaler().fit(found[is_train][:, table.measured])  # NaN has no say
        found[:, table.measured] = scaler.transform(found[:, table.measured])
    if np.isnan(found).any():
        found = SimpleImputer(keep_empty_features=True).fit(found[is_train]).transform(found)
    return found


# ---- parts of a set ----------------------------------------------------------------------------------------


def _divided(
    name: str,
    table: Table,
    class_names: Sequence[str] | None,
    origin: str,
    test: float | None,
    split: str,
) -> VectorSet:
    """A table as a set, or one of its two parts; `source` says what was done."""
    notes, N = list(table.notes), len(table.vectors)
    codes, names = codes_of(name, table.labels, N, class_names)
    if table.labels is not None and (table.columns or name != "vector_set"):  # found, not given
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
        rows = _training_rows(name, codes, test)
        notes.append(f"{test:g} of each class, drawn with seed {SEED}, is the test part; split {split}")
    elif split != "train":
        raise ValueError(f"{name} has no split {split!r}, only 'train': test=0.25 makes one of a quarter")
    values = impute_and_scale(table, rows, scale=test is not None)
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


def _training_rows(name: str, codes: np.ndarray, share: float) -> np.ndarray:
    """(N,) bool: the rows to train by; of every class that share is the test part."""
    from sklearn.model_selection import train_test_split

    within(name, "test", share, 0, 1, open_below=True, open_above=True)
    try:
        rows, _ = train_test_split(np.arange(len(codes)), test_size=share, random_state=SEED, stratify=codes)
    except ValueError as error:
        raise ValueError(f"{name}: test is {share:g}: train_test_split: {error}") from error
    return np.isin(np.arange(len(codes)), rows)


# ---- arrays ------------------------------------------------------------------------------------------------


def _array(name: str, vectors: Any, labels: Any) -> Table:
    """An array as a table without titles."""
    values = _numbers(name, vectors).astype(np.float64)
    columns = {f"column {at}": column for at, column in enumerate(values.T)}
    notes = _doubts("", columns, labels is not None)
    return Table(values, (), (), np.ones(values.shape[1], bool), labels, notes)


def _read_numpy(name: str, file: Path) -> tuple[np.ndarray, np.ndarray | None, list[str]]:
    """Vectors, labels, and what `source` has to say of the arrays. Raises ValueError where two may be one."""
    try:
        with open(file, "rb") as opened:
            stored: Any = np.load(opened, allow_pickle=False)
            if isinstance(stored, np.ndarray):
                return stored, None, []
            demand_one_reading(stored.zip, max(UNPACKED, 2 * file.stat().st_size))
            found = {key: _plain(key) for key in stored.files}
            vectors = [key for key, plain in found.items() if plain in VECTORS]
            labels = [key for key, plain in found.items() if plain in LABEL_COLUMNS]
            arrays = {key: stored[key] for key in (*vectors, *labels)}
    except Exception as error:  # a broken file makes NumPy raise nearly anything
        said = " ".join(str(error).split())
        why = "it holds Python objects, whose pickles can run code" if "pickle" in said else said
        raise ValueError(f"{name} can't be read: {why}; save plain numbers with numpy.save") from error
    if len(vectors) != 1 or len(labels) > 1:
        raise ValueError(
            f"{name} holds {', '.join(found) or 'nothing'}; one array of vectors, and perhaps one of "
            "labels, is needed, as of numpy.savez(path, vectors=..., labels=...)"
        )
    left = [repr(key) for key in found if key not in arrays]
    has = f"labels: {labels[0]!r}" if labels else "no labels"
    notes = [has, *[f"left out: {', '.join(left)}"] * bool(left)]
    return arrays[vectors[0]], arrays[labels[0]] if labels else None, notes


def _numbers(name: str, vectors: Any) -> np.ndarray:
    """Any array of finite real numbers (N, D) as float32, a copy."""
    try:
        given = np.asarray(vectors.detach().cpu().float() if isinstance(vectors, Tensor) else vectors)
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


# ---- columns -----------------------------------------------------------------------------------------------


def _feature(name: str, title: str, values: pd.Series, known: bool) -> tuple[pd.DataFrame, str]:
    """A column as one of float64, which are numbers, and any of bool; and a note for `source`.

    known: whether it is said which column has the labels, so that a category may be a feature.
    """
    import pandas as pd

    who = f"{name}: column {title!r}"
    category = isinstance(values.dtype, pd.CategoricalDtype)
    is_text = category or pd.api.types.is_object_dtype(values) or pd.api.types.is_string_dtype(values)
    if not is_text and values.dtype.kind not in "biuf":
        raise ValueError(f"{who} is of type {values.dtype}: give a number in its place, or leave it out")
    if is_text:
        values = values.astype(object).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
        values = values.mask(values.map(lambda cell: isinstance(cell, str) and cell.lower() in MISSING))
    gone = values.isna().to_numpy()
    given = values[~gone]
    if not len(given):
        raise ValueError(f"{who} has no value in {len(gone)} of {len(gone)} rows: leave it out")
    if is_text:
        words = given.astype(str)
        marked, comma = words.str.fullmatch(MARKED), words.str.contains(",")
        if not category and marked.mean() >= 0.9 and (marked & comma).any():
            mend = f"{name}?decimal=," if ":" in name else 'pandas.read_csv(..., decimal=",")'
            raise ValueError(
                f"{who} holds {given[marked & comma].iloc[0]!r}, a decimal comma, it seems: "
                f'pass decimal=",", as in {mend}; of thousands, thousands=","'
            )
        numbers = pd.to_numeric(given, errors="coerce")
        if category or 2 * numbers.notna().sum() < len(given):
            return _category(who, name, title, values, known)
        if numbers.isna().any():
            row = int(np.flatnonzero(~gone)[numbers.isna().to_numpy().argmax()])
            raise ValueError(f"{who} holds {values.iloc[row]!r} in row {row + 1}, but numbers in other rows")
        given = numbers
    found = np.full(len(gone), np.nan)
    found[~gone] = given.to_numpy(np.float64)
    if np.isinf(found).any():
        row = int(np.isinf(found).argmax())
        raise ValueError(f"{who} holds {found[row]} in row {row + 1}, but must hold finite numbers")
    made = pd.DataFrame({title: found})
    if not gone.any():
        return made, ""
    few = f"{gone.sum():,} of {len(gone):,} rows"
    note = f"{title!r} has no value in {few}: its mean there, and a column that says where"
    return made.assign(**{f"{title} is missing": gone}), note


def _category(who: str, name: str, title: str, values: pd.Series, known: bool) -> tuple[pd.DataFrame, str]:
    """A column of bool a value, in alphabetical order; a missing one is a value as well. See `_feature`."""
    import pandas as pd

    gone = values.isna()
    texts = values.map(lambda cell: f"{cell:g}" if isinstance(cell, float) else str(cell), na_action="ignore")
    row = int((~gone).to_numpy().argmax())
    holds = f"{who} holds {texts.iloc[row]!r} in row {row + 1}"
    if not known:
        raise ValueError(
            f"{holds}: if these are the labels, {labelled(name, title)} says so; if they are a category as "
            f"any other, {labelled(name, '')} says that no column has labels"
        )
    count = texts.nunique()
    if count > MOST_VALUES or 2 * count > len(texts) > MOST_ROWS:
        raise ValueError(
            f"{holds}, and {count:,} different texts in all, but a category has {MOST_VALUES} at most, "
            "which repeat: leave the column out, or write numbers"
        )
    found = pd.get_dummies(texts, dummy_na=bool(gone.any())).reset_index(drop=True)
    found.columns = [f"{title} = {'missing' if value != value else value}" for value in found.columns]
    note = f"{title!r} is a category of {count}" + (f", missing in {gone.sum():,} rows" if gone.any() else "")
    return found, note


def labels_of(name: str, title: str, values: pd.Series) -> np.ndarray:
    """Labels as numbers, NaN where one is missing; or as names, "" where one is."""
    import pandas as pd

    found = as_array(values)
    if found.dtype.kind == "U":
        texts = pd.Series(np.char.strip(found))
        numbers = pd.to_numeric(texts.mask(texts.str.lower().isin(MISSING)), errors="coerce")
        if texts[numbers.isna()].str.lower().isin(MISSING).all():
            found = numbers.to_numpy(np.float64)
        else:
            return texts.mask(texts.isin(MISSING_NAMES), "").to_numpy(str)
    if found.dtype.kind == "f" and (wrong := found[(found != np.floor(found)) & (found == found)]).size:
        raise ValueError(
            f"{name}: column {title!r} was taken for the labels, but holds {wrong[0]:g}, which is no class: "
            f"{labelled(name, '')} takes all columns as features"
        )
    return found


def _demand_same_order(name: str, frame: pd.DataFrame, labels: Any) -> None:
    """Raise ValueError where labels have the table's index in another order: rows are taken by position."""
    import pandas as pd

    index, own = getattr(labels, "index", None), set(map(str, frame.index))
    if isinstance(index, pd.Index) and not index.equals(frame.index) and set(map(str, index)) == own:
        raise ValueError(
            f"{name}: the labels' index is that of the table in another order: labels.loc[table.index]"
        )


def label_column(name: str, titles: Sequence[str], asked: str | None) -> int | None:
    """The column of the labels, None = none. Raises ValueError where it is not there, or two may be."""
    if asked == "":
        return None
    if asked is not None:
        for alike in (str, str.lower):
            if found := [at for at, title in enumerate(titles) if alike(title) == alike(asked.strip())]:
                return found[0]
        raise ValueError(f"{name}: no column {asked!r}{did_you_mean(asked, titles, listed=True)}")
    short = [_plain(title) for title in titles]
    found = [at for at, title in enumerate(short) if title in LABEL_COLUMNS]
    if len(found) > 1 or "x" in short:  # beside x, y is a coordinate
        found = [at for at in found if short[at] != "y"]
    if len(found) > 1:
        names = " and ".join(repr(titles[at]) for at in found)
        raise ValueError(
            f"{name}: {names} may be the labels: say which, as in {labelled(name, titles[found[0]])}, and "
            "leave the others out: they would be features"
        )
    return found[0] if found else None


def _is_heading(name: str, rows: Sequence[Sequence[str]], label: str | None) -> bool:
    """True where a table's first line names its columns: words above numbers, words alone, pandas' 0, 1, 2...

    False for numbers alone, and for words above words beside a decimal number. Raises ValueError where
    words above words stand beside whole numbers: a pivot's years, or a row.
    """
    first, second = rows[0], rows[1] if len(rows) > 1 else ()
    words = [at for at, field in enumerate(first) if not _is_number(field)]
    if not words:
        return len(first) > 2 and list(first) == [str(at) for at in range(len(first))]
    if len(words) == len(first) or any(at < len(second) and _is_number(second[at]) for at in words):
        return True
    by_place = label in [str(at) for at in range(1, len(first) + 1)]
    if any(_plain(field) in LABEL_COLUMNS or (field == label and not by_place) for field in first):
        return True
    numbers = [field.strip() for at, field in enumerate(first) if at not in words]
    if (by_place and label not in first) or not all(map(str.isdigit, numbers)):
        return False
    raise ValueError(
        f"{name}: its first line, {', '.join(first)}, may name the columns or be a row: data.vector_set("
        "pandas.read_csv(..., header=None)) reads a row, header=0 names"
    )


def _tells(values: pd.Series, labels: Any) -> bool:
    """True where a column says the same as the labels: of two classes or more, of three rows or more each."""
    known, texts = as_array(labels).ravel().astype(str), values.astype(str)
    if len(known) != len(values):  # of another shape: see `codes_of`
        return False
    of_class = texts.groupby(known)
    alike = 1 < of_class.ngroups == texts.nunique() and (of_class.nunique() == 1).all()
    return alike and of_class.size().min() > 2


def _doubts(name: str, numbers: dict[str, np.ndarray], known: bool) -> list[str]:
    """Notes for `source` on columns that may be no measures: codes at the edge, and numbers of rows.

    name: "" where no title can be asked for; numbers: title -> values (N,); known: which are the labels.
    """
    notes, titles = [], list(numbers)
    for title in dict.fromkeys((titles[-1], titles[0])) if titles and not known else ():
        if _coded(numbers[title]) and not all(map(_coded, numbers.values())):
            mend = labelled(name, title) if name else "give it as labels"
            notes.append(f"if {title!r}, a few whole numbers, holds labels: {mend}")
            break
    for title, values in numbers.items():
        if len(values) >= 5 and values[0] % 1 == 0 and (np.diff(np.sort(values)) == 1).all():
            notes.append(f"{title!r} counts the rows")
    return notes


def _coded(values: np.ndarray) -> bool:
    """True where these are few whole numbers from 0 or 1 on, none left out, each twice or more."""
    codes, counts = np.unique(values, return_counts=True)
    few = 1 < len(codes) <= FEW and counts.min() > 1 and codes[0] in (0, 1)
    return bool(few and (np.diff(codes) == 1).all())


def labelled(name: str, title: str) -> str:
    """The way to say which column has the labels, of a file or of a DataFrame; title: "" = none has."""
    mark = "&" if "?" in name else "?"
    return f"{name}{mark}label={title}" if ":" in name else f"{name}(..., label={title!r})"


def _plain(title: str) -> str:
    return re.sub(r"[ _-]", "", title.lower())


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
