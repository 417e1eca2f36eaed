"""The losses beside those of published libraries, where one has them: value and gradient."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from clutils import losses


def views(batch, dimension, dtype=torch.float64):
    draw = torch.Generator().manual_seed(3)
    return tuple(
        torch.randn(batch, dimension, generator=draw, dtype=dtype).requires_grad_() for _ in range(2)
    )


def assert_same_value_and_gradient(ours, theirs, z1, z2):
    a, b = ours(z1, z2), theirs(z1, z2)
    torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
    for g, h in zip(torch.autograd.grad(a, (z1, z2)), torch.autograd.grad(b, (z1, z2)), strict=True):
        torch.testing.assert_close(g, h, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_nt_xent_is_pytorch_metric_learnings(temperature):
    library = pytest.importorskip("pytorch_metric_learning.losses")

    def theirs(z1, z2):
        pictures = torch.arange(len(z1)).repeat(2)
        return library.NTXentLoss(temperature)(torch.cat([z1, z2]), pictures)

    assert_same_value_and_gradient(losses.NTXent(temperature), theirs, *views(12, 6))


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_nt_xent_is_lightlys(temperature):
    library = pytest.importorskip("lightly.loss")
    assert_same_value_and_gradient(
        losses.NTXent(temperature), library.NTXentLoss(temperature), *views(12, 6, torch.float32)
    )


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_decoupled_is_lightlys(temperature):
    library = pytest.importorskip("lightly.loss")
    assert_same_value_and_gradient(
        losses.Decoupled(temperature), library.DCLLoss(temperature), *views(12, 6, torch.float32)
    )


@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_batch_hard_triplet_is_pytorch_metric_learnings(margin):
    """Their miner finds the hardest positive and negative of each anchor, their loss the hinge."""
    distances = pytest.importorskip("pytorch_metric_learning.distances")
    miners = pytest.importorskip("pytorch_metric_learning.miners")
    library = pytest.importorskip("pytorch_metric_learning.losses")
    reducers = pytest.importorskip("pytorch_metric_learning.reducers")
    squared = distances.LpDistance(normalize_embeddings=True, p=2, power=2)
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 3])

    def theirs(z1, z2):
        z, y = torch.cat([z1, z2]), labels.repeat(2)
        hardest = miners.BatchHardMiner(distance=squared)(z, y)
        loss = library.TripletMarginLoss(margin, distance=squared, reducer=reducers.MeanReducer())
        return loss(z, y, hardest)

    def ours(z1, z2):
        return losses.Triplet(margin, batch_hard=True)(z1, z2, labels=labels)

    assert_same_value_and_gradient(ours, theirs, *views(8, 5))


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_supcon_is_pytorch_metric_learnings(temperature):
    library = pytest.importorskip("pytorch_metric_learning.losses")
    labels = torch.tensor([0, 1, 2, 0, 1, 2, 0, 3])

    def theirs(z1, z2):
        return library.SupConLoss(temperature)(torch.cat([z1, z2]), labels.repeat(2))

    def ours(z1, z2):
        return losses.SupCon(temperature)(z1, z2, labels=labels)

    assert_same_value_and_gradient(ours, theirs, *views(8, 6))


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_clip_is_torchs_cross_entropy_on_rows_and_columns(temperature):
    def theirs(z1, z2):
        logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature
        own = torch.arange(len(z1))
        return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2

    assert_same_value_and_gradient(losses.CLIP(temperature), theirs, *views(9, 6))


def test_barlow_twins_is_lightlys_but_for_the_1e_5_that_it_adds_to_the_variance():
    library = pytest.importorskip("lightly.loss")
    # features of a standard deviation near 1000: 1e-5 in the variance is 1e-11 of it
    z1, z2 = (1000 * z.detach() for z in views(12, 6))
    z2 = (z1 + z2).requires_grad_()
    z1.requires_grad_()
    theirs = library.BarlowTwinsLoss(lambda_param=0.0051)
    assert_same_value_and_gradient(losses.BarlowTwins(0.0051), theirs, z1, z2)
    small1, small2 = views(12, 6)
    assert losses.BarlowTwins(0.0051)(small1, small2).item() == pytest.approx(
        theirs(small1, small2).item(), rel=1e-4
    )


def test_regression_is_lightlys_negative_cosine_doubled_and_raised_by_two():
    library = pytest.importorskip("lightly.loss")

    def theirs(z1, z2):
        return 2 + 2 * library.NegativeCosineSimilarity()(z1, z2)

    assert_same_value_and_gradient(losses.Regression(), theirs, *views(9, 6))
