"""Comparison of runs: a table with a row for all that share every setting but the seed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from clutils import views
from clutils.training import settings
from clutils.training.saved import COLUMNS, Comparable, taken

if TYPE_CHECKING:
    import pandas as pd


def last(run: Comparable, name: str) -> float:
    """The last value that a run has of a measurement or a column of its history; NaN where it has none."""
    table = run.measured if name in COLUMNS[1:] else run.history
    if name not in table or not len(table):
        return math.nan
    known = table[name].dropna()
    return float(known.iloc[-1]) if len(known) else math.nan


def temperature(run: Comparable) -> float:
    """τ of the last step, NaN where there is none; MACL's is the one that it moved to by itself."""
    moved = last(run, "effective_temperature")
    return last(run, "temperature") if math.isnan(moved) else moved


def table(runs: Sequence[Comparable]) -> pd.DataFrame:
    """A row for all runs that share every setting but the seed, with means over their seeds.

    Two of one seed share a row where one is the other as far as it goes, as a kept copy is.

    Columns: runs, method, loss, temperature (at the end), data, steps, seeds, knn, knn_low, knn_high,
    effective_rank, uniformity, turned, planned (steps), differs. Settings that were changed on the way count
    as settings.

    differs: setting -> value, of those that rows have with different values and that no other column tells.
    An augmentation is there by its name (`views.name_of`), None is one of the caller's own.
    turned: setting -> how often it changed on the way; the learning rate, which always does, is not there.
    """
    import pandas as pd

    groups = _pooled(runs)
    differences = _differences([_without_a_column(group[0]) for group in groups])
    return pd.DataFrame(
        [_line(group) | {"differs": own} for group, own in zip(groups, differences, strict=True)]
    )


def _pooled(runs: Sequence[Comparable]) -> list[list[Comparable]]:
    """The runs by row, in their order."""
    groups: list[tuple[str, list[Comparable]]] = []
    for run in runs:
        key, seed = _all_but_the_seed(run), run.configuration.get("seed")
        for known, group in groups:
            others = [other for other in group if other.configuration.get("seed") == seed]
            if known == key and all(_one_run(run, other) for other in others):
                group.append(run)
                break
        else:
            groups.append((key, [run]))
    return [group for _, group in groups]


def _one_run(first: Comparable, second: Comparable) -> bool:
    """Whether the shorter one's losses are those that the longer one begins with."""
    both = [taken(run.history)["loss"].to_numpy(float) for run in (first, second)]
    steps = min(map(len, both))
    return bool(np.allclose(both[0][:steps], both[1][:steps], rtol=1e-6, atol=1e-9, equal_nan=True))


def _line(runs: Sequence[Comparable]) -> dict[str, Any]:
    import pandas as pd

    kept = runs[0].configuration
    longest = sorted(runs, key=lambda run: len(taken(run.history)))  # one that was kept, too, is one run
    by_seed = {run.configuration.get("seed"): run for run in longest}
    names = ("knn", "effective_rank", "uniformity")
    ends = pd.DataFrame([{name: last(run, name) for name in names} for run in by_seed.values()])
    ends["temperature"] = [temperature(run) for run in by_seed.values()]
    return {
        "runs": "; ".join(run.name for run in runs),
        "method": kept["method"],
        "loss": (kept["loss"] or {"name": "of your own"})["name"],
        "data": kept["data"] or kept.get("data_source") or "of your own",
        "steps": len(taken(runs[0].history)),
        "planned": kept["steps"],
        "seeds": ", ".join(map(str, sorted(by_seed, key=str))),
        **ends.mean(),  # of temperature, kNN, effective rank and uniformity
        "knn_low": ends["knn"].min(),
        "knn_high": ends["knn"].max(),
        "turned": _turned(runs[0]),
    }


def _turned(run: Comparable) -> dict[str, int]:
    """Setting -> how often it changed from a step to the next, where it did."""
    courses = sorted(_courses(run).items())
    counts = {name: sum(before != after for before, after in pairwise(course)) for name, course in courses}
    return {name: count for name, count in counts.items() if count and name != "learning_rate"}


FIXED = tuple(name for name in settings.names(kept=True, fixed=True) if name not in ("seed", "threads"))
WITH_A_COLUMN = ("method", "loss", "data", "steps", "temperature")


def _with_defaults(run: Comparable) -> Mapping[str, Any]:
    """Its configuration; what an early one does not name is what runs had before it could be chosen."""
    kept = settings.Settings().plain() | dict(run.configuration)
    if kept["weight_decay"] is None:
        kept["weight_decay"] = settings.WEIGHT_DECAYS[kept["optimiser"]]
    return kept


def _without_a_column(run: Comparable) -> dict[str, Any]:
    """Setting -> value, the method's and the loss's among them, without those that have a column."""
    kept = _with_defaults(run)
    shown = (*FIXED, *settings.names(fixed=False), "processes")
    found = {name: kept[name] for name in shown if name in kept and name != "method_settings"}
    if isinstance(found["augmentation"], Mapping):
        found["augmentation"] = views.name_of(found["augmentation"], kept.get("pictures"))
    own = dict(kept["method_settings"] or {})
    found |= (own.pop("base_settings", None) or {}) | own | (kept["loss"] or {}).get("settings", {})
    return {name: value for name, value in found.items() if name not in WITH_A_COLUMN}


def _differences(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each row what others have too, but with another value: what only one method has, its name tells."""
    values: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            values.setdefault(name, set()).add(_as_text(value))
    return [{name: value for name, value in row.items() if len(values[name]) > 1} for row in rows]


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _all_but_the_seed(run: Comparable) -> str:
    """Every setting, and its course where it was changed on the way, as text that equal runs share."""
    kept = _with_defaults(run)
    own = [kept.get(name) for name in FIXED]
    if kept.get("data") is None:
        own.append(kept.get("data_source"))
    return _as_text([own, _courses(run)])


def _courses(run: Comparable) -> dict[str, list[str]]:
    """Setting -> its value at each step, for those that can be turned."""
    kept, steps = run.configuration, taken(run.history)
    of_loss = (kept.get("loss") or {}).get("settings", ())
    columns = {name: settings.own_column(name) for name in (*of_loss, *(kept.get("method_settings") or ()))}
    columns["learning_rate"] = "learning_rate"
    return {
        name: [format(value, ".9g") for value in steps[column].astype(float)]
        for name, column in columns.items()
        if column in steps.columns
    }
