"""Views of graphs: GraphCL's four augmentations, GRACE's two, and a diffusion of MVGRL's.

Each takes and gives a batch (N, V, 1 + F + V), as `data.graphs.packed` makes it. The random numbers of a call
don't depend on the strengths: with the same seed a slider drops *these* nodes first and then further ones.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from clutils.data.graphs import normalised, repacked, unpacked
from clutils.settings import SWITCH, OnlyFields, Setting, setting
from clutils.views.checks import checked, drawn

SHARE = Setting(0, 1)
STEPS = 4  # of a random walk, times the number of places


@dataclass
class GraphAugmentation(OnlyFields):
    """One of GraphCL's four for each graph, drawn among those whose strength is above 0; or all in turn.

    - drop_nodes: share of the nodes that go, with their edges
    - perturb_edges: share of the edges that go; as many others come, between nodes that had none
    - mask_attributes: share of the nodes whose attributes become 0
    - subgraph: share of the nodes that a random walk from a random node leaves out
    - one_each: one of them for each graph, as in the paper; False = all, in this order

    Shares are of the graph's own number, rounded down; a node remains at least. Where a walk can't reach
    enough nodes, or has not after `STEPS` V steps, fewer stay.

    You et al. 2020 (arXiv 2010.13902), table 1, at its 20 %. Of the authors' code for TU's sets an early
    version keeps the nodes that it should drop, adds no edges, and masks by noise N(0.5, 0.25) (aug.py).
    """

    kind = "graphs"
    drop_nodes: float = setting(SHARE, default=0.2, about="share of nodes to drop")
    perturb_edges: float = setting(SHARE, default=0.2, about="share of edges to replace")
    mask_attributes: float = setting(SHARE, default=0.2, about="share of nodes whose attributes become 0")
    subgraph: float = setting(SHARE, default=0.2, about="share of nodes that a random walk leaves out")
    one_each: bool = setting(SWITCH, default=True, about="one change a graph")

    @torch.no_grad()
    def __call__(self, graphs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A view of each graph, of the same shape. Raises ValueError for a strength outside [0, 1]."""
        checked(self, graphs)
        strengths = {name: getattr(self, name) for name in STEP}
        N, V = graphs.shape[:2]
        sizes = [(N,), (N, V), (N, V, V), (N, V), (N, STEPS * V, 1)]
        u = [drawn(size, graphs, generator) for size in sizes]
        used = [name for name, share in strengths.items() if share > 0]
        which = (u[0] * len(used)).long()
        for name, numbers in zip(strengths, u[1:], strict=True):
            if name in used:
                chosen = which == used.index(name) if self.one_each else slice(None)
                changed = graphs.clone()
                changed[chosen] = STEP[name](graphs[chosen], strengths[name], numbers[chosen])
                graphs = changed
        return graphs


def drop_nodes(graphs: Tensor, share: float, u: Tensor) -> Tensor:
    """Without that share of each graph's nodes; u: uniform numbers (N, V)."""
    nodes, attributes, adjacency = unpacked(graphs)
    return repacked(graphs, nodes & ~_first(u, nodes, _of(nodes, share)), attributes, adjacency)


def perturb_edges(graphs: Tensor, share: float, u: Tensor) -> Tensor:
    """That share of each graph's edges dropped, as many others added; u: uniform numbers (N, V, V)."""
    nodes, attributes, adjacency = unpacked(graphs)
    u, between = u.flatten(1), (nodes[:, :, None] & nodes[:, None, :]).triu(1).flatten(1)
    edge = (adjacency != 0).flatten(1) & between
    number = (share * edge.sum(dim=1) + 1e-6).long()
    changed = _first(u, edge, number) | _first(u, between & ~edge, number)
    upper = (edge ^ changed).to(graphs).view_as(adjacency)
    return repacked(graphs, nodes, attributes, upper + upper.transpose(1, 2))


def mask_attributes(graphs: Tensor, share: float, u: Tensor) -> Tensor:
    """The attributes of that share of each graph's nodes set to 0; u: uniform numbers (N, V)."""
    nodes, attributes, adjacency = unpacked(graphs)
    kept = ~_first(u, nodes, _of(nodes, share))
    return repacked(graphs, nodes, attributes * kept[..., None], adjacency)


def subgraph(graphs: Tensor, share: float, u: Tensor) -> Tensor:
    """The nodes that a random walk meets, until but that share is met; u: uniform numbers (N, steps, 1)."""
    nodes, attributes, adjacency = unpacked(graphs)
    wanted, every = nodes.sum(dim=1) - _of(nodes, share), torch.arange(len(nodes), device=graphs.device)
    met, onward = torch.zeros_like(nodes), adjacency.cumsum(dim=2)
    at = _among(nodes.to(graphs).cumsum(dim=1), u[:, 0])
    alone = onward[..., -1] == 0  # nodes without an edge
    for step in range(1, u.shape[1]):
        met[every, at] = True
        going = (met.sum(dim=1) < wanted) & ~alone[every, at]
        if not going.any():
            break
        at = torch.where(going, _among(onward[every, at], u[:, step]), at)
    return repacked(graphs, met & nodes, attributes, adjacency)


STEP = {step.__name__: step for step in (drop_nodes, perturb_edges, mask_attributes, subgraph)}


@dataclass
class NodeAugmentation(OnlyFields):
    """GRACE's two, of the whole graph: each edge goes with a chance, each column of the attributes becomes 0.

    - drop_edges, mask_features: the chances. No node goes: each has its other view.

    Zhu et al. 2020 (arXiv 2006.04131), section 3.3; the same in BGRL.
    """

    kind = "nodes"
    drop_edges: float = setting(SHARE, default=0.3, about="probability of dropping an edge")
    mask_features: float = setting(SHARE, default=0.3, about="probability of masking a feature")

    @torch.no_grad()
    def __call__(self, graphs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A view of each graph, of the same shape. Raises ValueError for a chance outside [0, 1]."""
        _, attributes, adjacency = unpacked(checked(self, graphs))
        edges = drawn(adjacency.shape, graphs, generator)
        columns = drawn(attributes[:, :1].shape, graphs, generator)
        view, V = torch.zeros_like(graphs, memory_format=torch.contiguous_format), adjacency.shape[1]
        view[..., 0] = graphs[..., 0]
        torch.mul(attributes, columns >= self.mask_features, out=view[..., 1:-V])
        which, a, b = adjacency.nonzero(as_tuple=True)  # few of all pairs
        kept = (edges[which, a, b] >= self.drop_edges) & (a < b)
        which, a, b = which[kept], a[kept], b[kept]
        view[which, a, b - V] = view[which, b, a - V] = adjacency[which, a, b]
        return view


def ppr(graphs: Tensor, restart: float = 0.2) -> Tensor:
    r"""Personalised PageRank in the adjacency's place: where walks that restart are to be found.

    $$S = \alpha\bigl(I - (1 - \alpha)\tilde D^{-1/2}\tilde A\tilde D^{-1/2}\bigr)^{-1}$$

    Hassani & Khasahmadi 2020 (MVGRL, arXiv 2006.05582), as in their code (utils.py, compute_ppr).
    """
    nodes, attributes, adjacency = unpacked(graphs)
    rest = torch.eye(adjacency.shape[-1]).to(adjacency) - (1 - restart) * normalised(adjacency)
    return repacked(graphs, nodes, attributes, restart * torch.linalg.inv(rest))


def _of(nodes: Tensor, share: float) -> Tensor:
    """That share of each row's nodes (N, V) -> (N,), rounded down; never all of them."""
    number = nodes.sum(dim=1)
    return torch.minimum((share * number + 1e-6).long(), (number - 1).clamp(min=0))


def _first(u: Tensor, among: Tensor, number: Tensor) -> Tensor:
    """Places of each row `among`, (N, K) bool, as many as `number`, (N,): those of the smallest u."""
    rank = torch.where(among, u, 2.0).argsort(dim=1).argsort(dim=1)
    return among & (rank < number[:, None])


def _among(cumulative: Tensor, u: Tensor) -> Tensor:
    """A place of each row, by weight: cumulative weights (N, V), uniform numbers (N, 1) -> (N,)."""
    return (cumulative <= u * cumulative[:, -1:]).sum(dim=1).clamp(max=cumulative.shape[1] - 1)
