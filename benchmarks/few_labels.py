"""Label efficiency: what a linear classifier reads off features from few labels, with several seeds,
and as a reference the same encoder trained with those labels alone.

    python benchmarks/few_labels.py features             a probe on pixels, untrained and contrastive features
    python benchmarks/few_labels.py supervised           the reference
    python benchmarks/few_labels.py supervised --steps 20 --counts 20 --seeds 0

Prints a line a result. With --record it is also added to benchmarks/records/few_labels.csv, which notebook 03
shows; what is there already is left out, so an interrupted recording goes on where it stopped.

The reference's learning rate is the best of `RATES` with 100 labels on seed 0, by images that nothing else
is judged on.
"""

from __future__ import annotations

import argparse

from torch import Tensor

from clutils import data, losses, measures, training
from clutils.course import records
from clutils.course.first_run import few_labels

NAME = "few_labels"
SEEDS = (0, 1, 2)
COUNTS = {"features": (10, 20, 50, 100, 500, 8000), "supervised": (20, 100, 8000, 500)}
RATES = (3e-3, 1e-2, 3e-2, 1e-1)
CHOSEN_AT = 100  # labels
STEPS = 300
BATCH = 128
JUDGED = 1500  # test images; as many after them choose the learning rate
WIDEST = 1000  # labels: a probe on 3,072 pixels of more images takes longer than all else together


def keep(row: dict[str, object], record: bool) -> None:
    """One result, with the command that makes it again."""
    command = (
        "python benchmarks/few_labels.py {part} --steps {steps} --counts {labels} --seeds {seed} --record"
    )
    records.keep(NAME, {"command": command.format(**row)} | row, record)


def features(options: argparse.Namespace, done: set) -> None:
    train, test = data.load("scenes"), data.load("scenes", "test", limit=JUDGED)
    for seed in options.seeds:
        run = training.Run(
            loss=losses.NTXent(0.2),
            data=train,
            encoder="conv16",
            steps=options.steps,
            batch_size=BATCH,
            learning_rate=1e-2,
            seed=seed,
        )  # notebook 03's
        for arm, embed in (
            ("raw pixels", measures.raw_inputs),
            ("untrained", run.embed),
            ("contrastive", run.embed),
        ):
            asked = [n for n in options.counts if arm != "raw pixels" or n <= WIDEST]
            asked = [n for n in asked if (arm, n, seed, options.steps) not in done]
            if not asked:
                continue
            if arm == "contrastive":
                run.finish(progress=False)
            z, test_z = embed(train), embed(test)
            for labels in asked:
                rows = few_labels.labelled(train.labels, labels, seed)
                accuracy = measures.linear_probe(z[rows], train.labels[rows], test_z, test.labels)
                row = {"part": "features", "arm": arm, "labels": labels, "seed": seed, "steps": options.steps}
                row |= {"step": run.steps_done, "learning_rate": 1e-2, "batch_size": BATCH}
                keep(row | {"source": train.source, "validation": None, "accuracy": accuracy}, options.record)


def supervised(options: argparse.Namespace, done: set) -> None:
    train, test = data.load("scenes"), data.load("scenes", "test", limit=2 * JUDGED)
    steps = options.steps
    looks = (steps // 2, 3 * steps // 4, steps)

    def run(labels: int, seed: int, rate: float) -> float:
        """Train, keep a row a look, return the accuracy by which the rate is chosen."""
        if ("supervised", labels, seed, steps, rate) in done:
            table = records.read(NAME).query(
                "part == 'supervised' and labels == @labels and seed == @seed and step == @steps "
                "and learning_rate == @rate"
            )
            return float(table["validation"].iloc[-1])
        part = train.subset(few_labels.labelled(train.labels, labels, seed))
        batch = min(BATCH, labels)
        found: list[Tensor] = few_labels.supervised(part, test, steps, looks, batch, rate, seed)
        for step, right in zip(looks, found, strict=True):
            judged, chosen_by = (side.double().mean().item() for side in right.split(JUDGED))
            row = {"part": "supervised", "arm": "supervised", "labels": labels, "seed": seed, "steps": steps}
            row |= {"step": step, "learning_rate": rate, "batch_size": batch, "source": train.source}
            keep(row | {"validation": chosen_by, "accuracy": judged}, options.record)
        return chosen_by

    rate = max(RATES, key=lambda rate: run(CHOSEN_AT, 0, rate))
    for labels in options.counts:
        for seed in options.seeds:
            if (labels, seed) != (CHOSEN_AT, 0):
                run(labels, seed, rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=("features", "supervised"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--counts", type=int, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.counts = options.counts or COUNTS[options.part]
    names = ("arm", "labels", "seed", "steps", *(("learning_rate",) if options.part == "supervised" else ()))
    done = records.known(NAME, *names) if options.record else set()
    (features if options.part == "features" else supervised)(options, done)


if __name__ == "__main__":
    main()
