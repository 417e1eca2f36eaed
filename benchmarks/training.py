"""How fast the small net trains on this machine, and where a step's time goes: ratios from one run.

    python benchmarks/training.py [--rounds 5] [--out benchmarks/training.json]

The ways are timed in turns, a step of each a round, so that a busy machine slows them alike; what is printed
is the processor time of the median step (all threads together), and its ratio to plain float32.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from clutils import data, encoders, losses, methods, views

BATCH = 256


class PoolingLast(encoders.ConvNet):
    """The usual order, to compare with: convolution, normalisation, ReLU, pooling."""

    def forward(self, images: Tensor) -> Tensor:
        x = images
        layers = zip(self.convolutions, self.normalisations, strict=True)
        for layer, (convolve, normalise) in enumerate(layers):
            x = nn.functional.relu(normalise(convolve(x)), inplace=True)
            if layer < 3 and min(x.shape[-2:]) > 2:
                x = nn.functional.max_pool2d(x, 2)
        return x.mean(dim=(2, 3))


def stepper(net: nn.Module, bfloat16: bool, channels_last: bool) -> Callable[[Tensor], None]:
    """Forward and backward of two views, without the optimiser and the augmentation."""
    order = torch.channels_last if channels_last else torch.contiguous_format
    method = methods.SimCLR(net, losses.NTXent(temperature=0.2)).to(memory_format=order).train()

    def step(both: Tensor) -> None:
        both = both.contiguous(memory_format=order)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            features = method.encoder(both)
        method.loss(*method.head(features.float()).chunk(2)).backward()
        method.zero_grad()

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images = data.load("scenes", limit=BATCH).images
    augment, generator = views.Augmentation(), torch.Generator().manual_seed(0)
    both = augment(torch.cat([images, images]), generator)
    ways: dict[str, Callable[[], object]] = {}
    for bfloat16 in (False, True):
        for channels_last in (False, True):
            name = ("bfloat16" if bfloat16 else "float32") + (", channels last" if channels_last else "")
            step = stepper(encoders.build("conv16"), bfloat16, channels_last)
            ways[name] = lambda step=step: step(both)
    usual = stepper(PoolingLast(), False, True)
    ways["float32, channels last, pooling after the ReLU"] = lambda: usual(both)
    ways["augmentation alone"] = lambda: augment(torch.cat([images, images]), generator)

    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(arguments.rounds + 1):
        for name, way in ways.items():
            started = time.process_time()
            way()
            if turn:  # the first is for allocating
                times[name].append(time.process_time() - started)
    median = {name: statistics.median(found) for name, found in times.items()}

    plain, best = median["float32"], min(median[name] for name in ways if name != "augmentation alone")
    print(f"conv16, {BATCH} scenes of 32x32, two views, forward and backward; {arguments.rounds} rounds")
    for name, seconds in median.items():
        print(
            f"{name:48} {BATCH / seconds:7,.0f} images a processor second, {plain / seconds:5.2f} x float32"
        )
    share = median["augmentation alone"] / (best + median["augmentation alone"])
    print(f"share of the augmentation in a step of the fastest way: {share:.0%}")
    print(f"bfloat16 instructions, as clutils sees it: {encoders.computes_bfloat16('cpu')}")
    if arguments.out:
        found = {
            "pictures_a_processor_second": {name: BATCH / seconds for name, seconds in median.items()},
            "ratio_to_float32": {name: plain / seconds for name, seconds in median.items()},
            "share_of_augmentation": share,
            "bfloat16_instructions": encoders.computes_bfloat16("cpu"),
            "rounds": arguments.rounds,
            "threads": torch.get_num_threads(),
            "torch": torch.__version__,
            "processor": platform.machine(),
        }
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
