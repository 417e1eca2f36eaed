"""VICReg: two branches with a gradient into both, an expander of three layers, two moments of each view."""

from __future__ import annotations

import pytest
import torch

from clutils import losses, methods
from tests.methods.steps import a_step, built, in_float64, views


def method(loss=None, **settings) -> methods.VICReg:
    return built(methods.VICReg, losses.VICReg(25.0, 10.0, 2.0) if loss is None else loss, out=6, **settings)


def test_a_step_is_the_papers_loss_in_plain_loops_each_view_a_batch_of_its_own():
    vicreg = method()
    encoder, head = in_float64(vicreg.encoder, vicreg.head)
    embedded = [head(encoder(view)).detach() for view in views()]
    expected = losses.VICReg.as_written(*embedded, 25.0, 10.0, 2.0, printed=False).item()
    loss, *compared = a_step(vicreg)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    for ours, papers in zip(compared, embedded, strict=True):
        torch.testing.assert_close(ours.double(), papers, rtol=1e-3, atol=1e-4)
        assert not ours.requires_grad
