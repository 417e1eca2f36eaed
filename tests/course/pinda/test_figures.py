"""Figures of notebooks 09 and 10: what stands in the image is what the runs and records say."""

import numpy as np
import pandas as pd
import torch

from clutils import figures
from clutils.course.pinda import figures as pinda
from clutils.figures.training import curves
from tests.course.drawn import inside, line


def history(noise):
    return pd.DataFrame({"step": range(1, len(noise) + 1), "noise": noise})


# ---- the collapse --------------------------------------------------------------------------------------


def test_collapse_draws_every_seed_of_a_label_in_one_look_on_a_log_axis():
    seeds = [history([0.2, 0.1, 0.05]), history([0.2, 0.02, 0.002])]
    ax = pinda.collapse({"no penalty": seeds, "λ = 1": [history([0.2, 0.3, 0.4])]})
    assert ax.get_yscale() == "log"
    first, second, other = ax.lines
    assert [line.get_ydata().tolist() for line in (first, second)] == [s["noise"].tolist() for s in seeds]
    assert first.get_color() == second.get_color() != other.get_color()
    assert first.get_linewidth() < other.get_linewidth()
    assert [text.get_text() for text in ax.texts] == ["no penalty", "λ = 1"]
    assert "no penalty: from 0.2 to 0.05 and 0.002; λ = 1: from 0.2 to 0.4" in figures.alt(ax)


def test_collapse_labels_its_axis_over_a_few_numbers_and_over_ten_decades():
    for ends in ([0.2, 0.3, 0.4], [0.2, 1e-4, 1e-8]):
        ax = pinda.collapse({"run": [history(ends)], "other": [history([0.2, 0.5, 90.0])]})
        figures.png(ax)
        low, high = ax.get_ylim()
        assert sum(low <= tick <= high for tick in ax.get_yticks()) >= 3


# ---- what the maps find --------------------------------------------------------------------------------


MEASURED = pd.DataFrame(
    {
        "map": ["scale", "edge magnitude"],
        **{"object": [0.36, 0.8], "object_low": [0.3, 0.75], "object_high": [0.45, 0.83]},
        **{"outline": [0.55, 0.7], "outline_low": [0.5, 0.65], "outline_high": [0.6, 0.75]},
    }
)


def test_found_has_the_value_and_its_interval_in_both_panels_the_best_first():
    figure = pinda.found(MEASURED)
    table = MEASURED.iloc[::-1]
    for ax, what in zip(figure.axes, ("object", "outline"), strict=True):
        points = [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() in ("o", "D")]
        assert points == list(table[what])
        ends = [(low, high) for bar in ax.collections for (low, _), (high, _) in bar.get_segments()]
        np.testing.assert_allclose(ends, table[[f"{what}_low", f"{what}_high"]].to_numpy())
        texts = [text.get_text() for text in ax.texts]
        assert ("← more on the background" in texts) == (what == "object")
        assert [f"{value:.2f}" for value in table[what]] == [text for text in texts if text[0] == "0"]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == list(table["map"])
    assert "scale: object 0.36 (0.30 to 0.45), outline 0.55 (0.50 to 0.60)" in figures.alt(figure)


def test_found_keeps_long_names_and_many_rows_inside():
    many = pd.concat([MEASURED] * 8, ignore_index=True)
    many["map"] = [f"a learned scale after {k} steps, with a long name" for k in range(len(many))]
    assert inside(pinda.found(many))


def test_curves_are_the_numbers_given():
    lines = {"one": [1.0, 2.0, 3.0], "two": torch.zeros(3)}
    ax = curves([0.1, 1.0, 10.0], lines, "σ", "nats", log=True)
    x, y = line(ax, "one")
    assert x.tolist() == [0.1, 1.0, 10.0] and y.tolist() == [1.0, 2.0, 3.0]
    assert ax.get_xscale() == "log" and "one: from 1.00 to 3.00" in figures.alt(ax)


def test_a_long_label_is_folded_and_leaves_the_chart_its_room():
    name = "SimCLR's views, noise on the whole image, λ = 0.1, generator's rate × 0.2"
    ax = pinda.collapse({name: [history([0.2, 0.1])]})
    label = ax.texts[0].get_text()
    assert "\n" in label and "λ\xa0=\xa00.1" in label
    figures.png(ax)  # settles the layout
    assert ax.get_position().width > 0.4
