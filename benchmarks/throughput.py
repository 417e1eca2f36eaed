"""Images a second of this package's methods beside lightly's examples, whole steps, in turns, in one run.

    python benchmarks/throughput.py [--methods simclr moco byol vicreg dino] [--turns 3] [--steps 20]
                                    [--encoder conv16] [--workers 2] [--compile] [--json FILE] [--record]

Both train the same encoder from the same images (scenes, 32x32) with AdamW at a batch of 256, two views, on
as many threads as torch is given. lightly's side is its documentation's example for the method, with SimCLR's
views, blur off as for CIFAR-10: PIL images, `SimCLRTransform`, a DataLoader with 2 workers (kept between
epochs), the method's head and loss, as wide as ours, float32. For DINO that is without multi-crop, which ours
leaves out. What is promised, twice the images a second, is for float32 on both sides; what bfloat16 and
torch.compile add to SimCLR is printed apart. Where the time of our step goes is printed below: processor time
in the views, the forward pass, the loss, the backward pass and the optimiser, found by Python's profiler.

A turn is an epoch of --steps batches of each; the first turn, in which memory is taken, workers start and a
compiler may run, does not count. Printed: the median turn, and the median ratio with the lowest and highest.
Ratios of two turns side by side can be trusted on a machine that other work shares, images a second not. With
--workers 0 all of both sides is one process, whose processor time counts in place of the clock: for a machine
that is never quiet.
--record adds the ratios to benchmarks/records/throughput.csv.
"""

from __future__ import annotations

import argparse
import copy
import cProfile
import json
import os
import pstats
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from clutils import data, encoders, losses, training
from clutils.course import records
from clutils.training.provenance import provenance

BATCH, TEMPERATURE = 256, 0.2
METHODS = ("simclr", "moco", "byol", "vicreg", "dino")
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


def of_ours(
    images: torch.Tensor, encoder: str, method: str = "simclr", precision: str = "float32", **settings: Any
) -> training.Run:
    loss = losses.NTXent(TEMPERATURE) if method == "simclr" else None
    settings |= {"steps": 10**6, "precision": precision}  # not the default, which is bfloat16 on some CPUs
    return training.Run(method=method, loss=loss, data=images, encoder=encoder, **settings)


def clutils_epoch(run: training.Run) -> Callable[[], None]:
    def epoch() -> None:
        for _ in range(len(run.images) // BATCH):
            run.step()

    return epoch


def lightly_epoch(images: torch.Tensor, encoder: str, method: str, workers: int) -> Callable[[], None]:
    from lightly.transforms import SimCLRTransform

    pictures = Pictures(images, SimCLRTransform(input_size=images.shape[-1], gaussian_blur=0.0))
    loader = DataLoader(
        pictures, BATCH, shuffle=True, drop_last=True, num_workers=workers, persistent_workers=workers > 0
    )
    model, compare, follow = lightlys(encoders.build(encoder), method)
    learned = [weights for weights in model.parameters() if weights.requires_grad]
    optimiser = torch.optim.AdamW(learned, lr=training.usual_rate(encoder=encoder))

    def epoch() -> None:
        for x0, x1 in loader:
            follow()
            loss = compare(x0, x1)
            loss.backward()
            optimiser.step()
            optimiser.zero_grad()

    return epoch


def lightlys(
    backbone: nn.Module, method: str
) -> tuple[nn.Module, Callable[[torch.Tensor, torch.Tensor], torch.Tensor], Callable[[], None]]:
    """A method as lightly's documentation has it: weights, the loss of two views, what moves the target."""
    from lightly import loss
    from lightly.models import modules, utils
    from lightly.models.modules.heads import VICRegProjectionHead

    width, out = encoders.width(backbone), 128
    heads = {
        "simclr": lambda: modules.SimCLRProjectionHead(width, width, out),
        "moco": lambda: modules.MoCoProjectionHead(width, width, out),
        "byol": lambda: modules.BYOLProjectionHead(width, width, out),
        "vicreg": lambda: VICRegProjectionHead(width, width, out, num_layers=3),
        "dino": lambda: modules.DINOProjectionHead(width, width, out, 64, batch_norm=True),
    }
    model = nn.Sequential(backbone, heads[method]()).train()
    if method in ("simclr", "vicreg"):
        criterion = loss.NTXentLoss(TEMPERATURE) if method == "simclr" else loss.VICRegLoss()
        return model, lambda x0, x1: criterion(model(x0), model(x1)), lambda: None

    target = nn.Sequential(copy.deepcopy(backbone), heads[method]()).train()
    utils.deactivate_requires_grad(target)
    follow = lambda: utils.update_momentum(model, target, m=0.99)  # noqa: E731
    if method == "moco":
        criterion = loss.NTXentLoss(TEMPERATURE, memory_bank_size=(4096, out))
        return model, lambda x0, x1: criterion(model(x0), target(x1).detach()), follow
    if method == "dino":
        criterion = loss.DINOLoss(output_dim=64)

        def distilled(x0: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                answers = [target(x) for x in (x0, x1)]
            return criterion(answers, [model(x) for x in (x0, x1)], epoch=30)  # past the warm-up

        return model, distilled, follow
    predictor, criterion = modules.BYOLPredictionHead(out, width, out), loss.NegativeCosineSimilarity()

    def predicted(x0: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        p0, p1 = predictor(model(x0)), predictor(model(x1))
        return (criterion(p0, target(x1).detach()) + criterion(p1, target(x0).detach())) / 2

    return nn.ModuleList([model, predictor]), predicted, follow


def where(run: training.Run, steps: int = 10) -> dict[str, float]:
    """Shares of a step's processor time, by Python's profiler."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(lambda: [run.step() for _ in range(steps)])
    whole: dict[str, float] = {}

    def spent(file: str, *functions: str) -> float:
        found = pstats.Stats(
            profile
        ).stats  # (file, line, function) -> calls, ..., seconds with what it calls
        return sum(of[3] for (path, _, name), of in found.items() if file in path and name in functions)

    views_, loss = (
        spent("clutils/methods/base.py", "several_views"),
        spent("clutils/losses/base.py", "forward"),
    )
    whole["views"] = views_
    whole["forward pass"] = spent("clutils/methods/base.py", "forward") - views_ - loss
    whole["loss"] = loss
    whole["backward pass"] = spent("torch/_tensor.py", "backward")
    whole["optimiser"] = spent("torch/optim/optimizer.py", "wrapper")
    whole["all else"] = spent("clutils/training/step.py", "step") - sum(whole.values())
    return {name: seconds / sum(whole.values()) for name, seconds in whole.items()}


def in_turns(
    ways: dict[str, Callable[[], None]], turns: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Seconds of each turn of each way, the first left out."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            began = clock()
            way()
            if turn:
                seconds[name].append(clock() - began)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> dict[str, float]:
    """How many times as fast, turn by turn: median, lowest and highest."""
    ratios = [a / b for a, b in zip(slow, fast, strict=True)]
    return {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=["simclr"], help="default: simclr")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20, help="batches a turn; default: 20")
    parser.add_argument("--encoder", default="conv16", help="default: conv16")
    parser.add_argument("--workers", type=int, default=2, help="of lightly's loader; 0: processor time")
    parser.add_argument("--compile", action="store_true", help="torch.compile too; about a minute more")
    parser.add_argument("--json", type=Path, help="write what was found here")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    images = data.load("scenes", limit=BATCH * options.steps).images
    given = images, options.encoder
    runs = {f"{method}, {OURS}": of_ours(*given, method) for method in options.methods}
    ways, against = {}, {}
    for method in options.methods:
        ours, theirs = f"{method}, {OURS}", f"{method}, {THEIRS}"
        ways |= {ours: clutils_epoch(runs[ours]), theirs: lightly_epoch(*given, method, options.workers)}
        against[f"{method}: {OURS} / {THEIRS}"] = theirs, ours
    if "simclr" in options.methods:
        plain, fast = f"simclr, {OURS}", "simclr, clutils, bfloat16"
        ways[fast] = clutils_epoch(of_ours(*given, precision="bfloat16"))
        against["bfloat16 / float32"] = plain, fast
        for precision in ("float32", "bfloat16") if options.compile else ():
            name = f"simclr, clutils, {precision}"
            ways[f"{name}, compiled"] = clutils_epoch(of_ours(*given, precision=precision, compile=True))
            against[f"compiled / not, {precision}"] = name, f"{name}, compiled"
    seconds = in_turns(ways, options.turns, time.perf_counter if options.workers else time.process_time)
    rates = {name: len(images) / statistics.median(found) for name, found in seconds.items()}
    ratios = {name: ratio(seconds[slow], seconds[fast]) for name, (slow, fast) in against.items()}
    shares = {name: where(run) for name, run in runs.items()}
    threads = torch.get_num_threads()
    print(
        f"{options.encoder}, {threads} thread(s), {options.turns} turns of {options.steps} batches of {BATCH}"
    )
    for name, rate in rates.items():
        print(f"{name:32} {rate:8,.0f} images a second")
    for name, found in shares.items():
        print(f"{name:32} {', '.join(f'{part} {share:.0%}' for part, share in found.items())}")
    for name, found in ratios.items():
        print(f"{name:48} {found['median']:5.2f} x ({found['lowest']:.2f} to {found['highest']:.2f})")
    print(f"bfloat16 instructions: {encoders.computes_bfloat16('cpu')}; load {os.getloadavg()[0]:.1f}")
    settings = {"encoder": options.encoder, "batch": BATCH, "steps": options.steps}
    settings |= {
        "workers": options.workers,
        "turns": options.turns,
        "threads": threads,
        "load": round(os.getloadavg()[0], 1),
    }
    if options.record:
        command = f"python benchmarks/throughput.py --methods {' '.join(options.methods)} "
        command += f"--encoder {options.encoder} --turns {options.turns} --steps {options.steps} "
        command += f"--workers {options.workers} {'--compile ' if options.compile else ''}--record"
        for name, found in ratios.items():
            row = {"command": command, "ratio": name.removeprefix("simclr: ")} | found | settings
            ours = f"{name.split(': ')[0]}, {OURS}"
            row["where"] = ", ".join(f"{part} {share:.2f}" for part, share in shares.get(ours, {}).items())
            records.keep("throughput", row, record=True)
    if options.json:
        found = {
            "pictures_a_second": rates,
            "ratios": ratios,
            "where": shares,
            "seconds": seconds,
            "settings": settings,
        }
        options.json.write_text(json.dumps(found | provenance(), indent=1) + "\n")


if __name__ == "__main__":
    main()
