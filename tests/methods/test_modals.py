"""MODALS: features moved by one of four operations on those of the batch."""

from __future__ import annotations

import pytest
import torch

from clutils import methods
from clutils.methods.modals import OPERATIONS
from tests.losses.inputs import fails
from tests.methods.steps import built

H = torch.randn(60, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def moved(operation):
    return built(methods.MODALS, operation=operation).direction(H, torch.Generator().manual_seed(1))


def test_interpolation_goes_to_another_row_that_is_rather_near():
    ends = H + moved("interpolate")
    centred = H - H.mean(dim=0)
    cosine = torch.nn.functional.cosine_similarity(centred[:, None], centred[None], dim=2)
    ranks = []
    for i in range(60):
        (j,) = [j for j in range(60) if float((H[j] - ends[i]).norm()) < 1e-9]
        assert j != i
        ranks.append(int((cosine[i] > cosine[i, j]).sum()) - 1)  # 0: the nearest of all
    assert sum(ranks) / 60 < 22  # of 59, the best of three drawn: a quarter on average, 29 of any


def test_extrapolation_difference_and_noise_are_as_written():
    torch.testing.assert_close(moved("extrapolate"), H - H.mean(dim=0))
    for row in moved("difference"):
        pairs = [(a, b) for a in range(60) for b in range(60) if float((H[a] - H[b] - row).norm()) < 1e-9]
        assert len(pairs) == 1 and pairs[0][0] != pairs[0][1]
    noise = moved("noise") / H.std(dim=0)
    assert float(noise.mean()) == pytest.approx(0, abs=0.1) and float(noise.std()) == pytest.approx(
        1, abs=0.1
    )


def test_any_draws_one_of_the_four_for_each_row():
    drawn = torch.stack([moved(name) for name in OPERATIONS])
    rows = moved("any")
    which = [[k for k in range(4) if torch.equal(drawn[k, i], rows[i])] for i in range(60)]
    assert all(len(k) == 1 for k in which) and {k for (k,) in which} == {0, 1, 2, 3}


def test_no_gradient_goes_through_the_others_features():
    h = H.clone().requires_grad_()
    built(methods.MODALS, operation="extrapolate").direction(h, torch.Generator())[0].sum().backward()
    assert h.grad[0].abs().sum() > 0 and h.grad[1:].abs().sum() == 0
    fails(lambda: built(methods.MODALS, operation="mixup"), "operation is 'mixup'", "any, interpolate")
