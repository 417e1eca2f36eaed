"""MoCo v3: a query is told from its batch's other keys, both ways round; the keys' network only follows."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from clutils import losses, methods
from tests.losses.inputs import assert_same_gradients
from tests.methods.steps import VECTORS, Fixed, built, moved, predictions_and_targets, views_of

TAU = 0.3


def method() -> methods.MoCoV3:
    return built(methods.MoCoV3, losses.NTXent(temperature=TAU), out=8)


def test_gradients_are_those_of_the_authors_cross_entropy():
    moco, views = method(), views_of(VECTORS[:9], 2)
    moved(moco.target_encoder.parameters())
    (q1, q2), (k1, k2) = (
        [normalize(z, dim=1) for z in both] for both in predictions_and_targets(moco, views)
    )
    own = torch.arange(9)
    authors = 2 * TAU * (cross_entropy(q1 @ k2.T / TAU, own) + cross_entropy(q2 @ k1.T / TAU, own))
    loss, *_ = moco(VECTORS[:9], Fixed(*views), torch.Generator())
    assert_same_gradients(loss, authors, [p for p in moco.parameters() if p.requires_grad])


def test_chance_is_the_step_where_every_cosine_is_0():
    moco = method()
    assert moco.chance(9) == pytest.approx(4 * TAU * math.log(9))
    z = torch.eye(18)
    assert 2 * moco.compare(z[:9], z[9:]).item() == pytest.approx(moco.chance(9), rel=1e-6)


def test_the_factor_follows_a_temperature_that_moves():
    """A learned logit scale and MACL's own: 2τ at the τ of this very call, and not where τ began."""
    q, k = torch.eye(6) + 0.3, torch.eye(6) + 0.2 * torch.ones(6, 6).triu()
    clip = losses.CLIP(0.07, learned_scale=True)
    clip.log_scale.data.fill_(math.log(50))
    for loss in (clip, losses.MACL(0.3, alpha=0.5, alignment_threshold=0.0)):
        moco = built(methods.MoCoV3, loss, out=8)
        value = moco.compare(q, k).item()
        tau = loss.effective_temperature.item()
        assert tau == pytest.approx(0.02) if loss is clip else tau > 0.31
        assert value == pytest.approx(2 * tau * moco.one_way(q, k).mean().item(), rel=1e-6)
        # where the positives' mean is 0 MACL has τ0 and, since its W is 5/6, log 6 over it
        at_zero = tau * math.log(6) if loss is clip else 0.3 * math.log(6) * 6 / 5
        assert moco.chance(6) == pytest.approx(4 * at_zero, rel=1e-6)
        assert loss.effective_temperature.item() == tau, "asking for chance moved the loss"
