"""Comparison of runs: a table with a row a run, and a column for each setting in which they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from clutils import views
from clutils.training import migrations, settings
from clutils.training.saved import COLUMNS, Comparable, SavedRun, taken

if TYPE_CHECKING:
    import pandas as pd

FIRST = ("run", "method", "loss", "data", "steps", "seed")  # columns that every table has
LAST = ("turned", "temperature", "knn", "effective_rank", "uniformity")


def last(run: Comparable, name: str) -> float:
    """The last value that a run has of a measurement or a column of its history; NaN where it has none."""
    table = run.measured if name in COLUMNS[1:] else run.history
    known: Any = table[name].dropna() if name in table else ()
    return float(known.iloc[-1]) if len(known) else math.nan


def temperature(run: Comparable) -> float:
    """τ of the last step, NaN where there is none; MACL's is the one that it moved to by itself."""
    moved = last(run, "effective_temperature")
    return last(run, "temperature") if math.isnan(moved) else moved


def table(runs: Sequence[Comparable]) -> pd.DataFrame:
    """A row a run, in their order.

    Columns: run, method, loss, data, steps (taken, and of how many), seed; each setting of which two runs
    have different values; turned (the settings that were changed while it trained); and what was measured
    last: temperature, knn, effective_rank, uniformity.

    An augmentation is told by its name (`views.name_of`); an object of the caller's own is "your own".
    """
    import pandas as pd

    found = pd.DataFrame([_row(run) for run in runs])
    differ = [name for name in found if name not in FIRST + LAST and found[name].dropna().nunique() > 1]
    return found.reindex(columns=[*FIRST, *differ, *LAST])


def problem(run: SavedRun) -> str | None:
    """One line on why a run can't be compared, None where it can: its files may be anybody's."""
    if run.problem is not None:
        return run.problem
    try:
        table([run])
    except Exception as error:  # whatever a strange value makes the readers of settings raise
        return f"its settings can't be read: {' '.join(str(error).split())}"
    return None


def turned(run: Comparable) -> list[str]:
    """Settings of the loss and the method that have several values in the history."""
    steps, kept = taken(run.history), run.configuration
    names = ((kept.get("loss") or {}).get("settings", ()), kept.get("method_settings") or ())
    columns = {name: settings.own_column(name) for own in names for name in own}
    return [name for name, of in columns.items() if of in steps and steps[of].nunique() > 1]


def _row(run: Comparable) -> dict[str, Any]:
    """Settings, the method's and the loss's among them, and what was measured last: words, numbers, None."""
    kept = migrations.of_settings(run.configuration)
    loss, own = kept.pop("loss") or {"name": "your own"}, kept.pop("method_settings")
    augmentation = kept["augmentation"]
    if isinstance(augmentation, Mapping):
        kept["augmentation"] = views.name_of(augmentation, kept.get("pictures"))
    for name in ("augmentation", "encoder"):
        kept[name] = kept[name] or "your own"
    done, names = len(taken(run.history)), settings.names(kept=True)
    found = {name: kept[name] for name in (*names, "processes", "device") if name in kept}
    found |= (own.pop("base_settings", None) or {}) | own | loss.get("settings", {})
    found |= {name: last(run, name) for name in LAST} | {
        "run": run.name,
        "loss": loss["name"],
        "data": kept["data"] or kept.get("data_source") or "your own",
        "steps": f"{done:,}" + (f" of {kept['steps']:,}" if kept["steps"] > done else ""),
        "turned": ", ".join(turned(run)),
        "temperature": temperature(run),
    }
    del found["threads"]
    return {n: v if isinstance(v, int | float | str | None) else json.dumps(v) for n, v in found.items()}
