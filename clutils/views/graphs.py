"""Views of graphs: GraphCL's four augmentations, GRACE's two, and the diffusions of MVGRL.

Each takes and gives a batch (N, V, 1 + F + V), as `data.graphs.packed` makes it. The random numbers of a call
don't depend on the strengths: with the same seed a slider drops *these* nodes first and then further ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from clutils.data.graphs import repacked, unpacked

STEPS = 4  # of a random walk, times the number of places


@dataclass
class GraphAugmentation:
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

    drop_nodes: float = 0.2
    perturb_edges: float = 0.2
    mask_attributes: float = 0.2
    subgraph: float = 0.2
    one_each: bool = True

    @torch.no_grad()
    def __call__(self, graphs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A view of each graph, of the same shape. Raises ValueError for a strength outside [0, 1]."""
        strengths = _strengths(self)
        N, V = graphs.shape[:2]
        place = graphs.device if generator is None else generator.device
        sizes = [(N,), (N, V), (N, V, V), (N, V), (N, STEPS * V, 1)]
        drawn = [torch.rand(size, generator=generator, device=place).to(graphs.device) for size in sizes]
        used = [name for name, share in strengths.items() if share > 0]
        which = (drawn[0] * len(used)).long()
        for name, numbers in zip(strengths, drawn[1:], strict=True):
            if name in used:
                chosen = (
                    which == used.index(name) if self.one_each else torch.ones_like(which, dtype=torch.bool)
                )
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
class NodeAugmentation:
    """GRACE's two, of the whole graph: each edge goes with a chance, each column of the attributes becomes 0.

    - drop_edges, mask_features: the chances. No node goes: each has its other view.

    Zhu et al. 2020 (arXiv 2006.04131), section 3.3; the same in BGRL.
    """

    drop_edges: float = 0.3
    mask_features: float = 0.3

    @torch.no_grad()
    def __call__(self, graphs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A view of each graph, of the same shape. Raises ValueError for a chance outside [0, 1]."""
        strengths = _strengths(self)
        nodes, attributes, adjacency = unpacked(graphs)
        place = graphs.device if generator is None else generator.device
        sizes = (adjacency.shape, attributes[:, :1].shape)
        edges, columns = (torch.rand(s, generator=generator, device=place).to(graphs.device) for s in sizes)
        upper = (adjacency * (edges >= strengths["drop_edges"])).triu(1)
        shown = attributes * (columns >= strengths["mask_features"])
        return repacked(graphs, nodes, shown, upper + upper.transpose(1, 2))


def ppr(graphs: Tensor, restart: float = 0.2) -> Tensor:
    r"""Personalised PageRank in the adjacency's place: where walks that restart are to be found.

    $$S = \alpha\bigl(I - (1 - \alpha)\tilde D^{-1/2}\tilde A\tilde D^{-1/2}\bigr)^{-1}$$

    Hassani & Khasahmadi 2020 (MVGRL, arXiv 2006.05582), as in their code (utils.py, compute_ppr).
    """
    walk = _walk(graphs)
    inverse = torch.linalg.inv(torch.eye(walk.shape[-1]).to(walk) - (1 - restart) * walk)
    return _diffused(graphs, restart * inverse)


def heat(graphs: Tensor, time: float = 5.0) -> Tensor:
    r"""The heat kernel in the adjacency's place: $S = e^{t(\tilde D^{-1/2}\tilde A\tilde D^{-1/2} - I)}$.

    MVGRL's other diffusion, normalised as its PPR is. The authors' code takes the exponential of each entry
    (utils.py, compute_heat: np.exp), so that every pair of nodes is tied; this is the matrix's.
    """
    walk = _walk(graphs)
    return _diffused(graphs, torch.matrix_exp(time * (walk - torch.eye(walk.shape[-1]).to(walk))))


def _walk(graphs: Tensor) -> Tensor:
    adjacency = unpacked(graphs)[2]
    looped = adjacency + torch.eye(adjacency.shape[-1]).to(adjacency)
    root = looped.sum(dim=-1).rsqrt()
    return root[..., :, None] * looped * root[..., None, :]


def _diffused(graphs: Tensor, tied: Tensor) -> Tensor:
    nodes, attributes, _ = unpacked(graphs)
    return repacked(graphs, nodes, attributes, tied)


def _strengths(augmentation: object) -> dict[str, float]:
    """The shares and chances of an augmentation, by name; ValueError for one outside [0, 1]."""
    found = {f.name: getattr(augmentation, f.name) for f in fields(augmentation) if f.name != "one_each"}  # type: ignore[arg-type]
    for name, value in found.items():
        if not 0 <= value <= 1:
            kind = type(augmentation).__name__
            raise ValueError(f"{kind}: {name} is {value!r}, but must be from 0 to 1")
    return found


def _of(nodes: Tensor, share: float) -> Tensor:
    """That share of each row's nodes (N, V) -> (N,), rounded down; never all of them."""
    number = nodes.sum(dim=1)
    return torch.minimum((share * number + 1e-6).long(), (number - 1).clamp(min=0))


def _first(u: Tensor, among: Tensor, number: Tensor) -> Tensor:
    """Of each row's places `among`, (N, K) bool, as many as `number`, (N,): those of the smallest u."""
    order = torch.where(among, u, 2.0).argsort(dim=1)
    rank = torch.empty_like(order).scatter_(
        1, order, torch.arange(u.shape[1], device=u.device).expand_as(order)
    )
    return among & (rank < number[:, None])


def _among(cumulative: Tensor, u: Tensor) -> Tensor:
    """A place of each row, by weight: cumulative weights (N, V), uniform numbers (N, 1) -> (N,)."""
    return (cumulative <= u * cumulative[:, -1:]).sum(dim=1).clamp(max=cumulative.shape[1] - 1)
