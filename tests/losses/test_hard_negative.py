"""HCL: the clamp, without which the paper's pseudocode is NaN."""

import math

import pytest
import torch

from clutils import losses
from tests.losses.inputs import embeddings


def test_without_the_clamp_the_papers_pseudocode_is_nan_and_with_it_the_loss_is_not():
    """SSCL's pseudocode, k = 0: equal views, 8 images, τ = 0.5, τ+ = 0.3."""
    z = torch.nn.functional.normalize(embeddings(8, 128)[0], dim=1)
    out = torch.cat([z, z])
    exponents = (out @ out.T / 0.5).exp()
    other = ~torch.eye(8, dtype=torch.bool).repeat(2, 2)
    negatives = exponents[other].view(16, 14)
    positive = math.exp(1 / 0.5)
    Ng = ((negatives**2).sum(1) / negatives.mean(1) - 14 * 0.3 * positive) / (1 - 0.3)
    assert (Ng < -10).all(), "the trap is gone"
    assert torch.isnan(-torch.log(positive / (positive + Ng))).any()
    views = z.clone().requires_grad_(), z.clone().requires_grad_()
    value = losses.HardNegative(0.5, 0.3, 1.0)(*views)
    value.backward()
    assert torch.isfinite(views[0].grad).all()
    assert value.item() == pytest.approx(math.log1p(14 * math.exp(-2 / 0.5)), rel=1e-9)  # for every anchor
