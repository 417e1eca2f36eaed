"""VICReg: two branches with a gradient into both, an expander of three layers, two moments of each view."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clutils import encoders, losses, methods
from tests.methods.steps import a_step, in_float64, slopes_of_views, views


def method(loss=None, **settings) -> methods.VICReg:
    torch.manual_seed(0)
    loss = losses.VICReg(25.0, 10.0, 2.0) if loss is None else loss
    return methods.VICReg(encoders.MLP(64, 32, 16), loss, out=6, **settings).train()


def covariance(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    return sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True)) / (len(a) - 1)


def test_a_step_is_the_papers_loss_in_plain_loops_each_view_a_batch_of_its_own():
    vicreg = method()
    encoder, head = in_float64(vicreg.encoder, vicreg.head)
    embedded = [head(encoder(view)).detach() for view in views()]
    z1, z2 = (z.T.tolist() for z in embedded)
    near = sum((x - y) ** 2 for a, b in zip(z1, z2, strict=True) for x, y in zip(a, b, strict=True)) / 9
    expected = 25 * near
    for z in (z1, z2):
        for f in range(6):
            expected += 10 * max(0.0, 1 - (covariance(z[f], z[f]) + 1e-4) ** 0.5) / 6
            expected += 2 * sum(covariance(z[f], z[g]) ** 2 for g in range(6) if g != f) / 6
    loss, *compared = a_step(vicreg)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    for ours, papers in zip(compared, embedded, strict=True):
        torch.testing.assert_close(ours.double(), papers, rtol=1e-3, atol=1e-4)
        assert not ours.requires_grad


def test_a_default_step_is_lightlys_by_its_expander_with_the_same_weights_and_its_weighting():
    heads = pytest.importorskip("lightly.models.modules.heads")
    library = pytest.importorskip("lightly.loss")
    vicreg = method(methods.VICReg.default_loss(out=6), hidden=10)
    theirs = heads.VICRegProjectionHead(16, 10, 6)
    theirs.layers.load_state_dict(vicreg.head.state_dict())
    encoder, expander = in_float64(vicreg.encoder, theirs)
    expected = library.VICRegLoss(25.0, 25.0, 1.0)(*(expander(encoder(view)) for view in views()))
    assert a_step(vicreg)[0].item() == pytest.approx(expected.item(), rel=1e-4)


def test_the_expander_has_three_layers_as_wide_within_as_outside_where_nothing_is_said():
    kinds = [type(part) for part in method().head]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2 + [nn.Linear]
    for settings, widths in (
        ({}, [(16, 6), (6, 6), (6, 6)]),
        ({"hidden": 20}, [(16, 20), (20, 20), (20, 6)]),
    ):
        linear = [part for part in method(**settings).head if isinstance(part, nn.Linear)]
        assert [(part.in_features, part.out_features) for part in linear] == widths


def test_both_views_teach_the_encoder():
    assert all(slope.abs().sum() > 0 for slope in slopes_of_views(method()))
