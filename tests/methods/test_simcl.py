"""SimCL: noise of a given length on the features, before the head."""

import pytest
import torch

from clutils import data, encoders, losses, methods, training, views
from tests.losses import oracles
from tests.runs import DIGITS, advance, small

VECTORS = data.load("vectors:digits", limit=200)
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
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist())
    expected = sum(oracles.nt_xent(*row, 0.3) for row in rows) / len(rows)
    assert loss.item() == pytest.approx(expected, rel=1e-4)


def test_it_runs_on_vectors_resumes_and_refuses_a_negative_strength(tmp_path):
    run = advance(small(method="simcl", data=VECTORS, method_settings={"strength": 0.1}), 2)
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=VECTORS)
    assert advance(again, 1).rows[-1]["loss"] == advance(run, 1).rows[-1]["loss"]
    run.method.strength = -1
    with pytest.raises(ValueError, match="strength is -1"):
        run.step()
