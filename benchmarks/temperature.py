"""The dilemma of temperature on generated scenes: what NT-Xent learns at each temperature, seed by seed.

    python benchmarks/temperature.py                  five temperatures, three seeds, 100 steps: the record
    python benchmarks/temperature.py --steps 20 --temperatures 0.2 --seeds 0

Prints a line a run; with --record it is also added to benchmarks/records/temperature.csv, which notebook 02
shows. A run that the record already holds is left out, so an interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse

from clutils import data
from clutils.course import experiments, records

TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0)
SEEDS = (0, 1, 2)
NAME = "temperature"


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
            _, found = experiments.at_temperature(temperature, train, test, options.steps, seed, "float32")
            print(
                *(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items()),
                flush=True,
            )
            if options.record:
                command = (
                    f"python benchmarks/temperature.py --record --steps {options.steps} "
                    f"--temperatures {temperature} --seeds {seed}"
                )
                rounded = {k: round(v, 6) if isinstance(v, float) else v for k, v in found.items()}
                row = {"command": command, "source": train.source, **rounded}
                records.append(NAME, row)


if __name__ == "__main__":
    main()
