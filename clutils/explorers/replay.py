"""A run to scrub through: what was measured at each step, and a map at some, small enough for a page."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from clutils.data.sets import SampleSet
from clutils.training.saved import taken
from clutils.training.watcher import Look

if TYPE_CHECKING:
    import pandas as pd

BITS = 10  # of a position: a thousandth of the map
MOST = 300_000  # bytes of maps in base64; with code and curves a page stays below 400 kB
POINTS = 400  # of a curve
CURVES = ("loss", "chance", "alignment", "uniformity", "temperature")


def of_run(
    history: pd.DataFrame, looks: Sequence[Look], pictures: SampleSet, title: str, source: str = ""
) -> dict[str, Any]:
    """A run as the page has it, in plain values.

    - history: a row a step, as `Run.history`; looks: of a `Watcher`, whose sample is `pictures`
    - title, source: what the run is, and what its data really is

    Steps and maps are thinned, the last always kept; positions have 10 bits. Raises ValueError on a run that
    nobody looked at.
    """
    if not looks:
        raise ValueError("replay: the run was never looked at, so there is no map of it")
    number = len(looks[0].positions)
    most = max(2, int(MOST * 6 / (2 * BITS * number)))
    kept = [looks[k] for k in _spread(len(looks), most)]
    history = taken(history)
    rows = history.iloc[_spread(len(history), POINTS)]
    if "effective_temperature" in rows:
        rows = rows.assign(temperature=rows["effective_temperature"])
    curves = {name: _numbers(rows[name]) for name in CURVES if name in rows}
    positions = np.stack([look.positions for look in kept]).astype(np.float64)
    low, high = float(positions.min()), float(positions.max())
    scaled = (positions - low) / (high - low or 1.0) * (2**BITS - 1)
    return {
        "title": title,
        "source": source,
        "steps": [int(step) for step in rows["step"]],
        "curves": curves,
        "looks": [look.step for look in kept],
        "knn": _numbers(look.knn for look in kept),
        "effective_rank": _numbers(look.effective_rank for look in kept),
        "points": number,
        "positions": base64.b64encode(pack(scaled.round().astype(np.uint16).ravel())).decode(),
        "labels": pictures.labels.tolist(),
        "class_names": list(pictures.class_names),
    }


def _spread(count: int, most: int) -> np.ndarray:
    """At most so many places in a list of `count`, evenly spread, with the first and the last."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(int)


def pack(numbers: np.ndarray) -> bytes:
    """uint16 numbers below 2^BITS, (n,), as their last bits one after another."""
    bits = np.unpackbits(numbers.astype(">u2").view(np.uint8)).reshape(-1, 16)[:, 16 - BITS :]
    return np.packbits(bits).tobytes()


def recorded() -> dict[str, Any]:
    """The run that the package carries: `python benchmarks/explorers.py --record` makes it."""
    text = resources.files("clutils.explorers").joinpath("recorded.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _numbers(values: Any) -> list[float | None]:
    """Four digits of each; None for NaN."""
    return [None if math.isnan(value) else float(f"{value:.4g}") for value in map(float, values)]
