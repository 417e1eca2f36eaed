"""Notebook 08, second part: the limit of many negatives, anti-collapse terms, pairs on their own."""

from __future__ import annotations

import math

import torch

from benchmarks.long_tail import long_tailed
from clutils import data, figures
from clutils.course import one_idea as lesson
from clutils.losses.vicreg import moments
from tests.course.answers import Mistake, judged

# ---- the limit -------------------------------------------------------------------------------------------


def test_each_class_is_a_band_of_its_own_densest_where_its_images_lie():
    angle = torch.tensor([-60.0, 60, 0, 0, -30, 30]).double() + 100  # their mean lies in the middle
    z, labels = (
        torch.stack([angle.deg2rad().cos(), angle.deg2rad().sin()], dim=1),
        torch.tensor([0, 0, 1, 1, 2, 2]),
    )
    figure = lesson.by_class({"one": z}, labels, ["a", "b", "c"], [0, 2])
    ax = figure.axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "c"]
    for band, c, k in zip(ax.collections, (0, 2), (0, 1), strict=True):
        edge = band.get_paths()[0].vertices
        heights = {round(x): y + k for x, y in edge.tolist()}  # the upper edge comes last
        for degrees in (-60, -30, 0, 30, 60):
            assert (heights[degrees] > 0.8) == (degrees + 100 in angle[labels == c]), (c, degrees)
    assert "0.50 to 0.87 long" in figures.alt(figure)


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


# ---- a long tail -------------------------------------------------------------------------------------------


def test_a_long_tail_has_the_exponential_profile_in_an_order_of_its_own():
    whole = data.load("scenes", limit=1000, size=16)
    few = long_tailed(whole, 50, seed=3)
    counts = few.labels.bincount(minlength=10)
    expected = [max(1, round(100 * 50 ** (-place / 9))) for place in range(10)]
    assert counts.sort(descending=True).values.tolist() == expected and expected[-1] == 2
    for c in range(10):  # the first of each class, in their order
        own = (whole.labels == c).nonzero().flatten()[: counts[c]]
        assert torch.equal(few.images[few.labels == c], whole.images[own])
    assert torch.equal(few.images, long_tailed(whole, 50, seed=3).images)
    assert not torch.equal(counts, long_tailed(whole, 50, seed=4).labels.bincount(minlength=10))
