"""Who is compared with whom: which columns are whose, and which negatives are false."""

import pytest
import torch

from clutils import anatomy, similarities
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


def test_pairs_are_plain_tables_of_the_vectors_whatever_is_compared():
    z1, z2 = (unit(z) for z in embeddings(6, 4))
    queue, further = (unit(embeddings(6, 4, seed=seed)[0]) for seed in (1, 2))
    for given in ({}, {"queue": queue}, {"labels": torch.arange(6) % 3}, {"extra_views": further[:, None]}):
        for name, table in vars(similarities.two_views(z1, z2, **given)).items():
            assert type(table) is torch.Tensor or (name.endswith("mask") and "labels" not in given), name


@pytest.mark.parametrize("views", [1, 2])
def test_a_blocks_table_without_own_is_those_rows_of_the_whole_tables(views):
    table = torch.arange(views * 5 * views * 5).view(views, 5, views * 5)
    whole = similarities.without_own(table.flatten(0, 1), 5, views).unflatten(0, (views, 5))
    for start, stop in ((0, 1), (0, 2), (1, 4), (4, 5), (0, 5)):
        part = similarities.without_own(table[:, start:stop].flatten(0, 1), stop - start, views, start)
        assert torch.equal(part, whole[:, start:stop].flatten(0, 1))
    rows = [[c for c in range(views * 5) if c // views != i] for i in range(5)]
    assert whole[0].tolist() == [[views * 5 * i + c for c in row] for i, row in enumerate(rows)]


def test_a_misspelt_comparison_and_labels_that_are_no_whole_numbers_are_refused():
    z = torch.eye(4)
    fails(lambda: similarities.two_views(z, z, "both view"), "'both view'", "both views, other view, one way")
    for labels in (torch.tensor([0.2, 0.4, 0.6, 0.8]), [0, 1, 0, 1]):
        fails(lambda labels=labels: similarities.false_negatives(labels), "labels are", "whole numbers")
