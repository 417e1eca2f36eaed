"""Files of weights that the tests of checkpoints share."""

import copy
import functools
import io
import struct
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest
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


def two_directories(whole: bytes) -> bytes:
    """Python reads the directory that ends at the end record, torch the one at the offset that it has."""
    end = whole.rindex(b"PK\x05\x06")
    size, start = struct.unpack("<II", whole[end + 12 : end + 20])
    second = bytearray(whole[start:end])
    at = 0
    while at < size:  # each entry's place, less what Python will add to it
        (place,) = struct.unpack("<I", second[at + 42 : at + 46])
        second[at + 42 : at + 46] = struct.pack("<i", place - size) if place >= size else b"\0\0\0\0"
        at += 46 + sum(struct.unpack("<HHH", second[at + 28 : at + 34]))
    return whole[:end] + bytes(second) + whole[end:]


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
    """Whether both give the same features of images of this size, in double precision."""
    images = torch.rand(2, 3, side, side, generator=torch.Generator().manual_seed(0)).double()
    found, expected = (copy.deepcopy(net).double()(images).flatten(1) for net in (encoder, original))
    return bool((found - expected).norm() <= 1e-6 * expected.norm())


def installed_timm(monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[], nn.Module]) -> None:
    """What of timm is called, by a module of one network."""

    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        assert (pretrained, num_classes) == (False, 0)
        return make()

    module = types.ModuleType("timm")
    module.create_model, module.is_model = create_model, lambda asked: asked == name
    module.list_models = lambda: [name]
    monkeypatch.setitem(sys.modules, "timm", module)
