"""The regression loss of BYOL and SimSiam."""

import pytest
import torch

from clutils import losses
from tests.losses.inputs import close, embeddings


def test_equal_views_cost_nothing_and_opposite_ones_four():
    z1, _ = embeddings(6, 5)
    assert float(losses.Regression()(z1, 3 * z1)) == pytest.approx(0, abs=1e-14)
    assert float(losses.Regression()(z1, -z1)) == pytest.approx(4)


def test_the_pull_is_the_same_for_every_pair():
    s = torch.linspace(-1, 1, 9, dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(losses.Regression().formula(s).mean(), s)
    close(-gradient, torch.full_like(gradient, 2 / 9))
