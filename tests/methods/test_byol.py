"""BYOL: a prediction of what a slowly following target makes of the other view, both ways round."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn.functional import normalize

from clutils import data, encoders, losses, methods
from tests.losses.inputs import fails
from tests.runs import advance, small

VECTORS = data.load("vectors:digits", limit=64).vectors


def noisy(vectors, generator):
    return vectors + torch.rand(vectors.shape, generator=generator)


def method(**settings) -> methods.BYOL:
    torch.manual_seed(0)
    return methods.BYOL(encoders.MLP(64, 32, 16), losses.Regression(), out=8, **settings).train()


def test_the_loss_is_both_predictions_distance_from_the_other_views_target():
    byol = method()
    with torch.no_grad():
        for weight in byol.target_encoder.parameters():  # a target that differs, as after some steps
            weight += 0.02 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    online = copy.deepcopy((byol.encoder, byol.head, byol.predictor))
    target = copy.deepcopy((byol.target_encoder, byol.target_head))
    loss, p, t = byol(VECTORS[:9], noisy, torch.Generator().manual_seed(5))
    views = noisy(torch.cat([VECTORS[:9]] * 2), torch.Generator().manual_seed(5)).chunk(2)
    predictions = [online[2](online[1](online[0](view))).detach() for view in views]  # a batch a view
    targets = [target[1](target[0](view)) for view in views]
    expected = 0.0
    for i in range(9):
        for here, there in ((0, 1), (1, 0)):
            a, b = normalize(predictions[here][i], dim=0), normalize(targets[there][i], dim=0)
            expected += float((a - b).square().sum()) / 9
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(p, predictions[0])
    torch.testing.assert_close(t, targets[1].detach())


def test_no_gradient_reaches_the_target_and_the_optimiser_does_not_hold_it():
    byol = method()
    frozen = [*byol.target_encoder.parameters(), *byol.target_head.parameters()]
    loss, p, t = byol(VECTORS[:9], noisy, torch.Generator().manual_seed(0))
    loss.backward()
    assert not any(weight.requires_grad or weight.grad is not None for weight in frozen)
    assert not p.requires_grad and not t.requires_grad
    moved = {id(weight) for group in byol.parameter_groups() for weight in group["params"]}
    online = (byol.encoder, byol.head, byol.predictor)
    assert moved == {id(weight) for module in online for weight in module.parameters()}


def test_the_target_follows_the_momentum_equation_and_the_predictor_has_none():
    byol = method(momentum=0.9).double()
    targets = [*byol.target_encoder.parameters(), *byol.target_head.parameters()]
    online = [*byol.encoder.parameters(), *byol.head.parameters()]
    expected = [target.detach().clone() for target in targets]
    draw = torch.Generator().manual_seed(1)
    for _ in range(3):
        with torch.no_grad():
            for weight in online:
                weight += torch.randn(weight.shape, generator=draw, dtype=torch.float64)
        byol.after_step()
        for e, w in zip(expected, online, strict=True):
            flat, weight = e.view(-1), w.detach().reshape(-1)
            for i in range(len(flat)):
                flat[i] = 0.9 * float(flat[i]) + 0.1 * float(weight[i])
        for target, e in zip(targets, expected, strict=True):
            torch.testing.assert_close(target.detach(), e, rtol=0, atol=1e-7)


def test_in_a_run_the_target_differs_from_the_online_network_and_comes_after_it():
    run = small(method="byol", steps=6)
    byol = run.method
    start = [weight.detach().clone() for weight in byol.encoder.parameters()]
    advance(run, 6)
    for begun, online, target in zip(
        start, byol.encoder.parameters(), byol.target_encoder.parameters(), strict=True
    ):
        gone, followed = (online - begun).norm(), (target - begun).norm()
        assert 0 < followed < 0.9 * gone  # six steps of a fifth of the way


def test_both_views_teach_the_online_network():
    shifts = [torch.zeros(64, requires_grad=True) for _ in range(2)]

    class Learned:
        def several_views(self, images, generator, number):
            return [images + shift for shift in shifts]

    method()(VECTORS[:9], Learned(), torch.Generator())[0].backward()
    assert all(shift.grad.abs().sum() > 0 for shift in shifts)


def test_the_target_has_batch_statistics_of_its_own_that_a_failed_step_takes_back():
    byol = method()
    first = byol.target_head[1].running_mean
    before = first.clone()
    byol(VECTORS[:9], noisy, torch.Generator().manual_seed(0))
    assert byol.target_head.training and not torch.equal(first, before)
    assert any(buffer is first for buffer in byol.changing_buffers())


def test_there_is_no_chance_level_and_a_momentum_out_of_range_is_quoted():
    assert method().chance(9) is None
    fails(lambda: method(momentum=1.1), "BYOL: momentum is 1.1", "from 0 to 1")
    byol = method()
    byol.momentum = True
    fails(lambda: byol(VECTORS[:9], noisy, torch.Generator()), "momentum is True")
