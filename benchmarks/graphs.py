"""What is learned from graphs beside what is counted: the table that notebook 14 makes, with more steps.

python benchmarks/graphs.py graphs:file:../shared/data/mutag.txt --record
python benchmarks/graphs.py graphs:motifs --record
python benchmarks/graphs.py graphs:motifs --plain --record       what no step made alone

Prints ten-fold accuracy, a row a kind of features and a seed; --record adds them to
benchmarks/records/graphs.csv.
"""

from __future__ import annotations

import argparse
import re

import torch

from clutils import data
from clutils.course import graphs as lesson
from clutils.course import records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", help="a name for data.load; the first 240 of all of it are taken")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="only what no step made")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    seen = data.load(options.data, "all", limit=240)
    settings = {"steps": options.steps, "batch_size": 64, "learning_rate": 0.01}
    learned = {} if options.plain else None
    rows = lesson.compare(seen, learned, seeds=range(options.seeds), **settings)
    called = "".join(re.split(r"(?<=file:).*/", options.data))  # a file without its folder
    command = f"python benchmarks/graphs.py {called} --steps {options.steps} --seeds {options.seeds} --record"
    chance = seen.labels.bincount().max().item() / len(seen)
    known = records.known("graphs", "data", "features", "seed", "steps") if options.record else set()
    for row in rows.to_dict("records"):
        if (seen.source, row["features"], row["seed"], options.steps) in known:
            continue
        kept = {"command": command, "data": seen.source, "chance": chance, **settings, **row}
        records.keep("graphs", kept, options.record)
    print(lesson.summary(rows))


if __name__ == "__main__":
    main()
