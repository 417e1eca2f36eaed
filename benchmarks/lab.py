"""What the training lab's panel costs: images a second of a run in it, beside the same run bare.

    python benchmarks/lab.py [--rounds 3] [--seconds 15] [--json FILE]

Both train in the background with one of torch's threads; the panel also measures effective rank, kNN accuracy
and the map, draws and encodes its picture (no page is attached, so that nothing is sent to one). They take
turns, so that a busy machine slows them alike; the first round is for warming up. The exit code is 1 where
the panel costs more than 10 %.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from clutils import controls, data, records, training
from clutils.background import Background

MOST = 0.10
SETTLED = 3  # steps before the clock starts
SETTINGS = {"data": "scenes", "method": "simclr", "batch_size": 256, "seed": 0}


def rate(run: training.Run, stop: Callable[[], object], seconds: float) -> float:
    """Images a second of wall time of a run that trains, over so many seconds; it is then stopped."""
    while run.steps_done < SETTLED:
        time.sleep(0.01)
    began, before = time.perf_counter(), run.steps_done
    while run.steps_done == before:  # from the end of a step
        time.sleep(0.001)
    began, before = time.perf_counter(), run.steps_done
    time.sleep(seconds)
    now = run.steps_done
    while run.steps_done == now:  # to the end of one
        time.sleep(0.001)
    took, steps = time.perf_counter() - began, run.steps_done - before
    stop()
    return steps * run.batch_size / took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each run in each round; default: 15")
    parser.add_argument("--json", type=Path, help="write what was found into this file")
    arguments = parser.parse_args()

    pictures = data.load("scenes")
    bare, panel, looks, drawn, booked = [], [], [], [], []
    for turn in range(arguments.rounds + 1):
        run = training.Run(**SETTINGS | {"data": pictures, "steps": 1_000_000})
        background = Background(run).start()
        alone = rate(run, background.stop, arguments.seconds if turn else 2.0)

        lab = controls.training_lab(**SETTINGS, steps=1_000_000)
        pictures_drawn = count_pictures(lab)
        lab.start()
        beside = rate(lab.run, lab.background.stop, arguments.seconds if turn else 2.0)
        lab.wait()
        if not turn:
            continue
        watcher, seconds = lab.current.watcher, lab.run.rows[-1]["seconds"]
        bare.append(alone)
        panel.append(beside)
        looks.append(len(watcher.looks))
        drawn.append(pictures_drawn())
        booked.append(watcher.spent / seconds)
        print(
            f"round {turn}: bare {alone:,.0f}, in the panel {beside:,.0f} images/s; {looks[-1]} looks, "
            f"{drawn[-1]} pictures, booked {booked[-1]:.1%} of {seconds:.0f} s",
            flush=True,
        )

    share = 1 - statistics.median(b / a for a, b in zip(bare, panel, strict=True))
    print(f"the panel takes {share:.1%} of the images a second (at most {MOST:.0%})")
    if arguments.json:
        found = {
            "bare_images_a_second": bare,
            "panel_images_a_second": panel,
            "share": share,
            "looks": looks,
            "pictures": drawn,
            "booked_share": booked,
            "seconds": arguments.seconds,
            "settings": SETTINGS,
            "torch": torch.__version__,
            "platform": platform.machine(),
            **records.provenance(),
        }
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(share > MOST)


def count_pictures(lab: controls.Lab) -> Callable[[], int]:
    """How many pictures the panel has drawn since."""
    number, real = 0, lab._draw

    def draw(*arguments: object) -> None:
        nonlocal number
        number += 1
        real(*arguments)

    lab._draw = draw
    return lambda: number


if __name__ == "__main__":
    sys.exit(main())
