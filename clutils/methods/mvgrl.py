"""MVGRL: DGI across two views of the structure, the edges and a diffusion, an encoder for each."""

import copy
from typing import Any, cast

import torch
from torch import Tensor, nn

from clutils import encoders
from clutils.data.graphs import unpacked
from clutils.methods.base import Given, LossAndViews
from clutils.methods.dgi import DGI, MEASURED, shuffled, summarised
from clutils.settings import setting
from clutils.views.graphs import ppr


class TwoStructures(nn.Module):
    """Two encoders of one build: the graph's edges for the first, its PageRank for the second; their sum."""

    def __init__(self, encoder: nn.Module, restart: float) -> None:
        super().__init__()
        self.features, self.restart = encoders.width(encoder), restart
        self.edges, self.diffusion = encoder, copy.deepcopy(encoder)
        self._last: tuple[float, Tensor, Tensor] | None = None  # a restart, edges, and their diffusion
        for part in self.diffusion.modules():
            afresh: Any = getattr(part, "reset_parameters", None)
            if afresh is not None:
                afresh()

    def diffused(self, graphs: Tensor) -> Tensor:
        """The graphs with their PageRank for edges. Of the last edges that came it is kept, inverted once."""
        adjacency = unpacked(graphs)[2]
        if self._last is None or self._last[0] != self.restart or not _equal(self._last[1], adjacency):
            self._last = self.restart, adjacency.clone(), unpacked(ppr(graphs, self.restart))[2]
        return torch.cat([graphs[..., : -graphs.shape[1]], self._last[2]], dim=-1)

    def forward(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, features), or (nodes, features): the sum over both, as in the paper."""
        return self.edges(graphs) + self.diffusion(self.diffused(graphs))


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)


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
    restart: float = setting(0.01, 0.99, "α", default=0.2, about="restart probability of the diffusion")

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(TwoStructures(encoder, self.restart), loss)

    def objective(self, given: Given) -> LossAndViews:
        """(B, V, 1 + F + V) graphs -> the loss; of up to 512 nodes or so, W h of both views."""
        graphs = encoders.as_input(given.images)
        nodes, encoder = unpacked(graphs)[0], cast(Any, self.encoder)
        both = [
            (encoder.edges.each_node(x), encoder.diffusion.each_node(encoder.diffused(x)))
            for x in (graphs, shuffled(graphs, given.generator))
        ]
        summaries = [summarised(h, nodes) for h in both[0]]
        first, second = (
            self.discriminate(both[0][own], both[1][own], summaries[1 - own], nodes) for own in (0, 1)
        )
        some = nodes.flatten().nonzero()[:, 0]
        some = some[:: max(1, len(some) // MEASURED)]
        z1, z2 = (self.head(h.flatten(0, 1)[some]) for h in both[0])
        return (first + second) / 2, z1, z2
