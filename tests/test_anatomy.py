"""Anatomy: shares, turning points and effective numbers against plain loops; bad input is quoted."""

import math

import pytest
import torch

from clutils import anatomy, losses
from clutils.course import toys
from tests.losses.inputs import embeddings, fails


def test_the_shares_of_a_temperature_of_zero_are_refused():
    fails(lambda: anatomy.hardness_weights(torch.zeros(1, 3), 0.0), "hardness_weights", "0")
    fails(lambda: anatomy.effective_negatives(torch.zeros(1, 3), -1.0), "-1")


def test_contrast_quotes_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 4\)"):
        anatomy.contrast(torch.zeros(2, 3), torch.zeros(2, 4), 0.1)
    with pytest.raises(ValueError, match="temperature is 0"):
        anatomy.gradient_scale(torch.zeros(2), torch.zeros(2, 4), 0)


def test_the_effective_number_is_the_perplexity_of_the_shares():
    draw = torch.Generator().manual_seed(0)
    _, negatives = toys.random_similarities(3, 1, 7, draw)
    for row, seen in zip(negatives, anatomy.effective_negatives(negatives, 0.3), strict=True):
        parts = [math.exp(float(s) / 0.3) for s in row]
        shares = [part / sum(parts) for part in parts]
        assert float(seen) == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)), rel=1e-12)
    assert anatomy.effective_negatives(negatives, 1e-3).tolist() == pytest.approx([1, 1, 1], abs=1e-6)
    assert anatomy.effective_negatives(negatives, 1e6).tolist() == pytest.approx([7, 7, 7], abs=1e-6)


def test_the_push_on_false_negatives_is_the_sum_of_their_pushes():
    z1, z2, labels = toys.classes_on_the_circle(classes=3, pictures=2, width=0.5)
    share = anatomy.push_on_false_negatives(z1, z2, labels, 0.4)
    points = torch.cat([z1, z2]).tolist()
    for i, anchor in enumerate(points):
        own = total = 0.0
        for j, other in enumerate(points):
            if i % 6 != j % 6:
                part = math.exp(sum(a * b for a, b in zip(anchor, other, strict=True)) / 0.4)
                total += part
                own += part if labels[i % 6] == labels[j % 6] else 0
        assert float(share[i]) == pytest.approx(own / total, rel=1e-12)


def test_the_effective_number_is_that_of_a_plain_sum_and_what_is_drawn_in_counts_for_nothing():
    push = torch.tensor([[3.0, 1.0, -2.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]]).double()
    parts = [3 / 8, 1 / 8, 4 / 8]
    expected = math.exp(-sum(p * math.log(p) for p in parts))
    assert anatomy.effective_negatives(push).tolist() == pytest.approx([expected, 0])


def test_the_push_on_false_negatives_quotes_what_does_not_fit():
    z, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
    share, who = anatomy.push_on_false_negatives, "push_on_false_negatives"
    assert share(z, z, labels, 0.1).shape == (8,)
    fails(lambda: share(z, z, labels / 5, 0.1), "labels are torch.float32")
    fails(lambda: share(z, z, labels, 0), who, "temperature is 0")
    fails(lambda: share(z, z, labels[:3], 0.1), who, "labels (3,)")
    fails(lambda: share(z[:1], z[:1], labels[:1], 0.1), who, "z1 (1, 4)", "two images or more")


def test_forces_quote_what_is_no_loss_and_no_floating_tensor():
    s, n = torch.zeros(2, 1), torch.zeros(2, 3)
    fails(lambda: anatomy.forces(losses.NTXent, s, n), "forces: loss is <class", "losses.NTXent(0.1)")
    fails(lambda: anatomy.forces(losses.NTXent(0.1), s.numpy(), n), "positives is of type ndarray")
    fails(lambda: anatomy.forces(losses.NTXent(0.1), s, n.long()), "negatives is (2, 3) int64")


def test_forces_and_values_of_pairs_are_those_of_their_tables_with_masks():
    z1, z2 = (torch.nn.functional.normalize(z, dim=1) for z in embeddings(8, 4))
    loss, y = losses.SupCon(0.2), torch.arange(8) % 3
    pairs = loss.compare(z1, z2, labels=y)
    tables = tuple(vars(pairs).values())
    assert torch.equal(loss.per_anchor(pairs), loss.per_anchor(*tables))
    assert loss.per_anchor(pairs).mean().item() == pytest.approx(loss(z1, z2, labels=y).item(), rel=1e-12)
    for found, expected in zip(anatomy.forces(loss, pairs), anatomy.forces(loss, *tables), strict=True):
        assert torch.equal(found, expected)
    assert anatomy.forces(loss, pairs)[1][~pairs.negative_mask].eq(0).all()
    for call in (lambda: anatomy.forces(loss, *tables[:2]), lambda: loss.per_anchor(*tables[:2])):
        fails(
            call,
            "SupCon: positives and negatives are one table (16, 16) without a mask",
            "forces(loss, pairs)",
        )
    fails(lambda: loss.per_anchor(pairs, tables[1]), "positives is a Pairs", "give it alone")


def test_the_gate_of_pairs_is_that_of_their_one_positive():
    z1, z2 = embeddings(8, 4)
    plain = losses.NTXent().compare(z1, z2)
    one_each = losses.SupCon().compare(z1, z2, labels=torch.arange(8))  # a table of all views, and masks
    expected = anatomy.gradient_scale(plain.positives, plain.negatives, 0.3)
    for pairs in (plain, one_each):
        torch.testing.assert_close(anatomy.gradient_scale(pairs, 0.3), expected, rtol=1e-12, atol=0)
        torch.testing.assert_close(anatomy.gradient_scale(pairs, temperature=0.3), expected)
    several = losses.SupCon().compare(z1, z2, labels=torch.arange(8) // 2)
    fails(lambda: anatomy.gradient_scale(several, 0.3), "one positive per anchor, but anchor 0 has 3")
    fails(lambda: anatomy.gradient_scale(plain), "a temperature")
    fails(lambda: anatomy.gradient_scale(plain, plain.negatives, 0.3), "give (pairs, temperature)")
