"""Old files: what runs that earlier versions wrote lack, and the values that they had then.

One function for each kind of file; everything else reads files as they are written now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from clutils import methods
from clutils.training.settings import WEIGHT_DECAYS, Settings, own_column

if TYPE_CHECKING:
    import pandas as pd


def of_checkpoint(state: dict[str, Any]) -> dict[str, Any]:
    """The parts of a checkpoint with those that came later.

    - fingerprint: {} = images alone were compared, by 256 of them
    - looks, schedules: there were none; words: the first rule for cutting sentences into words
    - distinct: False = equal sentences were each other's negatives
    - history: until 27 November 2026 iSogCLR's setting `step` stood in the column of the steps
    """
    later = {"fingerprint": {}, "looks": {}, "schedules": {}, "words": 1, "distinct": False}
    rows = state.get("history")
    for number, row in enumerate(rows if isinstance(rows, list) else (), 1):
        if isinstance(row, dict) and row.get("step") != number:
            row |= {own_column("step"): row.get("step"), "step": number}
    return later | state


def of_settings(kept: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a checkpoint or of config.json with those that came later.

    A loss's settings get what its class says of earlier runs (`Loss.before`). Before ranges were declared,
    False stood for 0 in some of a method's settings.
    """
    found = Settings().plain() | dict(kept)
    if found["weight_decay"] is None:
        found["weight_decay"] = WEIGHT_DECAYS[found["optimiser"]]
    ranges = methods.catalogue()[found["method"]].cls.ranges
    counted = {name for name, own in ranges.items() if not own.switch}
    found["method_settings"] = {
        name: int(value) if isinstance(value, bool) and name in counted else value
        for name, value in (found["method_settings"] or {}).items()
    }
    return found


def of_history(history: pd.DataFrame, measured: pd.DataFrame | None = None) -> pd.DataFrame:
    """A history with its steps counted: until 27 November 2026 iSogCLR's setting `step` stood there.

    What was looked at stood in the wrong rows then: it comes from the table of what was measured.
    """
    given = history["step"]
    if given.is_unique and not (given % 1).any():
        return history
    first = int(history["loss"].notna().iloc[0])  # else the row of what was looked at before the first step
    counted = range(first, first + len(history))
    history = history.assign(**{own_column("step"): given, "step": counted})
    if measured is not None:
        by_step = measured.drop_duplicates("step", keep="last").set_index("step")
        for name in set(by_step) & set(history):
            history[name] = history["step"].map(by_step[name])
    return history
