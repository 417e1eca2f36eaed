"""Graphs of a reader's own: networkx graphs, PyTorch Geometric's `Data`, or an edge list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from clutils.data import tables
from clutils.data.downloads import human
from clutils.data.graphs import MOST_NODES, Graph, adjacency_of, packed
from clutils.data.labels import codes_of
from clutils.data.sets import GraphSet, own_file, shortlist, text_of, whole_number

if TYPE_CHECKING:
    import pandas as pd

MOST_OF_ONE = 5_000  # nodes of one network: the tensor has their square
ATTRIBUTES, LABELS = (
    ("x", "features", "attributes"),
    ("y", "label", "class"),
)  # what networkx's nodes may have
ENDS = (  # words that a file may call the first, and the second, end of an edge by
    {*("source", "src", "from", "start", "head", "sender", "parent", "citing", "follower")},
    {
        *("target", "tgt", "destination", "dest", "dst", "to", "end", "tail", "receiver", "recipient"),
        *("child", "cited", "followee"),
    },
)
NO_ENDS = {"weight", "time", "date", "year", "type", "count", "label", "degree", "value", "score"}
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
FOREIGN = (".json", ".jsonl", ".graphml", ".gml", ".gexf", ".mtx", ".net", ".xml", ".dot")


def graph_set(
    graphs: Any,
    labels: Any = None,
    class_names: Sequence[str] | None = None,
    source: str = "graphs of your own",
    most_nodes: int | None = None,
) -> GraphSet:
    """A `GraphSet`: of a list of graphs, which are the samples; of one graph, whose nodes are.

    - graphs: a list, an iterator, or a dataset or batch of PyTorch Geometric; or one graph. Each is a
      networkx graph, or an object with `edge_index` (2, E) and perhaps `x` (n, F) and `y`, as PyTorch
      Geometric's Data (which need not be installed)
    - labels: one a graph, or a node of the one graph: whole numbers, or names, as of `vector_set`. None:
      those that the graphs have, `y`, or networkx's attribute "y", "label" or "class" of graph or node
    - attributes of networkx's nodes: the attribute "x", "features" or "attributes". Where there are none,
      a node's one attribute is 1; in one graph each node is its own
    - most_nodes: of a graph; None = 128, of one graph 5,000. Memory grows with its square

    Edges go both ways, have no weight, and no node is its own neighbour. Raises ValueError, naming the graph,
    where they do not; where graphs have more nodes, or not the same number of attributes.

    >>> own = data.graph_set([networkx.cycle_graph(6), networkx.path_graph(6)], ["ring", "path"])
    """
    if hasattr(graphs, "to_data_list"):  # a Batch of PyTorch Geometric
        graphs = graphs.to_data_list()
    one = not isinstance(graphs, list | tuple | Iterator | Dataset)
    every: list[Any] = [graphs] if one else list(graphs)
    number = len(every)
    if number < 2 and not one:
        mend = "one is given alone, and its nodes are the samples"
        raise ValueError(f"graph_set: graphs holds {number} graphs, but must hold two or more; {mend}")
    most = (MOST_OF_ONE if one else MOST_NODES) if most_nodes is None else most_nodes
    found = [
        _one("the graph" if one else f"graph {at} of {number}", graph, most, number)
        for at, graph in enumerate(every)
    ]
    given = [label for *_, label in found]
    if labels is None and one:
        labels = given[0]
    elif labels is None:
        without = [at for at, label in enumerate(given) if label is None]
        if 0 < len(without) < len(given):
            raise ValueError(f"graph_set: graph {without[0]} of {len(given)} has no label, others have")
        labels = None if without else given
    notes = ["weights and attributes of edges are left out"] if any(map(_weighted, every)) else []
    of_nodes = {str(name) for graph in every for _, own in _nodes(graph) for name in own}
    if left := sorted(of_nodes - {*ATTRIBUTES, *LABELS}):
        notes.append(f"attributes of nodes left out: {shortlist(left)}")
    return _set("graph_set", [each[:2] for each in found], labels, class_names, "; ".join([source, *notes]))


def read_nodes(path: str, split: str = "train") -> GraphSet:
    """The network of an edge list, nodes as samples: 'nodes:file:EDGES', perhaps with a table of its nodes.

    - EDGES: a text file, a line an edge, read by `pandas.read_csv`; its columns are parted by tabs, commas,
      semicolons or blanks. Lines that begin with '#' or '%' are left out. Where a first line names the
      columns, the two that it calls ends (`ENDS`, or the same name with 1 and 2) are the ends. Without such
      a line there are two columns, or a third of weights. `source` names the first nodes and what was left
      out
    - 'EDGES?nodes=TABLE': a .csv whose first column has the nodes' names; its other columns are attributes,
      and the one of a usual name, or of 'EDGES?nodes=TABLE&label=kind', the labels (see `tables.read`).
      Nodes that no edge names are in the network, too
    - 'EDGES?most=20000': as many nodes are taken; else 5,000

    Without a table each node is its own attribute, and nobody has a label. All nodes are 'train'. Raises
    `Unavailable` where a file is missing; ValueError, naming line or column, where columns are not clear.
    """
    import networkx as nx

    name, file, wanted = own_file("nodes:file", path, split, ("nodes", "label", "most"))
    ends, notes = _edges(name, file)
    names = list(dict.fromkeys(node for pair in ends for node in pair))
    attributes: Tensor | None = None
    labels: Any = None
    if "nodes" in wanted:
        _, own, _ = own_file("nodes:file", wanted["nodes"])
        with_table = f"{name}?nodes={wanted['nodes']}"
        frame = tables.frame_of(f"nodes:file:{own}", own, wanted.get("label"), ids=True)
        frame = frame[[title for title in frame.columns if not tables.NAMELESS.fullmatch(title)]]
        first = frame.columns[0]
        found = _plain_numbers(frame.pop(first).map(str.strip))
        listed, twice = found.tolist(), found[found.duplicated()]
        if len(twice):
            raise ValueError(f"{name}: {own} has node {twice.iloc[0]!r} in two rows")
        if strange := sorted(set(names) - set(listed)):
            holds = f"its first column, {first!r}, holds {shortlist(list(map(repr, listed)))}"
            raise ValueError(
                f"{name}: {own} has no row for {len(strange)} nodes, {shortlist(strange)}: {holds}"
            )
        names, titles = listed, list(frame.columns)
        if len(titles) == 1 and tables.label_column(with_table, titles, wanted.get("label")) == 0:
            labels = tables.labels_of(with_table, titles[0], frame[titles[0]])
            notes.append(f"labels: {titles[0]!r}")
        elif titles:
            table = tables.build(with_table, frame, wanted.get("label"))
            values = tables.impute_and_scale(table, np.ones(len(frame), bool), scale=False)
            attributes, labels, notes = torch.from_numpy(values), table.labels, notes + table.notes
    most = whole_number(name, "most", wanted.get("most", MOST_OF_ONE))
    n = len(names)
    if n > most:
        raise ValueError(
            f"{name} has {n:,} nodes, more than {most:,}: {name}?most={n} takes it, and {human(4 * n * n)}"
        )
    graph = nx.empty_graph(names)
    graph.add_edges_from(ends)
    edges = graph.number_of_edges()
    source = f"{n:,} nodes and {edges:,} edges from the file {file}, one network, nodes as samples"
    notes.insert(0, f"nodes: {shortlist(names)}")
    return _set(name, [(attributes, adjacency_of(graph))], labels, None, "; ".join([source, *notes]))


def _edges(name: str, file: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Pairs of names, and what `source` has to say of the file's columns."""
    text = text_of(name, file)
    if file.suffix.lower() in FOREIGN or text.lstrip().startswith(("{", "[", "<", "*", "%%MatrixMarket")):
        mend = "data.graph_set takes one of networkx.node_link_graph, read_graphml, from_scipy_sparse_array"
        raise ValueError(f"{name} is no list of edges, a line an edge; {mend}")
    lines = ["" if line.lstrip().startswith(("#", "%")) else line.strip() for line in text.split("\n")]
    numbers = [number for number, line in enumerate(lines, 1) if line]
    if not numbers:
        raise ValueError(f"{name} names no edge")
    text = "\n".join(lines)
    _, mark = tables.delimiter_of(text)
    frame = tables.texts_of(name, text, sep=mark, header=None, skipinitialspace=True).map(str.strip)
    frame = frame.loc[:, (frame != "").any()]  # a mark at the end of each line
    if len(frame.columns) < 2:
        raise ValueError(f"{name}: line {numbers[0]} is {lines[numbers[0] - 1]!r}, but must name two nodes")
    titles, notes = frame.iloc[0].tolist(), []
    at = _ends_of(name, titles, frame.iloc[1:])
    if at is not None:
        frame, numbers = frame.iloc[1:], numbers[1:]
        notes.append(f"ends: {titles[at[0]]!r} and {titles[at[1]]!r}")
        if left := [title or "a column without a name" for k, title in enumerate(titles) if k not in at]:
            notes.append(f"left out: {', '.join(left)}")
    elif len(titles) > 2:
        notes.append("weights are left out")
    at = at or (0, 1)
    pair = frame.iloc[:, list(at)].apply(_plain_numbers)
    if (empty := (pair == "").any(axis=1)).any():
        line = numbers[int(empty.to_numpy().argmax())]
        raise ValueError(f"{name}: line {line} is {lines[line - 1]!r}, but must name two nodes")
    loops = pair.iloc[:, 0] == pair.iloc[:, 1]
    if loops.any():
        line = numbers[int(loops.to_numpy().argmax())]
        notes.append(f"{loops.sum():,} lines that tie a node to itself left out, first line {line}")
    if loops.all():
        raise ValueError(f"{name} names no edge between two nodes")
    return list(pair[~loops].itertuples(index=False, name=None)), notes


def _ends_of(name: str, titles: Sequence[str], below: pd.DataFrame) -> tuple[int, int] | None:
    """The two columns that a first line calls the ends of an edge; None where that line is an edge itself.

    It is one where its cells are numbers above numbers, or names that come again below, in two columns, or
    three with weights in the last that do not count the lines. Raises ValueError where neither is clear.
    """
    import pandas as pd

    plain = [re.sub(r"(?<=[a-z])(?=[A-Z])", " ", title).lower() for title in titles]
    words = [set(re.findall(r"[^\W\d_]+", title)) for title in plain]
    # a letter before the mark: 11 and 12 are nodes; u and v are, where there is no third column
    stems = [re.fullmatch(r"(.*[^\W\d_].*?)[ _.-]?([12abijuv])", title) for title in plain]
    pairs = [
        (a, b)
        for a, one in enumerate(stems)
        for b, other in enumerate(stems)
        if not (words[a] | words[b]) & NO_ENDS
        and (
            (words[a] & ENDS[0] and words[b] & ENDS[1])
            or (one and other and one[1] == other[1] and one[2] + other[2] in ("12", "ab", "ij", "uv"))
            or (len(titles) > 2 and (plain[a], plain[b]) in (("u", "v"), ("i", "j")))
        )
    ]
    named = [at for at, title in enumerate(titles) if not tables.NAMELESS.fullmatch(title)]
    numbers = [
        at for at in range(len(titles)) if len(below) and below.iloc[:, at].str.fullmatch(NUMBER).all()
    ]
    words_above = any(not re.fullmatch(NUMBER, titles[at]) for at in numbers[:2] if at in named)
    if len(below) == 0 and len(titles) == 2:
        return None
    again = bool(set(titles[:2]) & set(below.iloc[:, :2].to_numpy().flat))
    if not again and len(pairs) == 1:
        return pairs[0]
    if len(named) < len(titles) or (words_above and not again):
        names = [titles[at] for at in named if not re.fullmatch(NUMBER, titles[at])]
        if len(named) == 2 and not pairs and not re.search(r"\d", " ".join(names)):  # A1 may be a node
            return named[0], named[1]
    elif again or {0, 1} <= set(numbers):
        first = pd.to_numeric(below.iloc[:, 0], errors="coerce")
        counts = len(titles) == 3 and len(first) > 1 and (first.diff().iloc[1:] == 1).all()
        if len(titles) == 2 or (len(titles) == 3 and 2 in numbers and not counts):
            return None
    raise ValueError(
        f"{name}: its first line, {', '.join(map(repr, titles))}, does not say which two columns are the "
        "ends of an edge: add a line source,target, with a word for each further column"
    )


def _plain_numbers(column: pd.Series) -> pd.Series:
    """Names of nodes as text, '1.0' as '1' where all are whole numbers, which pandas writes so."""
    whole = column.str.fullmatch(r"-?\d+(\.0+)?")
    return column.str.replace(r"\.0+$", "", regex=True) if whole.all() else column


def _one(who: str, graph: Any, most: int, number: int) -> tuple[Tensor | None, Tensor, Any]:
    """A graph's attributes (n, F), None where it has none, adjacency (n, n), and its label or labels."""
    of_networkx = hasattr(graph, "adj") and hasattr(graph, "nodes")
    if not of_networkx and getattr(graph, "edge_index", None) is None:
        raise ValueError(
            f"graph_set: {who} is {type(graph).__name__}, but must be a networkx graph, or an object with "
            "edge_index as PyTorch Geometric's Data; of pairs of nodes networkx.Graph(pairs) makes one, of "
            "an adjacency A networkx.from_numpy_array(A)"
        )
    x, y = (None, None) if of_networkx else (getattr(graph, "x", None), getattr(graph, "y", None))
    if of_networkx:
        n = len(graph)
    else:
        known = len(x) if x is not None else getattr(graph, "num_nodes", None)
        n = int(graph.edge_index.max()) + 1 if known is None else known
    if not 0 < n <= most:
        mend = f": most_nodes={n} takes it, and {human(number * n * n * 4)} of memory" if n else ""
        raise ValueError(f"graph_set: {who} has {n:,} nodes, but must have 1 to {most:,}{mend}")
    if not of_networkx:
        y = None if y is None else torch.as_tensor(y)
        y = y if y is None else y.item() if y.numel() == 1 else y.squeeze(-1)
        adjacency = _adjacency(who, torch.as_tensor(graph.edge_index).T, n)
        return None if x is None else _rows(who, x, n), adjacency, y
    own = {name: [node.get(name) for _, node in _nodes(graph)] for name in (*ATTRIBUTES, *LABELS)}
    some = {name: values for name, values in own.items() if any(value is not None for value in values)}
    title = next((name for name in ATTRIBUTES if name in some), None)
    attributes = None if title is None else _rows(who, some[title], n)
    label = next((graph.graph[name] for name in LABELS if name in graph.graph), None)
    of_nodes = next((some[name] for name in LABELS if name in some), None)
    return attributes, adjacency_of(graph), of_nodes if label is None else label


def _nodes(graph: Any) -> list[tuple[Any, dict[str, Any]]]:
    """Nodes of a networkx graph with their attributes; of others none."""
    return list(graph.nodes(data=True)) if hasattr(graph, "adj") else []


def _weighted(graph: Any) -> bool:
    if hasattr(graph, "edge_index"):
        return any(getattr(graph, name, None) is not None for name in ("edge_weight", "edge_attr"))
    return any(own for *_, own in graph.edges(data=True))


def _adjacency(who: str, edges: Any, n: int) -> Tensor:
    """(n, n) of pairs (E, 2), each an edge from the first to the second."""
    ends = torch.as_tensor(edges).reshape(-1, 2) if len(edges) == 0 else torch.as_tensor(edges)
    if ends.ndim != 2 or ends.shape[1] != 2 or (len(ends) and ends.is_floating_point()):
        came = f"{tuple(ends.T.shape)} {ends.dtype}"
        raise ValueError(f"graph_set: {who} has edges {came}, but must have whole numbers (2, E)")
    if len(ends) and (ends.min() < 0 or ends.max() >= n):
        wrong = int(ends.min() if ends.min() < 0 else ends.max())
        raise ValueError(f"graph_set: {who} has an edge of node {wrong}, but nodes are 0 to {n - 1}")
    adjacency = torch.zeros(n, n)
    adjacency[ends[:, 0].long(), ends[:, 1].long()] = 1
    return adjacency


def _rows(who: str, features: Any, n: int) -> Tensor:
    """Attributes (n, F) as float32; of one number a node, F = 1."""
    try:
        given = features.detach().cpu().float().numpy() if isinstance(features, Tensor) else features
        x = torch.from_numpy(np.array(given, np.float32))
    except (TypeError, ValueError) as error:
        raise ValueError(f"graph_set: {who} has attributes that are no numbers: {error}") from error
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or len(x) != n or not x.isfinite().all():
        needed = f"{n} rows of finite numbers"
        raise ValueError(f"graph_set: {who} has attributes {tuple(x.shape)}, but must have {needed}")
    return x


def _set(
    who: str,
    graphs: Sequence[tuple[Tensor | None, Tensor]],
    labels: Any,
    class_names: Sequence[str] | None,
    source: str,
) -> GraphSet:
    """Attributes where there are none, and labels as numbers."""
    widths = [None if x is None else x.shape[1] for x, _ in graphs]
    for at, width in enumerate(widths):
        if width != widths[0]:
            first = f"the first {widths[0] or 'none'}"
            raise ValueError(f"{who}: graph {at} has {width or 'no'} attributes a node, {first}")
    single = len(graphs) == 1
    full: list[Graph] = [
        ((torch.eye(len(A)) if single else torch.ones(len(A), 1)) if x is None else x, A) for x, A in graphs
    ]
    samples = len(graphs[0][1]) if single else len(graphs)
    codes, names = codes_of(who, labels, samples, class_names, "nodes" if single else "graphs")
    return GraphSet(packed(full), torch.from_numpy(codes), names, source)
