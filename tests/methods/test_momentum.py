"""The targets: they only follow, as the equation of the moving average has it."""

from __future__ import annotations

import pytest
import torch

from clutils import methods
from tests.methods.steps import VECTORS, Fixed, built, views_of

KINDS = [methods.MoCo, methods.BYOL, methods.MoCoV3, methods.DINO]


def networks(method):
    """The weights of the target, and of what it follows."""
    names = ("encoder", "head", *(["vectors"] if isinstance(method, methods.DINO) else []))
    both = ([getattr(method, by + name) for name in names] for by in ("target_", ""))
    return [[weight for network in each for weight in network.parameters()] for each in both]


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_starts_as_a_copy_and_follows_the_momentum_equation(kind):
    method = built(kind, out=8)
    targets, online = networks(method)
    assert len(targets) == len(online) and all(map(torch.equal, targets, online))
    draw = torch.Generator().manual_seed(1)
    expected = [target.detach().clone() for target in targets]
    for momentum in (0.9, 0.999, 0.0, 1.0, 0.5):
        method.momentum = momentum
        with torch.no_grad():
            for weight in online:
                weight += torch.randn(weight.shape, generator=draw, dtype=torch.float64)
        method.entering = torch.zeros(4, 8, dtype=torch.float64)  # of MoCo's queue
        method.seen = torch.zeros(64, dtype=torch.float64)  # of DINO's centre
        method.after_step()
        for e, w in zip(expected, online, strict=True):
            flat, weight = e.view(-1), w.detach().reshape(-1)
            for i in range(len(flat)):
                flat[i] = momentum * float(flat[i]) + (1 - momentum) * float(weight[i])
        for target, e in zip(targets, expected, strict=True):
            torch.testing.assert_close(target.detach(), e, rtol=0, atol=1e-7)


def test_a_target_has_batch_statistics_of_its_own_that_a_failed_step_takes_back():
    byol = built(methods.BYOL, out=8)
    first = byol.target_head[1].running_mean
    before = first.clone()
    byol(VECTORS[:9], Fixed(*views_of(VECTORS[:9], 2)), torch.Generator())
    assert byol.target_head.training and not torch.equal(first, before)
    assert any(buffer is first for buffer in byol.changing_buffers())
