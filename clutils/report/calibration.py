"""Calibration of the report's lines: false alarms at healthy encoders, misses at ill ones.

`benchmarks/calibration.py` trains the encoders and has the outcome written to `calibration.json`, which the
foot of a page shows. Ill is what was trained in a wrong way and took harm from it, or was fed or labelled
wrongly. `MEANT` was written down before the first of them was trained; what counts as harm, after.
Later came, by encoders that learned nothing and are not among these, a learning rate of 1e-8,
and in "against untrained" three standard errors for the probe, the spread of fresh weights from seed to seed,
and statistics of theirs that have settled. That a lead of one standard error is "not known", in that line and
in "classes", was chosen with these encoders in view; so was how far the judged may be below
the gallery, whose classes are of one size there.
That two classes stand in each other's place was tried on four other encoders alone: of 45 exchanges it found
35 at the two that had learned most, 21 and 12 at the others, and none where labels were right.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clutils import files
from clutils.report import rules, verdicts
from clutils.report.rules import BROKEN, LOOK, UNKNOWN

if TYPE_CHECKING:
    import pandas

KEPT = Path(__file__).with_name("calibration.json")
SOUNDS = (LOOK, BROKEN)
ENOUGH = 8  # ill encoders below which a line counts as uncalibrated
WHOLE = "the whole page, without maps"
MEANT: dict[str, tuple[str, ...]] = {  # line -> the ailments that it is there for
    "what it is fed": ("fed wrongly",),
    "against untrained": ("stopped early", "pairs mixed up", "nothing pushes", "learning rate of 1e-8"),
    "spread": ("nothing pushes",),
    "dimensions in use": ("nothing pushes", "head of two dimensions", "τ = 5", "read after the head"),
    "dead units": ("learning rate of 1",),
    "length": (),
    "views of a picture": ("pairs mixed up", "stopped early"),
    "the space of the loss": ("nothing pushes", "pairs mixed up"),
    "temperature": ("τ = 5", "τ = 0.01"),
    "classes": ("labels shuffled", "pairs mixed up", "nothing pushes"),
    "class names": ("classes renamed",),
    "robustness": ("no colour augmentation",),
}
CERTAIN = ("fed wrongly", "classes renamed", "labels shuffled")  # wrong whether it does harm or not
MISREAD = ("read after the head", *CERTAIN)  # of a healthy encoder
HARM = 0.25  # of the way from fresh weights' kNN to that of the same method with nothing wrong
# What a line of numbers alone judges by, in units of its limit in `rules`: it sounds below 1 (tested).
MARGINS: dict[str, Callable[[Mapping[str, float]], float]] = {
    "what it is fed": lambda n: 0.15 / max(n["input_gap"], 1e-9),
    "spread": lambda n: min(n["spread"] / 0.15, (1 - n.get("first_direction", 0)) / 0.2),
    "dimensions in use": lambda n: min(
        n.get("effective_rank", 0) / 8, (1 - n.get("first_direction", 1)) / 0.4
    ),
    "dead units": lambda n: 0.25 / max(n["dead"], 1e-9),
    "views of a picture": lambda n: min(
        rules.lead(n) / 0.4, n["finds_itself"] / 0.08, n["spread"] / 0.05 if n["spread"] < 0.05 else math.inf
    ),
    "the space of the loss": lambda n: n["head_uniformity"] / rules.CROWDED,
    "robustness": lambda n: min(value / rules.least_kept(name) for name, value in rules.kept(n).items()),
}


class Reading:
    """A row of the record, judged by the rules as they stand.

    - harmed: set by `readings`; None = nothing ails it
    """

    harmed: bool | None = None

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.ailment, self.method, self.pictures = row["ailment"], row["contender"], row["pictures"]
        self.steps, self.seed, self.knn = int(row["steps"]), int(row["seed"]), float(row["knn"])
        self.numbers: dict[str, float] = json.loads(row["numbers"])
        layer = "head" if self.ailment == "read after the head" else "encoder"
        found = verdicts.judge(self.numbers, json.loads(row["unknown"]), layer)
        self.levels = {v.name: v.level for v in found}
        self.worst = verdicts.worst(found)


def readings(table: pandas.DataFrame) -> list[Reading]:
    """The rows of the record `calibration`, and which of them took harm.

    Harm: kNN, by the training pictures, lies `HARM` of the way down from what the same method had on the same
    pictures with nothing wrong to that of fresh weights. With nothing wrong: after as many steps, mean over
    seeds; where it was stopped early, at its longest; where it was read after the head, that encoder itself.
    """
    rows = [Reading(row) for row in table.fillna({"ailment": ""}).to_dict("records")]
    for row in rows:
        if row.ailment:
            row.harmed = row.ailment in CERTAIN or _lost(row, rows) >= HARM
    return rows


def _lost(row: Reading, rows: Sequence[Reading]) -> float:
    own = (row.method, row.pictures)
    same = [one for one in rows if not one.ailment and (one.method, one.pictures) == own]
    steps = max(one.steps for one in same) if row.ailment == "stopped early" else row.steps
    same = [one for one in same if one.steps == steps]
    fresh = statistics.fmean(one.numbers["knn_untrained"] for one in same)
    if row.ailment in MISREAD:  # the encoder's own kNN is that of both: what the check has is compared
        usual = next(one.numbers["knn"] for one in same if one.seed == row.seed)
        return (usual - row.numbers["knn"]) / (usual - fresh)
    usual = statistics.fmean(one.knn for one in same)
    return (usual - row.knn) / (usual - fresh)


def outcome(rows: Sequence[Reading]) -> dict[str, Any]:
    """What `calibration.json` holds.

    - lines: line -> [well, false, ill, missed]: of `well` healthy encoders, those at which it sounds; of
      `ill` with harm by an ailment that it is there for, those at which it is silent. Encoders of which it
      could not be judged are not counted; of the whole page, all that were trained are
    - unharmed: ailment -> encoders that took no harm from it, which count as neither; neither: of those that
      were trained so, how many, those at which the page sounds, those that it calls broken
    - left_out: line -> [false, missed] where each method's encoders are judged by the limit that is best on
      those of all other methods, for lines that judge by numbers alone
    """
    trained = [row for row in rows if row.ailment not in MISREAD]
    unharmed = Counter(row.ailment for row in rows if row.harmed is False)
    counted = [row for row in trained if row.harmed is not False]
    neither = [row for row in trained if row.harmed is False]
    after_head = [row for row in rows if row.ailment == "read after the head" and row.harmed]
    lines = {WHOLE: _count(counted, [row.worst for row in counted])}
    left_out = {}
    for line in MEANT:
        judged = of_line(rows, line)
        lines[line] = _count(judged, [row.levels[line] for row in judged])
        if line in MARGINS and lines[line][2]:
            left_out[line] = _left_out(judged, MARGINS[line])
    return {
        "encoders": len(trained),
        "healthy_steps": [end(row.steps for row in rows if not row.ailment) for end in (min, max)],
        "least_steps": min(row.steps for row in rows),
        "head": [len(after_head), sum(row.worst not in SOUNDS for row in after_head)],
        "unharmed": dict(unharmed),
        "neither": [len(neither), *(sum(row.worst in of for row in neither) for of in (SOUNDS, (BROKEN,)))],
        "methods": sorted({row.method for row in rows}),
        "pictures": sorted({row.pictures for row in rows}),
        "lines": lines,
        "left_out": left_out,
    }


def of_line(rows: Sequence[Reading], line: str) -> list[Reading]:
    """Those that count for a line: healthy, or harmed by what it is there for; where it could be judged."""
    counted = [row for row in rows if not row.ailment or (row.harmed and row.ailment in MEANT[line])]
    return [row for row in counted if row.levels.get(line, UNKNOWN) != UNKNOWN]


def _count(rows: Sequence[Reading], levels: Sequence[str]) -> list[int]:
    found = Counter((bool(row.ailment), level in SOUNDS) for row, level in zip(rows, levels, strict=True))
    false, silent = found[False, True], found[True, False]
    return [found[False, False] + false, false, silent + found[True, True], silent]


def _left_out(rows: Sequence[Reading], margin: Callable[[Mapping[str, float]], float]) -> list[int]:
    at, ill = np.array([margin(row.numbers) for row in rows]), np.array([bool(row.ailment) for row in rows])
    sounds = np.zeros(len(rows), dtype=bool)
    for method in {row.method for row in rows}:
        own = np.array([row.method == method for row in rows])
        sounds[own] = at[own] < best_limit(at[~own], ill[~own])
    return [int((sounds & ~ill).sum()), int((~sounds & ill).sum())]


def best_limit(at: np.ndarray, ill: np.ndarray) -> float:
    """The limit below which a line should sound: shares of false alarms and of misses are least in sum.

    It is halfway between two values, or 1; of several, the one nearest to 1 by ratio.
    """
    values = np.unique(at)
    between = [values[0] - 1, *((values[1:] + values[:-1]) / 2), values[-1] + 1, 1.0]

    def cost(limit: float) -> tuple[float, float]:
        sounds = at < limit
        wrong = sounds[~ill].mean() if (~ill).any() else 0.0, (~sounds)[ill].mean() if ill.any() else 0.0
        return round(sum(wrong), 12), abs(np.log(max(limit, 1e-9)))

    return float(min(between, key=cost))


def write(rows: Sequence[Reading]) -> dict[str, Any]:
    """Keep the outcome where pages find it."""
    found = outcome(rows)
    files.write_atomically(KEPT, json.dumps(found, ensure_ascii=False, indent=1) + "\n")
    return found


def read() -> dict[str, Any]:
    """The outcome, as it was kept."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def table(found: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """A row a line: its name, false alarms and misses with Wilson's 95 % intervals, and both left out."""
    rows = []
    for line, (healthy, false, ill, missed) in found["lines"].items():
        if ill < ENOUGH:
            rows.append((line, _share(false, healthy), f"uncalibrated: {ill} ill encoders", ""))
            continue
        left = found["left_out"].get(line)
        said = f"{left[0]} in {healthy}, {left[1]} in {ill}" if left else ""
        rows.append((line, _share(false, healthy), _share(missed, ill), said))
    return rows


def shown() -> dict[str, Any]:
    """What a page's foot shows: `table`, and which lines are calibrated."""
    found = read()
    calibrated = {line for line, (_, _, ill, _) in found["lines"].items() if ill >= ENOUGH}
    return found | {"rows": table(found), "calibrated": calibrated, "enough": ENOUGH}


def _share(count: int, of: int) -> str:
    if not of:
        return "none"
    low, high = rules.interval(count / of, of, 0.95)
    return f"{count} in {of} ({low:.0%} to {high:.0%})"
