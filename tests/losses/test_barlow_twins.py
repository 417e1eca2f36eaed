"""Barlow Twins: a feature that is constant over the batch."""

import pytest
import torch

from clutils import losses
from tests.losses.inputs import embeddings, fails


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("value", [1.0, 0.1, 1e4, 0.0])
def test_a_constant_feature_is_named_and_never_nan(dtype, value):
    z1, z2 = (z.to(dtype) for z in embeddings(7, 3))
    z2[:, 1] = value
    fails(lambda: losses.BarlowTwins()(z1, z2), "BarlowTwins", "feature 1 of z2 (7, 3)", "constant")
    z1.requires_grad_()
    z2.requires_grad_()
    unchecked = losses.BarlowTwins(1.0, check_inputs=False)(z1, z2)
    gradients = torch.autograd.grad(unchecked, (z1, z2))
    assert torch.isfinite(unchecked) and all(torch.isfinite(g).all() for g in gradients)
