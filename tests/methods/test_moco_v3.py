"""MoCo v3: a query is told from its batch's other keys, both ways round; the keys' network only follows."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from clutils import encoders, losses, methods
from tests.losses.inputs import fails
from tests.methods.steps import a_step, in_float64, slopes_of_views, views

TAU = 0.3


def method(loss=None, **settings) -> methods.MoCoV3:
    torch.manual_seed(0)
    loss = losses.NTXent(temperature=TAU) if loss is None else loss
    moco = methods.MoCoV3(encoders.MLP(64, 32, 16), loss, out=8, **settings).train()
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
    expected = 0.0
    for q, k in ((queries[0], keys[1]), (queries[1], keys[0])):
        for i in range(9):
            among = [math.exp(float(q[i] @ k[j]) / TAU) for j in range(9)]
            expected -= 2 * TAU * math.log(among[i] / sum(among)) / 9
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


def test_no_gradient_reaches_the_keys_network_and_the_optimiser_does_not_hold_it():
    moco = method()
    a_step(moco)[0].backward()
    frozen = [*moco.target_encoder.parameters(), *moco.target_head.parameters()]
    assert not any(weight.requires_grad or weight.grad is not None for weight in frozen)
    moved = {id(weight) for group in moco.parameter_groups() for weight in group["params"]}
    online = (moco.encoder, moco.head, moco.predictor)
    assert moved == {id(weight) for module in online for weight in module.parameters()}
    assert all(slope.abs().sum() > 0 for slope in slopes_of_views(moco))  # both views ask


def test_the_keys_network_follows_the_momentum_equation_and_the_predictor_has_no_copy():
    moco = method(momentum=0.75)
    before = [weight.clone() for weight in moco.target_encoder.parameters()]
    moco.after_step()
    for old, new, online in zip(
        before, moco.target_encoder.parameters(), moco.encoder.parameters(), strict=True
    ):
        torch.testing.assert_close(new, 0.75 * old + 0.25 * online.detach())
    assert not hasattr(moco, "target_predictor")


def test_chance_is_the_step_where_every_cosine_is_0():
    moco = method()
    assert moco.chance(9) == pytest.approx(4 * TAU * math.log(9))
    z = torch.eye(18)
    assert 2 * moco.compare(z[:9], z[9:]).item() == pytest.approx(moco.chance(9), rel=1e-6)


def test_a_loss_without_a_temperature_or_beyond_cosines_is_refused():
    for loss in (
        losses.Triplet(),
        losses.NPair(),
        losses.VICReg(),
        losses.SSCL(),
        losses.SogCLR(),
        torch.nn.MSELoss(),
    ):
        fails(lambda loss=loss: method(loss), "MoCoV3 needs a loss that has a temperature and works on")
    for loss in (losses.Decoupled(temperature=TAU), losses.MACL(temperature=TAU)):
        assert a_step(method(loss))[0].isfinite()
    fails(lambda: method(momentum=1.5), "MoCoV3: momentum is 1.5", "from 0 to 1")
