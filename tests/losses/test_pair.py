"""The pair loss: its loops, its forces, and labels."""

import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


def test_forces_are_the_closed_forms():
    positives, negatives = similarities(40, 1, 25)
    pull, push = anatomy.forces(losses.PairMargin(1.4), positives, negatives)
    distance = (2 - 2 * negatives).sqrt()
    close(pull, torch.full_like(pull, 2.0))
    close(push, 2 * (1.4 - distance).clamp(min=0) / distance / 25)
