"""GraphCL, SimGRACE, GRACE, BGRL, DGI, MVGRL and their encoders, each beside loops written from its paper."""

import copy
import math

import pytest
import torch

from clutils import data, encoders, losses, methods, training, views
from clutils.data.graphs import repacked, unpacked
from clutils.methods import mvgrl
from clutils.views.graphs import ppr
from tests.methods.given_graphs import MOTIFS, NETWORK, built, gcn, gin, rows_by_loops, weighted
from tests.methods.steps import by_loops


def dice(seed=5):
    return torch.Generator().manual_seed(seed)


def head_of(method, rows):
    return copy.deepcopy(method.head).double().train()(rows)


def drawn(graphs, augment=None, number=2):
    """The views that a step with `dice()` draws, as one batch."""
    augment = views.GraphAugmentation() if augment is None else augment
    return augment(torch.cat([graphs] * number), generator=dice())


# ---- encoders ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gin", "gcn"])
def test_a_graphs_features_are_the_sums_over_its_nodes_of_every_layer(name):
    torch.manual_seed(0)
    encoder = encoders.build(name, 1).train()
    before = copy.deepcopy(encoder)
    found = encoder(MOTIFS)
    rows = rows_by_loops(before, MOTIFS, gin if name == "gin" else gcn)
    expected = torch.stack([row.sum(dim=0) for row in rows])
    torch.testing.assert_close(found.double(), expected, rtol=5e-3, atol=1e-2)  # deviations of some 1e-3
    assert encoder.features == found.shape[1] == 96


def test_nodes_renumbered_or_padded_further_give_the_same_features():
    encoder = encoders.build("gin", 1).eval()
    z = encoder(MOTIFS)
    order = torch.randperm(MOTIFS.shape[1], generator=dice())
    nodes, attributes, adjacency = (part[:, order] for part in unpacked(MOTIFS))
    renumbered = torch.cat([nodes[..., None].float(), attributes, adjacency[:, :, order]], dim=2)
    torch.testing.assert_close(encoder(renumbered), z, rtol=1e-4, atol=1e-4)
    V = MOTIFS.shape[1]
    padded = torch.zeros(len(MOTIFS), V + 3, 2 + V + 3)
    padded[:, :V, : V + 2] = MOTIFS
    torch.testing.assert_close(encoder(padded), z, rtol=1e-4, atol=1e-4)


def test_rows_of_a_network_are_the_nodes_asked_for_and_their_neighbours_count():
    whole = data.load("nodes:karate")
    encoder = encoders.build("gcn-nodes", 34).eval()
    z = encoders.embed(encoder, whole.inputs)
    assert z.shape == (34, 128)
    torch.testing.assert_close(encoders.embed(encoder, whole.subset([4, 0]).inputs), z[[0, 4]])


def test_without_normalisation_a_layer_is_prelu_of_the_neighbours_weighted_sum():
    torch.manual_seed(0)
    encoder = encoders.build("gcn-prelu", 4)
    _, attributes, adjacency = unpacked(NETWORK.double())
    h = gcn(encoder.layers[0], attributes[0], adjacency[0])
    expected = torch.where(h > 0, h, 0.25 * h)
    torch.testing.assert_close(encoder(NETWORK).double(), expected, rtol=1e-4, atol=1e-5)
    assert encoder.features == 512 and not any("norm" in name for name in encoder.state_dict())


@pytest.mark.parametrize("name", ["gcn-nodes", "gcn-prelu"])
def test_a_large_network_is_multiplied_by_its_edges_alone_with_the_same_result(name, monkeypatch):
    made = [
        data.graphs.blocks((300, 300), within=0.02, between=0.002, attributes=4, seed=seed).graphs
        for seed in range(2)
    ]
    network = torch.cat(made).double()  # as two views are
    torch.manual_seed(0)
    encoder = encoders.build(name, 4).double()
    found = []
    for large in (encoders.graphs.LARGE, 10_000):
        monkeypatch.setattr(encoders.graphs, "LARGE", large)
        assert encoders.graphs.edges_of(unpacked(network)[2]).is_sparse == (large < 600)
        encoder.zero_grad()
        z = encoder(network)
        z.square().sum().backward()
        found.append([z.detach(), *(p.grad.clone() for p in encoder.parameters())])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


# ---- methods of graphs -------------------------------------------------------------------------------------


def test_graphcl_leaves_the_positive_out_of_its_sum_and_is_the_decoupled_loss():
    method = built(methods.GraphCL)
    rows = rows_by_loops(copy.deepcopy(method.encoder), drawn(MOTIFS), gin)
    z1, z2 = head_of(method, torch.stack([row.sum(dim=0) for row in rows])).detach().chunk(2)
    loss, found, _ = method(MOTIFS, views.GraphAugmentation(), dice())
    expected = by_loops(losses.Decoupled(0.2), z1, z2, one_way=True)
    assert loss.item() == pytest.approx(expected, abs=1e-4)
    torch.testing.assert_close(found.double(), z1, rtol=1e-3, atol=1e-3)
    assert method.chance(12) == pytest.approx(math.log(11))
    another = by_loops(losses.NTXent(0.5), z1, z2, one_way=True)  # the same anchors
    assert built(methods.GraphCL, loss=losses.NTXent(0.5)).one_way(z1, z2).mean().item() == pytest.approx(
        another
    )


def test_simgrace_perturbs_each_tensor_of_the_encoder_by_its_own_deviation_and_not_the_head():
    method = built(methods.SimGRACE, strength=0.7)
    noise, other = dice(), copy.deepcopy(method.encoder)
    with torch.no_grad():
        for weight in other.parameters():
            drawn_noise = torch.randn(weight.shape, generator=noise)
            weight += 0.7 * weight.std() * drawn_noise
    sums = [
        torch.stack([row.sum(dim=0) for row in rows_by_loops(net, MOTIFS, gin)])
        for net in (method.encoder, other)
    ]
    z1, z2 = (head_of(method, rows).detach() for rows in sums)
    before = copy.deepcopy(method.encoder.state_dict())
    loss, _, second = method(MOTIFS, None, dice())
    assert loss.item() == pytest.approx(by_loops(losses.Decoupled(0.2), z1, z2, one_way=True), abs=1e-3)
    assert not second.requires_grad
    assert all(torch.equal(before[n], w) for n, w in method.encoder.named_parameters())
    counted = [int(v) for n, v in method.encoder.named_buffers() if n.endswith("tracked")]
    assert counted == [1, 1]  # of the clean pass alone


# ---- methods of nodes --------------------------------------------------------------------------------------


def test_grace_is_nt_xent_of_nodes_with_negatives_of_both_views():
    method = built(methods.GRACE, nodes=True)
    augment = views.NodeAugmentation()
    rows = rows_by_loops(copy.deepcopy(method.encoder), drawn(NETWORK, augment), gcn)
    u, v = head_of(method, torch.cat(rows)).detach().chunk(2)
    expected = by_loops(losses.NTXent(0.4), u, v)
    assert method(NETWORK, augment, dice())[0].item() == pytest.approx(expected, abs=1e-4)


def test_bgrl_predicts_the_other_views_features_without_a_head():
    method = built(methods.BGRL, nodes=True)
    with torch.no_grad():
        for weight in method.target_encoder.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=dice(1))
    augment = views.NodeAugmentation()
    both = drawn(NETWORK, augment).chunk(2)
    predictor = copy.deepcopy(method.predictor).double().train()
    p = [predictor(rows_by_loops(method.encoder, view, gcn)[0]).detach() for view in both]
    t = [rows_by_loops(method.target_encoder, view, gcn)[0].detach() for view in both]
    expected = sum(losses.Regression.as_written(p[a], t[1 - a]).item() for a in (0, 1))
    assert method(NETWORK, augment, dice())[0].item() == pytest.approx(expected, abs=1e-4)
    assert method.settings() == {"momentum": 0.99, "predictor_rate": 1.0}


def corrupted(graphs):
    """As DGI's step with `dice()` shuffles attributes."""
    nodes, attributes, adjacency = unpacked(graphs)
    flat = attributes[nodes]
    order = torch.randperm(len(flat), generator=dice())
    moved = attributes.clone()
    moved[nodes] = torch.stack([flat[i] for i in order])
    return repacked(graphs, nodes, moved, adjacency)


def bce(h, other, summary, W):
    """DGI's equation 1 of one graph: (V, D), (V, D), (D,)."""
    total = 0.0
    for row in h:
        total -= math.log(1 / (1 + math.exp(-float(row @ W.T @ summary))))
    for row in other:
        total -= math.log(1 - 1 / (1 + math.exp(-float(row @ W.T @ summary))))
    return total / (2 * len(h))


def test_dgi_tells_nodes_from_corrupted_ones_by_the_graphs_summary():
    method = built(methods.DGI, nodes=True)
    (h,), (other,) = (
        rows_by_loops(copy.deepcopy(method.encoder), x, gcn) for x in (NETWORK, corrupted(NETWORK))
    )
    summary = 1 / (1 + (-h.mean(dim=0)).exp())
    W = method.head.weight.detach().double()
    found, z1, z2 = method(NETWORK, None, dice())
    assert found.item() == pytest.approx(bce(h.detach(), other.detach(), summary.detach(), W), abs=1e-4)
    assert z1.shape == z2.shape == (13, 10) and method.chance(13) == pytest.approx(math.log(2))


def test_of_several_graphs_each_has_its_own_summary():
    method = built(methods.DGI)
    clean, other = (rows_by_loops(copy.deepcopy(method.encoder), x, gin) for x in (MOTIFS, corrupted(MOTIFS)))
    W, total, nodes = method.head.weight.detach().double(), 0.0, 0
    for h, wrong in zip(clean, other, strict=True):
        summary = 1 / (1 + (-h.detach().mean(dim=0)).exp())
        total += bce(h.detach(), wrong.detach(), summary, W) * len(h)
        nodes += len(h)
    assert method(MOTIFS, None, dice())[0].item() == pytest.approx(total / nodes, abs=1e-3)


def test_mvgrl_judges_each_view_by_the_others_summary_and_embeds_their_sum():
    method = built(methods.MVGRL, nodes=True)
    nets = copy.deepcopy((method.encoder.edges, method.encoder.diffusion))
    clean, wrong = [], []
    for x, rows in ((NETWORK, clean), (corrupted(NETWORK), wrong)):
        rows.append(rows_by_loops(nets[0], x, gcn)[0].detach())
        rows.append(rows_by_loops(nets[1], ppr(x.double(), 0.2), weighted)[0].detach())
    summaries = [1 / (1 + (-h.mean(dim=0)).exp()) for h in clean]
    W = method.head.weight.detach().double()
    expected = (bce(clean[0], wrong[0], summaries[1], W) + bce(clean[1], wrong[1], summaries[0], W)) / 2
    assert method(NETWORK, None, dice())[0].item() == pytest.approx(expected, abs=1e-4)
    assert not torch.equal(nets[0].layers[0].linear.weight, nets[1].layers[0].linear.weight)
    method.eval()
    with torch.no_grad():
        both = method.encoder.edges(NETWORK) + method.encoder.diffusion(ppr(NETWORK))
        torch.testing.assert_close(method.encoder(NETWORK), both)


@pytest.mark.parametrize("method", ["dgi", "mvgrl"])
def test_nodes_are_told_from_corrupted_ones_and_not_by_an_encoder_normalised_over_one_graph(method, capsys):
    """With equal summaries the best loss is log 2, since softplus is convex."""
    settings = {"method": method, "data": "nodes:blocks", "learning_rate": 0.005, "threads": 1}
    run = training.Run(**settings, steps=60).finish(progress=False)
    assert run.configuration["encoder"] == "gcn-prelu"
    assert run.rows[-1]["loss"] < 0.6 < math.log(2) and capsys.readouterr().out == ""
    stuck = training.Run(**settings, steps=30, encoder="gcn-nodes").finish(progress=False)
    assert min(row["loss"] for row in stuck.rows) > math.log(2) - 1e-3
    assert "the loss can't fall below 0.693; encoder gcn-prelu has none" in capsys.readouterr().out


def test_mvgrl_inverts_a_networks_matrix_once_a_run_and_again_for_other_edges(monkeypatch):
    asked = []
    monkeypatch.setattr(mvgrl, "ppr", lambda *given: asked.append(given) or ppr(*given))
    run = training.Run(method="mvgrl", data="nodes:karate", steps=3).finish(progress=False)
    first = run.embed(run.data)
    assert len(asked) == 1
    fewer = NETWORK.new_zeros(1, 13, 1 + 34 + 13)
    fewer[..., :1], fewer[..., -13:] = 1, unpacked(NETWORK)[2]
    run.embed(fewer)
    assert len(asked) == 2 and torch.equal(run.embed(run.data), first)
