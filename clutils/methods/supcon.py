"""SupCon: SimCLR's step with labels: all images of the anchor's class are its positives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import losses
from clutils.methods.base import Augment, Method, several_views


class SupCon(Method):
    """Khosla et al. 2020, "Supervised contrastive learning" (arXiv 2004.11362), section 3.

    encoder, loss, out, bfloat16, hidden: see `Method`; the loss must take labels. The paper's second stage, a
    linear classifier on the frozen encoder, is `measures.linear_probe`.
    """

    paper, year, equation = "SupCon (Khosla et al.)", 2020, "section 3"
    kinds = (*Method.kinds, "graphs")
    uses_labels = True
    takes_extra_views = False
    needs = "takes labels"

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.SupCon()

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return "labels" in getattr(loss, "takes", ())

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors and their labels (B,) -> the loss, and both views' embeddings
        (B, out), detached.

        Both views go through the encoder as one batch, as in SimCLR. Raises ValueError without labels.
        """
        if labels is None:
            raise ValueError(f"SupCon: labels is None, but a batch of {len(images)} has ({len(images)},)")
        both = several_views(augment, images, generator)
        z1, z2 = self.head(self.features_of(torch.cat(both))).chunk(2)
        return self.compare(z1, z2, index, labels=labels), z1.detach(), z2.detach()

    def chance(self, batch_size: int) -> float | None:
        """As without labels, which do not change it; but AttentionNCE's depends on how many images of other
        classes a batch happens to have: None."""
        return None if isinstance(self.loss, losses.AttentionNCE) else super().chance(batch_size)
