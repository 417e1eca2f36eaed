"""The reweighted loss of notebook 04 is judged by its gradient as well, so it may be written in many ways."""

from __future__ import annotations

import pytest
import torch

from clutils import exercises, losses


@pytest.mark.parametrize("detached", [False, True])
def test_the_reweighted_loss_may_be_written_in_other_ways_but_must_have_a_gradient(detached):
    def own_way(positives, negatives, temperature):
        gaps = torch.nn.functional.pad((negatives - positives) / temperature, (1, 0))  # the positive's is 0
        value = torch.logsumexp(gaps, dim=1).detach()
        c = torch.logsumexp(gaps[:, 1:], dim=1)
        value = torch.where(c < -15, torch.ones_like(c), value / torch.sigmoid(c)).detach()
        return value if detached else value - c.detach() + c

    result = exercises.macl_loss.check(own_way)
    assert bool(result) != detached, result
    assert detached == ("no gradient" in repr(result))


def test_the_package_passes_its_own_exercise():
    assert exercises.macl_loss.check(lambda s, n, t: losses.MACL(t, alpha=0.0).per_anchor(s, n))
    assert not exercises.macl_loss.check(lambda s, n, t: losses.MACL(2 * t, alpha=0.0).per_anchor(s, n))


def test_a_mean_over_the_anchors_is_told_by_its_shape():
    assert "one value per anchor" in repr(exercises.macl_loss.check(lambda s, n, t: (s - n).sum()))
