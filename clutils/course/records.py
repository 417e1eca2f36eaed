"""Long results: one row a run, with all that is needed to make it again.

What takes longer than a notebook may is run once by a script in `benchmarks/`, kept in
`benchmarks/records/*.csv`, and shown by a notebook as 'recorded'.
"""

from __future__ import annotations

import csv
import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clutils.training.provenance import provenance

if TYPE_CHECKING:
    import pandas

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "records"


def append(name: str, row: dict[str, Any]) -> Path:
    """Add a run's row, with its provenance, to benchmarks/records/NAME.csv; the file's path.

    The row is written at the file's end, so that two runs may record into one file.

    Raises ValueError when the row's columns are not the file's.
    """
    import pandas as pd

    path, line = FOLDER / f"{name}.csv", row | provenance()
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.exists()
    if begun and (columns := list(pd.read_csv(path, nrows=0).columns)) != list(line):
        raise ValueError(f"{path.name} has the columns {columns}, the row {list(line)}")
    pd.DataFrame([line]).to_csv(path, index=False, header=not begun, mode="a")
    return path


def keep(name: str, row: dict[str, Any], record: bool) -> None:
    """Print a run's row, numbers to five places; with record add it to benchmarks/records/NAME.csv."""
    row = {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}
    print(*(f"{key} {value}" for key, value in row.items() if key != "command"), flush=True)
    if record:
        append(name, row)


def known(name: str, *columns: str) -> set[tuple[Any, ...]]:
    """Values of these columns in benchmarks/records/NAME.csv: a tuple a row.

    An empty cell counts as 'none'. Without such a file there are no rows.
    """
    if not (FOLDER / f"{name}.csv").exists():
        return set()
    table = read(name)
    cells = (table[column].astype(object).where(table[column].notna(), "none") for column in columns)
    return set(zip(*cells, strict=True))


def read(name: str) -> pandas.DataFrame:
    """Rows of benchmarks/records/NAME.csv. Raises FileNotFoundError naming the records there are."""
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in FOLDER.glob("*.csv"))) or "none"
        raise FileNotFoundError(f"no record {name!r} in {FOLDER}: there are {known}")
    return _parsed(path, path.stat().st_mtime_ns, path.stat().st_size).copy()


@lru_cache(maxsize=32)  # a notebook asks for one record dozens of times
def _parsed(path: Path, *written: int) -> pandas.DataFrame:
    import pandas as pd

    return pd.read_csv(path)


def own_run(path: str) -> Path | None:
    """File of a reader's own run, such as runs/pinda/noise_maps.npz; None where there is none.

    A command writes it below the folder in which it was started: looked for in the present folder, in those
    that hold it (a notebook's copy lies in notebooks/mine/), and in the project's.
    """
    folders = (Path.cwd(), *Path.cwd().parents, ROOT)
    return next((folder / path for folder in folders if (folder / path).is_file()), None)


def of_paper(module: str, table: str) -> dict[str, tuple[float, ...]]:
    """A paper's table as it printed it: name of a row -> its numbers, NaN where a cell is empty.

    - module: the `__file__` of the lesson's module, beside which TABLE.csv lies
    """
    with Path(module).with_name(f"{table}.csv").open(encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return {name: tuple(float(cell or math.nan) for cell in cells) for name, *cells in rows}
