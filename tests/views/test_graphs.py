"""Views of graphs: what goes, how much of it, repeatable, and no matter how the batch is padded."""

import pytest
import torch

from clutils import data, views
from clutils.data.graphs import packed, unpacked
from clutils.views.graphs import ppr

MOTIFS = data.load("graphs:motifs", limit=24).graphs
KARATE = data.load("nodes:karate").graphs
ONE = {name: 0.0 for name in ("drop_nodes", "perturb_edges", "mask_attributes", "subgraph")}


def dice(seed=0):
    return torch.Generator().manual_seed(seed)


def only(name, share):
    return views.GraphAugmentation(**ONE | {name: share})


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 1.0])
def test_each_graph_loses_its_share_of_nodes_with_their_edges_and_nothing_else(share):
    nodes, _, adjacency = unpacked(MOTIFS)
    left, attributes, edges = unpacked(only("drop_nodes", share)(MOTIFS, dice()))
    for graph in range(len(MOTIFS)):
        had = int(nodes[graph].sum())
        assert int(left[graph].sum()) == max(1, had - int(share * had + 1e-6))
        assert not (left[graph] & ~nodes[graph]).any()
        both = left[graph][:, None] & left[graph][None, :]
        assert torch.equal(edges[graph], adjacency[graph] * both)
        assert torch.equal(attributes[graph, :, 0], left[graph].float())


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_as_many_edges_come_as_go_between_nodes_that_had_none(share):
    nodes, _, adjacency = unpacked(MOTIFS)
    left, _, edges = unpacked(only("perturb_edges", share)(MOTIFS, dice()))
    assert torch.equal(left, nodes) and torch.equal(edges, edges.transpose(1, 2))
    assert (edges.diagonal(dim1=1, dim2=2) == 0).all() and ((edges == 0) | (edges == 1)).all()
    for before, after in zip(adjacency, edges, strict=True):
        gone, come = (before > after).sum() / 2, (after > before).sum() / 2
        assert gone == come == int(share * float(before.sum() / 2) + 1e-6)


def test_masked_nodes_lose_their_attributes_and_keep_their_edges():
    nodes, _, adjacency = unpacked(MOTIFS)
    left, attributes, edges = unpacked(only("mask_attributes", 0.5)(MOTIFS, dice()))
    assert torch.equal(left, nodes) and torch.equal(edges, adjacency)
    assert torch.equal(attributes.sum(dim=(1, 2)), nodes.sum(dim=1) - (0.5 * nodes.sum(dim=1) + 1e-6).long())


def test_a_subgraph_is_connected_and_as_large_as_asked_where_a_walk_gets_there():
    import networkx as nx

    left, _, edges = unpacked(only("subgraph", 0.4)(MOTIFS, dice()))
    large = 0
    for nodes, before, adjacency in zip(left, unpacked(MOTIFS)[0], edges, strict=True):
        graph = nx.from_numpy_array(adjacency[nodes][:, nodes].numpy())
        assert nx.is_connected(graph)
        wanted = int(before.sum()) - int(0.4 * int(before.sum()) + 1e-6)
        assert len(graph) <= wanted
        large += len(graph) == wanted
    assert large > 15


def test_a_walk_from_a_lonely_node_stays_and_one_goes_round_its_own_part():
    lonely = packed(
        [(torch.ones(3, 1), torch.zeros(3, 3)), (torch.ones(3, 1), torch.ones(3, 3).fill_diagonal_(0))]
    )
    left = unpacked(only("subgraph", 0.0001)(lonely, dice()))[0]
    assert left.sum(dim=1).tolist() == [1, 3]


def test_with_the_same_numbers_more_strength_drops_the_same_nodes_and_further_ones():
    few, many = (unpacked(only("drop_nodes", share)(MOTIFS, dice(3)))[0] for share in (0.2, 0.5))
    assert (many <= few).all() and (many < few).any()


def test_one_of_four_changes_each_graph_in_one_way_and_all_four_in_all():
    one = views.GraphAugmentation()(MOTIFS, dice())
    parts = [only(name, 0.2)(MOTIFS, dice()) for name in ONE]
    same = torch.stack([(one == part).all(dim=2).all(dim=1) for part in parts])
    assert same.any(dim=0).all() and same.any(dim=1).all()
    every = unpacked(views.GraphAugmentation(one_each=False)(MOTIFS, dice()))
    assert (every[0].sum(dim=1) < unpacked(MOTIFS)[0].sum(dim=1)).all()


def test_graces_views_drop_edges_and_whole_columns_and_no_node():
    augment = views.NodeAugmentation(drop_edges=0.4, mask_features=0.5)
    nodes, attributes, adjacency = unpacked(augment(KARATE, dice()))
    before = unpacked(KARATE)
    assert torch.equal(nodes, before[0]) and torch.equal(adjacency, adjacency.transpose(1, 2))
    assert (adjacency <= before[2]).all()
    assert 0.4 < float(adjacency.sum() / before[2].sum()) < 0.8
    masked = attributes.sum(dim=1)[0] == 0
    assert 5 < int(masked.sum()) < 30
    assert torch.equal(attributes[0][:, ~masked], before[1][0][:, ~masked])


def test_pagerank_is_the_series_of_the_walks():
    graphs = MOTIFS[:3].double()
    nodes, _, adjacency = unpacked(graphs)
    looped = adjacency + torch.eye(adjacency.shape[-1], dtype=torch.float64)
    degrees = looped.sum(dim=-1)
    walk = looped / (degrees[:, :, None] * degrees[:, None, :]).sqrt()
    series, power, weight = torch.zeros_like(walk), torch.eye(walk.shape[-1]).to(walk), 0.2
    for _ in range(200):
        series += weight * power
        power, weight = power @ walk, weight * 0.8
    there = (nodes[:, :, None] & nodes[:, None, :]).double()
    torch.testing.assert_close(unpacked(ppr(graphs, 0.2))[2], series * there, rtol=0, atol=1e-9)
