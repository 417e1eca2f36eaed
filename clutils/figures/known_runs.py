"""Curves of runs known to be good, and one's own over them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

KEPT = Path(__file__).with_name("known_runs.csv")


def read() -> pd.DataFrame:
    """The recorded rows, a row a look: run, step, loss, W, effective_rank, uniformity, knn, what it was."""
    import pandas as pd

    return pd.read_csv(KEPT)
