"""Sentences: three views and the topics themselves, with more steps than notebook 15 has time for.

    python benchmarks/sentences.py --record
    python benchmarks/sentences.py --deletion --record    gain of deletion: fresh seeds, another corpus

On the topics of Python's own help, which differ between Python's releases: the row says which set it was. An
interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse

import torch

from clutils import data
from clutils.course import records
from clutils.course import sentences as lesson
from clutils.course.sentences import experiments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=range(5))
    parser.add_argument("--record", action="store_true")
    parser.add_argument(
        "--deletion", action="store_true", help="gain of deletion: fresh seeds, another corpus"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.deletion:
        return deletion(options.steps, options.record)
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


def deletion(steps: int, record: bool) -> None:
    """Twelve fresh seeds on the topics; six seeds, each with another test part, on docstrings."""
    done = records.known("sentences_deletion", "corpus", "seed", "steps") if record else set()
    topics = data.load("sentences:topics"), data.load("sentences:topics", "test")
    whole = experiments.docstrings()
    for corpus, seeds in (("topics", range(5, 17)), ("docstrings", range(6))):
        for seed in seeds:
            if (corpus, seed, steps) in done:
                continue
            train, test = topics
            if corpus == "docstrings":  # a quarter, drawn by the seed
                order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(seed))
                cut = len(whole) // 4
                train, test = whole.subset(order[cut:]), whole.subset(order[:cut])
            row = {"command": f"python benchmarks/sentences.py --deletion --steps {steps} --record"}
            row |= {"corpus": corpus, "data": train.source, "seed": seed, "steps": steps}
            row |= {"train": len(train), "test": len(test)}
            found = experiments.deletion_gain(train, test, seed, steps=steps)
            records.keep("sentences_deletion", row | found, record)


if __name__ == "__main__":
    main()
