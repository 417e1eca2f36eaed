"""SimCLR: two views of every picture, one encoder, one head, and the loss between them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from clutils import encoders


class SimCLR(nn.Module):
    """Chen et al. 2020, algorithm 1.

    - encoder: with `.features`, as from `encoders.build`
    - loss: of `clutils.losses`, or any module that takes two batches of embeddings
    - out: dimension of the space that the loss sees; the head is features -> features -> out
    - bfloat16: compute the encoder in it; head and loss stay in float32
    """

    paper, year = "SimCLR (Chen et al.)", 2020

    def __init__(self, encoder: nn.Module, loss: nn.Module, out: int = 128, bfloat16: bool = False) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = encoders.ProjectionHead(encoder.features, encoder.features, out)
        self.loss = loss
        self.bfloat16 = bfloat16
        self.extra_views = 0  # further views of each picture, handed to the loss as its positives

    def forward(
        self, images: Tensor, augment: Callable[..., Tensor], generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, C, H, W) pictures -> the loss, and both views' embeddings (B, out), detached.

        All views go through the encoder as one batch: its batch normalisation sees all of them.
        """
        number = 2 + self.extra_views
        views = encoders.as_input(augment(torch.cat([images] * number), generator=generator))
        with torch.autocast(views.device.type, dtype=torch.bfloat16, enabled=self.bfloat16):
            features = self.encoder(views)
        z1, z2, *further = self.head(features.float()).chunk(number)
        given = {"extra_views": torch.stack(further, dim=1)} if further else {}
        return self.loss(z1, z2, **given), z1.detach(), z2.detach()

    def chance(self, batch_size: int) -> float | None:
        """The loss of a batch where all similarities are 0: log(2B - 1) for NT-Xent; None if it has none."""
        if not hasattr(self.loss, "chance"):
            return None
        both = getattr(self.loss, "against", "both views") == "both views"
        return self.loss.chance(2 * batch_size - 2 if both else batch_size - 1)
