"""Graphs: networkx's atlas and small networks, generated ones with known answers, downloads.

A set of N graphs is one tensor (N, V, 1 + F + V), V places each, as many as the largest has nodes: `packed`
and `unpacked` say what it holds. Adjacencies are symmetric, without loops. One graph alone, (1, V, ...), is a
set of nodes. Dense: V² numbers a graph, which suits graphs of tens of nodes and networks of a few thousand.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from clutils.data.downloads import SWITCHED_OFF, explained, fetched
from clutils.data.sets import GraphSet
from clutils.files import write_atomically

if TYPE_CHECKING:
    import networkx as nx

Graph = tuple[Tensor, Tensor]  # attributes (n, F), adjacency (n, n)
TU = {  # of the TU Dortmund collection (Morris et al. 2020): name -> classes
    "mutag": ("not mutagenic", "mutagenic"),
    "proteins": ("enzyme", "not an enzyme"),
}
TU_ADDRESS = "https://www.chrsmrrs.com/graphkerneldatasets"
TU_PARTS = ("A", "graph_indicator", "graph_labels", "node_labels")
PLANETOID = {"cora": "Cora", "citeseer": "CiteSeer"}  # with the public split of Yang et al. 2016
PLANETOID_ADDRESS = "https://github.com/kimiyoung/planetoid/raw/master/data"
PLANETOID_PARTS = ("allx", "tx", "x", "y", "ally", "ty", "graph", "test.index")
_OF_GRAPHS = ("atlas-connected", "atlas-bipartite", "atlas-triangles", "atlas-planar", "motifs", *TU)
SPLITS = {
    **{f"graphs:{name}": ("train", "test", "all") for name in _OF_GRAPHS},
    **{f"nodes:{name}": ("train",) for name in ("blocks", "karate", "miserables", "florentine")},
    **{f"nodes:{name}": ("train", "public-train", "public-val", "public-test") for name in PLANETOID},
}
SEED = 0  # of which graphs are the test part
TEST = 0.2  # and what share they are
MOTIFS = {"train": 600, "test": 200, "all": 800}
MOST_NODES = 128  # of a graph of the TU collection: padded to the largest, PROTEINS would take 1.7 GB


# ---- the tensor --------------------------------------------------------------------------------------------


def packed(graphs: Sequence[Graph]) -> Tensor:
    """Graphs of several sizes -> (N, V, 1 + F + V) float32, padded with zeros.

    Each of the V places has a 1 where there is a node, its F attributes, its row of the adjacency.
    """
    V = max(len(adjacency) for _, adjacency in graphs)
    rows = []
    for attributes, adjacency in graphs:
        n = len(adjacency)
        row = torch.cat([torch.ones(n, 1), attributes.float(), adjacency.float()], dim=1)
        rows.append(F.pad(row, (0, V - n, 0, V - n)))
    return torch.stack(rows)


def unpacked(graphs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(N, V, 1 + F + V) -> where a node is, bool (N, V); attributes (N, V, F); adjacency (N, V, V).

    A -1 in the first column is a node, too: one that is there for its neighbours' sake alone.
    """
    V = graphs.shape[-2]
    return graphs[..., 0] != 0, graphs[..., 1:-V], graphs[..., -V:]


def repacked(graphs: Tensor, nodes: Tensor, attributes: Tensor, adjacency: Tensor) -> Tensor:
    """The same graphs with these nodes left, attributes and edges; what a lost node had is 0."""
    kept = nodes.to(graphs)[..., None]
    edges = adjacency * kept * kept.transpose(-1, -2)
    return torch.cat([graphs[..., :1] * kept, attributes * kept, edges], dim=-1)


def normalised(adjacency: Tensor) -> Tensor:
    r"""GCN's $\tilde D^{-1/2}\tilde A\tilde D^{-1/2}$ with $\tilde A = A + I$: (N, V, V) -> the same."""
    looped = adjacency + torch.eye(adjacency.shape[-1], device=adjacency.device, dtype=adjacency.dtype)
    root = looped.sum(dim=-1).rsqrt()
    return root[..., :, None] * looped * root[..., None, :]


# ---- by name -----------------------------------------------------------------------------------------------


def load(name: str, split: str, limit: int | None, root: Path, download: bool, seed: int = 0) -> GraphSet:
    """'graphs:...' or 'nodes:...', one of `SPLITS`.

    'train' and 'test' of a set of graphs are a fixed random four fifths and the rest, 'all' both; of motifs,
    other draws. 'train' of a network is all its nodes with their labels; the public parts of a citation
    network are 20 nodes a class, 500 to validate and 1,000 to test. limit: the first so many graphs or nodes.

    Raises `Unavailable`, in one line that says what to do, where a file is missing.
    """
    own = name.partition(":")[2]
    if own in ("motifs", "blocks"):
        found = blocks(seed=seed) if own == "blocks" else motifs(limit or MOTIFS[split], seed, split)
    elif own in PLANETOID:
        found = _cited(own, split, root, download)
    elif name.startswith("nodes:"):
        found = network(own)
    else:
        found = _collected(own, root, download) if own in TU else atlas(own.removeprefix("atlas-"))
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(SEED))
        tested = max(1, round(TEST * len(found)))
        parts = {"test": order[:tested], "train": order[tested:], "all": torch.arange(len(found))}
        found = found.subset(parts[split])
    return found.subset(slice(limit))


# ---- inside networkx ---------------------------------------------------------------------------------------


def adjacency_of(graph: nx.Graph) -> Tensor:
    """(n, n): 1 where there is an edge, in the order of the graph's nodes, without weights.

    Of several edges between two nodes one counts. A set refuses directed graphs and loops: `check_edges`.
    """
    import networkx as nx

    return torch.from_numpy(nx.to_numpy_array(graph, weight=None, dtype=np.float32)).clamp(max=1)


def _adjacency(nodes: int, edges: Iterable[tuple[int, int]]) -> Tensor:
    found = np.zeros((nodes, nodes), np.float32)
    for a, b in edges:
        found[a, b] = found[b, a] = a != b
    return torch.from_numpy(found)


def atlas(invariant: str) -> GraphSet:
    """All 1,252 graphs of one to seven nodes (Read & Wilson, "An atlas of graphs"), without attributes.

    Every node's one attribute is 1. invariant: an exact property, the class; see below.
    """
    import networkx as nx

    invariants: dict[str, tuple[Callable[[nx.Graph], bool], tuple[str, str]]] = {
        "connected": (nx.is_connected, ("in pieces", "connected")),
        "bipartite": (nx.is_bipartite, ("an odd cycle", "bipartite")),
        "triangles": (lambda graph: any(nx.triangles(graph).values()), ("no triangle", "a triangle")),
        "planar": (lambda graph: nx.check_planarity(graph)[0], ("not planar", "planar")),
    }
    holds, class_names = invariants[invariant]
    graphs, packed_graphs = atlas_graphs()
    labels = torch.tensor([int(holds(graph)) for graph in graphs])
    source = f"the atlas of 1,252 graphs of one to seven nodes; the class is exact: {class_names[1]} or not"
    return GraphSet(packed_graphs.clone(), labels, class_names, source)


@cache
def atlas_graphs() -> tuple[list[nx.Graph], Tensor]:
    """The atlas's graphs as networkx has them, without the first, which has no nodes; and packed."""
    from networkx.generators.atlas import graph_atlas_g

    graphs = graph_atlas_g()[1:]
    return graphs, packed([(torch.ones(len(graph), 1), adjacency_of(graph)) for graph in graphs])


def network(name: str) -> GraphSet:
    """'karate', 'miserables' or 'florentine': one graph, its nodes are the samples, each its own attribute.

    Zachary's karate club has the club that each member chose. The others have no labels of their own: theirs
    is exact, whether a node is a cut vertex, without which the network falls apart.
    """
    import networkx as nx

    titles = {
        "karate": ("Zachary's karate club", nx.karate_club_graph),
        "miserables": ("who meets whom in Les Misérables", nx.les_miserables_graph),
        "florentine": ("marriages of Florentine families", nx.florentine_families_graph),
    }
    title, make = titles[name]
    graph = make()
    adjacency = adjacency_of(graph)
    if name == "karate":
        class_names: tuple[str, ...] = ("Mr. Hi", "Officer")
        labels = [class_names.index(graph.nodes[node]["club"]) for node in graph]
    else:
        class_names, cut = ("no cut vertex", "cut vertex"), set(nx.articulation_points(graph))
        labels = [int(node in cut) for node in graph]
    graphs = packed([(torch.eye(len(adjacency)), adjacency)])
    return GraphSet(graphs, torch.tensor(labels), class_names, f"{title}: one network, nodes as samples")


# ---- generated ---------------------------------------------------------------------------------------------

MOTIF_EDGES = {
    "ring of 6": [(i, (i + 1) % 6) for i in range(6)],
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "clique of 4": [(i, j) for i in range(4) for j in range(i)],
    "two against three": [(i, j) for i in range(2) for j in range(2, 5)],
}


def motifs(number: int, seed: int = 0, split: str = "train") -> GraphSet:
    """Trees of 10 to 16 nodes, each with one motif tied to it by an edge: the class is the motif.

    Each new node of a tree is tied to an earlier one, by degree (Barabási & Albert) or at random: a coin
    says which. A tree has no cycle, so that every cycle is the motif's. Node numbers are shuffled; every
    node's one attribute is 1.
    """
    dice = np.random.default_rng([seed, list(MOTIFS).index(split)])
    labels = np.arange(number) % len(MOTIF_EDGES)
    graphs = []
    for label in labels:
        motif = list(MOTIF_EDGES.values())[label]
        base, size = int(dice.integers(10, 17)), 1 + max(max(edge) for edge in motif)
        by_degree, edges, tied = dice.random() < 0.5, [(0, 1)], [0, 1]  # tied: a node as often as its degree
        for node in range(2, base):
            earlier = tied[dice.integers(len(tied))] if by_degree else int(dice.integers(node))
            edges.append((node, earlier))
            tied += [node, earlier]
        edges += [(base + a, base + b) for a, b in motif] + [(int(dice.integers(base)), base)]
        new = dice.permutation(base + size)
        adjacency = _adjacency(base + size, ((new[a], new[b]) for a, b in edges))
        graphs.append((torch.ones(base + size, 1), adjacency))
    source = f"{number:,} generated trees, each with a motif tied to it; the class is the motif"
    return GraphSet(packed(graphs), torch.from_numpy(labels), tuple(MOTIF_EDGES), source)


def blocks(
    sizes: Sequence[int] = (50, 50, 50),
    within: float = 0.12,
    between: float = 0.02,
    attributes: int = 16,
    signal: float = 0.3,
    seed: int = 0,
) -> GraphSet:
    """A stochastic block model: nodes of one block are tied with chance `within`, others with `between`.

    Attributes are noise, N(0, 1), around a mean of the block's own, N(0, signal²): weak alone, good when
    averaged over neighbours. Nodes are shuffled; the class is the block.
    """
    draw = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    labels = labels[torch.randperm(len(labels), generator=draw)]
    chance = torch.where(labels[:, None] == labels, within, between)
    upper = (torch.rand(chance.shape, generator=draw) < chance).float().triu(1)
    means = signal * torch.randn(len(sizes), attributes, generator=draw)
    noisy = means[labels] + torch.randn(len(labels), attributes, generator=draw)
    source = (
        f"a stochastic block model of {len(labels)} nodes, {within:g} within a block, {between:g} between"
    )
    names = tuple(f"block {number + 1}" for number in range(len(sizes)))
    return GraphSet(packed([(noisy, upper + upper.T)]), labels, names, source)


# ---- published ---------------------------------------------------------------------------------------------


def _collected(name: str, root: Path, download: bool) -> GraphSet:
    """A set of `TU`, as `torch_geometric.datasets.TUDataset` reads it: graphs of at most `MOST_NODES`."""
    own = name.upper()
    files = {f"{own}_{part}.txt": f"{own}/{own}_{part}.txt" for part in TU_PARTS}
    with _read(f"graphs:{name}", "TUDataset", own, files, f"{TU_ADDRESS}/{own}.zip", root, download) as found:
        fitting = [one for one in found if len(one.x) <= MOST_NODES]
        graphs = packed([(one.x, _adjacency(len(one.x), one.edge_index.T.tolist())) for one in fitting])
        labels = torch.tensor([int(one.y) for one in fitting])
        some = f", those of at most {MOST_NODES} nodes" if len(fitting) < len(found) else ""
        source = f"{own}: {len(fitting):,} of {len(found):,} graphs{some} (real)"
        return GraphSet(graphs, labels, TU[name], source)


def _cited(name: str, split: str, root: Path, download: bool) -> GraphSet:
    """A network of `PLANETOID`, as `torch_geometric.datasets.Planetoid` reads it."""
    files = {f"ind.{name}.{part}": f"{PLANETOID_ADDRESS}/ind.{name}.{part}" for part in PLANETOID_PARTS}
    with _read(f"nodes:{name}", "Planetoid", PLANETOID[name], files, "", root, download) as (one,):
        count = len(one.x)
        graph = one.x, _adjacency(count, one.edge_index.T.tolist())
        title = f"{name.title()}: {count:,} papers and who cites whom, one network, nodes as samples (real)"
        names = tuple(f"class {k}" for k in range(int(one.y.max()) + 1))
        whole = GraphSet(packed([graph]), one.y, names, title)
        parts = {"public-train": one.train_mask, "public-val": one.val_mask, "public-test": one.test_mask}
    return whole if split == "train" else whole.subset(parts[split])


@contextmanager
def _read(
    name: str, cls: str, called: str, files: Mapping[str, str], archive: str, root: Path, download: bool
) -> Iterator[Any]:
    """A published set by PyTorch Geometric's class, from graphs/ of the data directory.

    Missing files are fetched first.

    - called: the set's name there; files: those needed -> where each comes from, its place in the archive or,
      without one, its address

    The class gets a copy of the files: its own folder `processed` holds pickles, which it would open. What
    fails inside, reading too, is `Unavailable`, in one line with what to do.
    """
    place = root / "graphs" / called / "raw"
    to_do = f"copy {next(iter(files))} and the files beside it into {place.relative_to(root)}/ of it"
    with explained(name, root, to_do), TemporaryDirectory() as copied:
        try:
            from torch_geometric import datasets
        except ImportError as error:
            install = "pip install -e '.[graphs]' of this project installs it"
            raise ValueError(f"PyTorch Geometric, which reads it, is not here: {install}") from error
        missing = {file: source for file, source in files.items() if not (place / file).is_file()}
        if missing and not download:
            raise ValueError(SWITCHED_OFF)
        read = zipfile.ZipFile(io.BytesIO(fetched(archive))).read if missing and archive else fetched
        for file, source in missing.items():
            write_atomically(place / file, read(source))
        raw = Path(copied) / called / "raw"
        raw.mkdir(parents=True)
        for file in files:
            if not archive and not file.endswith(".index"):
                _demand_arrays(place / file)
            copyfile(place / file, raw / file)
        yield getattr(datasets, cls)(copied, called)


ARRAYS = {  # what a pickled array, sparse matrix or dictionary of lists names, by Python 2 or 3
    *(f"numpy.{core}.multiarray _reconstruct" for core in ("core", "_core")),
    *("numpy ndarray", "numpy dtype", "scipy.sparse.csr csr_matrix", "scipy.sparse._csr csr_matrix"),
    *("collections defaultdict", "copy_reg _reconstructor", "copyreg _reconstructor", "_codecs encode"),
    *("__builtin__ list", "builtins list", "__builtin__ object", "builtins object"),
    *("__builtin__ bytes", "builtins bytes"),
}


def _demand_arrays(path: Path) -> None:
    """Raise ValueError, before it is opened, where a pickle names anything but parts of arrays."""
    try:
        for code, given, _ in pickletools.genops(path.read_bytes()):
            if code.name in ("GLOBAL", "INST") and given not in ARRAYS:
                raise ValueError(f"it asks for {given}, which is no part of an array")
            if code.name in ("STACK_GLOBAL", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"):
                raise ValueError(f"it asks for more than an array ({code.name})")
    except ValueError as error:
        raise ValueError(f"{path.name} is not an array: {error}") from error
