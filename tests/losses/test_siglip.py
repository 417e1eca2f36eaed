"""SigLIP: a sum over all pairs, divided by the batch."""

import math

import pytest
import torch

from clutils import losses
from tests.losses.inputs import close, embeddings


@pytest.mark.parametrize("B", [3, 8])
def test_the_batch_divides_a_sum_over_all_pairs_and_is_no_mean_over_them(B):
    z1, z2 = embeddings(B, 5)
    logits = torch.nn.functional.normalize(z1) @ torch.nn.functional.normalize(z2).T / 0.2 - 2
    match = 2 * torch.eye(B, dtype=torch.float64) - 1
    every_pair = -torch.nn.functional.logsigmoid(match * logits)
    loss = losses.SigLIP(0.2, -2.0)(z1, z2)
    close(loss, every_pair.sum() / B)
    close(loss, B * every_pair.mean())  # the trap: so many times smaller, values and forces


def test_chance_grows_with_the_negatives_as_one_sum_over_them():
    assert losses.SigLIP(0.1, 0.0).chance(7) == pytest.approx(8 * math.log(2))
    assert losses.SigLIP(0.1, -10.0).chance(7) == pytest.approx(10 + 8 * math.log1p(math.exp(-10)))
