"""α-CL: a similarity beyond 1."""

import torch

from clutils import losses


def test_a_similarity_that_rounding_carried_beyond_1_is_no_nan():
    s = torch.full((1, 1), 1.0078125)
    assert torch.isfinite(losses.AlphaCL(0.1, 2.5).per_anchor(s, s)).all()
