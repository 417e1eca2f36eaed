"""Files of weights that the tests of checkpoints share."""

import functools
import io
from collections.abc import Callable
from pathlib import Path

import torch
import torchvision
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


def small_stem(net: nn.Module, padding: int = 1) -> nn.Module:
    net.conv1 = nn.Conv2d(3, 64, 3, 1, padding, bias=False)
    net.maxpool = nn.Identity()
    return net


@functools.cache
def resnet18(padding: int = 0) -> nn.Module:
    """torchvision's; with a padding, its stem for small images."""
    build = torchvision.models.resnet18
    return seeded(lambda: small_stem(build(), padding) if padding else build())


def prefixed(begin: str, state: dict[str, torch.Tensor], drop: str = "-") -> dict[str, torch.Tensor]:
    """The weights under names that begin so, without those that began with `drop`."""
    return {begin + name: value for name, value in state.items() if not name.startswith(drop)}


@torch.no_grad()
def same(encoder: nn.Module, original: nn.Module, side: int = 32) -> bool:
    """Whether both give the same features of images of this size."""
    images = torch.rand(4, 3, side, side, generator=torch.Generator().manual_seed(0))
    return torch.allclose(encoder(images).flatten(1), original(images).flatten(1), atol=1e-4)
