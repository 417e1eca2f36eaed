"""Random streams of a run: each is seeded by (seed, stream, step), so that a resumed run is bit-identical."""

import numpy as np
import torch

STREAMS = ("weights", "order", "views", "mixes", "dropout")


def seed(of_run: int, stream: str, number: int = 0) -> int:
    """A number to seed one stream of random numbers with, unrelated to that of any other."""
    return int(np.random.SeedSequence([of_run, STREAMS.index(stream), number]).generate_state(1)[0])


def of(run_seed: int, name: str, number: int, device: torch.device | None = None) -> torch.Generator:
    """The random numbers of a stream, as of a step of this number; drawn on `device` where that is a GPU."""
    there = "cpu" if device is None or device.type != "cuda" else device
    return torch.Generator(there).manual_seed(seed(run_seed, name, number))
