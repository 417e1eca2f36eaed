"""BYOL: a prediction of what a slowly following target makes of the other view, both ways round."""

from __future__ import annotations

import pytest
import torch

from clutils import losses, methods
from tests.methods.steps import a_step, built, predictions_and_targets, with_a_target_elsewhere


def test_the_loss_is_both_predictions_distance_from_the_other_views_target():
    byol = with_a_target_elsewhere(built(methods.BYOL, out=8))
    predictions, targets = predictions_and_targets(byol)
    both = ((predictions[0], targets[1]), (predictions[1], targets[0]))
    expected = sum(losses.Regression.as_written(a, b).item() for a, b in both)
    loss, p, t = a_step(byol)
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    torch.testing.assert_close(p.double(), predictions[0], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(t.double(), targets[1], rtol=1e-3, atol=1e-4)
    assert not p.requires_grad and not t.requires_grad


def test_the_target_has_batch_statistics_of_its_own_that_a_failed_step_takes_back():
    byol = built(methods.BYOL, out=8)
    first = byol.target_head[1].running_mean
    before = first.clone()
    a_step(byol)
    assert byol.target_head.training and not torch.equal(first, before)
    assert any(buffer is first for buffer in byol.changing_buffers())
