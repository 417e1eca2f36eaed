"""NT-Xent: its loops, its forces and W."""

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 2.0, 20.0])
def test_forces_are_the_closed_forms(temperature):
    positives, negatives = similarities(50, 1, 40)
    e_plus = torch.exp((positives - 1) / temperature)
    e_minus = torch.exp((negatives - 1) / temperature)
    shares = e_minus / e_minus.sum(dim=1, keepdim=True)
    W = e_minus.sum(dim=1, keepdim=True) / (e_plus + e_minus.sum(dim=1, keepdim=True))
    pull, push = anatomy.forces(losses.NTXent(temperature), positives, negatives)
    close(pull, W / temperature)
    close(push, W / temperature * shares)
    close(anatomy.gradient_scale(positives, negatives, temperature), W[:, 0])
    close(anatomy.hardness_weights(negatives, temperature), shares)
