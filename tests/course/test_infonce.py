"""Notebook 01: the package passes the notebook's exercises."""

from __future__ import annotations

import pytest
import torch

from clutils import losses, similarities
from clutils.course import infonce as lesson


def test_the_package_passes_the_exercise_on_nt_xent_and_the_decoupled_loss_does_not():
    assert lesson.nt_xent_row.check(lambda s, n, t: losses.NTXent(t).per_anchor(s, n))
    assert not lesson.nt_xent_row.check(lambda s, n, t: losses.Decoupled(t).per_anchor(s, n))


def test_the_package_passes_the_exercise_on_the_triplet_loss_and_its_batch_hard_form_does_not():
    assert lesson.triplet_row.check(lambda s, n, margin: losses.Triplet(margin).per_anchor(s, n))
    assert not lesson.triplet_row.check(lambda s, n, margin: losses.Triplet(margin, True).per_anchor(s, n))


@pytest.mark.parametrize("batch", [2, 5, 16])
def test_an_anchor_of_the_package_has_as_many_negatives_as_the_exercise_says(batch):
    pairs = similarities.two_views(*torch.eye(2 * batch).chunk(2))
    assert pairs.negatives.shape == (2 * batch, lesson.negatives_of_an_anchor.answer(batch))
