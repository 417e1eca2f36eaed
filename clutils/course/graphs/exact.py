"""What one edge changes, counted over the whole atlas; and which graphs colours can't distinguish."""

from collections import Counter, defaultdict
from functools import cache

import networkx as nx
import pandas as pd
import torch
from torch import Tensor

from clutils.data import graphs

PLURAL = {"connected": "connected", "bipartite": "bipartite", "triangles": "a triangle", "planar": "planar"}


def holds(invariant: str, graph: nx.Graph) -> bool:
    """Whether the exact property of this name holds: `data.graphs.invariants`."""
    return bool(graphs.invariants()[invariant][0](graph))


@cache
def after_one_edge(invariant: str) -> list[tuple[bool, int, int]]:
    """For each graph of the atlas: has it the property; its edges; how many of them end or begin it."""
    found = []
    for graph in graphs.atlas_graphs()[0]:
        before, changes = holds(invariant, graph), 0
        for edge in list(graph.edges()):
            graph.remove_edge(*edge)
            changes += holds(invariant, graph) != before
            graph.add_edge(*edge)
        found.append((before, graph.number_of_edges(), changes))
    return found


def changed_by_one_edge(
    invariants: tuple[str, ...] = ("connected", "bipartite", "triangles"),
) -> pd.DataFrame:
    """The share of single dropped edges that change the class, over all graphs and edges of the atlas.

    Rows: invariants; columns: of graphs that have the property, of those that do not, of all.
    """
    rows = {}
    for invariant in invariants:
        counted = pd.DataFrame(after_one_edge(invariant), columns=["has", "edges", "changes"])
        by_class, whole = counted.groupby("has").sum(), counted.sum()
        share = by_class["changes"] / by_class["edges"]
        every = whole["changes"] / whole["edges"]
        rows[PLURAL[invariant]] = {"it has": share[True], "it lacks": share[False], "all": every}
    return pd.DataFrame(rows).T


def told_apart(rounds: int = 7) -> tuple[int, int, list[tuple[int, int]]]:
    """Pairs of the atlas's graphs of one size: how many, how many WL's colours can't tell, and which.

    Colours are stable after one round less than a graph has nodes at the latest: seven are enough here.
    """
    from clutils.course.graphs.evaluation import wl_colours

    colours = wl_colours(graphs.atlas_graphs()[1], rounds)
    alike, sizes = defaultdict(list), Counter(map(len, graphs.atlas_graphs()[0]))
    for at, counted in enumerate(colours):
        alike[tuple(sorted(counted.items()))].append(at)
    pairs = [(a, b) for group in alike.values() for i, a in enumerate(group) for b in group[i + 1 :]]
    return sum(n * (n - 1) // 2 for n in sizes.values()), len(pairs), pairs


@torch.no_grad()
def gaps(z: Tensor, alike: list[tuple[int, int]]) -> tuple[float, float]:
    """How far the atlas's features (N, D) are apart: at most of the pairs `alike`, at least of all others.

    Others are those of equal size. A gap is the largest difference of two rows, each divided by the larger
    of their largest numbers.
    """
    largest = z.abs().amax(dim=1)
    sizes = torch.tensor([len(graph) for graph in graphs.atlas_graphs()[0]])
    a, b = torch.tensor(alike).T
    same, least = torch.eye(len(z), dtype=torch.bool), torch.inf
    same[a, b] = same[b, a] = True
    between = (z[a] - z[b]).abs().amax(dim=1) / torch.maximum(largest[a], largest[b])
    for size in sizes.unique():
        at = (sizes == size).nonzero()[:, 0]
        far = torch.cdist(z[at], z[at], p=torch.inf) / torch.maximum(largest[at, None], largest[at])
        least = min(least, float(far.masked_fill(same[at][:, at], torch.inf).min()))
    return float(between.max()), least
