"""CLIP: both directions of one table."""

import math

import pytest
import torch

from clutils import losses
from clutils.similarities import two_views
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, fails

# ---- the learned scale -------------------------------------------------------------------------------------


def test_the_learned_scale_starts_at_log_one_over_tau_and_gives_the_same_value_and_gradient():
    z1, z2 = (z.requires_grad_() for z in embeddings(6, 5))
    fixed, learned = losses.CLIP(0.07), losses.CLIP(0.07, learned_scale=True)
    assert float(learned.log_scale.detach()) == pytest.approx(math.log(1 / 0.07), rel=1e-6)
    expected, found = fixed(z1, z2), learned(z1, z2)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    for ours, theirs in zip(
        torch.autograd.grad(found, (z1, z2)), torch.autograd.grad(expected, (z1, z2)), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-9)
    pairs = two_views(*(torch.nn.functional.normalize(z.detach(), dim=1) for z in (z1, z2)), "other view")
    per_anchor = learned.per_anchor(pairs.positives, pairs.negatives).detach()
    torch.testing.assert_close(per_anchor.mean(), expected.detach(), rtol=1e-6, atol=0)
    assert learned.chance(7) == pytest.approx(math.log(8), rel=1e-12)


@pytest.mark.parametrize("block_size", [None, 2])
def test_the_scales_gradient_is_that_of_plain_loops(block_size):
    z1, z2 = embeddings(6, 5)
    loss = losses.CLIP(0.2, learned_scale=True)
    loss.block_size = block_size
    loss(z1, z2).backward()
    scale, slopes = 1 / 0.2, []
    for anchors, others in ((z1.tolist(), z2.tolist()), (z2.tolist(), z1.tolist())):
        for i, anchor in enumerate(anchors):
            s = [oracles.cosine(anchor, other) for other in others]
            weights = [math.exp(value * scale) for value in s]
            expected = sum(w * value for w, value in zip(weights, s, strict=True)) / sum(weights)
            slopes.append(scale * (expected - s[i]))
    assert loss.log_scale.grad.item() == pytest.approx(sum(slopes) / 12, rel=1e-5)


def test_the_scale_is_at_most_100_and_can_come_back_from_there():
    loss = losses.CLIP(0.07, learned_scale=True)
    with torch.no_grad():
        loss.log_scale.fill_(math.log(1000))
    z1, _ = embeddings(6, 5)
    value = loss(z1, -z1)
    assert loss.effective_temperature.item() == pytest.approx(0.01, rel=1e-5)
    assert loss.reported["effective_temperature"].item() == pytest.approx(0.01, rel=1e-5)
    value.backward()
    assert loss.log_scale.grad.item() > 0  # descent makes it warmer


def test_setting_the_temperature_starts_the_scale_anew_and_the_switch_ends_it():
    loss = losses.CLIP(0.07, learned_scale=True)
    z1, z2 = embeddings(6, 5)
    loss.temperature = 0.5
    torch.testing.assert_close(loss(z1, z2).detach(), losses.CLIP(0.5)(z1, z2), rtol=1e-6, atol=0)
    loss.learned_scale = False
    close(loss(z1, z2), losses.CLIP(0.5)(z1, z2))
    assert not list(loss.parameters()) and not loss.reported
    loss.learned_scale = True
    torch.testing.assert_close(loss(z1, z2).detach(), losses.CLIP(0.5)(z1, z2), rtol=1e-6, atol=0)
    assert len(list(loss.parameters())) == 1
    fails(lambda: losses.CLIP(0.07, learned_scale="yes"), "learned_scale is 'yes'")
