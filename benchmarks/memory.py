"""Gain of keeping a training step's memory for the next one (glibc), on Linux, on a CPU.

    python benchmarks/memory.py [--turns 7] [--record]

Two processes take turns: one as the package has it (`training.devices.memory_kept`), one without. Printed for
each case: how many times as long a step takes without (median of the turns, lowest, highest; the first turn
does not count), and the peak memory of both. Last the same of `encoders.embed`, with batches of 512 images in
place of 128.
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

import torch
from throughput import ratio

from clutils import data, encoders, training
from clutils.course import records
from clutils.training import devices

CASES = (  # what, encoder, batch, precision, how many a turn
    ("step", "conv16", 64, "float32", 20),
    ("step", "conv16", 256, "float32", 8),
    ("step", "conv16", 256, "bfloat16", 8),
    ("step", "conv32", 256, "float32", 4),
    ("step", "resnet18", 32, "float32", 1),
    ("embed", "conv16", 128, "float32", 1),
)


def work(what: str, encoder: str, batch: int, precision: str, before: bool) -> Callable[[], object]:
    if what == "embed":
        images, network = data.load("scenes", limit=5120).images, encoders.build(encoder)
        return lambda: encoders.embed(network, images, 512 if before else None)
    if before:
        devices._glibc = lambda: None
    images = data.load("scenes", limit=4 * batch).images
    settings = {"batch_size": batch, "precision": precision, "steps": 10**6, "device": "cpu"}
    return training.Run("simclr", None, images, encoder, **settings).step


def answer(case: int, before: bool) -> None:
    """In a child: for each line of stdin one turn; its seconds and the peak so far in MB, as JSON."""
    *of, times = CASES[case]
    way = work(*of, before)
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
    parser.add_argument("--before", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        return answer(options.case, options.before)
    if devices._glibc() is None:
        parser.error("memory is left as it is here: another C library than glibc, or thresholds of your own")
    for number, (what, encoder, batch, precision, times) in enumerate(CASES):
        if precision == "bfloat16" and not encoders.computes_bfloat16("cpu"):
            continue
        command = [sys.executable, __file__, "--case", str(number)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        sides = [subprocess.Popen([*command, *more], **pipes) for more in (["--before"], [])]
        seconds: list[list[float]] = [[], []]
        peaks = [0.0, 0.0]
        for turn in range(options.turns + 1):
            for side in (0, 1) if turn % 2 else (1, 0):  # neither always first
                print(turn, file=sides[side].stdin, flush=True)
                took, peaks[side] = json.loads(sides[side].stdout.readline())
                seconds[side] += [took] if turn else []
        for child in sides:
            child.communicate()
        row = {"command": f"python benchmarks/memory.py --turns {options.turns} --record", "what": what}
        row |= {"encoder": encoder, "batch_size": batch, "precision": precision} | ratio(*seconds)
        row |= {
            "milliseconds": min(seconds[1]) / times * 1000,
            "peak_mb_before": peaks[0],
            "peak_mb": peaks[1],
        }
        row |= {"threads": torch.get_num_threads(), "load": os.getloadavg()[0]}
        records.keep("memory", row, options.record)


if __name__ == "__main__":
    main()
