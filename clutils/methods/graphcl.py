"""GraphCL: two views of every graph, one encoder and head, and a loss of each graph's own other view."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import losses, similarities
from clutils.methods.base import Augment, Method, compares_similarities, several_views


class GraphCL(Method):
    r"""Graph contrastive learning with augmentations.

    $$\ell_i = -\log\frac{e^{s(z_i, z'_i)/\tau}}{\sum_{j\ne i} e^{s(z_i, z'_j)/\tau}}$$

    The sum leaves the positive out: this is the decoupled loss (`losses.Decoupled`, which came a year later),
    one way, of the first view's graphs against the second's. Any loss that is a function of an anchor's
    similarities may take its place, and then has the same anchors and the same B - 1 negatives.

    encoder, loss, out, bfloat16, hidden: see `Method`. Both views go through the encoder as one batch.

    You et al. 2020, "Graph contrastive learning with augmentations" (arXiv 2010.13902), eq. 3, formula
    and τ = 0.2 as in the authors' code (gsimclr.py of unsupervised_TU, whose first view is the graph itself).
    """

    paper, year, equation = "GraphCL (You et al.)", 2020, "eq. 3"
    kinds = ("graphs",)
    takes_extra_views = False
    needs = "is a function of an anchor's similarities"

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.Decoupled(temperature=0.2)

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return compares_similarities(loss) and "index" not in getattr(loss, "takes", ())

    def chance(self, batch_size: int) -> float | None:
        """With B - 1 negatives, whatever the loss compares elsewhere."""
        loss: Any = self.loss
        return loss.chance(batch_size - 1)

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, V, 1 + F + V) graphs -> the loss, and both views' embeddings (B, out), detached."""
        both = several_views(augment, images, generator)
        z1, z2 = self.head(self.features_of(torch.cat(both))).chunk(2)
        return self.one_way(z1, z2), z1.detach(), z2.detach()

    def one_way(self, z1: Tensor, z2: Tensor) -> Tensor:
        """The loss, z1 as anchors: (B, out) each; negatives are the other graphs' z2."""
        first, second = (similarities.normalise(z, "z", "GraphCL") for z in (z1, z2))
        pairs = similarities.two_views(first, second, against="one way")
        return self.per_anchor(pairs.positives, pairs.negatives).mean()
