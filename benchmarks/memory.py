"""What it brings that glibc keeps a step's memory for the next one (`clutils/__init__.py`), on Linux.

    python benchmarks/memory.py [--turns 7] [--record]

Two processes take turns, one with glibc's own settings (an environment variable of glibc's is set, and the
package leaves it at that), one as the package sets it. Printed for each case: how many times as long a step
takes without (median of the turns, lowest, highest; the first does not count), and the peak memory of both.
--record adds the rows to benchmarks/records/memory.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from throughput import ratio

from clutils import data, encoders, training
from clutils.course import records

CASES = (  # what, encoder, batch, precision, how many a turn
    ("step", "conv16", 64, "float32", 20),
    ("step", "conv16", 256, "float32", 8),
    ("step", "conv16", 256, "bfloat16", 8),
    ("step", "conv32", 256, "float32", 4),
    ("step", "resnet18", 32, "float32", 1),
    ("embed", "conv16", 512, "float32", 1),
)
WITHOUT = {"MALLOC_PERTURB_": "0"}  # glibc's own value: it changes nothing but that it is there


def work(what: str, encoder: str, batch: int, precision: str) -> Callable[[], object]:
    if what == "embed":
        images = data.load("scenes", limit=5120).images
        return lambda: encoders.embed(encoders.build(encoder), images, batch)
    images = data.load("scenes", limit=4 * batch).images
    settings = {"batch_size": batch, "precision": precision, "steps": 10**6, "device": "cpu"}
    return training.Run("simclr", None, images, encoder, **settings).step


def answer(case: int) -> None:
    """In a child: for each line of stdin one turn; its seconds and the peak so far in MB, as JSON."""
    *of, times = CASES[case]
    way = work(*of)
    for _ in sys.stdin:
        began = time.perf_counter()
        for _ in range(times):
            way()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps([time.perf_counter() - began, peak]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        return answer(options.case)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    for number, (what, encoder, batch, precision, times) in enumerate(CASES):
        if precision == "bfloat16" and not encoders.computes_bfloat16("cpu"):
            continue
        command = [sys.executable, __file__, "--case", str(number)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        sides = [subprocess.Popen(command, env=own | more, **pipes) for more in (WITHOUT, {})]
        found: list[list[float]] = [[], []]
        peaks = [0.0, 0.0]  # MB
        for turn in range(options.turns + 1):
            for side, child in enumerate(sides):
                print(turn, file=child.stdin, flush=True)
                seconds, peaks[side] = json.loads(child.stdout.readline())
                found[side] += [seconds] if turn else []
        for child in sides:
            child.communicate()
        row = {"command": f"python benchmarks/memory.py --turns {options.turns} --record", "what": what}
        row |= {"encoder": encoder, "batch_size": batch, "precision": precision} | ratio(*found)
        row |= {
            "milliseconds": min(found[1]) / times * 1000,
            "peak_mb_without": peaks[0],
            "peak_mb": peaks[1],
        }
        records.keep("memory", row | {"load": os.getloadavg()[0]}, options.record)


if __name__ == "__main__":
    main()
