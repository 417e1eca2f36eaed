"""What is learned from real graphs beside what is counted: the table that notebook 14 makes, on MUTAG.

python benchmarks/graphs.py graphs:file:../shared/data/mutag.txt --record

Prints a row a kind of features (mean and spread over seeds of ten-fold accuracy); --record adds them to
benchmarks/records/graphs.csv.
"""

from __future__ import annotations

import argparse
import re

import torch

from clutils import data, losses
from clutils.course import graphs as lesson
from clutils.course import records

LEARNED = {
    "GraphCL, decoupled": {"method": "graphcl"},
    "GraphCL, NT-Xent": {"method": "graphcl", "loss": losses.NTXent(0.2)},
    "GraphCL, MACL": {"method": "graphcl", "loss": losses.MACL(0.2)},
    "SimGRACE": {"method": "simgrace"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", help="a name for data.load; all of it is taken")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seen = data.load(options.data, "all")
    settings = {"steps": options.steps, "batch_size": 64, "learning_rate": 0.01}
    table = lesson.compare(seen, LEARNED, range(options.seeds), **settings)
    called = "".join(re.split(r"(?<=file:).*/", options.data))  # a file without its folder
    command = f"python benchmarks/graphs.py {called} --steps {options.steps} --seeds {options.seeds} --record"
    for name, row in table.iterrows():
        told = {"command": command, "data": seen.source, "features": name, **settings, **row}
        records.keep("graphs", told, options.record)


if __name__ == "__main__":
    main()
