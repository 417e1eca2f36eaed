"""Tables of a reader's own, out of a .csv or a DataFrame: columns of numbers, of categories, and the labels.

A category is a column of 0 and 1 for each of its values; a number that may be missing is followed by such a
column, which says where it is. Columns that were one share a group: a view changes them together
(`views.vectors.Corruption`).
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from clutils.data.sets import shortlist
from clutils.settings import did_you_mean, within

LABEL_COLUMNS = (  # what a file may call the labels: in any case, without blanks, '_' and '-'
    *("label", "labels", "labelid", "labelname", "truelabel", "target", "targets", "targetname", "y"),
    *("class", "classes", "classid", "classname", "classlabel", "cls", "category", "categoryid", "species"),
    *("groundtruth", "gt", "outcome", "diagnosis"),
)
NAMELESS = re.compile(r"(Unnamed: \d+(\.\d+)*(_level_\d+)?)?")  # pandas' word for a column without a name
# whole numbers, of which no two are equal, under such a name are no feature: patient_id, PatientId
NUMBERED = re.compile(r"(?i:(.*[ _.-])?(index|idx|id|row|rownames?|level_\d))|.*[a-z](Id|ID)")
FEW = 100  # different whole numbers that may be classes
MISSING = ("", "nan", "na", "n/a", "<na>", "null", "none", "nat", "?")
MOST_VALUES = 64  # of a category
SEED = 0  # of which rows are the test part
LIKE_A_NUMBER = re.compile(  # 1.234,5 or 10 % or $3: what is no number as it stands
    r"[$€£]?\s*[+-]?\d{1,3}([.,' \u00a0\u202f]?\d{3})*([.,]\d+)?\s*[%$€£]?"
)
DATE = re.compile(r"\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./]\d\d?[./]\d{4}( .*)?")
DECIMAL = re.compile(
    r"[+-]?\d+,\d+(e[+-]?\d+)?", re.IGNORECASE
)  # a comma, where columns are parted otherwise


class Table(NamedTuple):
    """Columns as numbers (N, D) float64, NaN where one is missing; their titles, groups, and labels.

    - measured: (D,) bool, columns of numbers, which have a scale; the others hold 0 and 1
    - labels: (N,) numbers, NaN where one is missing, or names, "" where one is; None: there are none
    - notes: what `source` has to say of the columns
    """

    vectors: np.ndarray
    columns: tuple[str, ...]
    groups: tuple[int, ...]
    measured: np.ndarray
    labels: np.ndarray | None
    notes: list[str]


def from_csv(name: str, file: Path, label: str | None) -> Table:
    """The table in a text file; label: see `made`. Raises ValueError, naming line or column."""
    fields, rows = rows_of(name, file)
    return made(name, fields, [list(column) for column in zip(*rows, strict=True)], label)


def from_frame(name: str, frame: Any, label: str | None) -> Table:
    """The table in a DataFrame, without its index; label: see `made`.

    A column of pandas' type "category" is one, also where it holds numbers.
    """
    fields = [str(title) for title in frame.columns]
    values = [frame.iloc[:, at] for at in range(len(fields))]
    columns = [
        ["" if missing else str(value).strip() for value, missing in zip(column, column.isna(), strict=True)]
        for column in values
    ]
    if not fields or not len(frame):
        raise ValueError(f"{name}: the table is {frame.shape}, but must have rows and columns")
    chosen = frozenset(at for at, column in enumerate(values) if str(column.dtype) == "category")
    return made(name, fields, columns, label, chosen)


def rows_of(name: str, file: Path) -> tuple[list[str], list[list[str]]]:
    """The titles of a text file's columns, '1', '2', ... where it has none, and its rows of as many fields.

    Columns are parted by tabs, semicolons or commas; without commas between them numbers may have one.
    """
    try:
        with open(file, newline="", encoding="utf-8-sig") as lines:
            delimiter = delimiter_of([line for line in islice(lines, 20) if line.strip()][:2])
            lines.seek(0)
            rows = [[field.strip() for field in row] for row in csv.reader(lines, delimiter=delimiter) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{name} is no text in UTF-8 with commas: {error}") from error
    if delimiter != ",":
        rows = [[_with_point(field) for field in row] for row in rows]
    fields = first = rows[0] if rows else []
    if _are_names(fields, rows[1] if len(rows) > 1 else ()):
        rows.pop(0)
    else:
        fields = [str(at + 1) for at in range(len(fields))]
    if not rows:
        raise ValueError(f"{name} holds no row of numbers")
    for at, row in enumerate(rows, start=1):
        if len(row) != len(fields):
            begins = f"the first line, {delimiter.join(first)[:60]!r}, has {len(fields)}"
            raise ValueError(f"{name}: row {at} has {len(row)} fields, {begins}")
        if len(fields) == 1 and " " in row[0] and " " in first[0]:
            raise ValueError(
                f"{name}: row {at} is {row[0]!r}, but columns must be parted by commas, semicolons or tabs"
            )
    return fields, rows


def delimiter_of(first: Sequence[str]) -> str:
    """What parts the columns: the mark by which the first two lines have equally many, more than one."""
    for mark in "\t;,":
        widths = {len(row) for row in csv.reader(first, delimiter=mark)}
        if len(widths) == 1 and widths != {1}:
            return mark
    return next((mark for mark in ",;\t" if first and mark in first[0]), ",")


def made(
    name: str,
    fields: Sequence[str],
    columns: Sequence[Sequence[str]],
    label: str | None,
    categories: frozenset[int] = frozenset(),
) -> Table:
    """A table of texts as numbers.

    - label: which column has the labels; "" = there are none, None = that of a usual name (`LABEL_COLUMNS`)
    - categories: columns, from 0, that are categories whatever they hold

    Raises ValueError, naming the column, for what is neither numbers nor a category; and for a category
    where nobody has said which column has the labels: it may be that one.
    """
    at_label = label_column(name, fields, label)
    labels, kept, left = None, [], []
    for at, (title, values) in enumerate(zip(fields, columns, strict=True)):
        if at == at_label:
            labels = labels_of(name, title, values)
        elif NAMELESS.fullmatch(title):
            left.append("a column without a name")
        elif NUMBERED.fullmatch(title) and _all_different(values):
            left.append(f"row numbers, {title!r}")
        else:
            kept.append(at)
    if not kept:
        raise ValueError(f"{name}: {', '.join(map(repr, fields))} are its columns, none of them a feature")
    said = at_label is not None or label is not None
    parts = [_feature(name, fields[at], columns[at], said, at in categories) for at in kept]
    has = "no labels" if at_label is None else f"labels: {fields[at_label]!r}"
    notes = [f"columns: {shortlist([fields[at] for at in kept], 20)}", has]
    if at_label is not None:
        notes += [
            f"{fields[at]!r} tells the labels: it has one value for each class"
            for at in kept
            if _tells(columns[at], columns[at_label])
        ]
    elif label is None:
        coded = [fields[at] for at in kept if _may_be_labels(columns[at])]
        if 0 < len(coded) < len(kept) / 2 and coded[0] in (fields[kept[0]], fields[kept[-1]]):
            notes.append(f"if {coded[0]!r}, a few whole numbers, holds labels: {labelled(name, coded[0])}")
    notes += [part.note for part in parts if part.note] + [f"left out: {', '.join(left)}"] * bool(left)
    return Table(
        np.concatenate([part.values for part in parts], axis=1),
        tuple(title for part in parts for title in part.titles),
        tuple(group for group, part in enumerate(parts) for _ in part.titles),
        np.array([part.measured and at == 0 for part in parts for at in range(len(part.titles))]),
        labels,
        notes,
    )


def divided(labels: np.ndarray, share: float) -> np.ndarray:
    """(N,) bool: the rows to train by. Of every class that share, drawn with seed 0, is the test part.

    labels: (N,) numbers of classes, below 0 = none. Raises ValueError where one of the parts has no row.
    """
    within("vectors", "test", share, 0, 1, open_below=True, open_above=True)
    dice, is_train = np.random.default_rng(SEED), np.ones(len(labels), bool)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        is_train[dice.permutation(own)[: round(share * len(own))]] = False
    if is_train.all() or not is_train.any():
        sizes = ", ".join(map(str, np.unique(labels, return_counts=True)[1]))
        part = "test" if is_train.all() else "training"
        raise ValueError(f"vectors: test is {share:g}, which leaves no {part} row of classes of {sizes} rows")
    return is_train


def filled(table: Table, is_train: np.ndarray, scale: bool) -> np.ndarray:
    """The table's vectors with a column's mean where a number is missing.

    - scale: numbers less their column's mean, divided by its deviation

    Mean and deviation are those of the training rows. Columns of 0 and 1 stay what they are.
    """
    seen = table.vectors[is_train]
    known = ~np.isnan(seen)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, seen, 0).sum(axis=0) / count
    found = np.where(np.isnan(table.vectors), mean, table.vectors)
    if not scale:
        return found
    spread = np.sqrt(np.where(known, (seen - mean) ** 2, 0).sum(axis=0) / count)
    scaled = (found - mean) / np.where(spread > 0, spread, 1)
    return np.where(table.measured, scaled, found)


# ---- columns -----------------------------------------------------------------------------------------------


class _Feature(NamedTuple):
    """A column as one or several: (N, k), their titles, whether it is of numbers, and a note for `source`."""

    values: np.ndarray
    titles: list[str]
    measured: bool
    note: str = ""


def _feature(name: str, title: str, values: Sequence[str], said: bool, category: bool = False) -> _Feature:
    """said: whether it is known which column has the labels; category: it is one, whatever it holds."""
    who = f"{name}: column {title!r}"
    missing = np.array([value.lower() in MISSING for value in values])
    given = [value for value, gone in zip(values, missing, strict=True) if not gone]
    if not given:
        raise ValueError(f"{who} has no value in {len(values)} of {len(values)} rows: leave it out")
    numbers = sum(map(_is_number, given))
    if {value.lower() for value in given} <= {"true", "false"}:
        given = [str(int(value.lower() == "true")) for value in given]
    elif category or 2 * numbers < len(given):
        return _category(who, name, title, values, missing, said, category)
    elif numbers < len(given):
        at = next(at for at, value in enumerate(values) if not missing[at] and not _is_number(value))
        raise ValueError(f"{who} holds {values[at]!r} in row {at + 1}, but numbers in other rows")
    found = np.full(len(values), np.nan)
    found[~missing] = np.array(given, np.float64)
    endless = ~missing & ~np.isfinite(found)
    if endless.any():
        at = int(np.flatnonzero(endless)[0])
        raise ValueError(f"{who} holds {values[at]!r} in row {at + 1}, but must hold finite numbers")
    if not missing.any():
        return _Feature(found[:, None], [title], True)
    few = f"{missing.sum():,} of {len(values):,} rows"
    note = f"{title!r} has no value in {few}: its mean there, and a column that says where"
    both = np.stack([found, missing.astype(np.float64)], axis=1)
    return _Feature(both, [title, f"{title} is missing"], True, note)


def _category(
    who: str, name: str, title: str, values: Sequence[str], missing: np.ndarray, said: bool, sure: bool
) -> _Feature:
    """A column of 0 and 1 a value, in alphabetical order; a missing one is a value as well.

    sure: its values may look like numbers or dates.
    """
    first = next(at for at, gone in enumerate(missing) if not gone)
    holds = f"{who} holds {values[first]!r} in row {first + 1}"
    if not said:
        raise ValueError(
            f"{holds}: if these are the labels, {labelled(name, title)} says so; if they are a category as "
            f"any other, {labelled(name, '')} says that no column has labels"
        )
    given = [value for value, gone in zip(values, missing, strict=True) if not gone]
    for alike, what, mend in (
        (LIKE_A_NUMBER, "a number", "write it as 1234.5, without %, blanks and signs of thousands"),
        (DATE, "a date", "give the year, or days since another date, as a number, or leave the column out"),
    ):
        if not sure and 2 * sum(bool(alike.fullmatch(value)) for value in given) > len(given):
            raise ValueError(f"{holds}, which seems to be {what}: {mend}")
    known = sorted(set(given))
    if len(known) > MOST_VALUES or 2 * len(known) > len(values) > MOST_VALUES:
        raise ValueError(
            f"{holds}, and {len(known):,} different texts in all, but a category has {MOST_VALUES} at most, "
            "which repeat: leave the column out"
        )
    cells = [["" if gone else value for value, gone in zip(values, missing, strict=True)]]
    titles = [*known, *([""] if missing.any() else [])]
    found = np.array([[cell == value for value in titles] for cell in cells[0]], np.float64)
    note = f"{title!r} is a category of {len(known)}" + (
        f", missing in {missing.sum():,} rows" if missing.any() else ""
    )
    return _Feature(found, [f"{title} = {value or 'missing'}" for value in titles], False, note)


def labels_of(name: str, title: str, values: Sequence[str]) -> np.ndarray:
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
            f"{labelled(name, '')} takes all columns as features"
        )
    return numbers


def label_column(name: str, titles: Sequence[str], asked: str | None) -> int | None:
    """Which column holds the labels, None = none. Raises ValueError where it is not there, or two may."""
    if asked == "":
        return None
    if asked is not None:
        for alike in (str, str.lower):
            if found := [at for at, title in enumerate(titles) if alike(title) == alike(asked.strip())]:
                return found[0]
        raise ValueError(f"{name}: no column {asked!r}{did_you_mean(asked, titles, listed=True)}")
    short = [plain(title) for title in titles]
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


def _are_names(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a table's first line names its columns: text where numbers follow, or pandas' 0, 1, 2, ...

    A line with a decimal number is a row, unless a column of the labels is named, or numbers follow its text.
    """
    words = [at for at, field in enumerate(first) if not _is_number(field)]
    if not words:
        return len(first) > 2 and list(first) == [str(at) for at in range(len(first))]
    decimal = any(_is_number(field) and not field.lstrip("+-").isdigit() for field in first)
    followed = any(at < len(second) and _is_number(second[at]) for at in words)
    return not decimal or followed or any(plain(field) in LABEL_COLUMNS for field in first)


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


def labelled(name: str, title: str) -> str:
    """How one says which column has the labels, of a file or of a DataFrame; title: "" = none has."""
    mark = "&" if "?" in name else "?"
    return f"{name}{mark}label={title}" if ":" in name else f"{name}(..., label={title!r})"


def plain(title: str) -> str:
    return re.sub(r"[ _-]", "", title.lower())


def _with_point(field: str) -> str:
    return field.replace(",", ".") if DECIMAL.fullmatch(field) else field


def _all_different(values: Sequence[str]) -> bool:
    """Whether these are whole numbers of which no two are equal."""
    return len(set(values)) == len(values) and all(value.lstrip("+-").isdecimal() for value in values)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
