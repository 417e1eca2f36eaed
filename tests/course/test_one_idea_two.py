"""Notebook 08, second part: the limit of many negatives, anti-collapse terms, pairs on their own."""

from __future__ import annotations

import math

import numpy as np
import torch

from clutils import figures
from clutils.course import one_idea as lesson
from clutils.losses.vicreg import moments
from tests.course.answers import Mistake, judged

# ---- the limit -------------------------------------------------------------------------------------------


def test_each_class_is_drawn_on_its_own_ring():
    angle = torch.arange(12) * 2 * math.pi / 12
    z, labels = torch.stack([angle.cos(), angle.sin()], dim=1), torch.arange(12) % 3
    figure = lesson.by_class({"one": z}, labels, ["a", "b", "c"], [0, 2])
    first, second = figure.axes[0].lines
    assert [first.get_label(), second.get_label()] == ["a", "c"]
    for line, c in ((first, 0), (second, 2)):
        radius = np.hypot(line.get_xdata(), line.get_ydata())
        assert len(radius) == 4 and np.ptp(radius) < 1e-6
        turned = np.stack([line.get_xdata(), line.get_ydata()], axis=1) / radius[:, None]
        np.testing.assert_allclose(turned, z[labels == c], atol=1e-6)
    assert np.hypot(second.get_xdata()[0], second.get_ydata()[0]) > np.hypot(*first.get_xydata()[0]) + 0.1
    assert "0.00 to 0.00 long" in figures.alt(figure)


# ---- exercises ---------------------------------------------------------------------------------------------


def simplex(D):  # D + 1 points at equal distances: fewer are not possible
    corners = torch.eye(D + 1, dtype=torch.float64) - 1 / (D + 1)
    basis = torch.linalg.svd(corners)[0][:, :D]
    return basis * math.sqrt(D)


def far_and_often(D):  # repeated, and longer than it need be: v is silent beyond 1
    return 7 * torch.cat([torch.eye(D), -torch.eye(D)]).repeat(5, 1)


def axes(D):
    return D**0.5 * torch.cat([torch.eye(D), -torch.eye(D)])


def sheared(D):  # long vectors: hardly correlated, with a c of tens
    one = torch.eye(D, dtype=torch.float64)
    return 100 * axes(D).double() @ (one + 4e-4 * one.roll(1, dims=0))


def test_what_is_few_and_what_is_sheared_are_so_by_the_losss_own_moments():
    for answer in (simplex, far_and_often):
        v, c = moments(torch.cov(answer(5).double().T))
        assert float(v) < 1e-4 and float(c) < 1e-9
    assert float(moments(torch.cov(sheared(3).T))[1]) > 10


ANSWERS = {
    "few_points": [
        simplex,
        far_and_often,
        lambda D: (1000 * simplex(D)).float(),  # its covariance is 0 but for rounding
    ],
}
MISTAKES = {
    "few_points": [
        lambda D: torch.tensor([[1e5 * a] + [2.0 * b] * (D - 1) for a in (1, -1) for b in (1, -1)]),
        lambda D: axes(D) * (1 + 1j),
        lambda D: axes(D).bfloat16() @ (torch.eye(D) + 0.003).bfloat16(),  # half precision excuses nothing
        sheared,
        Mistake(lambda D: "points", "a tensor is asked for, got 'points'"),
        Mistake(lambda D: None, "at most 2D"),  # what is asked, again
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
