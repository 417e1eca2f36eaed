"""What a method of graphs is tested with: a few graphs, a network, and an encoder whose layers are loops."""

from __future__ import annotations

import math

import torch

from clutils import data, encoders
from clutils.data.graphs import unpacked

MOTIFS = data.load("graphs:motifs", limit=12).graphs
NETWORK = data.graphs.blocks((7, 6), within=0.6, between=0.2, attributes=4).graphs


def built(kind, nodes=False, loss=None, **settings):
    """A method of three small layers, in training mode."""
    torch.manual_seed(0)
    layer = encoders.GCNLayer if nodes else encoders.GINLayer
    encoder = encoders.GraphNetwork(4 if nodes else 1, layer, width=5, layers=2, of_nodes=nodes)
    return kind(encoder, kind.default_loss() if loss is None else loss, **settings).train()


def rows_by_loops(encoder, graphs, layer_of):
    """Every node's features, (nodes, features) float64, one node after the other, as the papers have them.

    layer_of: (layer, features of a graph's nodes, adjacency) -> the layer's output, for `gcn` and `gin`.
    """
    nodes, attributes, adjacency = (part.double() for part in unpacked(graphs))
    present = [part.bool() for part in nodes]
    h = [a[p] for a, p in zip(attributes, present, strict=True)]
    edges = [a[p][:, p] for a, p in zip(adjacency, present, strict=True)]
    outputs = []
    for layer, norm in zip(encoder.layers, encoder.normalisations, strict=True):
        made = [layer_of(layer, own, tied).clamp(min=0) for own, tied in zip(h, edges, strict=True)]
        every = torch.cat(made)
        mean, variance = every.mean(dim=0), every.var(dim=0, unbiased=False)
        scaled = (every - mean) / (variance + norm.eps).sqrt() * norm.weight.double() + norm.bias.double()
        h = list(scaled.split([len(own) for own in made]))
        outputs.append(h)
    return [torch.cat(of, dim=1) for of in zip(*outputs, strict=True)]  # a graph's nodes, each


def gin(layer, h, adjacency):
    weights = [(part.weight.double(), part.bias.double()) for part in (layer.mlp[0], layer.mlp[2])]
    rows = []
    for v in range(len(h)):
        total = h[v] + sum((h[u] for u in range(len(h)) if adjacency[v, u]), torch.zeros_like(h[v]))
        rows.append(weights[1][0] @ (weights[0][0] @ total + weights[0][1]).clamp(min=0) + weights[1][1])
    return torch.stack(rows)


def gcn(layer, h, adjacency):
    degree = [1 + float((adjacency[v] != 0).sum()) for v in range(len(h))]
    rows = []
    for v in range(len(h)):
        total = h[v] / degree[v]
        for u in range(len(h)):
            if adjacency[v, u]:
                total = total + h[u] / math.sqrt(degree[v] * degree[u])
        rows.append(layer.linear.weight.double() @ total + layer.linear.bias.double())
    return torch.stack(rows)


def weighted(layer, h, adjacency):
    """A diffusion's weights as they are."""
    total = torch.stack([sum(adjacency[v, u] * h[u] for u in range(len(h))) for v in range(len(h))])
    return total @ layer.linear.weight.double().T + layer.linear.bias.double()
