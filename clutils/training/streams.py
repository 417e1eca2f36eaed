"""Random streams of a run: each is seeded by (seed, stream, step), so that a resumed run is bit-identical."""

from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

STREAMS = ("weights", "order", "views", "mixes", "dropout")

DRAWS = {  # torch's functions and those of torch.nn.init that take a generator
    *("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "uniform_", "normal_"),
    *("bernoulli_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_", "trunc_normal_"),
    *("kaiming_uniform_", "kaiming_normal_", "xavier_uniform_", "xavier_normal_", "orthogonal_", "sparse_"),
}


def seed(of_run: int, stream: str, number: int = 0) -> int:
    """Seed of one stream of random numbers, unrelated to that of any other."""
    return int(np.random.SeedSequence([of_run, STREAMS.index(stream), number]).generate_state(1)[0])


def of(run_seed: int, name: str, number: int, device: torch.device | None = None) -> torch.Generator:
    """Generator of a stream at this step; on `device` where that is a GPU."""
    there = "cpu" if device is None or device.type != "cuda" else device
    return torch.Generator(there).manual_seed(seed(run_seed, name, number))


class Drawing(TorchFunctionMode):
    """Context manager: torch's random numbers of this thread come from a generator of its own.

    They are those of `torch.manual_seed(seed)`. torch's default generator, which all threads share, is left
    alone: what other threads draw meanwhile changes nothing here, and the other way round. It covers the
    functions in `DRAWS`, which is what networks draw their first weights by. (A `TorchDispatchMode` would
    cover all, but loads torch's compiler, which takes two seconds.)
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in DRAWS and kwargs.get("generator") is None:
            kwargs = kwargs | {"generator": self.generator}
        return function(*args, **kwargs)
