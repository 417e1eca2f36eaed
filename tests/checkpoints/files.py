"""Files of weights that the tests of checkpoints share."""

import io
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from clutils import checkpoints, encoders


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    """A module with weights of its own everywhere, batch statistics included, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = build()
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(std=0.2)
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
    return module.eval()


def saved(value: object, **options: object) -> bytes:
    written = io.BytesIO()
    torch.save(value, written, **options)
    return written.getvalue()


def reopened(value: object, folder: Path, arch: str | None = None) -> checkpoints.Opened:
    """What is opened of a file that holds this."""
    torch.save(value, folder / "file.pt")
    return checkpoints.open(folder / "file.pt", arch)


def conv_state(seed: int = 0) -> dict[str, torch.Tensor]:
    return seeded(lambda: encoders.build("conv16")).state_dict()
