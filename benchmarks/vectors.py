"""Ways to make two views of a vector, compared on tables: every way at two strengths, five seeds.

    python benchmarks/vectors.py --record
    python benchmarks/vectors.py --data vectors:wine --ways PiNDA --seeds 0 --steps 20

    python benchmarks/vectors.py --few --record          few labels, SCARF as published, label spreading

Prints a line a run: kNN on the part that strengths are chosen by (`validation`) and on the test part. With
--record it is added to benchmarks/records/vectors.csv, which notebook 16 shows; what is there already is left
out, so an interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse

from clutils.course import records
from clutils.course.vectors import experiments

COMMAND = "python benchmarks/vectors.py --data {data} --ways '{way}' --seeds {seed} --record"


def main() -> None:
    ways = experiments.CONTROL | experiments.WAYS
    every = (*experiments.NOTHING, *ways)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", nargs="+", default=experiments.SETS)
    parser.add_argument("--ways", nargs="+", choices=every, default=every)
    parser.add_argument("--seeds", type=int, nargs="+", default=experiments.SEEDS)
    parser.add_argument("--steps", type=int, default=experiments.STEPS)
    parser.add_argument("--few", action="store_true", help="all and few labels")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.few:
        return few(options.record)
    keys = ("data", "way", "strength", "seed")
    done = records.known(experiments.RECORD, *keys) if options.record else set()
    for seed in options.seeds:  # so that what is there compares all ways, should it be interrupted
        for name in options.data:
            for way in options.ways:
                for strength in ways.get(way, ("", "", (0.0,)))[2]:
                    if (name, way, strength, seed) in done:
                        continue
                    if way in experiments.NOTHING:
                        row = experiments.nothing_learned(way, name, seed)
                    else:
                        row = experiments.train_one(way, strength, name, seed, steps=options.steps)
                    records.keep(experiments.RECORD, {"command": COMMAND.format(**row)} | row, options.record)


def few(record: bool) -> None:
    """The rows of `experiments.with_few_labels`: on the table that is made and on a real one."""
    keys = ("data", "seed", "features", "labels", "judge")
    done = records.known(experiments.FEW_RECORD, *keys) if record else set()
    for name, steps in experiments.FEW_TABLES.items():
        for seed in experiments.FEW_SEEDS:
            for features in experiments.FEATURES:
                trained = features not in experiments.WITHOUT_NETWORK
                if trained and (name, seed, features) in {key[:3] for key in done}:
                    continue  # no training twice
                for row in experiments.with_few_labels(name, seed, features, steps):
                    if tuple(row[key] for key in keys) not in done:
                        command = {"command": "python benchmarks/vectors.py --few --record"}
                        records.keep(experiments.FEW_RECORD, command | row, record)


if __name__ == "__main__":
    main()
