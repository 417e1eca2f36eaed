"""RINCE: between InfoNCE and a loss that is linear in the exponentials."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities

SETTINGS = [losses.RINCE(), losses.RINCE(0.2, 0.1, 0.5), losses.RINCE(0.5, 1.0, 0.01)]


@pytest.mark.parametrize("q", [0.0, 1e-300, 1e-9])
def test_a_vanishing_q_is_nt_xent_and_a_constant(q):
    s, n = similarities(30, 2, 20)
    limit, plain = losses.RINCE(0.3, q, 0.05), losses.NTXent(0.3)
    near = {"rtol": 1e-7, "atol": 1e-7}
    torch.testing.assert_close(limit.per_anchor(s, n), plain.per_anchor(s, n) + math.log(0.05), **near)
    for a, b in zip(anatomy.forces(limit, s, n), anatomy.forces(plain, s, n), strict=True):
        torch.testing.assert_close(a, b, **near)


def test_at_q_1_the_loss_is_linear_in_the_exponentials():
    s, n = similarities(30, 1, 20)
    E_plus, E = torch.exp(s / 0.5)[:, 0], torch.exp(n / 0.5).sum(dim=1)
    close(losses.RINCE(0.5, 1.0, 0.2).per_anchor(s, n), 0.2 * E - 0.8 * E_plus)


def test_a_far_positive_pulls_less_than_a_near_one_where_infonce_pulls_it_hardest():
    s = torch.tensor([[-0.9], [0.0], [0.6]], dtype=torch.float64)
    n = torch.full((3, 20), -0.1, dtype=torch.float64)
    robust = anatomy.forces(losses.RINCE(0.3, 0.8, 0.01), s, n)[0][:, 0]
    plain = anatomy.forces(losses.NTXent(0.3), s, n)[0][:, 0]
    assert robust.diff().min() > 0 and plain.diff().max() < 0
