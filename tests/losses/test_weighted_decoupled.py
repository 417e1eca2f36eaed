"""DCLW: weights on the positives, over the batch."""

import pytest

from clutils import anatomy, losses
from tests.losses.inputs import similarities

SETTINGS = [losses.WeightedDecoupled(), losses.WeightedDecoupled(0.3, 2.0)]


def test_a_narrow_one_pushes_the_nearest_pair_apart():
    s, n = similarities(30, 1, 20)
    pull, _ = anatomy.forces(losses.WeightedDecoupled(1.0, 1e-4), s, n)
    assert float(pull[s.argmax()]) == pytest.approx(2 - 30)
    assert int((pull < 0).sum()) == 1 and float(pull.max()) == pytest.approx(2)
