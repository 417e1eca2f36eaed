"""Temperature-free InfoNCE: what happens at the clamp."""

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, embeddings

END = 1 - 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_where_two_views_coincide_value_and_gradient_are_finite(dtype):
    z = embeddings(16, 8)[0].to(dtype).requires_grad_()
    value = losses.TemperatureFree()(z, z)
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(z.grad).all() and z.grad.abs().sum() > 0


def test_beyond_the_clamp_a_similarity_counts_as_its_end_and_rests():
    n = torch.tensor([[-1.0, 0.2, 1.0]], dtype=torch.float64)
    ends = torch.tensor([[-END, 0.2, END]], dtype=torch.float64)
    loss, one = losses.TemperatureFree(), torch.ones(1, 1, dtype=torch.float64)
    close(loss.per_anchor(one, n), loss.per_anchor(END * one, ends))
    pull, push = anatomy.forces(loss, one, n)
    assert float(pull) == 0 and push[0, 0] == push[0, 2] == 0 and push[0, 1] > 0
