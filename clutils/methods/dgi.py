"""DGI: does this node belong to this graph, or to a corrupted one? A summary in the place of an anchor."""

from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, losses
from clutils.data.graphs import unpacked
from clutils.data.kinds import Kind
from clutils.encoders.graphs import rows_of
from clutils.methods.base import Given, LossAndViews, Method, Need
from clutils.similarities import Pairs

MEASURED = 512  # nodes, spread over all, whose vectors the history's alignment and uniformity are of


class DGI(Method):
    r"""Deep graph infomax.

    $$\ell = -\frac{1}{2V}\sum_i \log\sigma\bigl(h_i^\top W s\bigr) + \log\bigl(1 - \sigma(\tilde h_i^\top W
    s)\bigr), \qquad s = \sigma\Bigl(\frac1V\sum_i h_i\Bigr)$$

    h̃ are the nodes of a graph with the same edges and the attributes shuffled among its nodes. Of several
    graphs each has its own summary, and attributes are shuffled among all their nodes. It is SigLIP at τ = 1
    and b = 0, of one positive and one negative a node, halved; scores are not cosines, and have no bounds.
    NT-Xent and the decoupled loss may take its place: then a node is preferred to its corrupted one.

    - encoder: a graph network, with `.each_node`; for nodes without batch normalisation, "gcn-prelu" where
      none is named: normalised over the one graph, summaries are equal and the loss stays at log 2. The head
      is W. A run's augmentation is not used.

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

    @classmethod
    def usual_encoder(cls, kind: Kind) -> str:
        """For nodes one without batch normalisation, as the authors': see `GraphNetwork`."""
        return "gcn-prelu" if kind.name == "nodes" else kind.encoder

    def hindrance(self, kind: Kind, samples: int) -> str:
        """Batch normalisation over one graph: its summary then is the same as the corrupted graph's."""
        normalised = any(isinstance(part, nn.BatchNorm1d) for part in self.encoder.modules())
        if kind.name != "nodes" or not normalised:
            return ""
        return (
            "the encoder's batch normalisation sees one graph alone, so that its summary is the same for "
            f"real and corrupted nodes: the loss can't fall below {self.chance(1):.3f}; "
            "encoder gcn-prelu has none"
        )

    def chance(self, batch_size: int) -> float | None:
        """Chance level for one positive and one negative: log 2 for its own loss."""
        return self.loss.chance(1) / 2

    def objective(self, given: Given) -> LossAndViews:
        """(B, V, 1 + F + V) graphs -> the loss; of up to 512 nodes or so, W h and their graph's summary."""
        graphs = encoders.as_input(given.images)
        nodes, corrupt = unpacked(graphs)[0], shuffled(graphs, given.generator)
        h, other = (self.encoder.each_node(x) for x in (graphs, corrupt))  # type: ignore[operator]
        summary = summarised(h, nodes)
        loss = self.discriminate(h, other, summary, nodes)
        some = nodes.flatten().nonzero()[:, 0]
        some = some[:: max(1, len(some) // MEASURED)]
        return loss, self.head(h.flatten(0, 1)[some]), summary[some // nodes.shape[1]]

    def discriminate(self, h: Tensor, other: Tensor, summary: Tensor, nodes: Tensor) -> Tensor:
        """Half the loss of nodes against corrupted ones, both scored with their graph's summary.

        h, other: (B, V, D); summary: (B, D); nodes: (B, V) bool
        """
        self.loss.check_hyperparameters()
        weight: Any = self.head.weight
        wanted = (summary @ weight)[..., None]  # (W h)^T s = h^T (W^T s): one product a graph, not one a node
        real, wrong = (rows_of(x @ wanted, nodes) for x in (h, other))
        return self.loss.formula(Pairs(real, wrong)).mean() / 2


def summarised(h: Tensor, nodes: Tensor) -> Tensor:
    """The sigmoid of the mean over a graph's nodes: (B, V, D), (B, V) -> (B, D)."""
    return torch.sigmoid(h.sum(dim=1) / nodes.sum(dim=1, keepdim=True))


def shuffled(graphs: Tensor, generator: torch.Generator) -> Tensor:
    """The same graphs with all nodes' attributes shuffled among them."""
    at, V = graphs[..., 0].flatten().nonzero()[:, 0], graphs.shape[1]
    order = torch.randperm(len(at), generator=generator, device=generator.device).to(graphs.device)
    moved = graphs.clone(memory_format=torch.contiguous_format)
    rows = moved.flatten(0, 1)  # the same memory
    rows[at, 1:-V] = rows[at[order], 1:-V]
    return moved
