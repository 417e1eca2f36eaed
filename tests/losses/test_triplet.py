"""The triplet loss: its loops, its forces, labels, and no table of all triples."""

from __future__ import annotations

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.beside_loops import each_way, with_labels
from tests.losses.inputs import close, embeddings, similarities

SETTINGS = [losses.Triplet(0.2), losses.Triplet(1.5), losses.Triplet(0.4, batch_hard=True)]


def in_loops(loss, positives, negatives, alignment):
    by = oracles.triplet_batch_hard if loss.batch_hard else oracles.triplet
    return by(positives, negatives, loss.margin)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
@each_way
def test_it_is_the_papers_formula_in_plain_loops(loss, compared):
    compared(loss, in_loops)


@pytest.mark.parametrize("loss", [losses.Triplet(0.5), losses.Triplet(0.5, True)], ids=repr)
def test_labels_make_positives_of_every_picture_of_the_class(loss):
    with_labels(loss, in_loops)


def test_forces_are_the_closed_forms():
    positives, negatives = similarities(40, 1, 25)
    pull, push = anatomy.forces(losses.Triplet(0.6), positives, negatives)
    active = (0.6 + 2 * negatives - 2 * positives > 0).double()
    close(push, 2 * active / 25)
    close(pull[:, 0], 2 * active.sum(dim=1) / 25)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_gradients_agree_with_finite_differences(loss):
    views = [z.requires_grad_() for z in embeddings(4, 3)]
    assert torch.autograd.gradcheck(loss, views, eps=1e-6, atol=1e-6)


def test_a_triplet_batch_with_labels_holds_no_table_of_all_triples():
    z1, z2 = embeddings(300, 16, dtype=torch.float32)
    labels = torch.arange(300) % 10
    z1.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profiled:
        losses.Triplet(0.3)(z1, z2, labels=labels).backward()
    largest = max(event.self_cpu_memory_usage for event in profiled.events())
    assert largest < 50 * (600 * 600 * 4), "more than some tables of all pairs"
