"""Debiased: forces in closed form, the clamp, and what it reduces to."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("prior", [0.0, 0.1, 0.4])
def test_forces_are_the_closed_forms_on_both_sides_of_the_clamp(temperature, prior):
    positives, negatives = similarities(80, 1, 12)
    positives[0], negatives[0] = 1.0, -0.99  # an anchor that the clamp catches at every setting but τ+ = 0
    e_plus, total = (
        torch.exp(positives / temperature),
        torch.exp(negatives / temperature).sum(1, keepdim=True),
    )
    estimate, smallest = (total - 12 * prior * e_plus) / (1 - prior), 12 * math.exp(-1 / temperature)
    clamped = estimate <= smallest
    assert bool(clamped.any()) == (prior > 0) and not clamped.all()
    Ng = torch.where(clamped, smallest, estimate)
    Z = e_plus + Ng
    pull, push = anatomy.forces(losses.Debiased(temperature, prior), positives, negatives)
    close(pull, torch.where(clamped, Ng / Z, total / ((1 - prior) * Z)) / temperature)
    shares = torch.softmax(negatives / temperature, dim=1)
    close(push, (total / ((1 - prior) * temperature * Z) * shares).masked_fill(clamped, 0.0))


def test_debiasing_can_pull_harder_than_nt_xent_ever_does():
    positives, negatives = torch.tensor([[0.9]]), torch.zeros(1, 100)
    pull, _ = anatomy.forces(losses.Debiased(0.5, 0.1), positives, negatives)
    assert float(pull) > 2 / 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes_have_the_right_value_not_only_a_finite_one(dtype):
    near, far = torch.ones(1, 1, dtype=dtype), -torch.ones(1, 10, dtype=dtype)
    # all of E+ is left when the negatives are as far as can be: the clamp, log(1 + N e^(-2/τ))
    value = losses.Debiased(0.05, 0.1).per_anchor(near, far)
    assert float(value) == pytest.approx(10 * math.exp(-2 / 0.05), rel=1e-5)
    # the reverse, a cold hard case: (s- - s+)/τ + log(K/(1 - τ+))
    value = losses.Debiased(1e-3, 0.1).per_anchor(-near, -far)
    assert float(value) == pytest.approx(2000 + math.log(10 / 0.9), rel=1e-6)
