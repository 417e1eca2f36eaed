"""Temperature-free InfoNCE: logits 2 artanh(s), by a loop of its own, and what happens at the clamp."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, embeddings, similarities

END = 1 - 1e-4


def by_loop(positives, negatives):
    """Loss, pull and push of one anchor, from odds (1 + s)/(1 - s), in plain floats."""
    odds = [(1 + s) / (1 - s) for s in [positives, *negatives]]
    p = [o / math.fsum(odds) for o in odds]
    slopes = [2 / (1 - s * s) for s in [positives, *negatives]]
    return -math.log(p[0]), (1 - p[0]) * slopes[0], [q * a for q, a in zip(p[1:], slopes[1:], strict=True)]


def test_value_and_forces_are_those_of_the_odds():
    s, n = similarities(30, 1, 20)
    loss = losses.TemperatureFree()
    pull, push = anatomy.forces(loss, s, n)
    found = zip(loss.per_anchor(s, n), pull[:, 0], push, s[:, 0].tolist(), n.tolist(), strict=True)
    for value, pulled, pushed, own, others in found:
        expected = by_loop(own, others)
        close(value, torch.tensor(expected[0], dtype=torch.float64))
        close(pulled, torch.tensor(expected[1], dtype=torch.float64))
        close(pushed, torch.tensor(expected[2], dtype=torch.float64))


@pytest.mark.parametrize("at", [-0.8, 0.0, 0.5, 0.95])
def test_beside_one_similarity_it_is_nt_xent_at_the_local_temperature(at):
    s, n = torch.full((1, 1), at, dtype=torch.float64), torch.full((1, 12), at, dtype=torch.float64)
    ours, theirs = (
        anatomy.forces(loss, s, n) for loss in (losses.TemperatureFree(), losses.NTXent((1 - at**2) / 2))
    )
    for a, b in zip(ours, theirs, strict=True):
        close(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_where_two_views_coincide_value_and_gradient_are_finite(dtype):
    z = embeddings(16, 8)[0].to(dtype).requires_grad_()
    value = losses.TemperatureFree()(z, z)
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(z.grad).all() and z.grad.abs().sum() > 0


def test_beyond_the_clamp_a_similarity_counts_as_its_end_and_rests():
    n = torch.tensor([[-1.0, 0.2, 1.0]], dtype=torch.float64)
    ends = torch.tensor([[-END, 0.2, END]], dtype=torch.float64)
    loss, one = losses.TemperatureFree(), torch.ones(1, 1, dtype=torch.float64)
    close(loss.per_anchor(one, n), loss.per_anchor(END * one, ends))
    pull, push = anatomy.forces(loss, one, n)
    assert float(pull) == 0 and push[0, 0] == push[0, 2] == 0 and push[0, 1] > 0


def test_near_the_positive_the_pull_tends_to_half_the_odds_of_the_negatives():
    """W shuts, and 2/(1 - s²) grows as fast: an easy anchor keeps its pull."""
    n = torch.zeros(1, 10, dtype=torch.float64)
    near = torch.full((1, 1), 0.9998 * END, dtype=torch.float64)
    pull, _ = anatomy.forces(losses.TemperatureFree(), near, n)
    assert float(pull) == pytest.approx(5.0, rel=0.01)
