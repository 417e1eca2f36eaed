"""Who is compared with whom: which columns are whose, and which negatives are false."""

import pytest
import torch

from clutils import anatomy, losses, similarities
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, fails


def unit(z):
    return torch.nn.functional.normalize(z, dim=1)


def test_columns_of_negatives_know_whose_they_are():
    z1, z2 = (unit(z) for z in embeddings(6, 4))
    negatives, z = similarities.two_views(z1, z2).negatives, torch.cat([z1, z2])
    columns = torch.arange(10).expand(12, 10)
    owners = similarities.owners(columns, 6)
    assert owners.tolist() == [oracles.negatives_in_order(a, 6) for a in range(12)]
    close((z[:, None] * z[owners]).sum(dim=2), negatives)


def test_false_negatives_are_the_negatives_of_the_anchors_own_class():
    draw = torch.Generator().manual_seed(0)
    labels = torch.tensor([0, 1, 0, 2, 1])
    z1, z2 = torch.nn.functional.normalize(torch.randn(2, 5, 3, generator=draw, dtype=torch.float64), dim=2)
    points, table = torch.cat([z1, z2]), similarities.two_views(z1, z2).negatives
    found = similarities.false_negatives(labels)
    for i in range(10):
        own = sorted(
            float(points[i] @ points[j])
            for j in range(10)
            if j % 5 != i % 5 and labels[j % 5] == labels[i % 5]
        )
        assert sorted(table[i][found[i]].tolist()) == pytest.approx(own)


def test_images_without_a_label_are_nobodys_false_negatives():
    z1, z2 = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0))
    some, own = torch.tensor([0, -1, 0, -1, -7]), torch.tensor([0, 1, 0, 2, 3])
    assert torch.equal(similarities.false_negatives(some), similarities.false_negatives(own))
    found, expected = (anatomy.push_on_false_negatives(z1, z2, y, 0.2) for y in (some, own))
    assert torch.equal(found, expected)


def test_a_queue_gets_no_gradient():
    z1, z2, queue = (z.requires_grad_() for z in (*embeddings(6, 4), embeddings(20, 4, seed=1)[0]))
    pairs = similarities.two_views(unit(z1), unit(z2), queue=unit(queue))
    (pairs.positives.sum() + pairs.negatives.sum()).backward()
    assert queue.grad is None and z1.grad.any() and z2.grad.any()


@pytest.mark.parametrize(
    "loss",
    [losses.NTXent(), losses.Debiased(0.3, 0.1), losses.CLIP(), losses.NPair(), losses.NNCLR()],
    ids=repr,
)
def test_what_a_contrast_tells_is_computed_without_a_table_of_negatives(loss):
    pairs = loss.compare(*embeddings(6, 4))
    assert loss.formula(pairs).isfinite().all() and "negatives" not in vars(pairs)
    assert pairs.columns == pairs.negatives.shape[1]


def test_a_misspelt_comparison_and_labels_that_are_no_whole_numbers_are_refused():
    z = torch.eye(4)
    fails(lambda: similarities.two_views(z, z, "both view"), "'both view'", "both views, other view, one way")
    for labels in (torch.tensor([0.2, 0.4, 0.6, 0.8]), [0, 1, 0, 1]):
        fails(lambda labels=labels: similarities.false_negatives(labels), "labels are", "whole numbers")
