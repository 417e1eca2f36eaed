"""α-CL: the pairs' importance is chosen, and nothing flows through it."""

import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities

SETTINGS = [losses.AlphaCL(), losses.AlphaCL(0.2, 2.0), losses.AlphaCL(1.0, 0.5)]


def test_at_exponent_1_it_is_parallel_to_the_decoupled_loss():
    s, n = similarities(30, 1, 20)
    ours, decoupled = (
        anatomy.forces(losses.AlphaCL(0.3, 1.0), s, n),
        anatomy.forces(losses.Decoupled(0.3), s, n),
    )
    close(ours[1] / ours[0], decoupled[1] / decoupled[0])


def test_without_a_temperature_all_pairs_count_one():
    s, n = similarities(30, 1, 20)
    torch.testing.assert_close(losses.AlphaCL(1e6).per_anchor(s, n), (n - s).sum(dim=1), rtol=0, atol=1e-4)


def test_a_similarity_that_rounding_carried_beyond_1_is_no_nan():
    s = torch.full((1, 1), 1.0078125)
    assert torch.isfinite(losses.AlphaCL(0.1, 2.5).per_anchor(s, s)).all()
