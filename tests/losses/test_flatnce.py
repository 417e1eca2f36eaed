"""FlatNCE: a value of one for ever, with the decoupled loss's forces."""

from __future__ import annotations

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.beside_loops import each_way
from tests.losses.inputs import close, similarities

SETTINGS = [losses.FlatNCE(0.2)]


def in_loops(loss, positives, negatives, alignment):
    return oracles.flatnce(positives, negatives, loss.temperature)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@each_way
def test_it_is_the_papers_formula_in_plain_loops(loss, compared):
    compared(loss, in_loops)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 2.0, 20.0])
def test_forces_are_the_closed_forms(temperature):
    positives, negatives = similarities(50, 1, 40)
    pull, push = anatomy.forces(losses.FlatNCE(temperature), positives, negatives)
    close(pull, torch.full_like(pull, 1 / temperature))
    close(push, torch.softmax(negatives / temperature, dim=1) / temperature)


def test_flatnce_shows_one_for_ever():
    values = losses.FlatNCE(0.05).per_anchor(*similarities(9, 1, 5))
    assert (values == 1).all()
