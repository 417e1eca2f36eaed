"""CLIP: both directions of one table."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch

from clutils import anatomy, losses
from clutils.similarities import two_views
from tests.losses import oracles
from tests.losses.beside_loops import a_batch, masked, single_anchors
from tests.losses.inputs import close, embeddings, similarities


def in_loops(loss, positives, negatives, alignment):
    return oracles.nt_xent(positives, negatives, loss.temperature)


@pytest.mark.parametrize("compared", [partial(single_anchors, positives=1, negatives=30), masked, a_batch])
def test_on_similarities_it_is_infonce_in_plain_loops(compared):
    compared(losses.CLIP(0.2), in_loops)


@pytest.mark.parametrize("temperature", [0.07, 0.5])
def test_a_batch_is_the_papers_formula_in_plain_loops(temperature):
    z1, z2 = embeddings(6, 5)
    expected = oracles.clip(z1.tolist(), z2.tolist(), temperature)
    assert float(losses.CLIP(temperature)(z1, z2)) == pytest.approx(expected, rel=1e-10)


def test_it_is_the_mean_of_infonce_in_both_directions_each_against_the_opposite_view_alone():
    z1, z2 = (torch.nn.functional.normalize(z, dim=1) for z in embeddings(6, 5))
    pairs = two_views(z1, z2, "other view")
    values = losses.NTXent(0.1).per_anchor(pairs.positives, pairs.negatives)
    close(losses.CLIP(0.1).per_anchor(pairs.positives, pairs.negatives), values)
    close(losses.DualTemperature(0.1, ratio=1)(z1, z2), values.mean())
    close(losses.CLIP(0.1)(z1, z2), values.mean())
    close(losses.CLIP(0.1)(z1, z2), (values[:6].mean() + values[6:].mean()) / 2)
    close(losses.CLIP(0.1)(z1, z2), losses.CLIP(0.1)(z2, z1))


def test_forces_are_the_closed_forms():
    z1, z2 = (torch.nn.functional.normalize(z, dim=1) for z in embeddings(6, 5))
    table = z1 @ z2.T
    p, r = torch.softmax(table / 0.2, dim=1), torch.softmax(table / 0.2, dim=0)
    by_table = (p + r - 2 * torch.eye(6)) / (2 * 6 * 0.2)
    z1.requires_grad_()
    (gradient,) = torch.autograd.grad(losses.CLIP(0.2)(z1, z2), z1)
    tangent = by_table @ z2  # of which the length's part drops out
    close(gradient, tangent - (tangent * z1).sum(dim=1, keepdim=True) * z1.detach())
    s, n = similarities(40, 1, 9)
    for ours, theirs in zip(
        anatomy.forces(losses.CLIP(0.2), s, n), anatomy.forces(losses.NTXent(0.2), s, n), strict=True
    ):
        close(ours, theirs)


def test_chance_is_the_logarithm_of_the_batch():
    assert losses.CLIP().chance(255) == pytest.approx(math.log(256))
    apart = torch.eye(8, dtype=torch.float64)
    value = losses.CLIP(0.3)(apart[:4], apart[4:])  # all similarities are 0
    assert float(value) == pytest.approx(losses.CLIP(0.3).chance(3))


def test_gradients_agree_with_finite_differences():
    views = [z.requires_grad_() for z in embeddings(4, 3)]
    assert torch.autograd.gradcheck(losses.CLIP(0.5), views, eps=1e-6, atol=1e-6)
