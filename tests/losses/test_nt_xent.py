"""NT-Xent: its loops, its forces and W."""

from __future__ import annotations

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.beside_loops import each_way
from tests.losses.inputs import close, embeddings, similarities

SETTINGS = [losses.NTXent(0.5), losses.NTXent(0.07)]


def in_loops(loss, positives, negatives, alignment):
    return oracles.nt_xent(positives, negatives, loss.temperature)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@each_way
def test_it_is_the_papers_formula_in_plain_loops(loss, compared):
    compared(loss, in_loops)


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


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_gradients_agree_with_finite_differences(loss):
    views = [z.requires_grad_() for z in embeddings(4, 3)]
    assert torch.autograd.gradcheck(loss, views, eps=1e-6, atol=1e-6)
