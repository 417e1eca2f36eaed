"""Preprocessing before an encoder: images resized, shifted and scaled as it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from clutils import encoders
from clutils.data import ImageSet


class Unfit(ValueError):
    """An option out of its range, or one that does not fit this encoder; option: its name, if it is one."""

    def __init__(self, said: str, option: str = "") -> None:
        super().__init__(said)
        self.option = option


class Prepared(nn.Module):
    """An encoder and what stands before it: images in [0, 1] are resized, shifted and scaled for it."""

    mean: Tensor
    std: Tensor
    in_bfloat16 = False
    takes_float32 = True  # whatever its encoder computes in

    def __init__(
        self,
        encoder: nn.Module,
        channels: int = 3,
        side: int | None = None,
        mean: Sequence[float] = (0.0,),
        std: Sequence[float] = (1.0,),
    ) -> None:
        super().__init__()
        device = next((weights.device for weights in encoder.parameters()), None)
        for name, values in (("mean", mean), ("std", std)):
            if len(values) not in (1, channels):
                raise Unfit(
                    f"{name} has {len(values)} numbers, but the encoder takes {channels} channels", name
                )
            self.register_buffer(name, torch.tensor(values, device=device).view(1, -1, 1, 1))
        self.encoder, self.channels, self.side = encoder, channels, side

    def settled(self, images: Tensor) -> Prepared:
        """The same network with batch statistics of these images, uint8."""
        return cast(Prepared, encoders.settled(self, images, 2 * batch_size(self, images)))

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[1] == 1 and self.channels == 3:
            images = images.expand(-1, 3, -1, -1)
        if images.shape[1] != self.channels:
            said = f"images have {images.shape[1]} channels, but the encoder takes {self.channels}"
            raise Unfit(f"{said}: images here are grey or red, green and blue")
        with torch.autocast(self.mean.device.type, torch.bfloat16, enabled=self.in_bfloat16):
            if self.side is not None and tuple(images.shape[-2:]) != (self.side, self.side):
                images = nn.functional.interpolate(
                    images, (self.side, self.side), mode="bilinear", antialias=True
                )
            fed = encoders.as_input((images - self.mean) / self.std, encoders.computes_in(self.encoder))
            return encoders.features_in(self.encoder(fed), self.encoder)


def as_taken(pictures: ImageSet, channels: int) -> ImageSet:
    """The images; for an encoder of grey images the mean of their colours, (N, 1, H, W) uint8."""
    if channels != 1 or pictures.images.shape[1] == 1:
        return pictures
    images = pictures.images.float().mean(dim=1, keepdim=True).round().to(torch.uint8)
    return replace(pictures, images=images, source=f"{pictures.source}, colours averaged")


def embed(prepared: Prepared, images: Tensor) -> Tensor:
    """Features, by batches of `batch_size` images.

    Raises ValueError where one is not finite, or so large that its square is not.
    """
    z = encoders.embed(prepared, images, batch_size=batch_size(prepared, images))
    bad = int((~z.square().sum(dim=1).isfinite()).sum())
    if bad:
        raise ValueError(
            f"the features of {bad} in {len(z)} images are NaN, infinite, or so large that their squares "
            "overflow: nothing can be measured; a checkpoint from before may be whole"
        )
    return z


def batch_size(prepared: Prepared, images: Tensor) -> int:
    """How many images at a time: what 32 of 32x32 take stays in a processor's cache, and is quickest."""
    side = prepared.side or max(images.shape[-2:])
    return max(4, min(512, 32 * 32 * 32 // side**2))
