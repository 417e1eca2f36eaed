"""Graph neural networks on dense batches of small graphs: GCN and GIN layers, and the sum over nodes.

A batch is (N, V, 1 + F + V), as `data.graphs.packed` makes it: where nodes are, attributes, adjacency.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clutils.data.graphs import normalised, unpacked

LARGE, FEW = 512, 0.05  # from so many nodes on, and below that share of edges, edges alone are multiplied


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
        return self.collect(h, self.matrix(adjacency))

    @staticmethod
    def matrix(adjacency: Tensor) -> Tensor:
        """Matrix that `collect` multiplies by, the same for every layer: (N, V, V), or sparse."""
        return looped(adjacency) if adjacency.is_sparse else propagation(adjacency)

    def collect(self, h: Tensor, matrix: Tensor) -> Tensor:
        """(N, V, inputs), (N, V, V) -> (N, V, width). The narrower of H and HW meets the matrix."""
        if self.linear.in_features <= self.linear.out_features:
            return self.linear(product(matrix, h))
        return product(matrix, F.linear(h, self.linear.weight)) + self.linear.bias


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
        return self.collect(h, self.matrix(adjacency))

    @staticmethod
    def matrix(adjacency: Tensor) -> Tensor:
        """Matrix that `collect` multiplies by: the edges themselves."""
        return adjacency

    def collect(self, h: Tensor, matrix: Tensor) -> Tensor:
        """(N, V, inputs), (N, V, V) -> (N, V, width)."""
        return self.mlp(h + product(matrix, h))


def propagation(adjacency: Tensor) -> Tensor:
    r"""GCN's $\tilde D^{-1/2}\tilde A\tilde D^{-1/2}$, (N, V, V).

    A graph with weights on its diagonal, as a diffusion gives (`views.graphs.ppr`), is taken as it is.
    """
    diffused = adjacency.diagonal(dim1=-2, dim2=-1).any(dim=-1)
    if bool(diffused.all()):
        return adjacency
    return torch.where(diffused[..., None, None], adjacency, normalised(adjacency))


def edges_of(adjacency: Tensor) -> Tensor:
    """The adjacency (N, V, V); of large graphs with few edges these alone, sparse, in blocks (N V, N V)."""
    N, V = adjacency.shape[:2]
    if V < LARGE or adjacency.diagonal(dim1=1, dim2=2).any():
        return adjacency
    edges = adjacency.to_sparse()
    if edges.values().numel() >= FEW * adjacency.numel():
        return adjacency
    which, *ends = edges.indices()
    places = torch.stack([which * V + end for end in ends])
    return torch.sparse_coo_tensor(
        places, edges.values(), (N * V, N * V), is_coalesced=True, check_invariants=False
    )


def looped(edges: Tensor) -> Tensor:
    """`propagation` of `edges_of`: sparse as well."""
    ones = torch.ones(len(edges)).to(edges.values())
    root = (edges.sum(dim=1).to_dense() + 1).rsqrt()
    diagonal = torch.arange(len(edges), device=edges.device).expand(2, -1)
    places = torch.cat([edges.indices(), diagonal], dim=1)
    values = torch.cat([edges.values(), ones]) * root[places[0]] * root[places[1]]
    return torch.sparse_coo_tensor(places, values, edges.shape, check_invariants=False).coalesce()


def product(matrix: Tensor, h: Tensor) -> Tensor:
    """(N, V, V), or sparse blocks (N V, N V), times (N, V, D)."""
    if matrix.is_sparse:
        return torch.sparse.mm(matrix, h.flatten(0, 1)).view_as(h)
    return torch.bmm(matrix, h)


class GraphNetwork(nn.Module):
    """Layers of one kind, each with ReLU and batch normalisation over the nodes that there are.

    A graph's features are the sums over its nodes of every layer's output, one behind the other, as in
    GraphCL's encoder (gin.py of its unsupervised_TU); a node's, its outputs of every layer.

    - attributes: F; layer: `GCNLayer` or `GINLayer`; width: of a layer; layers: how many
    - of_nodes: rows are nodes, those with a 1 in the first column, and not graphs
    - normalise: False = PReLU in the place of ReLU and normalisation. Normalised over the nodes of one graph,
      a feature's mean is the same for any edges and attributes: no summary could distinguish two graphs

    Computed in float32, also under autocast: a sum of neighbours is a count, and bfloat16 has eight bits.
    """

    def __init__(
        self,
        attributes: int,
        layer: type[GCNLayer] | type[GINLayer] = GINLayer,
        width: int = 32,
        layers: int = 3,
        of_nodes: bool = False,
        normalise: bool = True,
    ) -> None:
        super().__init__()
        self.features, self.of_nodes, self.normalises = width * layers, of_nodes, normalise
        self.layers = nn.ModuleList(layer(width if number else attributes, width) for number in range(layers))
        if normalise:
            self.normalisations = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        else:
            self.activations = nn.ModuleList(nn.PReLU() for _ in range(layers))

    def each_node(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, V, features), 0 where no node is."""
        nodes, h, adjacency = unpacked(graphs)
        outputs, steps = [], self.normalisations if self.normalises else self.activations
        with torch.autocast(graphs.device.type, enabled=False):
            matrix = self.layers[0].matrix(edges_of(adjacency))  # type: ignore[operator]
            for layer, step in zip(self.layers, steps, strict=True):
                h = layer.collect(h, matrix)  # type: ignore[operator]
                h = put_back(step(F.relu(rows_of(h, nodes)) if self.normalises else rows_of(h, nodes)), nodes)
                outputs.append(h)
        return torch.cat(outputs, dim=-1)

    def forward(self, graphs: Tensor) -> Tensor:
        """(N, V, 1 + F + V) -> (N, features) of the graphs, or (nodes, features)."""
        h = self.each_node(graphs)
        return h[graphs[..., 0] > 0] if self.of_nodes else h.sum(dim=1)


def rows_of(h: Tensor, nodes: Tensor) -> Tensor:
    """Rows of the nodes: (N, V, D), (N, V) bool -> (n, D). (h[nodes] has a slow gradient.)"""
    return h.flatten(0, 1).index_select(0, nodes.flatten().nonzero()[:, 0])


def put_back(rows: Tensor, nodes: Tensor) -> Tensor:
    """`rows_of` undone, 0 where no node is: (n, D), (N, V) bool -> (N, V, D)."""
    h = rows.new_zeros(nodes.numel(), rows.shape[1])
    return h.index_copy(0, nodes.flatten().nonzero()[:, 0], rows).unflatten(0, nodes.shape)
