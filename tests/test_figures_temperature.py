"""The figures and the panel of notebook 02 draw what a plain loop computes, and say it in words."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch

from clutils import anatomy, example, figures, losses, measures, sphere
from clutils.figures import temperature


def line(ax, label):
    (found,) = [x for x in ax.lines if str(x.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def test_the_effective_number_is_the_perplexity_of_the_shares():
    draw = torch.Generator().manual_seed(0)
    _, negatives = example.random_similarities(3, 1, 7, draw)
    for row, seen in zip(negatives, anatomy.effective_negatives(negatives, 0.3), strict=True):
        parts = [math.exp(float(s) / 0.3) for s in row]
        shares = [part / sum(parts) for part in parts]
        assert float(seen) == pytest.approx(math.exp(-sum(p * math.log(p) for p in shares)), rel=1e-12)
    assert anatomy.effective_negatives(negatives, 1e-3).tolist() == pytest.approx([1, 1, 1], abs=1e-6)
    assert anatomy.effective_negatives(negatives, 1e6).tolist() == pytest.approx([7, 7, 7], abs=1e-6)


def test_the_push_on_classmates_is_the_sum_of_their_pushes():
    z1, z2, labels = example.classes_on_the_circle(classes=3, pictures=2, width=0.5)
    share = anatomy.push_on_classmates(z1, z2, labels, 0.4)
    points = torch.cat([z1, z2]).tolist()
    for i, anchor in enumerate(points):
        own = total = 0.0
        for j, other in enumerate(points):
            if i % 6 != j % 6:
                part = math.exp(sum(a * b for a, b in zip(anchor, other, strict=True)) / 0.4)
                total += part
                own += part if labels[i % 6] == labels[j % 6] else 0
        assert float(share[i]) == pytest.approx(own / total, rel=1e-12)


def test_w_turns_between_the_mean_and_the_hardest_negative_and_nowhere_else():
    draw = torch.Generator().manual_seed(3)
    grid = torch.logspace(-5, 5, 801, dtype=torch.float64)
    found = []
    for _ in range(60):
        s, n = example.random_similarities(1, 1, int(torch.randint(1, 8, (1,), generator=draw)), draw)
        # Σ E_j / E+ by a plain sum, scaled so that nothing overflows: it goes where W goes
        gaps = (n - s).flatten()
        ratio = [float(max(gaps) / t + ((gaps - max(gaps)) / t).exp().sum().log()) for t in grid]
        steps = np.diff(ratio)
        found.append((bool(anatomy.turns(s, n)), bool((steps > 1e-12).any() and (steps < -1e-12).any())))
    assert {True, False} == {turned for turned, _ in found}
    assert all(said == seen for said, seen in found)


def test_classes_on_the_circle_lie_near_their_own_and_apart_from_others():
    z1, z2, labels = example.classes_on_the_circle()
    assert labels.bincount().tolist() == [4, 4, 4, 4]
    torch.testing.assert_close(z1.norm(dim=1), torch.ones(16, dtype=torch.float64))
    assert measures.tolerance(z1, labels) > 0.9 > measures.tolerance(z1, labels.flip(0) * 0)
    assert (z1 * z2).sum(dim=1).min() > 0.9
    assert not torch.equal(z1, example.classes_on_the_circle(seed=1)[0])


def test_the_brake_is_the_slope_of_the_loss():
    ax = temperature.brake({"three points": -2.5})
    c, loss = line(ax, "the loss")
    _, slope = line(ax, "its slope")
    np.testing.assert_allclose(loss, np.log1p(np.exp(c)), rtol=1e-12)
    np.testing.assert_allclose(np.gradient(loss, c)[1:-1], slope[1:-1], atol=1e-3)
    assert "three points at c = -2.5 has W = 0.076" in figures.alt(ax)


def test_the_cold_limit_lies_above_the_hinge_by_at_most_tau_log_2():
    ax = temperature.cold_limit((0.5, 0.05))
    gap, hinge = line(ax, "hinge")
    np.testing.assert_allclose(hinge, np.maximum(0, gap))
    for t in (0.5, 0.05):
        _, drawn = line(ax, f"NT-Xent, τ = {t:g}")
        np.testing.assert_allclose(drawn, t * np.log1p(np.exp(gap / t)), rtol=1e-12)
        assert (drawn - hinge).max() == pytest.approx(t * math.log(2), rel=1e-9)


def test_the_effective_number_drawn_is_the_mean_over_the_anchors():
    _, negatives = example.random_similarities(5, 1, 30, torch.Generator().manual_seed(1))
    ax = temperature.effective_negatives({"uniform": negatives}, marked=0.1)
    t, seen = line(ax, "uniform, K = 30")
    for k in (0, 20, -1):
        weights = torch.softmax(negatives / t[k], dim=1)
        expected = (-(weights * weights.clamp(min=1e-300).log()).sum(dim=1)).exp().mean()
        assert seen[k] == pytest.approx(float(expected), rel=1e-9)
    assert "of 30" in figures.alt(ax)


def test_w_is_lowest_where_the_weighed_negatives_meet_the_positive():
    positives, negatives = example.one_hard_negative()
    t, mean = line(temperature.weighed_negative(positives, negatives), "mean negative")
    at = math.exp(np.interp(-0.5, -mean, np.log(t)))
    ax = temperature.turn(positives, negatives, at=at)
    grid, W = line(ax, "W")
    assert grid[W.argmin()] == pytest.approx(at, rel=0.05)
    expected = [1 - 1 / (1 + math.exp(0.4 / x) + 200 * math.exp(-1.4 / x)) for x in grid]
    np.testing.assert_allclose(W, expected, rtol=1e-12)
    assert "201 negatives, lowest at temperature 0.275" in figures.alt(ax)


def test_the_circle_shows_each_point_in_its_class():
    z1, _, labels = example.classes_on_the_circle()
    ax = temperature.circle(z1, labels, path=z1[None].expand(3, -1, -1), title="start")
    drawn = [np.asarray(c.get_offsets()) for c in ax.collections]
    assert len(drawn) == 4
    for label, points in enumerate(drawn):
        np.testing.assert_allclose(points, z1[labels == label].numpy())
    assert len({c.get_paths()[0].vertices.tobytes() for c in ax.collections}) == 4, "told apart by marker"
    assert "16 points of 4 classes" in figures.alt(ax)


def test_results_are_drawn_run_by_run_with_their_mean():
    table = pd.DataFrame(
        {"temperature": [0.1, 0.1, 1.0, 1.0], "seed": [0, 1, 0, 1], "knn": [0.8, 0.9, 0.6, 0.7]}
    )
    ax = temperature.by_temperature(table, "knn", "kNN accuracy", live=table[:1])
    assert line(ax, "mean")[1].tolist() == pytest.approx([0.85, 0.65])
    assert line(ax, "seed 1")[1].tolist() == [0.9, 0.7]
    assert line(ax, "just now")[1].tolist() == [0.8]
    assert "0.85 at 0.1, 0.65 at 1" in figures.alt(ax)


def test_pulls_are_the_closed_forms():
    negatives = torch.tensor([[0.3, -0.5]], dtype=torch.float64)
    ax = temperature.pulls([losses.NTXent(0.2), losses.Decoupled(0.2)], negatives)
    s, pull = line(ax, "NTXent")
    others = math.exp(0.3 / 0.2) + math.exp(-0.5 / 0.2)
    np.testing.assert_allclose(pull, others / (others + np.exp(s / 0.2)) / 0.2, rtol=1e-9)
    np.testing.assert_allclose(line(ax, "Decoupled")[1], 5.0, rtol=1e-12)


def test_the_panel_moves_to_the_frame_and_says_its_numbers():
    from clutils import controls

    panel = controls.dilemma(temperatures=(0.1, 1.0), steps=12)
    z1, z2, labels = example.classes_on_the_circle()
    path = sphere.move(losses.NTXent(1.0), z1, z2, steps=12, learning_rate=0.1)
    first = panel.live.image.value
    panel.set(temperature=1.0, step=12)
    assert panel.live.image.value != first
    ring, plane, share = panel.live.figure.axes
    drawn = np.concatenate([c.get_offsets() for c in ring.collections])
    np.testing.assert_allclose(drawn, path.z1[12].numpy())
    here = plane.lines[-1]
    assert here.get_xdata()[0] == pytest.approx(measures.uniformity(path.z1[12]))
    assert here.get_ydata()[0] == pytest.approx(measures.tolerance(path.z1[12], labels))
    pushed = anatomy.push_on_classmates(path.z1[12], path.z2[12], labels, 1.0).mean()
    assert share.lines[-1].get_ydata()[0] == pytest.approx(float(pushed))
    assert f"tolerance {here.get_ydata()[0]:.2f}" in panel.readout.value
    assert f"{float(pushed):.0%} of the push falls on classmates, who are 20%" in panel.readout.value
    with pytest.raises(ValueError, match=r"value is 0\.3, but must be one of 0\.1, 1"):
        controls.dilemma(temperatures=(0.1, 1.0), value=0.3)
