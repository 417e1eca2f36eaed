"""What the compiled views are worth in a whole training step: SimCLR with and without, in turns, in one run.

    python benchmarks/views_in_a_step.py [--turns 5] [--threads 1] [--record]

A CPU takes `views.compiled` where it can (numba), else the formulas of `views.batched`. Here two runs that
differ in nothing else take steps in turns; what is printed is how many times as many pictures a second the
compiled views give, the median of the turns with the lowest and highest. The first turn does not count.
--record adds a row for each case to benchmarks/records/views_in_a_step.csv.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable

import torch
from throughput import in_turns, ratio

from clutils import data, losses, training, views
from clutils.course import records

CASES = (  # encoder, side of the pictures, batch, steps a turn
    ("conv16", 32, 256, 6),
    ("conv16", 96, 128, 2),
    ("resnet18", 32, 64, 1),
    ("resnet18", 96, 16, 1),
)


def steps_of(
    images: torch.Tensor, encoder: str, batch: int, steps: int, compiled: Callable
) -> Callable[[], None]:
    """A function that takes so many steps of a run of its own, its views made by what `compiled` gives."""
    run = training.Run(
        loss=losses.NTXent(0.2), data=images, encoder=encoder, batch_size=batch, steps=10**6, device="cpu"
    )

    def take() -> None:
        views._compiled = compiled
        for _ in range(steps):
            run.step()

    return take


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="of torch; default: 1, as two train no faster")
    parser.add_argument("--cases", type=int, nargs="+", default=[0, 1, 2, 3], help="of CASES; default: all")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    by_numba = views._compiled
    if by_numba() is None:
        raise SystemExit("views_in_a_step: numba does not compile here, so there is nothing to compare")
    for number in options.cases:
        encoder, side, batch, steps = CASES[number]
        images = data.load("scenes", limit=2 * batch, size=side).images
        case = images, encoder, batch, steps
        ways = {"compiled": steps_of(*case, by_numba), "batched": steps_of(*case, lambda: None)}
        seconds = in_turns(ways, options.turns)
        command = f"python benchmarks/views_in_a_step.py --turns {options.turns} --threads {options.threads}"
        row = {"command": f"{command} --cases {number} --record"}
        row |= {"encoder": encoder, "side": side, "batch_size": batch, "steps": steps, "turns": options.turns}
        row |= ratio(seconds["batched"], seconds["compiled"])
        row["images_per_s"] = batch * steps / statistics.median(seconds["compiled"])
        row |= {"threads": torch.get_num_threads(), "load": os.getloadavg()[0]}
        records.keep("views_in_a_step", row, options.record)


if __name__ == "__main__":
    main()
