"""SimCLR: two views of every image, one encoder, one head, and the loss between them."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils.methods.base import Augment, Method, several_views


class SimCLR(Method):
    """Chen et al. 2020, algorithm 1. encoder, loss, out, bfloat16, hidden: see `Method`."""

    paper, year, equation = "SimCLR (Chen et al.)", 2020, "algorithm 1"
    views_apart = False  # whether each view goes through the networks as a batch of its own

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, C, H, W) images -> the loss, and both views' embeddings (B, out), detached.

        All views go through the encoder as one batch: its batch normalisation sees all of them.
        """
        views = several_views(augment, images, generator, 2 + self.extra_views)
        batches = views if self.views_apart else [torch.cat(views)]
        embedded = torch.cat([self.head(self.features_of(batch)) for batch in batches])
        z1, z2, *further = embedded.chunk(len(views))
        given = {"extra_views": torch.stack(further, dim=1)} if further else {}
        return self.compare(z1, z2, index, **given), z1.detach(), z2.detach()
