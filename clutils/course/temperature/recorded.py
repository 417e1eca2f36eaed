"""The recorded sweep of τ, `benchmarks/evidence.py temperature`, and what its runs decide."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING

from clutils.course import evidence

if TYPE_CHECKING:
    import pandas

SUBJECT = "temperature"


def recorded_sweep(columns: Iterable[str]) -> dict[str, pandas.DataFrame]:
    """column -> its curves as `evidence.curves` gives them; empty while no run of the sweep is on record."""
    try:
        if not evidence.results(SUBJECT):
            return {}
    except FileNotFoundError:
        return {}
    return {column: evidence.curves(SUBJECT, column) for column in columns}


def judged_sweep() -> tuple[bool | None, str, str]:
    """Whether colder runs end more uniform and less tolerant -> always, shown_by, control of `claims.test`.

    True where the coldest and the hottest are told apart in both, no two neighbours against it; False where
    two neighbours are told apart the other way round; else None, as with runs that still learn.
    """
    if not recorded_sweep(["knn"]):
        controls = "none yet; they will be the untrained encoder and the accuracy at the best temperature"
        return None, "no run of the sweep is on record yet", controls
    ends = {column: evidence.results(SUBJECT, column) for column in ("knn", "uniformity", "tolerance")}
    names = sorted(ends["knn"], key=lambda name: float(name.removeprefix("τ = ")))
    tests = {
        column: [evidence.difference(ends[column][a], ends[column][b]) for a, b in pairwise(names)]
        + [evidence.difference(ends[column][names[0]], ends[column][names[-1]])]
        for column in ("uniformity", "tolerance")
    }
    against = any(each.low > 0 for found in tests.values() for each in found)
    learned = all(evidence.has_learned(SUBJECT, name) for name in names)
    for_it = all(found[-1].high < 0 for found in tests.values())
    always = False if against else True if for_it and learned else None
    told = "; ".join(
        f"{column} {found[-1].mean:+.2f} ({found[-1].low:+.2f} to {found[-1].high:+.2f})"
        for column, found in tests.items()
    )
    means = {name: sum(values) / len(values) for name, values in ends["knn"].items()}
    start = evidence.curves(SUBJECT).query("step == 0")["mean"].mean()
    best = max(means, key=means.get)
    detectable = ", ".join(f"{found[-1].detectable:.2f} in {column}" for column, found in tests.items())
    shown_by = f"{names[0]} less {names[-1]} after training: {told}; {'all' if learned else 'not all'} runs "
    return (
        always,
        shown_by + "are past their learning phase",
        f"kNN accuracy is {start:.2f} untrained and {means[best]:.2f} at {best}; these seeds tell apart "
        f"{detectable}",
    )
