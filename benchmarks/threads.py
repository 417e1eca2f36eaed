"""How much faster a second thread makes a training step on a CPU: why a run takes as many as torch has,
and one where its steps are small.

    python benchmarks/threads.py [--threads 1 2] [--turns 5] [--record]

Runs that differ in nothing but torch's threads take steps in turns, in one process; printed is how many times
as many images a second each number of threads gives as the first, the median of the turns with the lowest
and highest. The first turn does not count. --record adds the rows to benchmarks/records/threads.csv.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable

from throughput import in_turns, ratio

from clutils import data, training
from clutils.course import records

CASES = (  # method, encoder, side of the images, batch, steps a turn
    ("simclr", "conv16", 32, 256, 6),
    ("simclr", "conv16", 96, 128, 2),
    ("simclr", "resnet18", 32, 64, 1),
    ("byol", "conv16", 32, 256, 4),
    ("simclr", "conv16", 8, 64, 12),  # digits: a second thread is no gain
    ("simclr", "conv16", 8, 128, 8),
)


def steps_of(
    method: str, encoder: str, side: int, batch: int, steps: int, threads: int
) -> Callable[[], None]:
    """A function that takes so many steps of a run of its own, on so many threads."""
    small = side == 8  # digits are; scenes are 16 at least
    images = data.load("digits" if small else "scenes", limit=2 * batch, size=side).images
    run = training.Run(
        method, None, images, encoder, batch_size=batch, steps=10**6, device="cpu", threads=threads
    )

    def take() -> None:
        for _ in range(steps):
            run.step()

    return take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    asked = " ".join(map(str, options.threads))
    command = f"python benchmarks/threads.py --threads {asked} --turns {options.turns} --record"
    for method, encoder, side, batch, steps in CASES:
        ways = {n: steps_of(method, encoder, side, batch, steps, n) for n in options.threads}
        seconds = in_turns(ways, options.turns)
        for threads in options.threads[1:]:
            row = {
                "command": command,
                "method": method,
                "encoder": encoder,
                "side": side,
                "batch_size": batch,
            }
            row |= {"threads": threads, "against": options.threads[0], "turns": options.turns}
            row |= ratio(seconds[options.threads[0]], seconds[threads])
            row["images_per_s"] = batch * steps / statistics.median(seconds[threads])
            records.keep("threads", row | {"load": os.getloadavg()[0]}, options.record)


if __name__ == "__main__":
    main()
