"""DGI: does this node belong to this graph, or to a corrupted one? A summary in the place of an anchor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, losses
from clutils.data.graphs import repacked, unpacked
from clutils.losses.hyperparameters import declare
from clutils.methods.base import Augment, Method
from clutils.similarities import Pairs


class DGI(Method):
    r"""Deep graph infomax.

    $$\ell = -\frac{1}{2V}\sum_i \log\sigma\bigl(h_i^\top W s\bigr) + \log\bigl(1 - \sigma(\tilde h_i^\top W
    s)\bigr), \qquad s = \sigma\Bigl(\frac1V\sum_i h_i\Bigr)$$

    h̃ are the nodes of a graph with the same edges and the attributes shuffled among its nodes. Of several
    graphs each has its own summary, and attributes are shuffled among all their nodes. It is SigLIP at τ = 1
    and b = 0, of one positive and one negative a node, halved; scores are not cosines, and have no bounds.
    NT-Xent and the decoupled loss may take its place: then a node is preferred to its corrupted one.

    - encoder: a graph network, with `.each_node`. The head is W: no head stands behind it. The augmentation
      of a run is not used: the corruption is the view.

    Veličković et al. 2019, "Deep graph infomax" (arXiv 1809.10341), eq. 1, networks as in the
    authors' code (dgi.py, discriminator.py), whose discriminator has a bias.
    """

    paper, year, equation = "DGI (Veličković et al.)", 2019, "eq. 1"
    ranges = declare()
    kinds = ("graphs", "nodes")
    takes_extra_views = False
    needs = "bears scores without bounds"

    def __init__(self, encoder: nn.Module, loss: nn.Module, bfloat16: bool = False) -> None:
        super().__init__(encoder, loss, encoders.width(encoder), bfloat16)
        self.head = nn.Linear(self.out, self.out, bias=False)

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.SigLIP(temperature=1.0, bias=0.0)

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return getattr(loss, "__name__", type(loss).__name__) in ("SigLIP", "NTXent", "Decoupled")

    def chance(self, batch_size: int) -> float | None:
        """Of one positive and one negative: log 2 for its own loss."""
        loss: Any = self.loss
        return loss.chance(1) / 2

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, V, 1 + F + V) graphs -> the loss; W h and the summary of each node's graph, detached."""
        graphs = encoders.as_input(images)
        nodes, corrupt = unpacked(graphs)[0], shuffled(graphs, generator)
        h, other = (self.encoder.each_node(x) for x in (graphs, corrupt))  # type: ignore[operator]
        summary = summarised(h, nodes)
        loss, projected = self.told_apart(h[nodes], other[nodes], summary.expand_as(h)[nodes])
        return loss, projected.detach(), summary.expand_as(h)[nodes].detach()

    def told_apart(self, h: Tensor, other: Tensor, summary: Tensor) -> tuple[Tensor, Tensor]:
        """Half the loss of nodes against corrupted ones, both scored with a summary: (n, D) each; and W h."""
        loss: Any = self.loss
        loss.settings()
        projected = self.head(h)
        scores = [(x * summary).sum(dim=1, keepdim=True) for x in (projected, self.head(other))]
        return loss.formula(Pairs(*scores)).mean() / 2, projected


def summarised(h: Tensor, nodes: Tensor) -> Tensor:
    """The sigmoid of the mean over a graph's nodes: (B, V, D), (B, V) -> (B, 1, D)."""
    return torch.sigmoid(h.sum(dim=1) / nodes.sum(dim=1, keepdim=True))[:, None]


def shuffled(graphs: Tensor, generator: torch.Generator) -> Tensor:
    """The same graphs with all nodes' attributes shuffled among them."""
    nodes, attributes, adjacency = unpacked(graphs)
    order = torch.randperm(int(nodes.sum()), generator=generator, device=generator.device).to(graphs.device)
    moved = attributes.clone()
    moved[nodes] = attributes[nodes][order]
    return repacked(graphs, nodes, moved, adjacency)
