"""SimCL: noise of a given length on the features, before the head."""

import pytest
import torch

from clutils import encoders, losses, methods, views
from tests.methods.steps import by_loops
from tests.runs import DIGITS

STILL = views.Identity()


def test_simcl_adds_noise_of_the_given_length_to_the_features_before_the_head():
    torch.manual_seed(0)
    method = methods.SimCL(encoders.build("conv16", channels=1), losses.NTXent(0.3), strength=2.0).train()
    seen = {}
    method.encoder.register_forward_hook(lambda m, i, out: seen.update(h=out.detach()))
    method.head.register_forward_pre_hook(lambda m, given: seen.update(noisy=given[0].detach()))
    loss, z1, z2 = method(DIGITS.images[:8], STILL, torch.Generator().manual_seed(0))
    added = seen["noisy"] - seen["h"]
    torch.testing.assert_close(added.norm(dim=1), torch.full((16,), 2.0))
    assert not torch.allclose(added[:8], added[8:])  # each view its own
    expected = by_loops(losses.NTXent(0.3), z1, z2)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
