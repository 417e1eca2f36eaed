"""Time and memory of the losses, forward and backward: ours beside lightly's, and each beside our NT-Xent.

    python benchmarks/losses.py                      every part, a few minutes on two cores
    python benchmarks/losses.py --parts lightly --batch-sizes 256 1024
    python benchmarks/losses.py --record             also into benchmarks/records/loss_speed.csv

Three parts, embeddings of 128 dimensions in float32 on the CPU, temperature 0.1 where theirs and ours meet:

- lightly: NTXent and Decoupled beside lightly's NTXentLoss and DCLLoss
- blocks: every loss that is a function of similarities, in blocks of anchors, beside the whole table at once
- family: every other loss of the catalogue, with its defaults, beside our NTXent (MoCHi's defaults are for a
  queue of 65,536: here it mixes 64 and 32 out of 128)

The two of a pair are timed in turns, so that a busy machine slows both alike: trust the ratio, which is the
median of the turns' own. Peak memory is what all tensors hold at once beyond the embeddings, counted by
torch's profiler in one forward and backward.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from clutils import losses
from clutils.course import records

NAME, DIMENSION, TEMPERATURE, THREADS = "loss_speed", 128, 0.1, 2
WHOLE = " whole table"
TIMED = {"lightly": (256, 1024, 4096), "blocks": (256, 1024), "family": (256, 1024, 4096)}
ONLY_MEMORY = {"blocks": (8192,)}
SETTINGS = {"MoCHi": {"hardest": 128, "synthetic": 64, "query_mixed": 32}}
REPEATS = {256: 21, 1024: 9, 4096: 3}
Loss = Callable[[Tensor, Tensor], Tensor]


def build(name: str, temperature: float | None = TEMPERATURE) -> Loss:
    """One of our losses, of lightly's, or ours on the whole table; temperature None = its own default."""
    if name.startswith("lightly "):
        import lightly.loss

        return getattr(lightly.loss, name.removeprefix("lightly "))(temperature)
    kind = losses.catalogue()[name.removesuffix(WHOLE)].cls
    named = {} if temperature is None or "temperature" not in kind.ranges else {"temperature": temperature}
    loss = kind(**SETTINGS.get(name, {}), **named)
    if name.endswith(WHOLE):
        loss.block_size = 2**30  # anchors: more than there are
    return loss


def pairs(part: str) -> list[tuple[str, str]]:
    """Who is measured beside whom."""
    if part == "lightly":
        return [("NTXent", "lightly NTXentLoss"), ("Decoupled", "lightly DCLLoss")]
    if part == "blocks":
        known = losses.catalogue().items()
        return [(name, name + WHOLE) for name, entry in known if entry.level == "similarity"]
    return [(name, "NTXent") for name in losses.catalogue() if name != "NTXent"]


def embeddings(batch: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    z1, z2 = (torch.randn(batch, DIMENSION, generator=draw).requires_grad_() for _ in range(2))
    return z1, z2


def step(loss: Loss, z1: Tensor, z2: Tensor) -> float:
    """Seconds of a forward and a backward."""
    z1.grad = z2.grad = None
    began = time.perf_counter()
    loss(z1, z2).backward()
    return time.perf_counter() - began


def in_turns(ours: Loss, theirs: Loss, batch: int, repeats: int) -> dict[str, float]:
    """Median seconds of both, and the median of the turns' ratios."""
    z1, z2 = embeddings(batch)
    step(ours, z1, z2), step(theirs, z1, z2)  # to warm up
    turns = [(step(ours, z1, z2), step(theirs, z1, z2)) for _ in range(repeats)]
    return {
        "milliseconds": 1e3 * statistics.median(a for a, _ in turns),
        "milliseconds_beside": 1e3 * statistics.median(b for _, b in turns),
        "time_ratio": statistics.median(a / b for a, b in turns),
    }


def peak(loss: Loss, batch: int) -> float:
    """Megabytes of tensors, at most, that a forward and a backward hold at once beyond their input."""
    z1, z2 = embeddings(batch)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profiled:
        loss(z1, z2).backward()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        profiled.export_chrome_trace(str(trace))
        events = json.loads(trace.read_text())["traceEvents"]
    taken = sorted((e["ts"], e["args"]["Bytes"]) for e in events if e.get("name") == "[memory]")
    return max(accumulate(size for _, size in taken)) / 1e6


def measure(part: str, name: str, beside: str, batch: int, timed: bool) -> dict[str, Any]:
    temperature = None if part == "family" else TEMPERATURE
    repeats = REPEATS[batch] if timed else 0
    times: dict[str, float | None] = dict.fromkeys(("milliseconds", "milliseconds_beside", "time_ratio"))
    if timed:
        times |= in_turns(build(name, temperature), build(beside, temperature), batch, repeats)
    ours, theirs = (peak(build(each, temperature), batch) for each in (name, beside))
    row = {"part": part, "loss": name, "beside": beside, "batch_size": batch, "dimension": DIMENSION}
    row |= {"repeats": repeats, "threads": THREADS} | times
    row |= {"peak_mb": ours, "peak_mb_beside": theirs, "memory_ratio": ours / theirs}
    return {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}


def line(row: dict[str, Any]) -> str:
    time_taken = "not timed"
    if row["repeats"]:
        time_taken = f"{row['milliseconds']:.4g} : {row['milliseconds_beside']:.4g} = {row['time_ratio']:.2f}"
    memory = f"{row['peak_mb']:.4g} : {row['peak_mb_beside']:.4g} = {row['memory_ratio']:.2f}"
    return f"{row['loss']:<16}{row['beside']:<24}{row['batch_size']:>6}{time_taken:>28}{memory:>28}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=tuple(TIMED), default=tuple(TIMED))
    parser.add_argument("--batch-sizes", type=int, nargs="+", help="of those that a part has")
    parser.add_argument("--losses", nargs="+", choices=tuple(losses.catalogue()), help="of ours; default all")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(THREADS)
    warnings.filterwarnings("ignore", module="lightly")
    print(f"{'loss':<16}{'beside':<24}{'pairs':>6}{'ms : ms = ratio':>28}{'MB : MB = ratio':>28}")
    for part in options.parts:
        for batch in (*TIMED[part], *ONLY_MEMORY.get(part, ())):
            if options.batch_sizes and batch not in options.batch_sizes:
                continue
            for name, beside in pairs(part):
                if options.losses and name not in options.losses:
                    continue
                try:
                    build(name, None if part == "family" else TEMPERATURE)(*embeddings(256))
                except ValueError as reason:
                    print(f"{name:<16}{beside:<24}{batch:>6}  left out: {reason}")
                    continue
                row = measure(part, name, beside, batch, batch in TIMED[part])
                print(line(row), flush=True)
                if options.record:
                    which = f"--parts {part} --batch-sizes {batch} --losses {name}"
                    command = f"python benchmarks/losses.py --record {which}"
                    records.append(NAME, {"command": command, **row})


if __name__ == "__main__":
    main()
