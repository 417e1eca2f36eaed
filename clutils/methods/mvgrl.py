"""MVGRL: DGI across two views of the structure, the edges and a diffusion, an encoder for each."""

import copy
from typing import Any

from torch import Tensor, nn

from clutils import encoders
from clutils.data.graphs import unpacked
from clutils.methods.base import Compared, Given
from clutils.methods.dgi import DGI, shuffled, summarised
from clutils.settings import setting
from clutils.views.graphs import ppr


class TwoStructures(nn.Module):
    """Two encoders of one build: the graph's edges for the first, its PageRank for the second; their sum."""

    def __init__(self, encoder: nn.Module, restart: float) -> None:
        super().__init__()
        self.features, self.restart = encoders.width(encoder), restart
        self.edges, self.diffusion = encoder, copy.deepcopy(encoder)
        for part in self.diffusion.modules():
            afresh: Any = getattr(part, "reset_parameters", None)
            if afresh is not None:
                afresh()

    def each_of_both(self, graphs: Tensor) -> list[Tensor]:
        """(N, V, 1 + F + V) -> the nodes of both views, (N, V, features) each."""
        both = (self.edges, graphs), (self.diffusion, ppr(graphs, self.restart))
        return [encoder.each_node(x) for encoder, x in both]  # type: ignore[operator]

    def forward(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, features), or (nodes, features): the sum over both, as in the paper."""
        return self.edges(graphs) + self.diffusion(ppr(graphs, self.restart))


class MVGRL(DGI):
    r"""Contrastive multi-view representation learning on graphs.

    Nodes of one view are told from corrupted ones by the summary of the *other* view, both ways round:

    $$\ell = \tfrac12\bigl[\ell_\mathrm{DGI}(h, \tilde h, s') + \ell_\mathrm{DGI}(h', \tilde h', s)\bigr]$$

    h, s come from the edges, h', s' from personalised PageRank (`views.graphs.ppr`), each by an encoder of
    its own; the corruption shuffles attributes, the same for both. The run's encoder is the sum of both.

    - restart: α of PageRank
    - encoder, loss: see `DGI`. The paper puts an MLP behind each encoder; its code for nodes has
      none, and neither has this.

    Hassani & Khasahmadi 2020, "Contrastive multi-view representation learning on graphs" (arXiv 2006.05582),
    as in the authors' code for nodes (node/train.py): the Jensen-Shannon estimator as cross entropy.
    """

    paper, year, equation = "MVGRL (Hassani & Khasahmadi)", 2020, "section 3"
    restart: float = setting(0.01, 0.99, "α", default=0.2)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(TwoStructures(encoder, self.restart), loss)

    def step(self, given: Given) -> Compared:
        """(B, V, 1 + F + V) graphs -> the loss; W h of both views: two views of each node."""
        graphs = encoders.as_input(given.images)
        nodes, encoder = unpacked(graphs)[0], self.encoder
        both: Any = [
            encoder.each_of_both(x)  # type: ignore[operator]
            for x in (graphs, shuffled(graphs, given.generator))
        ]
        scored = []
        for own, other in ((0, 1), (1, 0)):
            summary = summarised(both[0][other], nodes).expand_as(both[0][own])
            scored.append(self.discriminate(both[0][own][nodes], both[1][own][nodes], summary[nodes]))
        (first, z1), (second, z2) = scored
        return (first + second) / 2, z1, z2
