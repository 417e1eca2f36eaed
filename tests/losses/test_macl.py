"""MACL: its adaptive temperature."""

import math

import pytest
import torch

from clutils import losses
from tests.losses.inputs import fails, similarities


def test_macl_floors_its_temperature_and_counts_how_often():
    macl = losses.MACL(0.1, alpha=1.0, alignment_threshold=0.5)
    for alignment, expected in [(1.0, 0.15), (-0.3, 0.02), (-0.5, 0.01), (-1.0, 0.01)]:
        macl.per_anchor(*similarities(3, 1, 5), alignment=alignment)
        assert float(macl.adaptive_temperature) == pytest.approx(expected)
    assert macl.calls == 4
    assert int(macl.floored) == 2
    macl.minimum_temperature = 0.05
    macl.per_anchor(*similarities(3, 1, 5), alignment=-1.0)
    assert float(macl.adaptive_temperature) == pytest.approx(0.05)


def test_macls_alignment_is_the_mean_positive_and_gets_no_gradient():
    positives, negatives = similarities(12, 1, 5)
    macl = losses.MACL(0.1, 0.8, 0.1)
    given = macl.per_anchor(positives, negatives, alignment=float(positives.mean()))
    torch.testing.assert_close(macl.per_anchor(positives, negatives), given)
    other = macl.per_anchor(positives, negatives, alignment=-0.5)
    assert (other - given).abs().max() > 0.1
    # one anchor's pull must not reach another through the temperature
    positives = positives.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(macl.per_anchor(positives, negatives)[0], positives)
    assert (gradient[1:] == 0).all()


def test_asking_for_chance_does_not_count_as_a_step_of_macl():
    macl = losses.MACL()
    macl.chance(10)
    assert macl.calls == 0
    assert macl.adaptive_temperature is None


@pytest.mark.parametrize("alignment", [math.nan, 5.0, torch.zeros(3)])
def test_an_alignment_that_is_none_is_quoted(alignment):
    fails(lambda: losses.MACL().per_anchor(*similarities(4, 1, 6), alignment=alignment), "MACL", "alignment")
