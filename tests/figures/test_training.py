"""Curves and tables of a training show the history and the batch, and say it in words."""

import numpy as np
import pytest
import torch

from clutils import figures
from clutils.figures import training as curves


def canvas(ax):
    return np.asarray(ax.images[0].get_array(), float)


ROWS = [
    {"step": k + 1, "loss": 5.0 - 0.1 * k, "alignment": 1.0 - 0.01 * k, "uniformity": -2.0 - 0.02 * k}
    for k in range(10)
]


def test_progress_shows_the_history_between_chance_and_floor():
    picture = curves.Progress(40, chance=5.2, floor=1.5, baselines={"raw": 0.3, "untrained": 0.31})
    figure = picture.update(ROWS, {0: 0.3, 10: 0.6}, "step 10 of 40")
    loss, shape, accuracy = figure.axes
    assert picture.loss.get_xydata().tolist() == [[r["step"], r["loss"]] for r in ROWS]
    assert picture.alignment.get_ydata()[-1] == ROWS[-1]["alignment"]
    assert picture.uniformity.get_ydata()[-1] == ROWS[-1]["uniformity"]
    assert picture.accuracy.get_xydata().tolist() == [[0, 0.3], [10, 0.6]]
    assert {line.get_ydata()[0] for line in loss.lines[1:]} == {5.2, 1.5}
    assert {line.get_ydata()[0] for line in accuracy.lines if line is not picture.accuracy} == {0.3, 0.31}
    heights = sorted(t.get_position()[1] for t in accuracy.texts)
    assert heights[1] - heights[0] > 0.08, "the names of two equal baselines are written over each other"
    assert all(ax.get_xlim() == (0, 40) for ax in (loss, shape, accuracy))
    text = figures.alt(figure)
    assert "the loss goes from 5.00 to 4.10 (chance is 5.20)" in text
    assert "kNN accuracy from 0.30 to 0.60, raw 0.30, untrained 0.31" in text


def test_progress_without_a_chance_level_is_as_high_as_the_loss():
    rows = [{"step": k, "loss": 4.1 - k, "alignment": 1.0, "uniformity": -1.0} for k in (1, 2, 3)]
    figure = curves.Progress(3, chance=None).update(rows, {})
    assert figure.axes[0].get_ylim() == pytest.approx((0, 1.1 * 3.1))
    assert "chance" not in figures.alt(figure)


def test_progress_of_nothing_is_empty():
    assert "fill while a run trains" in figures.alt(curves.Progress(5).update([], {}))


def test_similarities_in_the_table_and_their_spread_are_the_batchs_own():
    draw = torch.Generator().manual_seed(0)
    z1, z2 = torch.randn(2, 6, 5, generator=draw)
    rows = [v / v.norm() for v in (*z1, *z2)]
    ax = curves.similarity_table(z1, z2)
    expected = [[float(a @ b) for b in rows] for a in rows]
    np.fill_diagonal(itself := np.array(expected), np.nan)  # no loss uses it: it is left out
    np.testing.assert_allclose(canvas(ax), itself, atol=1e-6)
    outlined = {(int(p.get_x() + 0.5), int(p.get_y() + 0.5)) for p in ax.patches}
    assert outlined == {(i, (i + 6) % 12) for i in range(12)}
    negatives = [expected[i][j] for i in range(12) for j in range(12) if i % 6 != j % 6]
    assert f"negatives at {np.mean(negatives):.2f}" in figures.alt(ax)

    spread = curves.similarity_spread(z1, z2)
    outline = next(p for p in spread.patches if p.get_label() == "negatives")
    counts, _ = np.histogram(negatives, np.linspace(-1, 1, 81))
    np.testing.assert_allclose(outline.get_data().values, counts / len(negatives), atol=1e-6)


def test_accuracies_show_each_value_and_the_mean():
    ax = curves.accuracies({"raw": [0.8, 0.9], "trained": [0.95]}, "probe")
    assert "raw 0.850 (0.800 to 0.900); trained 0.950." in figures.alt(ax)
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "D"]
    assert means == pytest.approx([0.85, 0.95])
    with pytest.raises(ValueError, match="at least one value"):
        curves.accuracies({"raw": []})
