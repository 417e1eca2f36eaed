"""Graph neural networks on dense batches of small graphs: GCN and GIN layers, and the sum over nodes.

A batch is (N, V, 1 + F + V), as `data.graphs.packed` makes it: where nodes are, attributes, adjacency.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clutils.data.graphs import normalised, unpacked


class GCNLayer(nn.Module):
    r"""Graph convolution, the sum over a node and its neighbours, weighted by degrees.

    $$H' = \tilde D^{-1/2}\tilde A\tilde D^{-1/2} H W + b, \qquad \tilde A = A + I$$

    Kipf & Welling 2017 (arXiv 1609.02907), eq. 2, with a bias as PyTorch Geometric has.
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, width)

    def forward(self, h: Tensor, adjacency: Tensor) -> Tensor:
        """(N, V, inputs), (N, V, V) -> (N, V, width)."""
        return self.linear(torch.bmm(propagation(adjacency), h))


class GINLayer(nn.Module):
    r"""Graph isomorphism: the sum over neighbours, so that it can count them, and a network of two layers.

    $$h_v' = \mathrm{MLP}\Bigl(h_v + \sum_{u\in N(v)} h_u\Bigr)$$

    Xu et al. 2019 (arXiv 1810.00826), eq. 4.1 with ε = 0 (GIN-0).
    """

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(inplace=True), nn.Linear(width, width))

    def forward(self, h: Tensor, adjacency: Tensor) -> Tensor:
        """(N, V, inputs), (N, V, V) -> (N, V, width)."""
        return self.mlp(h + torch.bmm(adjacency, h))


def propagation(adjacency: Tensor) -> Tensor:
    r"""GCN's $\tilde D^{-1/2}\tilde A\tilde D^{-1/2}$, (N, V, V).

    A graph with weights on its diagonal, as a diffusion gives (`views.graphs.ppr`), is taken as it is.
    """
    diffused = adjacency.diagonal(dim1=-2, dim2=-1).any(dim=-1)
    return torch.where(diffused[..., None, None], adjacency, normalised(adjacency))


class GraphNetwork(nn.Module):
    """Layers of one kind, each with ReLU and batch normalisation over the nodes that there are.

    A graph's features are the sums over its nodes of every layer's output, one behind the other, as in
    GraphCL's encoder (gin.py of its unsupervised_TU); a node's, its outputs of every layer.

    - attributes: F; layer: `GCNLayer` or `GINLayer`; width: of a layer; layers: how many
    - of_nodes: rows are nodes, those with a 1 in the first column, and not graphs

    Computed in float32, also under autocast: a sum of neighbours is a count, and bfloat16 has eight bits.
    """

    def __init__(
        self,
        attributes: int,
        layer: type[GCNLayer] | type[GINLayer] = GINLayer,
        width: int = 32,
        layers: int = 3,
        of_nodes: bool = False,
    ) -> None:
        super().__init__()
        self.features, self.of_nodes = width * layers, of_nodes
        self.layers = nn.ModuleList(layer(width if number else attributes, width) for number in range(layers))
        self.normalisations = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))

    def each_node(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, V, features), 0 where no node is."""
        nodes, h, adjacency = unpacked(graphs)
        outputs = []
        with torch.autocast(graphs.device.type, enabled=False):
            for layer, normalise in zip(self.layers, self.normalisations, strict=True):
                h = F.relu(layer(h, adjacency))
                h = torch.zeros_like(h).index_put((nodes,), normalise(h[nodes]))
                outputs.append(h)
        return torch.cat(outputs, dim=-1)

    def forward(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, features) of the graphs, or (nodes, features)."""
        h = self.each_node(graphs)
        return h[graphs[..., 0] > 0] if self.of_nodes else h.sum(dim=1)
