"""The pair loss: its loops, its forces, and labels."""

from __future__ import annotations

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.beside_loops import each_way, with_labels
from tests.losses.inputs import close, embeddings, similarities

SETTINGS = [losses.PairMargin(1.0), losses.PairMargin(1.7)]


def in_loops(loss, positives, negatives, alignment):
    return oracles.pair_margin(positives, negatives, loss.margin)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@each_way
def test_it_is_the_papers_formula_in_plain_loops(loss, compared):
    compared(loss, in_loops)


@pytest.mark.parametrize("loss", [losses.PairMargin(1.2)], ids=repr)
def test_labels_make_positives_of_every_picture_of_the_class(loss):
    with_labels(loss, in_loops)


def test_forces_are_the_closed_forms():
    positives, negatives = similarities(40, 1, 25)
    pull, push = anatomy.forces(losses.PairMargin(1.4), positives, negatives)
    distance = (2 - 2 * negatives).sqrt()
    close(pull, torch.full_like(pull, 2.0))
    close(push, 2 * (1.4 - distance).clamp(min=0) / distance / 25)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_gradients_agree_with_finite_differences(loss):
    views = [z.requires_grad_() for z in embeddings(4, 3)]
    assert torch.autograd.gradcheck(loss, views, eps=1e-6, atol=1e-6)
