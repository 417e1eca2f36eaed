"""Barlow Twins: two branches with a gradient into both, a projector of three layers, correlated features."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from clutils import losses, methods
from tests.methods.steps import a_step, built, in_float64, views


def method(**settings) -> methods.BarlowTwins:
    return built(methods.BarlowTwins, losses.BarlowTwins(0.02), out=6, **settings)


def test_a_step_is_the_papers_loss_in_plain_loops_each_view_a_batch_of_its_own():
    twins = method()
    encoder, head = in_float64(twins.encoder, twins.head)
    embedded = [head(encoder(view)).detach() for view in views()]
    expected = losses.BarlowTwins.as_written(*embedded, 0.02).item()
    loss, *compared = a_step(twins)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    for ours, papers in zip(compared, embedded, strict=True):
        torch.testing.assert_close(ours.double(), papers, rtol=1e-3, atol=1e-4)
        assert not ours.requires_grad


@pytest.mark.parametrize("kind", [methods.BarlowTwins, methods.VICReg])
def test_the_projector_has_three_layers_as_wide_within_as_outside_where_nothing_is_said(kind):
    kinds = [type(part) for part in built(kind, out=6).head]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU] * 2 + [nn.Linear]
    for settings, widths in (
        ({}, [(16, 6), (6, 6), (6, 6)]),
        ({"hidden": 20}, [(16, 20), (20, 20), (20, 6)]),
    ):
        linear = [part for part in built(kind, out=6, **settings).head if isinstance(part, nn.Linear)]
        assert [(part.in_features, part.out_features) for part in linear] == widths
