"""An encoder and what stands before it: pictures resized, shifted and scaled as it was trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from clutils import encoders
from clutils.checkpoints import Opened
from clutils.data import ImageSet

SIDES = (8, 1024)  # the least and the largest width that pictures may be resized to


class Unfit(ValueError):
    """An option that does not fit this encoder: what it is, and what there is."""


class Prepared(nn.Module):
    """An encoder and what stands before it: pictures in [0, 1] are resized, shifted and scaled for it.

    - layer: "encoder", "head", or the name of a module within the encoder (its output averaged over space)
    """

    def __init__(
        self,
        encoder: nn.Module,
        channels: int = 3,
        side: int | None = None,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
        layer: str = "encoder",
        head: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if min(std) <= 0 or not all(map(math.isfinite, (*mean, *std))):
            raise Unfit(f"mean is {tuple(mean)} and std {tuple(std)}, but std must be above 0")
        for name, values in (("mean", mean), ("std", std)):
            if len(values) not in (1, channels):
                raise Unfit(f"{name} has {len(values)} numbers, but the encoder takes {channels} channels")
        if layer == "head" and head is None:
            raise Unfit("layer is 'head', but the checkpoint has no head that could be rebuilt")
        inner = dict(encoder.named_modules())
        if layer not in ("encoder", "head") and layer not in inner:
            known = ", ".join(name for name in inner if name and "." not in name)
            deeper = next((name for name in inner if "." in name), "")
            within = f", or one within, as {deeper}" if deeper else ""
            raise Unfit(f"layer is {layer!r}, but must be encoder, head or a module: {known}{within}")
        self.encoder, self.head, self.layer = encoder, head, layer
        self.channels, self.side = channels, side
        device = next((weights.device for weights in encoder.parameters()), None)
        self.register_buffer("mean", torch.tensor(mean, device=device).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, device=device).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1 and self.channels == 3:
            images = images.expand(-1, 3, -1, -1)
        if images.shape[1] != self.channels:
            if self.channels == 1 and images.shape[1] == 3:
                raise Unfit(
                    "pictures have 3 channels, but the encoder takes 1: --grey (grey=True) averages their "
                    "colours, and digits and fashion-mnist are grey"
                )
            raise Unfit(
                f"pictures have {images.shape[1]} channels, but the encoder takes {self.channels}: pictures "
                "here are grey or red, green and blue"
            )
        if self.side is not None and tuple(images.shape[-2:]) != (self.side, self.side):
            images = nn.functional.interpolate(
                images, (self.side, self.side), mode="bilinear", antialias=True
            )
        x = encoders.as_input((images - self.mean) / self.std)
        if self.layer == "encoder":
            return self.encoder(x).flatten(1)
        if self.layer == "head":
            return self.head(self.encoder(x).flatten(1))
        caught = []
        handle = self.encoder.get_submodule(self.layer).register_forward_hook(
            lambda module, given, made: caught.append(made)
        )
        try:
            self.encoder(x)
        finally:
            handle.remove()
        made = caught[0]
        return made.mean(dim=tuple(range(2, made.ndim))) if made.ndim > 2 else made


def embed(prepared: Prepared, images: Tensor) -> Tensor:
    """Features, by batches that take as much memory for large pictures as 64 of 32x32 do."""
    side = prepared.side or max(images.shape[-2:])
    return encoders.embed(prepared, images, batch_size=max(4, min(512, 64 * 32 * 32 // side**2)))


def finite(prepared: Prepared, pictures: ImageSet) -> Tensor:
    z = embed(prepared, pictures.images)
    if not z.isfinite().all():
        bad = int((~z.isfinite()).any(dim=1).sum())
        raise ValueError(
            f"the features of {bad} in {len(z)} pictures are NaN or infinite: nothing can be measured"
        )
    return z


def demand_side(opened: Opened, size: int | None) -> int | None:
    """`size`. Raises Unfit where pictures can't be resized to it."""
    if size is not None and not SIDES[0] <= size <= SIDES[1]:
        raise Unfit(f"size is {size}, but must be from {SIDES[0]} to {SIDES[1]}")
    if size is not None and opened.side not in (None, size):
        raise Unfit(
            f"size is {size}, but {opened.arch} takes pictures of {opened.side} x {opened.side} alone"
        )
    return size
