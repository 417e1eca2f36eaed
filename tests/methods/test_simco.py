"""SimCo: one encoder, no queue, and the dual-temperature loss in both directions."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clutils import losses, methods
from tests.methods.given_views import VECTORS, Fixed, built, views_of
from tests.methods.steps import by_loops


def test_a_step_is_the_dual_temperature_loss_of_both_directions_in_loops():
    simco = built(methods.SimCo, losses.DualTemperature(0.2, 5.0), out=8)
    views = views_of(VECTORS[:9], 2)
    loss, *_ = simco(VECTORS[:9], Fixed(*views), torch.Generator())
    z = [simco.head(simco.encoder(view)) for view in views]
    both = (by_loops(losses.DualTemperature(0.2, 5.0), *of, one_way=True) for of in (z, z[::-1]))
    assert loss.item() == pytest.approx(sum(both) / 2, rel=1e-10)


def test_the_head_is_moco_v2s():
    simco = built(methods.SimCo)
    assert [type(part) for part in simco.head] == [nn.Linear, nn.ReLU, nn.Linear]
    assert all(weight.requires_grad for weight in simco.parameters())
