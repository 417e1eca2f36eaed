"""FlatNCE: a value of one for ever, with the decoupled loss's forces."""

import pytest

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities


@pytest.mark.parametrize("temperature", [0.02, 0.5, 20.0])
def test_its_forces_are_the_decoupled_losss(temperature):
    tables = similarities(50, 1, 40)
    both = (anatomy.forces(loss(temperature), *tables) for loss in (losses.FlatNCE, losses.Decoupled))
    for ours, theirs in zip(*both, strict=True):
        close(ours, theirs)
