"""Files of weights that the tests of checkpoints share."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable

import torch
from torch import nn

from clutils import encoders


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


def as_safetensors(state: dict[str, torch.Tensor]) -> bytes:
    """By the format's own description: a length, JSON, the bytes."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    kinds = {torch.float32: "F32", torch.int64: "I64"}
    for name, value in state.items():
        raw = value.contiguous().numpy().tobytes()
        header[name] = {
            "dtype": kinds[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [len(body), len(body) + len(raw)],
        }
        body += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + body


def conv_state(seed: int = 0) -> dict[str, torch.Tensor]:
    return seeded(lambda: encoders.build("conv16")).state_dict()
