"""Notebook 08, second part: the limit of many negatives, anti-collapse terms, pairs on their own."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clutils import anatomy, figures, losses, measures
from clutils.course import one_idea as lesson
from clutils.course.one_idea import collapse
from clutils.losses.vicreg import moments
from tests.course.answers import Mistake, judged

# ---- the limit -------------------------------------------------------------------------------------------


def test_the_errors_are_those_of_the_loss_itself_on_negatives_drawn_from_the_circle():
    counts, t, s = (8, 128), 0.5, 0.8
    found = lesson.drawn_errors(s, t, counts, draws=4000)
    dice = np.random.default_rng(5)
    grid = np.cos(np.arange(4096) * 2 * np.pi / 4096)
    limit = math.log(np.exp(grid / t).mean()) - s / t
    for k, K in enumerate(counts):
        negatives = torch.from_numpy(np.cos(dice.uniform(0, 2 * np.pi, (40_000, K))))
        positives = torch.full((len(negatives), 1), s, dtype=torch.float64)
        off = losses.NTXent(t).per_anchor(positives, negatives) - math.log(K) - limit
        assert float(found.scatter[k]) == pytest.approx(float(off.std()), rel=0.05)
        assert float(found.mean[k]) == pytest.approx(float(off.mean()), abs=5 * float(off.std()) / 200)


def test_the_leading_terms_are_met_with_many_negatives_whatever_their_sign():
    for s, t in ((0.8, 0.5), (-0.2, 0.5), (0.5, 1.0)):
        found = lesson.drawn_errors(s, t, (1024,), draws=2000)
        assert float(found.scatter / found.scatter_due) == pytest.approx(1, abs=0.06)
        assert float(found.mean / found.mean_due) == pytest.approx(1, abs=0.15)
    assert float(lesson.drawn_errors(-0.2, 0.5, (1024,)).mean_due) < 0


def test_a_slope_is_the_power():
    counts = torch.tensor([1.0, 10, 100, 1000])
    assert lesson.slope(counts, -3 * counts**-0.5) == pytest.approx(-0.5)
    assert lesson.slope(counts, torch.tensor([9.0, 9, 1, 0.1])) == pytest.approx(-1), "of the larger half"


def test_the_decay_is_drawn_as_it_was_found_and_says_its_slopes():
    errors = lesson.drawn_errors(0.8, 0.5, (4, 16, 64, 256), draws=500)
    ax = lesson.decay(errors)
    drawn = {line.get_label(): line for line in ax.lines}
    (mean,) = [line for label, line in drawn.items() if label.startswith("mean over draws")]
    np.testing.assert_allclose(mean.get_ydata(), errors.mean.abs())
    assert f"slope {lesson.slope(errors.counts, errors.mean):.2f}".replace("-", "−") in figures.alt(ax)


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


# ---- apart without negatives -------------------------------------------------------------------------------


def test_the_shapes_have_the_moments_that_the_text_says():
    shapes = lesson.shapes(256)
    for name in ("four points", "ring"):
        C = torch.cov(shapes[name].T, correction=0)
        torch.testing.assert_close(C, torch.eye(2, dtype=torch.float64))
    assert len(torch.unique(shapes["four points"], dim=0)) == 4
    assert len(torch.unique(shapes["collapsed"], dim=0)) == 1
    assert torch.linalg.matrix_rank(shapes["rank one"] - shapes["rank one"].mean(dim=0)) == 1
    shaken = lesson.shapes(256, jitter=0.02)
    for name, points in shapes.items():
        assert float((shaken[name] - points).std()) == pytest.approx(0.02, rel=0.1)


def test_uniformity_is_the_measure_and_its_gradient_that_of_finite_differences():
    z = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for t in (0.5, 2.0):
        assert float(lesson.uniformity(z, t)) == pytest.approx(measures.uniformity(z, t), abs=1e-9)
    assert torch.autograd.gradcheck(lesson.uniformity, z.requires_grad_(), eps=1e-6, atol=1e-6)


def test_what_each_term_sees():
    seen = {
        term: {name: float(f(points)) for name, points in lesson.shapes(256).items()}
        for term, f in lesson.TERMS.items()
    }
    for name in ("four points", "ring"):
        assert abs(seen["VICReg's v"][name]) < 1e-9 and abs(seen["VICReg's c"][name]) < 1e-9
        assert seen["SIGReg"][name] > 5 * seen["SIGReg"]["Gaussian cloud"]
    assert seen["VICReg's c"]["rank one"] > 0.9 > 0.1 > seen["VICReg's v"]["rank one"]
    assert seen["VICReg's v"]["collapsed"] > 0.9 > 1e-9 > seen["VICReg's c"]["collapsed"]
    assert min(seen["uniformity"], key=seen["uniformity"].get) == "ring"
    assert min(seen["SIGReg"], key=seen["SIGReg"].get) == "Gaussian cloud"
    assert collapse.sigreg(lesson.shapes()["ring"]) == collapse.sigreg(lesson.shapes()["ring"])


@pytest.mark.parametrize("push", collapse.PUSHES)
def test_points_go_where_their_term_falls_and_exact_copies_stay_together(push):
    for name, points in lesson.shapes(32, jitter=0.02).items():
        before, after = (
            float(collapse.PUSHES[push](z)) for z in (points, lesson.descend(push, points, steps=15))
        )
        assert after <= before + 1e-9, name
    four = lesson.descend(push, lesson.shapes(32)["four points"], steps=15)
    assert len(torch.unique(four.round(decimals=9), dim=0)) == 4


def test_moves_are_drawn_before_and_after():
    starts = {"a": torch.zeros(3, 2), "b": torch.ones(3, 2)}
    ends = {(term, name): z + k for k, term in enumerate(("u", "w")) for name, z in starts.items()}
    figure = lesson.moves(starts, ends)
    axes = np.reshape(figure.axes, (2, 2))
    assert [ax.get_title(loc="left") for ax in axes[0]] == ["a", "b"]
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["u", "w"]
    for row, term in zip(axes, ("u", "w"), strict=True):
        for ax, name in zip(row, starts, strict=True):
            before, after = ax.lines
            np.testing.assert_array_equal(before.get_xydata(), starts[name])
            np.testing.assert_array_equal(after.get_xydata(), ends[term, name])
    assert "b under w 1.41" in figures.alt(figure)


# ---- pairs on their own ------------------------------------------------------------------------------------


def test_the_balance_is_that_of_the_loss_and_reaches_one_at_minus_log_k():
    ax = lesson.balance((15, 255))
    drawn = {line.get_label(): line for line in ax.lines}
    for K in (15, 255):
        x, y = drawn[f"K = {K}"].get_data()
        np.testing.assert_allclose(y, K * np.exp(x), rtol=1e-9)
        zeros = torch.zeros(1, K, dtype=torch.float64)
        pull, push = anatomy.forces(losses.SigLIP(0.3, float(x[40])), zeros[:, :1], zeros)
        assert float(push.sum() / pull) == pytest.approx(y[40])
    stars = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "*" and len(line.get_xdata())]
    assert stars == pytest.approx([-math.log(15), -math.log(255)])


# ---- exercises ---------------------------------------------------------------------------------------------


def test_negatives_needed_is_where_the_loss_itself_scatters_so():
    dice = torch.Generator().manual_seed(3)
    pool = 2 * torch.rand(50, generator=dice, dtype=torch.float64) - 1
    K = round(lesson.negatives_needed(pool, 0.4, 0.05))
    drawn = pool[torch.randint(50, (3000, K), generator=dice)]
    values = losses.NTXent(0.4).per_anchor(torch.zeros(3000, 1, dtype=torch.float64), drawn)
    assert float(values.std()) == pytest.approx(0.05, rel=0.06)


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
        lambda D: torch.randn(4096, D),
        lambda D: torch.zeros(2 * D, D),
        lambda D: torch.full((2 * D, D), math.nan),
        lambda D: axes(D) * (1 + 1j),
        lambda D: axes(D).bfloat16() @ (torch.eye(D) + 0.003).bfloat16(),  # half precision excuses nothing
        lambda D: torch.cat([torch.ones(1, D), -torch.ones(1, D)]) * 2,
        lambda D: axes(D)[:, :1],
        lambda D: axes(D).T,
        lambda D: axes(D)[: 2 * D - 1],
        lambda D: axes(D) / 2,
        lambda D: axes(2),
        lambda D: torch.cat([axes(D), 2 * axes(D)]),
        lambda D: axes(D) @ (torch.eye(D) + 0.3),
        sheared,
        Mistake(lambda D: "points", "a tensor is asked for, got 'points'"),
        Mistake(lambda D: None, "at most 2D"),  # what is asked, again
    ],
}

test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
