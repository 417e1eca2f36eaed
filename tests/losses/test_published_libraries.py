"""The losses beside those of published libraries, where one has them: value and gradient."""

import pytest
import torch

from clutils import losses
from tests.losses.inputs import embeddings

PICTURES, LABELS = torch.arange(8), torch.tensor([0, 1, 2, 0, 1, 2, 0, 3])


def metric_learning(name):
    return pytest.importorskip(f"pytorch_metric_learning.{name}")


def lightly():
    return pytest.importorskip("lightly.loss")


def of_classes(loss, labels=PICTURES):
    """A loss of pytorch-metric-learning, which takes all views in one table and the class of each."""
    return lambda z1, z2: loss(torch.cat([z1, z2]), labels.repeat(2))


def batch_hard(margin):
    """Their miner finds the hardest positive and negative of each anchor, their loss the hinge."""
    squared = metric_learning("distances").LpDistance(normalize_embeddings=True, p=2, power=2)
    reducer = metric_learning("reducers").MeanReducer()
    loss = metric_learning("losses").TripletMarginLoss(margin, distance=squared, reducer=reducer)
    miner = metric_learning("miners").BatchHardMiner(distance=squared)
    return of_classes(lambda z, labels: loss(z, labels, miner(z, labels)), LABELS)


def n_pairs():
    """A class for each image, so that their pairs are the batch's; they normalise unless told not to."""
    products = metric_learning("distances").DotProductSimilarity(normalize_embeddings=False)
    return of_classes(metric_learning("losses").NPairsLoss(distance=products))


def negative_cosine():
    """Doubled, and raised by two."""
    cosine = lightly().NegativeCosineSimilarity()
    return lambda z1, z2: 2 + 2 * cosine(z1, z2)


PUBLISHED = [  # ours, theirs, and the labels that ours is given
    *(
        (losses.NTXent(t), lambda t=t: of_classes(metric_learning("losses").NTXentLoss(t)))
        for t in (0.07, 0.5)
    ),
    *((losses.NTXent(t), lambda t=t: lightly().NTXentLoss(t)) for t in (0.07, 0.5)),
    *((losses.Decoupled(t), lambda t=t: lightly().DCLLoss(t)) for t in (0.07, 0.5)),
    *(
        (losses.WeightedDecoupled(t, sigma), lambda t=t, sigma=sigma: lightly().DCLWLoss(t, sigma))
        for t, sigma in ((0.07, 0.3), (0.5, 0.5))
    ),
    (losses.NPair(), n_pairs),
    *((losses.Triplet(m, batch_hard=True), lambda m=m: batch_hard(m), LABELS) for m in (0.2, 1.0)),
    *(
        (losses.SupCon(t), lambda t=t: of_classes(metric_learning("losses").SupConLoss(t), LABELS), LABELS)
        for t in (0.07, 0.5)
    ),
    (losses.Regression(), negative_cosine),
]


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")  # lightly's weights are made so
@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: repr(case[0]))
def test_value_and_gradient_are_the_librarys(case):
    ours, theirs, *labels = case
    given = {"labels": labels[0]} if labels else {}
    assert_same_value_and_gradient(ours, theirs(), *embeddings(8, 6, dtype=torch.float32), **given)


def assert_same_value_and_gradient(ours, theirs, z1, z2, **given):
    z1, z2 = (z.requires_grad_() for z in (z1, z2))
    a, b = ours(z1, z2, **given), theirs(z1, z2)
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    for g, h in zip(torch.autograd.grad(a, (z1, z2)), torch.autograd.grad(b, (z1, z2)), strict=True):
        torch.testing.assert_close(g, h, rtol=1e-4, atol=1e-5)


def test_barlow_twins_is_lightlys_but_for_the_1e_5_that_it_adds_to_the_variance():
    theirs = lightly().BarlowTwinsLoss(lambda_param=0.0051)
    # features of a standard deviation near 1000: 1e-5 in the variance is 1e-11 of it
    z1, z2 = (1000 * z for z in embeddings(12, 6))
    assert_same_value_and_gradient(losses.BarlowTwins(0.0051), theirs, z1, z1 + z2)
    small = embeddings(12, 6)
    assert losses.BarlowTwins(0.0051)(*small).item() == pytest.approx(theirs(*small).item(), rel=1e-4)
