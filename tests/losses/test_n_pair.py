"""The N-pair loss: InfoNCE one way, on inner products of vectors as they are."""

import math

import pytest
import torch
import torch.nn.functional as F

from clutils import losses
from tests.losses import oracles
from tests.losses.inputs import close, embeddings


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
def test_vectors_of_one_length_have_its_square_as_inverse_temperature(length):
    z1, z2 = (length * F.normalize(z, dim=1) for z in embeddings(7, 4))
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), other_view=True)[:7]  # z1 alone are anchors
    close(losses.NPair()(z1, z2), oracles.written(losses.NTXent(length**-2), rows).mean())


def test_longer_vectors_lower_it_for_ever_once_each_positive_is_nearest():
    z = torch.eye(4, dtype=torch.float64)
    values = [float(losses.NPair()(r * z, r * z)) for r in (1.0, 2.0, 4.0)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(math.log1p(3 * math.exp(-16)), rel=1e-9)
