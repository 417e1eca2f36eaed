"""Images a second of this package's SimCLR beside lightly's example, whole steps, in turns, in one run.

    python benchmarks/throughput.py [--turns 3] [--steps 20] [--encoder conv16] [--compile] [--json FILE]
                                    [--record]

Both train the same encoder from the same images (scenes, 32x32) with AdamW at a batch of 256, two views,
NT-Xent at the same temperature, on as many threads as torch is given. lightly's side is its documentation's
example for SimCLR, with blur off as for CIFAR-10: PIL images, `SimCLRTransform`, a DataLoader with 2
workers (kept between epochs), `SimCLRProjectionHead`, `NTXentLoss`, float32. What is promised, twice the
images a second, is for float32 on both sides; what bfloat16 and torch.compile add is printed apart.

A turn is an epoch of --steps batches of each; the first turn, in which memory is taken, workers start and a
compiler may run, does not count. Printed: the median turn, and the median ratio with the lowest and highest.
Ratios of two turns side by side can be trusted on a machine that other work shares, images a second not.
--record adds the ratios to benchmarks/records/throughput.csv.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from clutils import data, encoders, losses, training
from clutils.course import records
from clutils.training.provenance import provenance

BATCH, TEMPERATURE, WORKERS = 256, 0.2, 2
OURS, THEIRS = "clutils, float32", "lightly, float32"


class Pictures(Dataset):
    """PIL images, each transformed when it is asked for: as torchvision's data sets give them."""

    def __init__(self, images: torch.Tensor, transform: Callable[[Image.Image], list[torch.Tensor]]) -> None:
        self.images = [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        return self.transform(self.images[index])


def clutils_epoch(
    images: torch.Tensor, encoder: str, precision: str = "float32", compiled: bool = False
) -> Callable[[], None]:
    steps = len(images) // BATCH
    loss = losses.NTXent(TEMPERATURE)
    run = training.Run(
        loss=loss, data=images, encoder=encoder, steps=10**6, precision=precision, compile=compiled
    )

    def epoch() -> None:
        for _ in range(steps):
            run.step()

    return epoch


def lightly_epoch(images: torch.Tensor, encoder: str) -> Callable[[], None]:
    from lightly.loss import NTXentLoss
    from lightly.models.modules import SimCLRProjectionHead
    from lightly.transforms import SimCLRTransform

    pictures = Pictures(images, SimCLRTransform(input_size=images.shape[-1], gaussian_blur=0.0))
    loader = DataLoader(
        pictures, BATCH, shuffle=True, drop_last=True, num_workers=WORKERS, persistent_workers=True
    )
    backbone = encoders.build(encoder)
    head = SimCLRProjectionHead(backbone.features, backbone.features, 128)
    model = torch.nn.Sequential(backbone, head).train()
    criterion = NTXentLoss(temperature=TEMPERATURE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=training.usual_rate(encoder=encoder))

    def epoch() -> None:
        for x0, x1 in loader:
            loss = criterion(model(x0), model(x1))
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()

    return epoch


def in_turns(ways: dict[str, Callable[[], None]], turns: int) -> dict[str, list[float]]:
    """Seconds of each turn of each way, the first left out."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> dict[str, float]:
    """How many times as fast, turn by turn: median, lowest and highest."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="batches a turn; default: 20")
    parser.add_argument("--encoder", default="conv16", help="default: conv16")
    parser.add_argument("--compile", action="store_true", help="torch.compile too; about a minute more")
    parser.add_argument("--json", type=Path, help="write what was found here")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    images = data.load("scenes", limit=BATCH * options.steps).images
    ways = {
        OURS: clutils_epoch(images, options.encoder),
        THEIRS: lightly_epoch(images, options.encoder),
        "clutils, bfloat16": clutils_epoch(images, options.encoder, "bfloat16"),
    }
    if options.compile:
        for precision in ("float32", "bfloat16"):
            ways[f"clutils, {precision}, compiled"] = clutils_epoch(images, options.encoder, precision, True)
    seconds = in_turns(ways, options.turns)
    rates = {name: len(images) / statistics.median(found) for name, found in seconds.items()}
    against = {f"{OURS} / {THEIRS}": (THEIRS, OURS), "bfloat16 / float32": (OURS, "clutils, bfloat16")}
    if options.compile:
        for precision in ("float32", "bfloat16"):
            plain = f"clutils, {precision}"
            against[f"compiled / not, {precision}"] = plain, f"{plain}, compiled"
    ratios = {name: ratio(seconds[slow], seconds[fast]) for name, (slow, fast) in against.items()}
    threads = torch.get_num_threads()
    print(
        f"{options.encoder}, {threads} thread(s), {options.turns} turns of {options.steps} batches of {BATCH}"
    )
    for name, rate in rates.items():
        print(f"{name:32} {rate:8,.0f} images a second")
    for name, found in ratios.items():
        print(f"{name:36} {found['median']:5.2f} x ({found['lowest']:.2f} to {found['highest']:.2f})")
    print(f"bfloat16 instructions: {encoders.computes_bfloat16('cpu')}; load {os.getloadavg()[0]:.1f}")
    settings = {"encoder": options.encoder, "batch": BATCH, "steps": options.steps}
    settings |= {"turns": options.turns, "threads": threads, "load": round(os.getloadavg()[0], 1)}
    if options.record:
        command = f"python benchmarks/throughput.py --encoder {options.encoder} --turns {options.turns} "
        command += f"--steps {options.steps} {'--compile ' if options.compile else ''}--record"
        for name, found in ratios.items():
            row = {"command": command, "ratio": name} | found | settings
            records.keep("throughput", row, record=True)
    if options.json:
        found = {"pictures_a_second": rates, "ratios": ratios, "seconds": seconds, "settings": settings}
        options.json.write_text(json.dumps(found | provenance(), indent=1) + "\n")


if __name__ == "__main__":
    main()
