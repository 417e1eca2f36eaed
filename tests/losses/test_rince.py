"""RINCE: InfoNCE as its q vanishes."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import similarities


@pytest.mark.parametrize("q", [0.0, 1e-300, 1e-9])
def test_a_vanishing_q_is_nt_xent_and_a_constant(q):
    s, n = similarities(30, 2, 20)
    limit, plain = losses.RINCE(0.3, q, 0.05), losses.NTXent(0.3)
    near = {"rtol": 1e-7, "atol": 1e-7}
    torch.testing.assert_close(limit.per_anchor(s, n), plain.per_anchor(s, n) + math.log(0.05), **near)
    for a, b in zip(anatomy.forces(limit, s, n), anatomy.forces(plain, s, n), strict=True):
        torch.testing.assert_close(a, b, **near)
