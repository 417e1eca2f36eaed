"""Notebook 05: its figures, measures and exercises show what a plain loop computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clutils import anatomy, figures, losses
from clutils.course import forces, toys
from clutils.course import hard_negatives as lesson
from clutils.course.hard_negatives import figures as hard
from clutils.losses.sscl import FixedMixes
from clutils.similarities import Pairs

COUNTS = (0, 4, 16)


def line(ax, label):
    (found,) = [x for x in ax.lines if str(x.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def some_negatives(count=20, seed=0):
    draw = torch.Generator().manual_seed(seed)
    return toys.random_similarities(1, 1, count, draw)[1][0]


# ---- the panel -------------------------------------------------------------------------------------------


def test_the_panel_of_sscl_has_sliders_for_its_mixes_and_shows_what_they_do():
    panel = forces.explore(losses.SSCL(0.5, 0.0, 0.0, 32, 8), positive=0.5)
    panel.set(synthetic=256, hardest=16)
    positives, negatives = forces.one_anchor(0.5, 255, "gaussian", similarity=0.0, deviation=0.25)
    loss = FixedMixes(0.5, 0.0, 0.0, 16, 256)
    pull, push = anatomy.forces(loss, positives[None], negatives[None])
    lands = float((push * negatives).sum() / push.sum())
    said = panel.readout.value.replace("−", "-")
    assert f"SSCL: loss {float(loss.per_anchor(positives[None], negatives[None])):.3g}" in said
    assert f"pull {float(pull):.3g}, its push lands on similarity {lands:.2f}" in said
    hardest = float(loss.mixes(Pairs(positives[None], negatives[None])).max())
    assert (
        f"hardest mix lies at {hardest:.2f}, the hardest real negative at {float(negatives.max()):.2f}"
        in said
    )
    panel.set(synthetic=0)
    assert "mix" not in panel.readout.value.rpartition("SSCL: loss")[2]
    panel.set(synthetic=8, hardest=510, count=4)
    assert "(s = 4, k = 8)" in panel.readout.value, "no more parents than there are negatives"
    assert panel.error.value == ""


def test_the_panel_makes_mixes_of_real_tables_too():
    positives, negatives = toys.random_similarities(5, 1, 12, torch.Generator().manual_seed(4))
    panel = forces.explore(losses.SSCL(0.5, 0.1, 1.0, 32, 8), losses.HardNegative(), (positives, negatives))
    assert "(s = 12, k = 8)" in panel.readout.value
    before = panel.live.image.value
    panel.set(synthetic=512)
    assert panel.live.image.value != before


# ---- figures ---------------------------------------------------------------------------------------------


def test_the_pull_under_a_prior_is_the_closed_form_and_the_cross_stands_where_the_clamp_sets_in():
    negatives, prior, t = some_negatives(), 0.2, 0.5
    ax = hard.pull_under_priors(negatives, t, priors=(0.0, prior))
    total, N = sum(math.exp(float(n) / t) for n in negatives), len(negatives)
    onset = []
    for label, p in (("τ⁺ = 0 ", 0.0), ("τ⁺ = 0.2", prior)):
        s, pull = line(ax, label)
        for at, drawn in zip(s, pull, strict=True):
            positive = math.exp(at / t)
            estimate = (total - N * p * positive) / (1 - p)
            if estimate <= N * math.exp(-1 / t):
                assert math.isnan(drawn)
                onset.append(at)
            else:
                assert drawn == pytest.approx(total / ((1 - p) * t * (positive + estimate)), rel=1e-9)
    (cross,) = [x for x in ax.lines if x.get_marker() == "x" and len(x.get_xdata()) == 1]
    assert cross.get_xdata()[0] == pytest.approx(min(onset), abs=0.006)
    assert line(ax, "1/τ")[1].tolist() == [2.0, 2.0]
    assert f"clamped from {min(onset):.2f}" in figures.alt(ax)


def test_the_part_of_each_negative_is_the_bracket_of_two_softmaxes():
    negatives = some_negatives(7)
    ax = hard.push_under_betas(negatives, 0.5, betas=(0.0, 2.0))
    s = sorted(negatives.tolist())
    for beta in (0.0, 2.0):
        harder, weights = ([math.exp(b * x / 0.5) for x in s] for b in (1 + beta, beta))
        expected = [
            7 * ((1 + beta) * h / sum(harder) - beta * w / sum(weights))
            for h, w in zip(harder, weights, strict=True)
        ]
        x, part = line(ax, f"β = {beta:g}")
        assert x.tolist() == s
        np.testing.assert_allclose(part, expected, rtol=1e-9)
    assert "draw a negative in" in figures.alt(ax)


def test_the_share_of_harder_mixes_is_counted():
    parent = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    ax = hard.harder_than_parents(
        {"one": (parent, parent + torch.tensor([0.1, 0, 0, 0])), "none": (parent, parent)}
    )
    assert line(ax, "one: 25.0% harder")[1].tolist() == pytest.approx([0.2, 0.2, 0.3, 0.4])
    assert "none 0.0%" in figures.alt(ax)


def test_on_the_circle_mixes_lie_on_chords_and_the_marks_are_their_parts_of_the_push():
    angle = torch.tensor([0.3, -0.5, 0.9, 2.0, -2.4, 3.0], dtype=torch.float64)
    negatives = torch.stack([angle.sin(), angle.cos()], dim=1)
    anchor = torch.tensor([0.0, 1.0]).double()
    figure = hard.on_the_circle(anchor, negatives, hardest=3, synthetic=5, temperature=0.5)
    _, middle, right = figure.axes
    mixes = np.asarray(middle.collections[-1].get_offsets())
    assert mixes.shape == (5, 2)
    hardest = negatives[:3].numpy()
    for mix in mixes:
        pairs = [(u, v) for k, u in enumerate(hardest) for v in hardest[k:]]
        assert (
            min(np.linalg.norm(mix - u) + np.linalg.norm(mix - v) - np.linalg.norm(u - v) for u, v in pairs)
            < 1e-9
        )
    everyone = np.concatenate([negatives.numpy(), mixes])
    push = [math.exp(2 * y / 0.5) * 2 for y in everyone[:, 1]]
    weights = [math.exp(y / 0.5) for y in everyone[:, 1]]
    bracket = [p / sum(push) * 2 - w / sum(weights) for p, w in zip(push, weights, strict=True)]
    pushed = [b for b in bracket if b > 0]
    areas = np.concatenate([c.get_sizes() for c in right.collections[1:3]])
    np.testing.assert_allclose(areas, np.clip([500 * b / sum(pushed) for b in pushed], 1, None), rtol=1e-9)
    assert len(right.collections[3].get_offsets()) == sum(b < 0 for b in bracket) > 0
    with pytest.raises(ValueError, match=r"\(3,\)"):
        hard.on_the_circle(torch.zeros(3), negatives)


def test_a_measure_against_the_number_of_mixes_is_drawn_as_it_came():
    ax = hard.with_more_mixes(COUNTS, {"alone": [0.1, 0.2, 0.3], "both": [0.4, 0.5, 0.6]}, 4, "share")
    assert line(ax, "both")[0].tolist() == list(COUNTS)
    assert line(ax, "both")[1].tolist() == [0.4, 0.5, 0.6]
    assert line(ax, "k = s = 4")[0].tolist() == [4, 4]
    assert "alone from 0.1 at k = 0 to 0.3 at 16" in figures.alt(ax)


def test_the_ablation_has_our_measure_beside_the_papers_row():
    measured = dict(zip(hard.TABLE_4, (0.1, 0.2, 0.3, 0.4, 0.5), strict=True))
    figure = hard.ablation(measured, "push")
    left, right = ([bar.get_width() for bar in ax.patches] for ax in figure.axes)
    assert left == pytest.approx([10, 20, 30, 40, 50])
    assert right == [52.02, 51.88, 53.24, 58.71, 60.01]
    assert "synthesis: 20.0% and 51.88" in figures.alt(figure)
    with pytest.raises(ValueError, match="rows are SSCL"):
        hard.ablation({"SSCL": 1.0}, "push")


def test_the_papers_table_is_drawn_with_its_best_one_filled():
    figure = hard.reported(hard.TABLE_3, "the paper's numbers")
    for column, ax in enumerate(figure.axes):
        dots = [(x.get_xdata()[0], x.get_markerfacecolor()) for x in ax.lines]
        assert [value for value, _ in dots] == [row[column] for row in hard.TABLE_3.values()]
        best = max(value for value, _ in dots)
        assert [face != "white" for _, face in dots] == [value == best for value, _ in dots]
    assert "CIFAR-100: best SSCL with 60.01" in figures.alt(figure)


def test_the_tables_agree_where_the_paper_has_the_same_run_twice_and_with_its_text():
    assert hard.TABLE_4["SimCLR"] == hard.TABLE_3["SimCLR"] and hard.TABLE_4["SSCL"] == hard.TABLE_3["SSCL"]
    lead = hard.TABLE_3["SSCL"][1] - hard.TABLE_3["HCL"][1]
    assert lead == pytest.approx(1.3), "the text says 1.3 points on CIFAR-100"


# ---- exercises -------------------------------------------------------------------------------------------


def test_silent_from_is_where_the_losss_own_push_ends():
    negatives = 0.2 * some_negatives(30)[None] - 0.7
    s = float(lesson.silent_from.answer(negatives, 0.5, 0.2))
    assert -1 < s < 1
    for positive, silent in ((s - 1e-6, False), (s + 1e-6, True)):
        push = anatomy.forces(
            losses.Debiased(0.5, 0.2), torch.tensor([[positive]], dtype=torch.float64), negatives
        )[1]
        assert bool((push == 0).all()) is silent


def test_drawn_in_below_parts_the_losss_own_signs():
    negatives = some_negatives(60)[None]
    s = float(lesson.drawn_in_below.answer(negatives, 0.5, 1.0))
    push = anatomy.forces(losses.HardNegative(0.5, 0.0, 1.0), torch.zeros(1, 1).double(), negatives)[1]
    assert torch.equal(push < 0, negatives < s) and 0 < int((push < 0).sum()) < 60


def test_unit_mix_is_that_of_vectors():
    draw = torch.Generator().manual_seed(5)
    q, u, v = torch.nn.functional.normalize(torch.randn(3, 4, generator=draw, dtype=torch.float64), dim=1)
    mix = torch.nn.functional.normalize(0.3 * u + 0.7 * v, dim=0)
    assert lesson.unit_mix.answer(0.3, float(q @ u), float(q @ v), float(u @ v)) == pytest.approx(
        float(q @ mix)
    )
