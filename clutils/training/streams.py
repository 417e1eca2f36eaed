"""Random streams of a run: each is seeded by (seed, stream, step), so that a resumed run is bit-identical."""

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

STREAMS = ("weights", "order", "views", "mixes", "dropout")


def seed(of_run: int, stream: str, number: int = 0) -> int:
    """Seed of one stream of random numbers, unrelated to that of any other."""
    return int(np.random.SeedSequence([of_run, STREAMS.index(stream), number]).generate_state(1)[0])


def of(run_seed: int, name: str, number: int, device: torch.device | None = None) -> torch.Generator:
    """Generator of a stream at this step; on `device` where that is a GPU."""
    there = "cpu" if device is None or device.type != "cuda" else device
    return torch.Generator(there).manual_seed(seed(run_seed, name, number))


class Drawing(TorchDispatchMode):
    """Context manager: torch's random numbers of this thread come from a generator of its own.

    They are those of `torch.manual_seed(seed)`. torch's default generator, which all threads share, is left
    alone: what other threads draw meanwhile changes nothing here, and the other way round.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in function.tags and kwargs.get("generator") is None:
            if not any(argument.name == "generator" for argument in function._schema.arguments):
                function = function.overloadpacket.generator  # as of torch.randn
            kwargs = kwargs | {"generator": self.generator}
        return function(*args, **kwargs)
