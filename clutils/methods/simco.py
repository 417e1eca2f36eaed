"""SimCo: MoCo without its queue and without its second encoder, by the dual-temperature loss."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, losses
from clutils.methods.base import Augment, Method, several_views


class SimCo(Method):
    r"""Dual temperature in place of a queue.

    $$\ell = \tfrac12\,[\ell_{DT}(z_1, z_2) + \ell_{DT}(z_2, z_1)]$$

    What a queue does for MoCo, the paper says, is to make anchors count more alike: the gate W that shuts for
    easy anchors is nearly open for all where there are many negatives. A second, hotter temperature for W
    does that without them. So both views go through one encoder, each as a batch of its own, both get the
    gradient, and each anchor's negatives are the B - 1 other pictures of the opposite view.

    - encoder, loss, out, hidden, bfloat16: see `Method`. Any loss; the default is `DualTemperature`, τ = 0.1
      for the shares and ten times that for W

    The head is MoCo v2's, without batch normalisation. The authors' later code has the second temperature at
    infinity, where W is the same for all anchors, and one negative more: the anchor's own other view, its
    similarity set to 0. Neither is here.

    Zhang et al. 2022, "Dual temperature helps contrastive learning without many negative samples" (CVPR,
    arXiv 2203.17248), read in the authors' code (moco/builder.py, `forward_simco`).
    """

    paper, year, equation = "SimCo (Zhang et al.)", 2022, "L_DT"
    takes_extra_views = False

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        hidden: int | None = None,
        bfloat16: bool = False,
    ) -> None:
        super().__init__(encoder, loss, out, bfloat16, hidden)
        features = encoders.width(encoder)
        width = hidden or features
        self.head = nn.Sequential(nn.Linear(features, width), nn.ReLU(inplace=True), nn.Linear(width, out))

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.DualTemperature()

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the loss, and both views' embeddings (B, out), detached."""
        z1, z2 = (self.head(self.features_of(view)) for view in several_views(augment, images, generator))
        return self.compare(z1, z2, index), z1.detach(), z2.detach()
