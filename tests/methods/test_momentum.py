"""The target of MoCo, BYOL and MoCo v3: it only follows, as the equation of the moving average has it."""

from __future__ import annotations

import pytest
import torch

from clutils import methods
from tests.methods.steps import built

KINDS = [methods.MoCo, methods.BYOL, methods.MoCoV3]


def networks(method):
    """The weights of the target, and of what it follows."""
    target, online = (method.target_encoder, method.target_head), (method.encoder, method.head)
    return [[weight for network in both for weight in network.parameters()] for both in (target, online)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_starts_as_a_copy_and_follows_the_momentum_equation(kind):
    method = built(kind, out=8).double()
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
        method.after_step()
        for e, w in zip(expected, online, strict=True):
            flat, weight = e.view(-1), w.detach().reshape(-1)
            for i in range(len(flat)):
                flat[i] = momentum * float(flat[i]) + (1 - momentum) * float(weight[i])
        for target, e in zip(targets, expected, strict=True):
            torch.testing.assert_close(target.detach(), e, rtol=0, atol=1e-7)
