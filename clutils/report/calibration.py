"""How often a diagnosis was right of encoders that were made for it, as the page's foot shows.

`benchmarks/calibration.py judge ... --record` makes the encoders' table and writes `calibration.json` by it.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("calibration.json")
TABLE: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}


def summary(rows: Sequence[dict[str, Any]], tuned: int) -> dict[str, Any]:
    """What the page's foot shows of encoders made once, after the limits were set.

    - rows: of the record: made, expected (diagnoses with " or " between), found, right; tuned: encoders that
      limits were set on
    """
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row["expected"], []).append(row)
    told = []
    for expected, own in by_kind.items():
        others = Counter(row["found"] for row in own if not row["right"])
        said = ", ".join(f"{name} ({count})" for name, count in others.items())
        told.append([expected, len(own), sum(row["right"] for row in own), said])
    right, healthy = sum(row["right"] for row in rows), by_kind.get("healthy", [])
    alarms = sum(row["level"] in ("worth a look", "broken") for row in healthy)
    says = f"{alarms} of {len(healthy)} healthy ones {'was' if alarms == 1 else 'were'} called ill."
    return {"encoders": len(rows), "right": right, "tuned": tuned, "says": says, "rows": told}
