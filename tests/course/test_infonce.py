"""Notebook 01: its exercises take the package's own functions and other right ways, and no wrong one."""

import math

import pytest
import torch

from clutils import anatomy, losses, similarities
from clutils.course import infonce as lesson
from tests.course.answers import judged


def by_loop(z1, z2, temperature):
    z, total = [v / v.norm() for v in (*z1, *z2)], 0.0
    for i, anchor in enumerate(z):
        weights = [math.exp(anchor @ other / temperature) for k, other in enumerate(z) if k != i]
        total -= math.log(math.exp(anchor @ z[(i + len(z1)) % len(z)] / temperature) / sum(weights))
    return total / len(z)


def by_the_package(positives, negatives, margin):
    return anatomy.forces(losses.Triplet(margin, batch_hard=True), positives, negatives)[1]


@pytest.mark.parametrize("batch", [2, 5, 16])
def test_an_anchor_of_the_package_has_as_many_negatives_as_the_exercise_says(batch):
    pairs = similarities.two_views(*torch.eye(2 * batch).chunk(2))
    assert pairs.negatives.shape == (2 * batch, lesson.negatives_of_an_anchor.answer(batch, 2))
    labels = torch.arange(batch)
    three = similarities.two_views(
        *torch.randn(2, 3 * batch, 4), labels=labels.repeat(3)
    )  # six views of each
    assert int(three.negative_mask[0].sum()) == lesson.negatives_of_an_anchor.answer(batch, 6)


# ---- the exercises ------------------------------------------------------------------------------------

ANSWERS = {
    "nt_xent": [by_loop],
    "mined_push": [by_the_package],
    "negatives_of_an_anchor": [lambda b, v: b * v - v],
}
MISTAKES = {
    "mined_push": [
        lambda s, n, m: by_the_package(s, n, 0.0),
        lambda s, n, m: by_the_package(s, n, 2 * m),
    ],
}


test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)


# ---- the bound ---------------------------------------------------------------------------------------------


def test_the_best_similarity_tells_what_there_is_and_never_more_than_log_k():
    for K in (1, 63, 1023):
        found = [lesson.told(information, K) for information in (0.5, 5.0, 12.0)]
        assert found == sorted(found) and found[-1] <= math.log(K + 1)
    # few nats, many negatives: all of it, since the anchors share exactly so much
    assert lesson.told(1.0, 4095) == pytest.approx(1.0, abs=0.01)
    assert lesson.told(12.0, 63) == pytest.approx(math.log(64), abs=0.05)


def test_the_panel_of_the_bound_says_its_ceiling():
    panel = lesson.explore_bound()
    assert "no more than log 64 = 4.16 nats" in panel.readout.value
    panel.set(K=1023)
    assert "log 1,024 = 6.93" in panel.readout.value
    assert panel.live.figure.axes[0].get_lines()[-1].get_ydata()[0] == pytest.approx(math.log(1024))
