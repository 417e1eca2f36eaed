"""Features learned from graphs beside counted ones: the table that notebook 14 makes, with more steps.

python benchmarks/graphs.py graphs:motifs --record
python benchmarks/graphs.py graphs:motifs --plain --record       what no step made alone

python benchmarks/graphs.py graphs:mutag --judges --steps 40 --record    by GraphCL's judge as well
python benchmarks/graphs.py nodes:cora --seeds 3 --record                nodes, on the public parts
python benchmarks/graphs.py nodes:cora --time --record                   a step beside PyTorch Geometric's
python benchmarks/graphs.py graphs:motifs --time --record                the same of GraphCL, on graphs

Prints ten-fold accuracy, a row a kind of features and a seed; --record adds them to
benchmarks/records/graphs.csv, --judges to graph_judges.csv, nodes to nodes.csv, --time to nodes_time.csv.
"""

from __future__ import annotations

import argparse
import copy
import re
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clutils import data, training
from clutils.course import graphs as lesson
from clutils.course import records
from clutils.data.graphs import unpacked

GRAPHS = 128  # a batch, of the timed steps of GraphCL
LEARNED_NODES = {"dgi": 100, "grace": 40}  # steps, which take half a minute of one core each on Cora


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", help="a name for data.load; the first 240 of all of it are taken")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--plain", action="store_true", help="only what no step made")
    parser.add_argument("--judges", action="store_true", help="two judges, GraphCL in batches of 128")
    parser.add_argument("--time", action="store_true", help="CPU time of a step, beside PyTorch Geometric")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.time:
        return times(options)
    if options.data.startswith("nodes:"):
        return nodes(options)
    if options.judges:
        return judges(options)
    seen = data.load(options.data, "all", limit=240)
    settings = {"steps": options.steps, "batch_size": 64, "learning_rate": 0.01}
    learned = {} if options.plain else None
    called = "".join(re.split(r"(?<=file:).*/", options.data))  # a file without its folder
    command = f"python benchmarks/graphs.py {called} --steps {options.steps} --seeds {options.seeds} --record"
    chance = seen.labels.bincount().max().item() / len(seen)
    done = records.known("graphs", "data", "features", "seed", "steps") if options.record else set()
    every = [*lesson.PLAIN, *(lesson.LEARNED if learned is None else learned)]
    found = []
    for seed in range(options.seeds):
        if done.issuperset((seen.source, name, seed, options.steps) for name in every):
            continue
        rows = lesson.compare(seen, learned, seeds=[seed], **settings)
        found.append(rows)
        for row in rows.to_dict("records"):
            if (seen.source, row["features"], seed, options.steps) not in done:
                kept = {"command": command, "data": seen.source, "chance": chance, **settings, **row}
                records.keep("graphs", kept, options.record)
    if found:
        print(lesson.summary(pd.concat(found)))


def judges(options: argparse.Namespace) -> None:
    """Counts, a fresh GIN and GraphCL, each by logistic regression and by GraphCL's own judge."""
    seen = data.load(options.data, "all", limit=240)
    settings = {"steps": options.steps, "batch_size": 128, "learning_rate": 0.01}
    command = f"python benchmarks/graphs.py {options.data} --judges --steps {options.steps} --record"
    done = records.known("graph_judges", "seed") if options.record else set()
    for seed in range(options.seeds):
        if (seed,) in done:
            continue
        for row in lesson.by_both_judges(seen, seed, **settings):
            kept = {"command": command, "data": seen.source, **settings, **row}
            records.keep("graph_judges", kept, options.record)


def nodes(options: argparse.Namespace) -> None:
    """Features without weights and learned ones, for a citation network with public parts."""
    network = lesson.with_even_rows(data.load(options.data))
    names = ("public-train", "public-val", "public-test")
    parts = {name: data.load(options.data, name) for name in names}
    command = f"python benchmarks/graphs.py {options.data} --seeds {options.seeds} --record"

    def keep(features: str, seed: int, steps: int, z: torch.Tensor) -> None:
        row = {"command": command, "data": network.source, "features": features, "seed": seed, "steps": steps}
        records.keep("nodes", row | lesson.on_public_parts(z, parts), options.record)

    done = records.known("nodes", "features", "seed") if options.record else set()
    fixed = {
        "attributes alone": lambda: lesson.propagated(network, 0),
        "S² X": lambda: lesson.propagated(network, 2),
        "S³ X": lambda: lesson.propagated(network, 3),
        "64 eigenvectors of S": lambda: lesson.eigenvectors(network, 64),
    }
    for name, of in fixed.items():
        if (name, 0) not in done:
            keep(name, 0, 0, of())
    for seed in range(options.seeds):
        for method, steps in LEARNED_NODES.items():
            if (method, seed) in done:
                continue
            run = training.Run(method=method, data=network, steps=steps, seed=seed, threads=1)
            if method == "dgi":
                keep("dgi's encoder, fresh weights", seed, 0, run.embed(network))
            run.finish(progress=False)
            keep(method, seed, steps, run.embed(network))


# ---- the same step in PyTorch Geometric --------------------------------------------------------------------


def times(options: argparse.Namespace) -> None:
    """CPU seconds of a step, in turns with the same method in plain PyTorch Geometric at equal width."""
    if options.data.startswith("nodes:"):
        seen = lesson.with_even_rows(data.load(options.data))
        _, x, adjacency = (part[0] for part in unpacked(seen.graphs))
        edges = adjacency.nonzero().T.contiguous()
        rivals = {
            "dgi": lambda head: plain_dgi(x, edges, head),
            "grace": lambda head: plain_grace(x, edges, head),
        }
        batch = {}
    else:
        seen = data.load(options.data, "all")
        rivals, batch = {"graphcl": lambda head: plain_graphcl(seen.graphs, head)}, {"batch_size": GRAPHS}
    turns = 40 if batch else 8
    command = f"python benchmarks/graphs.py {options.data} --time --record"
    for method, rival in rivals.items():
        run = training.Run(method=method, data=seen, steps=turns, seed=0, threads=1, **batch)
        steps = {"clutils": run.step, "PyTorch Geometric": rival(copy.deepcopy(run.method.head))}
        took: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(turns):
            for name, step in steps.items():
                begun = time.process_time()
                step()
                took[name].append(time.process_time() - begun)
        seconds = {name: statistics.median(own[1:]) for name, own in took.items()}  # the first one warms up
        row = {"command": command, "data": seen.source, "method": method, "turns": turns} | seconds
        row["ratio"] = row["clutils"] / row["PyTorch Geometric"]
        records.keep("nodes_time", row, options.record)


class PlainEncoder(nn.Module):
    """Convolutions of PyTorch Geometric, each with ReLU and batch normalisation, or with PReLU alone."""

    def __init__(self, inputs: int, width: int, layers: int, normalise: bool) -> None:
        super().__init__()
        from torch_geometric.nn import GCNConv

        self.layers = nn.ModuleList(GCNConv(width if at else inputs, width) for at in range(layers))
        self.steps = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.BatchNorm1d(width)) if normalise else nn.PReLU()
            for _ in range(layers)
        )

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        outputs = []
        for layer, step in zip(self.layers, self.steps, strict=True):
            x = step(layer(x, edges))
            outputs.append(x)
        return torch.cat(outputs, dim=1)


def plain_dgi(x: Tensor, edges: Tensor, weight: nn.Module) -> Callable[[], None]:
    """DGI's step on nodes with attributes x (n, F) and edges (2, E): `gcn-prelu`, one layer of 512."""
    encoder = PlainEncoder(x.shape[1], 512, 1, normalise=False)
    optimiser = torch.optim.AdamW([*encoder.parameters(), *weight.parameters()], 1e-3)

    def step() -> None:
        real, wrong = encoder(x, edges), encoder(x[torch.randperm(len(x))], edges)
        summary = torch.sigmoid(real.mean(dim=0))
        loss = (F.softplus(-weight(real) @ summary) + F.softplus(weight(wrong) @ summary)).mean() / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


def plain_grace(x: Tensor, edges: Tensor, head: nn.Module) -> Callable[[], None]:
    """GRACE's step: `gcn-nodes`, two layers of 64; the loss as its authors' code writes it (semi_loss)."""
    from torch_geometric.utils import dropout_edge

    encoder = PlainEncoder(x.shape[1], 64, 2, normalise=True)
    optimiser = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], 1e-3)

    def view() -> Tensor:
        kept = dropout_edge(edges, p=0.3, force_undirected=True)[0]
        return F.normalize(head(encoder(x * (torch.rand(x.shape[1]) >= 0.3), kept)), dim=1)

    def half(one: Tensor, other: Tensor) -> Tensor:
        own, across = torch.exp(one @ one.T / 0.4), torch.exp(one @ other.T / 0.4)
        return -torch.log(across.diag() / (own.sum(1) + across.sum(1) - own.diag()))

    def step() -> None:
        one, two = view(), view()
        loss = (half(one, two) + half(two, one)).mean() / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


class PlainGIN(nn.Module):
    """Three GIN-0 layers of 32, each with ReLU and batch normalisation; the sum over a graph's nodes."""

    def __init__(self, inputs: int, width: int = 32, layers: int = 3) -> None:
        super().__init__()
        from torch_geometric.nn import MLP, GINConv

        sizes = [[width if at else inputs, width, width] for at in range(layers)]
        self.layers = nn.ModuleList(GINConv(MLP(size, norm=None)) for size in sizes)
        self.steps = nn.ModuleList(nn.BatchNorm1d(width) for _ in sizes)

    def forward(self, x: Tensor, edges: Tensor, which: Tensor, number: int) -> Tensor:
        from torch_geometric.nn import global_add_pool

        outputs = []
        for layer, step in zip(self.layers, self.steps, strict=True):
            x = step(F.relu(layer(x, edges)))
            outputs.append(x)
        return global_add_pool(torch.cat(outputs, dim=1), which, number)


def plain_graphcl(graphs: Tensor, head: nn.Module) -> Callable[[], None]:
    """GraphCL's step on batches of `GRAPHS`, `gin`: a view is one of the four changes of a batch, at 20 %."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader
    from torch_geometric.utils import add_random_edge, dropout_edge, subgraph

    nodes, attributes, adjacency = unpacked(graphs)
    each = [
        Data(x=x[own], edge_index=a[own][:, own].nonzero().T.contiguous())
        for own, x, a in zip(nodes, attributes, adjacency, strict=True)
    ]
    encoder = PlainGIN(attributes.shape[2])
    optimiser = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], 1e-3)

    def batches() -> Iterator[Any]:
        while True:
            yield from DataLoader(each, GRAPHS, shuffle=True, drop_last=True)

    def walked(edges: Tensor, which: Tensor, number: int) -> Tensor:
        """Nodes met by a walk in each graph, of as many steps as graphs have nodes on average: a mask."""
        total = len(which)
        degrees = torch.bincount(edges[0], minlength=total)
        first, sizes = degrees.cumsum(0) - degrees, torch.bincount(which, minlength=number)
        order = edges[1][edges[0].argsort()]
        at = sizes.cumsum(0) - sizes + (torch.rand(number) * sizes).long()
        met = torch.zeros(total, dtype=torch.bool)
        for _ in range(round(total / number)):
            met[at] = True
            at = torch.where(
                degrees[at] > 0, order[first[at] + (torch.rand(number) * degrees[at]).long()], at
            )
        return met

    def view(batch: Any) -> Tensor:
        x, edges, which, number = batch.x, batch.edge_index, batch.batch, batch.num_graphs
        chosen = int(torch.randint(4, ()))
        if chosen == 0:
            edges = subgraph(torch.rand(len(x)) >= 0.2, edges, num_nodes=len(x))[0]
        elif chosen == 1:
            edges = dropout_edge(edges, p=0.2, force_undirected=True)[0]
            edges = add_random_edge(edges, p=0.2, force_undirected=True, num_nodes=len(x))[0]
        elif chosen == 2:
            x = x * (torch.rand(len(x), 1) >= 0.2)
        else:
            edges = subgraph(walked(edges, which, number), edges, num_nodes=len(x))[0]
        return F.normalize(head(encoder(x, edges, which, number)), dim=1)

    waiting = batches()

    def step() -> None:
        batch = next(waiting)
        similar = torch.exp(view(batch) @ view(batch).T / 0.2)
        loss = -torch.log(similar.diag() / (similar.sum(1) - similar.diag())).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    return step


if __name__ == "__main__":
    main()
