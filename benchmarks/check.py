"""Cost of `python -m clutils check`: ResNet-18 on generated scenes of 32x32, with both maps and all.

    python benchmarks/check.py                       1,000 and 10,000 images: wall, CPU seconds, peak memory
    python benchmarks/check.py --pictures 1000
    python benchmarks/check.py --quick               what the first screen alone costs
    python benchmarks/check.py --profile             where the time goes: seconds of each stage, on one thread
    python benchmarks/check.py --record              and a row each in benchmarks/records/check.csv

Each is a process of its own, started as a reader starts it, so imports and the drawing of scenes are in. The
weights are fresh, with batch statistics of scenes: what a check costs does not depend on what was learned.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from clutils import data, encoders
from clutils.course import records

NAME, SIZES = "check", (1000, 10_000)


def keep_encoder(path: Path) -> None:
    """A ResNet-18 with a 3x3 stem that has seen some scenes, as a bare state dict."""
    torch.manual_seed(0)
    net = encoders.build("resnet18").train()
    with torch.no_grad():
        for batch in data.load("scenes", limit=640).images.split(64):
            net(encoders.as_input(batch))
    torch.save(net.state_dict(), path)


def profiled(file: Path, pictures: int, quick: bool) -> list[tuple[str, float, float]]:
    """(stage, seconds on the wall, of the processor) of one check in this process, on one thread."""
    from clutils import report

    torch.set_num_threads(1)
    given = report.load("scenes", pictures)
    marks: list[tuple[str, float, float]] = []

    def mark(stage: str) -> None:
        marks.append((stage, time.perf_counter(), time.process_time()))

    found = report.check(str(file), given, on_stage=mark, quick=quick)
    mark("the first screen, as an image")
    found.write(file.with_suffix(".png"))
    mark("the page")
    found.write(file.with_suffix(".html"))
    mark("end")
    ends = marks[1:]
    return [(name, b[1] - wall, b[2] - cpu) for (name, wall, cpu), b in zip(marks, ends, strict=False)]


def measured(file: Path, pictures: int, page: Path, quick: bool) -> dict[str, Any]:
    """One check in a process of its own: seconds on the wall and of the processor, and its largest memory."""
    command = [sys.executable, "-m", "clutils", "check", str(file), "--data", "scenes"]
    command += ["--pictures", str(pictures), "--out", str(page), *["--quick"] * quick]
    began = time.perf_counter()
    process = subprocess.Popen(command, cwd=records.ROOT, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"check ended with exit code {process.returncode}: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return {
        "pictures": pictures,
        "seconds": round(wall, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(used.ru_maxrss * unit / 1e6),
        "page_kb": round(page.stat().st_size / 1e3),
        "load_before": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pictures", type=int, nargs="+", default=SIZES)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "resnet18.pt"
        keep_encoder(file)
        for pictures in options.pictures:
            if options.profile:
                print(
                    f"{pictures:,} images{', quick' * options.quick}: seconds on the wall, of the processor"
                )
                for stage, wall, cpu in profiled(file, pictures, options.quick):
                    print(f"  {stage:32} {wall:6.1f} {cpu:6.1f}", flush=True)
                continue
            found = measured(file, pictures, Path(folder) / "report.html", options.quick)
            print(*(f"{name} {value}" for name, value in found.items()), flush=True)
            if options.record:
                flag = " --quick" * options.quick
                command = f"python benchmarks/check.py --pictures {pictures}{flag} --record"
                settings = {"encoder": "resnet18", "data": "scenes", "threads": torch.get_num_threads()}
                records.append(NAME, {"command": command} | settings | found)


if __name__ == "__main__":
    main()
