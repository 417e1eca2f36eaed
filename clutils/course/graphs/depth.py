"""Over-smoothing: what many graph convolutions leave of the differences between nodes."""

from __future__ import annotations

import torch
from torch import Tensor

from clutils import encoders
from clutils.data import GraphSet
from clutils.data.graphs import unpacked


def similarity_of_nodes(h: Tensor) -> float:
    """Mean cosine similarity of different nodes' rows (V, D)."""
    unit = torch.nn.functional.normalize(h, dim=1)
    total = (unit @ unit.T).sum() - len(unit)
    return float(total / (len(unit) * (len(unit) - 1)))


def depths(network: GraphSet, layers: int = 32, seed: int = 0) -> dict[str, dict[str, list[float]]]:
    """What `layers` convolutions do to a network's nodes: of the propagation alone, and of fresh GCN layers.

    name -> {"similarity": mean cosine of nodes; "by distance", "by cosine": share whose nearest node has
    their class}, each a number a depth from 0, the attributes. The layers are 64 wide, with ReLU, without
    normalisation.
    """
    _, attributes, adjacency = unpacked(network.graphs.double())
    matrix, labels = encoders.graphs.propagation(adjacency)[0], network.labels
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        weights = [
            torch.nn.init.kaiming_normal_(torch.empty(64, 64 if at else attributes.shape[2]).double())
            for at in range(layers)
        ]
    walked = convolved = attributes[0]
    found: dict[str, dict[str, list[float]]] = {}
    for depth in range(layers + 1):
        for name, h in (("propagation alone", walked), ("GCN, fresh weights", convolved)):
            row = found.setdefault(name, {"similarity": [], "by distance": [], "by cosine": []})
            row["similarity"].append(similarity_of_nodes(h))
            row["by distance"].append(nearest(h, labels))
            row["by cosine"].append(nearest(torch.nn.functional.normalize(h, dim=1), labels))
        if depth < layers:
            walked = matrix @ walked
            convolved = torch.relu(matrix @ convolved @ weights[depth].T)
            convolved = convolved / convolved.norm() * len(convolved) ** 0.5
    return found


def nearest(h: Tensor, labels: Tensor) -> float:
    """Share of nodes whose nearest other node, by distance, has their class; of several the first counts."""
    best = torch.cdist(h, h).fill_diagonal_(torch.inf).argmin(dim=1)
    return float((labels[best] == labels).double().mean())
