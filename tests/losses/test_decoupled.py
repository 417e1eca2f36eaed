"""The decoupled loss: no positive in the denominator, and so no W in the forces."""

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 2.0, 20.0])
def test_forces_are_the_closed_forms(temperature):
    positives, negatives = similarities(50, 1, 40)
    pull, push = anatomy.forces(losses.Decoupled(temperature), positives, negatives)
    close(pull, torch.full_like(pull, 1 / temperature))
    close(push, torch.softmax(negatives / temperature, dim=1) / temperature)
