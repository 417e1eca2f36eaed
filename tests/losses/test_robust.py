"""The robust loss: a Kullback-Leibler ball over the negatives, solved for each anchor."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


@pytest.mark.parametrize("radius", [1e-3, 0.1, 1.0, 3.0])
def test_the_weights_are_the_softmax_at_the_temperature_that_fills_the_ball(radius):
    s, n = similarities(50, 1, 40)
    loss = losses.Robust(radius)
    pull, push = anatomy.forces(loss, s, n)
    temperature = loss.effective_temperature[:, None]
    close(pull, torch.ones_like(pull))
    torch.testing.assert_close(push, torch.softmax(n / temperature, dim=1), rtol=1e-8, atol=1e-12)
    kl = torch.special.xlogy(push, 40 * push).sum(dim=1)
    torch.testing.assert_close(kl, torch.full_like(kl, radius), rtol=1e-7, atol=1e-10)
    torch.testing.assert_close(
        anatomy.effective_negatives(n, temperature),
        torch.full_like(kl, 40 * math.exp(-radius)),
        rtol=1e-7,
        atol=0,
    )


def test_a_ball_of_radius_0_is_the_mean_and_a_small_one_tends_to_it():
    s, n = similarities(30, 2, 20)
    mean = n.mean(dim=1) - s.mean(dim=1)
    loss = losses.Robust(0.0)
    close(loss.per_anchor(s, n), mean)
    assert (loss.effective_temperature == math.inf).all()
    torch.testing.assert_close(losses.Robust(1e-12).per_anchor(s, n), mean, rtol=0, atol=1e-5)


@pytest.mark.parametrize("ties", [1, 2, 5])
def test_it_binds_below_log_of_k_over_the_ties_and_is_the_maximum_from_there_on(ties):
    s, n = similarities(30, 1, 20)
    n = n / 2
    n[:, :ties] = 0.9
    limit = math.log(20 / ties)
    below, beyond = losses.Robust(limit - 1e-3), losses.Robust(limit + 1e-3)
    assert (below.per_anchor(s, n) < 0.9 - s[:, 0]).all()
    assert (below.effective_temperature > 0).all()
    _, push = anatomy.forces(beyond, s, n)
    close(beyond.per_anchor(s, n), 0.9 - s[:, 0])
    assert (beyond.effective_temperature == 0).all()
    close(push[:, :ties], torch.full((30, ties), 1 / ties, dtype=torch.float64))
    assert (push[:, ties:] == 0).all()


def test_asking_for_chance_is_no_call():
    loss = losses.Robust(1.0)
    loss(torch.randn(6, 4), torch.randn(6, 4))
    kept = loss.effective_temperature
    assert loss.chance(9) == pytest.approx(0) and loss.effective_temperature is kept
    assert float(loss.reported["effective_temperature"]) == pytest.approx(float(kept.mean()))
