"""Sentences: three views and the topics themselves, with more steps than notebook 15 has time for.

    python benchmarks/sentences.py --record

On the topics of Python's own help, which differ between Python's releases: the row says which set it was. An
interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse

import torch

from clutils import data
from clutils.course import records
from clutils.course import sentences as lesson


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    train, test = data.load("sentences:topics"), data.load("sentences:topics", "test")
    keys = ("way", "seed", "steps")
    done = records.known(lesson.RECORD, *keys) if options.record else set()
    for seed in options.seeds:
        for way in lesson.WAYS:
            if (way, seed, options.steps) in done:
                continue
            run = lesson.trained(way, train, seed, steps=options.steps)
            row = {"command": f"python benchmarks/sentences.py --steps {options.steps} --record"}
            row |= {"data": train.source, "way": way, "seed": seed, "steps": options.steps}
            records.keep(lesson.RECORD, row | lesson.worth(run, train, test), options.record)


if __name__ == "__main__":
    main()
