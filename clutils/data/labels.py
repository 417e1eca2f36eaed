"""Labels as users hold them (lists, tensors, arrays, a Series after a split) as indices of classes."""

import re
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

MOST_CLASSES = 1_000_000  # each has a name: a number that is no label, a date say, would fill the memory
MISSING = ("NoneType", "NAType", "NaTType")  # types of what stands in place of a label, beside NaN
SIGNS = ("-1", "1")  # what the two classes are called where these are all labels
SPLITS = {  # what a split is called: its role, 'train' or another
    **dict.fromkeys(("train", "training", "trn", "trainval", "labeled", "labelled"), "train"),
    **dict.fromkeys(("test", "testing", "tst", "holdout"), "test"),
    **dict.fromkeys(("val", "valid", "validation", "dev", "eval", "evaluation"), "val"),
    **dict.fromkeys(("unlabeled", "unlabelled"), "unlabeled"),
}
_SPLIT = re.compile(rf"(?i)((public|private)[ _.-]?)?({'|'.join(SPLITS)})[ _.-]?(set|split|data|\d*)")


def codes_of(
    name: str, labels: Any, n: int, class_names: Sequence[str] | None, what: str = "vectors"
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as int64 indices (N,), and the names that they are indices of; -1 for all where there are none.

    Below 0, "", None and NaN are no label; but where -1 and 1 are all that there are, these are two classes.
    Raises ValueError where they are not one a sample, or neither whole numbers nor names.
    """
    if labels is None:
        return np.full(n, -1), tuple(class_names or ())
    given = as_array(labels)
    if given.shape != (n,):
        mend = "; labels.argmax(axis=1) of one column a class" if given.shape[:1] == (n,) else ""
        raise ValueError(f"{name}: labels are {given.shape} for {n} {what}; ({n},) is needed{mend}")
    if given.dtype.kind == "U":
        names = tuple(sorted(set(given.tolist()) - {""})) if class_names is None else tuple(class_names)
        if unknown := set(given.tolist()) - set(names) - {""}:
            raise ValueError(
                f"{name}: labels {sorted(unknown)[:5]} are none of the classes {', '.join(names)}"
            )
        place = {label: code for code, label in enumerate(names)}
        return np.array([place.get(label, -1) for label in given.tolist()], np.int64), names
    codes = _whole(name, given)
    if set(given[given == given].tolist()) == {-1, 1} and (class_names is None or len(class_names) == 2):
        gone = given != given
        return np.where(gone, -1, codes > 0), SIGNS if class_names is None else tuple(class_names)
    if class_names is None and codes.max(initial=0) >= MOST_CLASSES:
        raise ValueError(
            f"{name}: labels go up to {codes.max():,.0f}, but must stay below {MOST_CLASSES:,}: each up "
            "to the largest is a class"
        )
    codes = codes.clip(min=-1)
    numbers = range(int(codes.max(initial=-1)) + 1)
    return codes, tuple(map(str, numbers) if class_names is None else class_names)


def as_array(labels: Any) -> np.ndarray:
    """Labels as an array by position, whatever the index of a Series: numbers, or texts with "" for none.

    One column (N, 1) is taken as (N,).
    """
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
        labels = labels.double() if labels.is_floating_point() else labels  # NumPy has no bfloat16
    given = np.asarray(labels)
    given = given[:, 0] if given.ndim == 2 and given.shape[1] == 1 else given
    if given.dtype.kind == "O" and given.ndim == 1:  # as pandas holds names, and what is missing
        gone = np.array([type(each).__name__ in MISSING or each != each for each in given], bool)
        known = given[~gone].tolist()
        if all(isinstance(label, str) for label in known):
            given = np.where(gone, "", given)
        elif all(isinstance(label, Real | np.bool_) for label in known):
            given = np.where(gone, np.nan, given).astype(np.float64)
    if given.dtype.kind in "SOT" and all(isinstance(label, str | bytes) for label in given.flat):
        given = np.array([each.decode() if isinstance(each, bytes) else each for each in given], str)
    return given


def numbered(who: str, *parts: Any) -> tuple[list[Tensor], tuple[str, ...]]:
    """Labels of one or several parts as int64 tensors, and the names that they are numbers of, () = none.

    Whole numbers stay as they are, 1.0 is 1; names have one numbering in all parts, in alphabetical order;
    "", None and NaN are -1. Raises ValueError on numbers with a fraction and on other types.
    """
    arrays = [as_array(part) for part in parts]
    arrays = [array if array.dtype.kind == "U" else _whole(who, array) for array in arrays]
    names = sorted({str(name) for array in arrays if array.dtype.kind == "U" for name in array.flat} - {""})
    if names and any(array.size and array.dtype.kind != "U" for array in arrays):
        raise ValueError(f"{who}: some labels are names, as {names[0]!r}, others are numbers: give one kind")
    codes = (
        np.where(array == "", -1, np.searchsorted(np.array(names, str), array))
        if array.dtype.kind == "U"
        else array
        for array in arrays
    )
    return [torch.from_numpy(np.asarray(each, np.int64)) for each in codes], tuple(names)


def _whole(who: str, given: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, -1 for NaN. Raises ValueError for fractions, other types, and beyond 2^63."""
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{who}: labels are {given.dtype}; whole numbers or names are needed")
    if given.dtype.kind == "f":
        whole = np.isfinite(given) & (given == np.floor(given))
        if (wrong := given[~whole & (given == given)]).size:
            raise ValueError(f"{who}: labels hold {wrong[0]:g}, but must be classes: whole numbers or names")
        given = np.where(whole, given, -1)
    if given.size and not -(2.0**63) <= float(given.min()) <= float(given.max()) < 2.0**63:
        large = max(given.min(), given.max(), key=lambda label: abs(float(label)))
        raise ValueError(f"{who}: labels hold {float(large):g}, but must be classes: whole numbers or names")
    return given.astype(np.int64)


def names_of_splits(values: Any) -> bool:
    """True where these texts are names of splits, as train and test or PublicTest, and no classes."""
    found = {value.strip() for value in values if isinstance(value, str) and value.strip()}
    return len(found) > 1 and all(map(_SPLIT.fullmatch, found))
