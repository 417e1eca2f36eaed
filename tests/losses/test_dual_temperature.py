"""Dual temperature: exact where the published form is NaN."""

import pytest
import torch

from clutils import anatomy, losses


@pytest.mark.parametrize("temperature", [0.01, 0.02, 0.05])
def test_an_easy_pair_stays_exact_where_the_published_form_is_nan(temperature):
    s, n = torch.ones(1, 1), -torch.ones(1, 10)
    p, p_hot = (torch.softmax(torch.cat([s, n], 1) / t, 1)[:, 0] for t in (temperature, 10 * temperature))
    assert torch.isnan((1 - p_hot) / (1 - p) * -torch.log(p)).all(), "the trap is gone from this arithmetic"
    W = 10 * torch.tensor(-2 / (10 * temperature), dtype=torch.float64).exp()
    W = float(W / (1 + W))
    loss = losses.DualTemperature(temperature, 10)
    pull, push = anatomy.forces(loss, s, n)
    assert float(loss.per_anchor(s, n)) == pytest.approx(W, rel=1e-5)
    assert float(pull) == pytest.approx(W / temperature, rel=1e-5)
    assert float(push.sum()) == pytest.approx(W / temperature, rel=1e-5)
