"""Cost of the training lab's panel: images a second of a run in it, beside the same run bare.

    python benchmarks/lab.py [--rounds 3] [--seconds 15] [--json FILE] [--record]

Both train in the background with torch's threads; the panel also measures effective rank, kNN accuracy
and the map, draws and encodes its image (no page is attached, so that nothing is sent to one). They take
turns, now the one first and now the other; the first round is for warming up. Two shares are printed: of the
images a second, which is what a reader waits for and which needs a machine with nothing else to do; and of
the processor's time for an image (all threads together), which a busy machine tells, too. The exit code is 1
where the panel takes more than 10 % of the images a second. --record adds both to benchmarks/records/lab.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from clutils import data, training
from clutils.course import lab as lesson
from clutils.course import records
from clutils.training.background import Background

MOST = 0.10
SETTLED = 3  # steps before the clock starts
SETTINGS = {"data": "scenes", "method": "simclr", "batch_size": 256, "seed": 0}


def rate(run: training.Run, stop: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Images a second, and processor seconds an image, of a run that trains; it is then stopped."""
    while run.steps_done < SETTLED:
        time.sleep(0.01)
    before = run.steps_done
    while run.steps_done == before:  # from the end of a step
        time.sleep(0.001)
    began, worked, before = time.perf_counter(), time.process_time(), run.steps_done
    time.sleep(seconds)
    now = run.steps_done
    while run.steps_done == now:  # to the end of one
        time.sleep(0.001)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    images = (run.steps_done - before) * run.settings.batch_size
    stop()
    return images / took, worked / images


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each run in each round; default: 15")
    parser.add_argument("--json", type=Path, help="write what was found into this file")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()

    pictures = data.load("scenes")
    rates, costs = {"bare": [], "panel": []}, {"bare": [], "panel": []}
    looks, drawn, booked = [], [], []

    def bare(seconds: float) -> tuple[float, float]:
        run = training.Run(**SETTINGS | {"data": pictures, "steps": 1_000_000})
        background = Background(run).start()
        return rate(run, background.stop, seconds)

    def panel(seconds: float) -> tuple[float, float]:
        lab = lesson.training_lab(**SETTINGS, steps=1_000_000)
        pictures_drawn = count_pictures(lab)
        lab.start()
        found = rate(lab.run, lab.background.stop, seconds)
        lab.wait()
        looks.append(len(lab.current.watcher.looks))
        drawn.append(pictures_drawn())
        booked.append(lab.current.watcher.seconds_total / lab.run.rows[-1]["seconds"])
        return found

    ways = {"bare": bare, "panel": panel}
    for turn in range(arguments.rounds + 1):
        for name in sorted(ways, reverse=turn % 2 == 0):
            images, cost = ways[name](arguments.seconds if turn else 2.0)
            rates[name].append(images)
            costs[name].append(cost)
        print(
            f"round {turn}: bare {rates['bare'][-1]:,.0f}, panel {rates['panel'][-1]:,.0f} images/s; bare "
            f"{costs['bare'][-1] * 1e3:.3f}, panel {costs['panel'][-1] * 1e3:.3f} ms of processor an image; "
            f"{looks[-1]} looks, {drawn[-1]} images, booked {booked[-1]:.1%} of the time",
            flush=True,
        )
    first = 1 if arguments.rounds else 0  # after the one for warming up
    shares = [1 - b / a for a, b in list(zip(*rates.values(), strict=True))[first:]]
    share = statistics.median(shares)
    work = 1 - statistics.median(a / b for a, b in list(zip(*costs.values(), strict=True))[first:])
    print(f"the panel takes {share:.1%} of the images a second (at most {MOST:.0%}; ", end="")
    print(f"of a round {min(shares):.1%} to {max(shares):.1%})")
    print(f"and {work:.1%} of the processor's time")
    if arguments.record:
        command = (
            f"python benchmarks/lab.py --rounds {arguments.rounds} --seconds {arguments.seconds:g} --record"
        )
        row = {"command": command, "source": pictures.source} | SETTINGS
        row |= {"rounds": arguments.rounds, "seconds": arguments.seconds, "share": share}
        row |= {"share_lowest": min(shares), "share_highest": max(shares)}
        row |= {"share_of_processor_time": work, "load": round(os.getloadavg()[0], 1)}
        row |= {"images_per_s_bare": statistics.median(rates["bare"][first:])}
        row |= {"images_per_s_panel": statistics.median(rates["panel"][first:])}
        records.keep("lab", row, record=True)
    if arguments.json:
        found = {
            "images_a_second": rates,
            "processor_seconds_an_image": costs,
            "share": share,
            "share_of_processor_time": work,
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


def count_pictures(lab: lesson.Lab) -> Callable[[], int]:
    """How many images the panel has drawn since."""
    number, real = 0, lab.screen.draw

    def draw(*arguments: object) -> None:
        nonlocal number
        number += 1
        real(*arguments)

    lab.screen.draw = draw
    return lambda: number


if __name__ == "__main__":
    sys.exit(main())
