"""MoCo v3: a query is told from its batch's other keys, both ways round; the keys' network only follows."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from clutils import losses, methods
from tests.losses import oracles
from tests.methods.steps import a_step, built, by_loops, in_float64, views

TAU = 0.3


def method() -> methods.MoCoV3:
    moco = built(methods.MoCoV3, losses.NTXent(temperature=TAU), out=8)
    with torch.no_grad():
        for weight in moco.target_encoder.parameters():  # a copy that differs, as after some steps
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    return moco


def queries_and_keys(moco):
    encoder, head, predictor = in_float64(moco.encoder, moco.head, moco.predictor)
    target_encoder, target_head = in_float64(moco.target_encoder, moco.target_head)
    queries = [normalize(predictor(head(encoder(view))), dim=1).detach() for view in views()]
    keys = [normalize(target_head(target_encoder(view)), dim=1).detach() for view in views()]
    return queries, keys


def test_a_step_is_algorithm_1_in_plain_loops_with_its_factor_of_two_tau():
    moco = method()
    queries, keys = queries_and_keys(moco)
    both = ((queries[0], keys[1]), (queries[1], keys[0]))
    expected = sum(2 * TAU * by_loops(oracles.nt_xent, q, k, TAU, one_way=True) for q, k in both)
    loss, q1, k2 = a_step(moco)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    torch.testing.assert_close(normalize(q1, dim=1).double(), queries[0], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(normalize(k2, dim=1).double(), keys[1], rtol=1e-3, atol=1e-4)
    assert not q1.requires_grad and not k2.requires_grad


def test_gradients_are_those_of_the_authors_cross_entropy():
    moco = method()
    encoder, head, predictor = online = in_float64(moco.encoder, moco.head, moco.predictor)
    _, (k1, k2) = queries_and_keys(moco)
    q1, q2 = (normalize(predictor(head(encoder(view))), dim=1) for view in views())
    own = torch.arange(9)
    authors = 2 * TAU * (cross_entropy(q1 @ k2.T / TAU, own) + cross_entropy(q2 @ k1.T / TAU, own))
    authors.backward()
    a_step(moco)[0].backward()
    for ours, theirs in zip((moco.encoder, moco.head, moco.predictor), online, strict=True):
        for weight, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(weight.grad.double(), other.grad, rtol=1e-3, atol=1e-5)


def test_chance_is_the_step_where_every_cosine_is_0():
    moco = method()
    assert moco.chance(9) == pytest.approx(4 * TAU * math.log(9))
    z = torch.eye(18)
    assert 2 * moco.compare(z[:9], z[9:]).item() == pytest.approx(moco.chance(9), rel=1e-6)
