"""The dilemma of temperature on generated scenes: what NT-Xent learns at each temperature, seed by seed.

    python benchmarks/temperature.py                  five temperatures, three seeds, 100 steps: the record
    python benchmarks/temperature.py --steps 20 --temperatures 0.2 --seeds 0

Prints a line a run; with --record it is also added to benchmarks/records/temperature.csv, which notebook 12
shows. A run that the record already holds is left out, so an interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse
from typing import Any

from clutils import data, losses
from clutils.course import evidence, records
from clutils.data import ImageSet

TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0)
SEEDS = (0, 1, 2)
NAME = "temperature"


def at_temperature(
    temperature: float, train: ImageSet, test: ImageSet, steps: int, seed: int, precision: str = "float32"
) -> dict[str, Any]:
    """NT-Xent at one temperature -> its settings, and kNN, uniformity and tolerance at the end."""
    settings = {"loss": losses.NTXent(temperature), "encoder": "conv16", "learning_rate": 5e-3}
    settings |= {"seed": seed, "precision": precision}
    (row,) = evidence.train_and_evaluate(settings, train, test, test, steps, [steps], batch_size=256)
    named = {"temperature": temperature, "seed": seed, "steps": steps, "precision": precision}
    return named | {name: row[name] for name in ("knn", "uniformity", "tolerance")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--temperatures", type=float, nargs="+", default=TEMPERATURES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    train, test = data.load("scenes"), data.load("scenes", split="test")
    done = records.known(NAME, "temperature", "seed", "steps") if options.record else set()
    for seed in options.seeds:
        for temperature in options.temperatures:
            if (temperature, seed, options.steps) in done:
                continue
            command = (
                f"python benchmarks/temperature.py --record --steps {options.steps} "
                f"--temperatures {temperature} --seeds {seed}"
            )
            found = at_temperature(temperature, train, test, options.steps, seed)
            records.keep(NAME, {"command": command, "source": train.source, **found}, options.record)


if __name__ == "__main__":
    main()
