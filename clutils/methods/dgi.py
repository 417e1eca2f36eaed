"""DGI: does this node belong to this graph, or to a corrupted one? A summary in the place of an anchor."""

import torch
from torch import Tensor, nn

from clutils import encoders, losses
from clutils.data.graphs import repacked, unpacked
from clutils.methods.base import Compared, Given, Method, Need
from clutils.similarities import Pairs


class DGI(Method):
    r"""Deep graph infomax.

    $$\ell = -\frac{1}{2V}\sum_i \log\sigma\bigl(h_i^\top W s\bigr) + \log\bigl(1 - \sigma(\tilde h_i^\top W
    s)\bigr), \qquad s = \sigma\Bigl(\frac1V\sum_i h_i\Bigr)$$

    h̃ are the nodes of a graph with the same edges and the attributes shuffled among its nodes. Of several
    graphs each has its own summary, and attributes are shuffled among all their nodes. It is SigLIP at τ = 1
    and b = 0, of one positive and one negative a node, halved; scores are not cosines, and have no bounds.
    NT-Xent and the decoupled loss may take its place: then a node is preferred to its corrupted one.

    - encoder: a graph network, with `.each_node`. The head is W. A run's augmentation is not used.

    Veličković et al. 2019, "Deep graph infomax" (arXiv 1809.10341), eq. 1, networks as in the
    authors' code (dgi.py, discriminator.py), whose discriminator has a bias.
    """

    paper, year, equation = "DGI (Veličković et al.)", 2019, "eq. 1"
    varies = True
    usual_loss = losses.SigLIP(temperature=1.0, bias=0.0)
    sample_kinds = ("graphs", "nodes")
    needs = Need(
        "bears scores without bounds", lambda loss: loss.__name__ in ("SigLIP", "NTXent", "Decoupled")
    )
    out, hidden = 0, None  # out: as many as the encoder has features

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        self.out = encoders.width(encoder)
        super().build(encoder, loss)
        self.head = nn.Linear(self.out, self.out, bias=False)

    def chance(self, batch_size: int) -> float | None:
        """Of one positive and one negative: log 2 for its own loss."""
        return self.loss.chance(1) / 2

    def step(self, given: Given) -> Compared:
        """(B, V, 1 + F + V) graphs -> the loss; W h and the summary of each node's graph."""
        graphs = encoders.as_input(given.images)
        nodes, corrupt = unpacked(graphs)[0], shuffled(graphs, given.generator)
        h, other = (self.encoder.each_node(x) for x in (graphs, corrupt))  # type: ignore[operator]
        summary = summarised(h, nodes).expand_as(h)[nodes]
        return *self.discriminate(h[nodes], other[nodes], summary), summary

    def discriminate(self, h: Tensor, other: Tensor, summary: Tensor) -> tuple[Tensor, Tensor]:
        """Half the loss of nodes against corrupted ones, both scored with a summary: (n, D) each; and W h."""
        self.loss.check_hyperparameters()
        projected = self.head(h)
        scores = [(x * summary).sum(dim=1, keepdim=True) for x in (projected, self.head(other))]
        return self.loss.formula(Pairs(*scores)).mean() / 2, projected


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
