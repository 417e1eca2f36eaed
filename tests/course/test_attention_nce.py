"""Notebook 06: its figures draw what plain loops compute from the paper's equations, and its tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from clutils import figures, losses
from clutils.course.attention_nce import figures as att

S = torch.tensor([0.8, 0.1, 0.5], dtype=torch.float64)
N = torch.tensor([0.6, -0.5, 0.3, 0.0], dtype=torch.float64)


def softmax(values, scale):
    top = max(values)
    parts = [math.exp((v - top) / scale) for v in values]
    return [part / sum(parts) for part in parts]


def by_hand(positives, negatives, t, d_pos, d_neg):
    """α, β, the logits and the loss of one anchor, eq. 8, 10 and 14."""
    alpha = softmax(positives, d_pos)
    beta = [len(negatives) * share for share in softmax(negatives, d_neg)]
    logits = [sum(a * s for a, s in zip(alpha, positives, strict=True)) / t]
    logits += [b * s / t for b, s in zip(beta, negatives, strict=True)]
    return alpha, beta, logits, -math.log(softmax(logits, 1.0)[0])


def line(ax, label):
    (found,) = [x for x in ax.lines if str(x.get_label()).startswith(label)]
    return np.asarray(found.get_xdata(), float), np.asarray(found.get_ydata(), float)


def test_weights_are_the_two_softmaxes():
    alpha, beta, *_ = by_hand(S.tolist(), N.tolist(), 0.5, 0.4, 2.0)
    found = att.weights(losses.AttentionNCE(0.5, 0.4, 2.0), S, N)
    assert found[0].tolist() == pytest.approx(alpha, rel=1e-12)
    assert found[1].tolist() == pytest.approx(beta, rel=1e-12)


def test_the_attention_curves_are_m_alpha_and_beta_and_the_hard_ones_lie_in_the_grey_band():
    left, right = att.attention(S, N, d_pos=(0.1, 5.0), d_neg=(0.3, 5.0)).axes
    for d in (0.1, 5.0):
        x, y = line(left, f"d_pos = {d:g}")
        alpha, *_ = by_hand(sorted(S.tolist()), N.tolist(), 0.5, d, 1.0)
        assert x.tolist() == sorted(S.tolist())
        assert y == pytest.approx([3 * a for a in alpha])
    for d in (0.3, 5.0):
        x, y = line(right, f"d_neg = {d:g}")
        assert y == pytest.approx(by_hand(S.tolist(), sorted(N.tolist()), 0.5, 1.0, d)[1])
    for ax in (left, right):
        band = ax.patches[0].get_bbox()
        assert (band.x0, band.x1) == pytest.approx((0.1, 0.6))
    assert "3 positives and 4 negatives" in figures.alt(left)


def test_dots_above_the_line_are_counted_and_the_papers_side_is_below_it():
    attended, infonce = torch.tensor([3.0, 1.0, 2.0, 4.0]), torch.tensor([2.0, 2.0, 2.0, 1.0])
    ax = att.against_infonce(attended, infonce, "some")
    assert "above the line: 75%" in ax.get_title(loc="left")
    dots = ax.lines[1]
    assert list(dots.get_xdata()) == infonce.tolist() and list(dots.get_ydata()) == attended.tolist()
    grey = ax.collections[0].get_paths()[0]
    assert grey.contains_point((3.0, 2.0)) and not grey.contains_point((2.0, 3.0))
    assert "75% of 4 anchors" in figures.alt(ax)


def test_the_chain_shows_each_step_of_one_anchor():
    alpha, beta, logits, value = by_hand(S.tolist(), N.tolist(), 0.4, 0.7, 1.3)
    figure = att.chain(losses.AttentionNCE(0.4, 0.7, 1.3), S, N)
    expected = [[*S.tolist(), *N.tolist()], [*alpha, *beta], logits, softmax(logits, 1.0)]
    for ax, numbers in zip(figure.axes, expected, strict=True):
        assert [bar.get_width() for bar in ax.patches] == pytest.approx(numbers)
        assert [text.get_text().replace("−", "-") for text in ax.texts] == [f"{v:.2f}" for v in numbers]
        assert len(ax.get_yticklabels()) == len(numbers)
    assert f"{value:.3f}" in figure.axes[3].get_xlabel() and f"{value:.3f}" in figures.alt(figure)


def test_the_chain_quotes_an_anchor_with_too_many_pairs():
    with pytest.raises(ValueError, match=r"\(3,\).*\(8,\)"):
        att.chain(losses.AttentionNCE(), S, torch.zeros(8))


def test_a_grid_shows_its_numbers_leaves_out_what_is_not_known_and_names_the_marked():
    values = torch.tensor([[1.0, 10.0], [math.nan, 100.0]])
    ax = att.grid(values, (1.0, math.inf), (0.5, 2.0), "loss", {"C": (math.inf, 2.0)}, ".0f")
    shown = {tuple(map(round, text.get_position())): text.get_text() for text in ax.texts}
    assert shown == {(0, 0): "1", (1, 0): "10", (0, 1): "not in the text", (1, 1): "100\n(C)"}
    assert [t.get_text() for t in ax.get_yticklabels()] == ["1", "∞"]
    assert ax.images[0].get_clim() == pytest.approx((0.0, 2.0))
    assert "from 1 to 100" in figures.alt(ax)


def test_logits_and_pushes_of_single_negatives_are_the_closed_forms():
    s = torch.linspace(-0.8, 0.8, 9, dtype=torch.float64)
    left, right = att.raised(s, scales=(0.4,), temperature=0.5, positive=0.6).axes
    for label, d in (("InfoNCE", 1e12), ("d_neg = 0.4", 0.4)):
        _, beta, logits, _ = by_hand([0.6], s.tolist(), 0.5, 1.0, d)
        shares = softmax(logits, 1.0)[1:]
        assert line(left, label)[1] == pytest.approx(logits[1:], abs=1e-9)
        assert line(right, label)[1] == pytest.approx(
            [b * p / 0.5 for b, p in zip(beta, shares, strict=True)], rel=1e-9
        )
    flat, lifted = line(left, "InfoNCE")[1], line(left, "d_neg")[1]
    assert (lifted[:3] > flat[:3]).all() and (
        line(right, "d_neg")[1][:3] < line(right, "InfoNCE")[1][:3]
    ).all()


def test_the_loss_over_d_neg_is_the_mean_of_the_loops():
    draw = torch.Generator().manual_seed(0)
    positives, negatives = (
        torch.rand(4, 3, generator=draw).double(),
        torch.rand(4, 30, generator=draw).double(),
    )
    scales = torch.tensor([0.05, 0.5, 5.0])
    ax = att.narrow_range(positives, negatives, scales)
    expected = [
        sum(
            by_hand(s, n, 0.5, 1.0, d)[3] for s, n in zip(positives.tolist(), negatives.tolist(), strict=True)
        )
        / 4
        for d in scales.tolist()
    ]
    x, y = line(ax, "loss, mean")
    assert x == pytest.approx(scales.tolist()) and y == pytest.approx(expected, rel=1e-6)
    largest = [
        max(
            max(by_hand(s, n, 0.5, 1.0, d)[2][1:])
            for s, n in zip(positives.tolist(), negatives.tolist(), strict=True)
        )
        for d in scales.tolist()
    ]
    assert largest[0] > math.log(65504) > largest[1]  # so the line stands at the first
    assert line(ax, "left of it")[0][0] == pytest.approx(0.05)


def test_the_useful_range_is_where_the_loss_is_a_little_above_its_flat_limit():
    draw = torch.Generator().manual_seed(1)
    positives = torch.rand(5, 2, generator=draw).double()
    negatives = 0.2 * torch.randn(5, 60, generator=draw).double()
    ax = att.narrow_range(positives, negatives)
    flat = losses.NTXent(0.5).per_anchor(
        (torch.softmax(positives, dim=1) * positives).sum(1, keepdim=True), negatives
    )
    d, value = line(ax, "loss, mean")
    ratio = value / float(flat.mean())
    inside = d[(ratio > 1.001) & (ratio < 1.1)]
    band = ax.patches[0].get_bbox()
    assert (band.x0, band.x1) == pytest.approx((inside[0], inside[-1]))
    assert 0 < len(inside) < len(d)


def test_the_pulls_are_drawn_in_the_order_of_similarity():
    ax = att.pulls_of_classmates(S, {"a": 2 * S, "b": -S})
    x, y = line(ax, "a")
    assert x.tolist() == sorted(S.tolist()) and y == pytest.approx([0.2, 1.0, 1.6])
    assert "b from -0.10 to -0.80" in figures.alt(ax)


# ---- the paper's tables ----------------------------------------------------------------------------------


def test_the_gains_printed_in_table_1_are_its_differences_but_for_one():
    off = []
    for data, mine, theirs, gains in zip(
        att.DATA_SETS, att.TABLE_1["AttentionNCE"], att.TABLE_1["SimCLR"], att.TABLE_1_GAINS, strict=True
    ):
        for epochs, a, b, gain in zip((200, 400), mine, theirs, gains, strict=True):
            if abs(a - b - gain) > 0.051:
                off.append((data, epochs, round(a - b, 1), gain))
    assert off == [("STL-10", 400, 9.2, 7.2)]


def test_tables_agree_where_they_tell_the_same_run():
    for data, row in att.TABLE_3.items():
        assert row[3] == att.TABLE_1["AttentionNCE"][att.DATA_SETS.index(data)][1], (
            "M = 4 is the main setting"
        )
    gains = {
        d: [round(a - b, 1) for a, b in zip(late, early, strict=True)]
        for d, (early, late) in att.TABLE_4.items()
    }
    assert gains == {"CIFAR-10": [0.8, 0.6], "CIFAR-100": [8.7, 4.8], "Tiny-ImageNet": [6.2, 5.8]}
    for (data, found), gain in zip(att.FIGURE_5.items(), (0.9, 2.4), strict=True):
        column = att.DATA_SETS.index(data)
        assert found[att.SETTINGS[data]] == att.TABLE_1["AttentionNCE"][column][1]
        assert found[10.0, 10.0] == pytest.approx(att.TABLE_1["SimCLR"][column][1] + gain)


def test_table_1_is_drawn_row_by_row():
    figure = att.published_accuracies()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == list(att.TABLE_1)
    for column, ax in enumerate(figure.axes):
        hollow = {int(x.get_ydata()[0]): float(x.get_xdata()[0]) for x in ax.lines[1::3]}
        filled = {int(x.get_ydata()[0]): float(x.get_xdata()[0]) for x in ax.lines[2::3]}
        for row, name in enumerate(names):
            early, late = att.TABLE_1[name][column]
            assert hollow[row] == pytest.approx(early, nan_ok=True)
            assert filled[row] == pytest.approx(late, nan_ok=True)
    best = [max(row[k][1] for row in att.TABLE_1.values() if row[k][1] == row[k][1]) for k in range(4)]
    assert best == [late for _, late in att.TABLE_1["AttentionNCE"]], "the alt text says it is the highest"


def test_tables_3_and_4_and_what_is_known_of_figure_5_are_drawn():
    left, right = att.published_ablations().axes
    for data, row in att.TABLE_3.items():
        x, y = line(left, f"{data}, AttentionNCE")
        assert x.tolist() == [1, 2, 3, 4, 5, 6] and y.tolist() == list(row)
    heights = sorted(bar.get_height() for bar in right.patches)
    assert heights == sorted(values[1] for rows in att.TABLE_4.values() for values in rows)
    figure = att.published_scales()
    for ax, found in zip(figure.axes, att.FIGURE_5.values(), strict=True):
        texts = [text.get_text() for text in ax.texts]
        assert sorted(t for t in texts if t != "not in the text") == sorted(
            f"{v:.1f}" for v in found.values()
        )
