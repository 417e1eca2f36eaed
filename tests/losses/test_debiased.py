"""Debiased: its extremes."""

import math

import pytest
import torch

from clutils import losses


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extremes_have_the_right_value_not_only_a_finite_one(dtype):
    near, far = torch.ones(1, 1, dtype=dtype), -torch.ones(1, 10, dtype=dtype)
    # all of E+ is left when the negatives are as far as can be: the clamp, log(1 + N e^(-2/τ))
    value = losses.Debiased(0.05, 0.1).per_anchor(near, far)
    assert float(value) == pytest.approx(10 * math.exp(-2 / 0.05), rel=1e-5)
    # the reverse, a cold hard case: (s- - s+)/τ + log(K/(1 - τ+))
    value = losses.Debiased(1e-3, 0.1).per_anchor(-near, -far)
    assert float(value) == pytest.approx(2000 + math.log(10 / 0.9), rel=1e-6)
