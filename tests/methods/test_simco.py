"""SimCo: one encoder, no queue, and the dual-temperature loss in both directions."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import normalize

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


def test_far_from_the_second_temperature_it_is_the_authors_later_code():
    """Their W is that of an infinite temperature, 1, and they set the anchor's own place to 0."""
    simco = built(methods.SimCo, losses.DualTemperature(0.1, 1e6), out=8)
    views = views_of(VECTORS[:9], 2)
    loss, *_ = simco(VECTORS[:9], Fixed(*views), torch.Generator())
    z1, z2 = (normalize(simco.head(simco.encoder(view)), dim=1) for view in views)
    total = 0.0
    for q, k in ((z1, z2), (z2, z1)):
        cosines = q @ k.T / 0.1
        p = cosines.softmax(dim=1).diagonal()  # without the place that they set to 0
        total += ((1 / (1 - p)) * -p.log()).mean() / 2
    assert loss.item() == pytest.approx(total.item() * 8 / 9, rel=1e-4)  # W at infinity is K/(K + 1)
