"""Barlow Twins: correlations of features, exact, and never NaN."""

import pytest
import torch

from clutils import losses
from tests.losses.inputs import close, embeddings, fails


def test_correlations_are_numpys_and_ignore_each_features_scale_and_offset():
    z1, z2 = embeddings(12, 3)
    C = losses.BarlowTwins().compare(z1, z2)
    reference = torch.corrcoef(torch.cat([z1.T, z2.T]))[:3, 3:]
    close(C, reference)
    scale, offset = torch.tensor([1e-3, 1.0, 50.0], dtype=torch.float64), torch.tensor([3.0, -2.0, 0.1])
    torch.testing.assert_close(
        losses.BarlowTwins()(z1 * scale + offset, z2), losses.BarlowTwins()(z1, z2), rtol=1e-9, atol=0
    )


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
