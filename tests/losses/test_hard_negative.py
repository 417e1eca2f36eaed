"""HCL: forces in closed form, the clamp, and what it reduces to."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, embeddings, similarities


def closed_form(positives, negatives, temperature, prior, beta):
    """Pull (A, 1), push (A, K) and where the clamp acts (A, 1), from the formulas of the docstrings."""
    N = negatives.shape[1]
    e_plus, e_minus = torch.exp(positives / temperature), torch.exp(negatives / temperature)
    weights = e_minus**beta / (e_minus**beta).mean(dim=1, keepdim=True)
    S = (weights * e_minus).sum(dim=1, keepdim=True)
    estimate = (S - N * prior * e_plus) / (1 - prior)
    smallest = N * math.exp(-1 / temperature)
    clamped = estimate <= smallest
    Ng = torch.where(clamped, smallest, estimate)
    Z = e_plus + Ng
    q_hard, q_weight = (torch.softmax(b * negatives / temperature, dim=1) for b in (1 + beta, beta))
    pull = torch.where(clamped, Ng / Z, S / ((1 - prior) * Z)) / temperature
    push = S / ((1 - prior) * temperature * Z) * ((1 + beta) * q_hard - beta * q_weight)
    return pull, push.masked_fill(clamped, 0.0), clamped


@pytest.mark.parametrize("temperature", [0.1, 0.5, 2.0])
@pytest.mark.parametrize("prior", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("beta", [0.0, 0.5, 2.0])
def test_forces_are_the_closed_forms_on_both_sides_of_the_clamp(temperature, prior, beta):
    positives, negatives = similarities(80, 1, 12)
    positives[0], negatives[0] = 1.0, -0.99  # an anchor that the clamp catches at every setting but τ+ = 0
    pull, push, clamped = closed_form(positives, negatives, temperature, prior, beta)
    assert bool(clamped.any()) == (prior > 0) and not clamped.all()
    plain = [losses.Debiased(temperature, prior)] if beta == 0 else []
    for loss in (losses.HardNegative(temperature, prior, beta), *plain):
        ours = anatomy.forces(loss, positives, negatives)
        close(ours[0], pull)
        torch.testing.assert_close(ours[1], push, rtol=1e-10, atol=1e-13 if beta else 1e-14)


def test_without_the_clamp_the_papers_pseudocode_is_nan_and_with_it_the_loss_is_not():
    """SSCL's pseudocode, k = 0: equal views, 8 images, τ = 0.5, τ+ = 0.3."""
    z = torch.nn.functional.normalize(embeddings(8, 128)[0], dim=1)
    out = torch.cat([z, z])
    exponents = (out @ out.T / 0.5).exp()
    other = ~torch.eye(8, dtype=torch.bool).repeat(2, 2)
    negatives = exponents[other].view(16, 14)
    positive = math.exp(1 / 0.5)
    Ng = ((negatives**2).sum(1) / negatives.mean(1) - 14 * 0.3 * positive) / (1 - 0.3)
    assert (Ng < -10).all(), "the trap is gone"
    assert torch.isnan(-torch.log(positive / (positive + Ng))).any()
    views = z.clone().requires_grad_(), z.clone().requires_grad_()
    value = losses.HardNegative(0.5, 0.3, 1.0)(*views)
    value.backward()
    assert torch.isfinite(views[0].grad).all()
    assert value.item() == pytest.approx(math.log1p(14 * math.exp(-2 / 0.5)), rel=1e-9)  # for every anchor


def test_reweighting_draws_easy_negatives_in():
    _, push = anatomy.forces(losses.HardNegative(0.5, 0.0, 1.0), *similarities(50, 1, 30))
    assert (push < 0).any() and (push.sum(dim=1) > 0).all()
