"""VICReg: three terms, and two weightings of them in use."""

import math

import pytest
import torch

from clutils import losses, measures
from tests.losses.inputs import close, embeddings


def test_two_views_are_pulled_together_by_their_difference():
    z1, z2 = (z.requires_grad_() for z in embeddings(6, 3))
    value = losses.VICReg(2.0, 0.0, 0.0)(z1, z2)
    close(torch.autograd.grad(value, z1)[0], 2 * 2.0 * (z1 - z2).detach() / 6)


def test_four_points_for_all_pictures_satisfy_both_regularisers_and_uniformity_sees_it():
    square = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64).repeat(64, 1)
    angle = torch.arange(256, dtype=torch.float64) * 2 * math.pi / 256
    ring = math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], dim=1)
    for z in (square, ring):
        assert float(losses.VICReg()(z, z)) == pytest.approx(0, abs=1e-12)
    assert float(measures.uniformity(ring)) < float(measures.uniformity(square)) - 0.2
    collapsed = torch.ones_like(ring) + 1e-9 * ring
    assert float(losses.VICReg()(collapsed, collapsed)) == pytest.approx(2 * 25 * 0.99, rel=1e-3)


def test_the_librarys_weighting_is_another_setting_of_this_one():
    library = pytest.importorskip("lightly.loss")
    z1, z2 = (0.7 * z for z in embeddings(9, 4))
    theirs = library.VICRegLoss(25.0, 25.0, 1.0)(z1, z2)
    close(losses.VICReg(25.0 / 4, 25.0 / 2, 1.0)(z1, z2), theirs)
    assert float(losses.VICReg(25.0, 25.0, 1.0)(z1, z2)) > 1.5 * float(theirs)
