"""The recorded sweep of τ, `benchmarks/evidence.py temperature`, and what its runs decide."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from clutils.course import evidence
from clutils.course.temperature.figures import sweep
from clutils.figures import new, style

if TYPE_CHECKING:
    import pandas

SUBJECT = "temperature"
SHAPES = ("uniformity", "tolerance")  # which the claim says fall and fall as τ falls


@style.in_course_style
def recorded_sweep(columns: Mapping[str, str]) -> Figure:
    """A chart for each measure, the names of the lines in the last: column of the record -> its label."""
    figure, axes = new(11.5, 3.5, columns=len(columns), squeeze=False)
    for ax, (column, label) in zip(axes[0], columns.items(), strict=True):
        sweep(evidence.curves(SUBJECT, column), label, names=ax is axes[0, -1], ax=ax)
    seeds = min(map(len, evidence.results(SUBJECT).values()))
    axes[0, 0].set_title(f"means of {seeds} seeds, lowest to highest", fontsize=10)
    return figure


def sweep_table() -> pandas.DataFrame:
    """A row a temperature, cold to hot: each measure at the end, and how far the middle third moved it."""
    import pandas

    rows = {}
    for name in _names():
        row = {}
        for column in ("knn", *SHAPES):
            values = evidence.results(SUBJECT, column)[name]
            row[column], row[f"{column}, middle third"] = sum(values) / len(values), _moved(name, column)
        rows[name] = row
    return pandas.DataFrame(rows).T


def judged_sweep() -> dict[str, Any]:
    """Whether colder runs end more uniform and less tolerant, as `claims.test` takes it.

    Two temperatures differ reliably in a measure where the interval of their difference leaves 0 out, and the
    difference is larger than what both moved in the middle third of their steps, before the learning rate,
    which ends at 0, had fallen. It holds where the
    coldest and the hottest differ so in both measures, and no two neighbours the other way round;
    holds from a temperature on where it holds of each two neighbours from there, three temperatures or more.
    Undecided while there are fewer than two temperatures with three seeds each.
    """
    finished = evidence.results(SUBJECT, least=1)
    if len(finished) < 2 or len(evidence.results(SUBJECT)) < len(finished):
        runs = sum(map(len, finished.values())) or "no"
        return {
            "always": None,
            "shown_by": f"{runs} runs of the sweep are finished and on record: too few to decide",
            "control": "none yet; they will be the untrained encoder and the best temperature's accuracy",
        }
    names = _names()
    signs = {(a, b): [_sign(a, b, column) for column in SHAPES] for a, b in pairwise(names)}
    against = [pair for pair, found in signs.items() if 1 in found]
    ends = [_sign(names[0], names[-1], column) for column in SHAPES]
    warm = len(names) - 1
    while warm and signs[names[warm - 1], names[warm]] == [-1, -1]:
        warm -= 1
    said = [f"{names[0]} minus {names[-1]}: {_said(names[0], names[-1])}"]
    said += [f"{a} minus {b}: {_said(a, b)}" for a, b in pairwise(names[warm:])]
    said += [f"but {a} minus {b}: {_said(a, b)}, where the runs still move" for a, b in against]
    knn = {name: sum(values) / len(values) for name, values in evidence.results(SUBJECT).items()}
    best, start = max(knn, key=knn.__getitem__), evidence.curves(SUBJECT).query("step == 0")["mean"].mean()
    powers = {column: _difference(names[0], names[-1], column)[0].detectable for column in SHAPES}
    judged: dict[str, Any] = {
        "always": False if against else True if ends == [-1, -1] else None,
        "shown_by": "; ".join(said) + " (in brackets: what both moved in the middle third of the steps)",
        "control": f"kNN accuracy is {start:.2f} untrained and {knn[best]:.2f} at {best}; differences below "
        f"{', '.join(f'{power:.2f} in {column}' for column, power in powers.items())} are within seed noise",
    }
    if against and warm <= len(names) - 3:
        steps = evidence.curves(SUBJECT)["step"].max()
        when = f"{names[warm]} is the coldest that is compared, after {steps:,} steps at one "
        when += "learning rate, which falls to 0"
        judged |= {"when": when, "holds_when": True}
    return judged


def _names() -> list[str]:
    return sorted(evidence.results(SUBJECT), key=lambda name: float(name.removeprefix("τ = ")))


def _moved(name: str, column: str) -> float:
    """How far a measure's mean over the seeds moved in the middle third of the steps."""
    own = evidence.curves(SUBJECT, column).query("contender == @name").set_index("step")["mean"]
    first, second = (max(step for step in own.index if step <= part * own.index.max() / 3) for part in (1, 2))
    return float(own[second] - own[first])


def _difference(a: str, b: str, column: str) -> tuple[evidence.Difference, float]:
    ends = evidence.results(SUBJECT, column)
    return evidence.difference(ends[a], ends[b]), abs(_moved(a, column)) + abs(_moved(b, column))


def _sign(a: str, b: str, column: str) -> int:
    """-1 or 1 where the colder a's differs reliably from b's, below or above it; else 0."""
    found, moved = _difference(a, b, column)
    if not found.decided or abs(found.mean) <= moved:
        return 0
    return 1 if found.mean > 0 else -1


def _said(a: str, b: str) -> str:
    found = {column: _difference(a, b, column) for column in SHAPES}
    return ", ".join(f"{column} {each.mean:+.2f} ({moved:.2f})" for column, (each, moved) in found.items())
