"""The decoupled loss: no positive in the denominator, and so no W in the forces."""

from __future__ import annotations

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.beside_loops import each_way
from tests.losses.inputs import close, embeddings, similarities

SETTINGS = [losses.Decoupled(0.1)]


def in_loops(loss, positives, negatives, alignment):
    return oracles.decoupled(positives, negatives, loss.temperature)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@each_way
def test_it_is_the_papers_formula_in_plain_loops(loss, compared):
    compared(loss, in_loops)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 2.0, 20.0])
def test_forces_are_the_closed_forms(temperature):
    positives, negatives = similarities(50, 1, 40)
    pull, push = anatomy.forces(losses.Decoupled(temperature), positives, negatives)
    close(pull, torch.full_like(pull, 1 / temperature))
    close(push, torch.softmax(negatives / temperature, dim=1) / temperature)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_gradients_agree_with_finite_differences(loss):
    views = [z.requires_grad_() for z in embeddings(4, 3)]
    assert torch.autograd.gradcheck(loss, views, eps=1e-6, atol=1e-6)
