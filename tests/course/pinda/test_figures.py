"""Figures of notebooks 09 and 10: what stands in the image is what the runs and records say."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from clutils import figures
from clutils.course.pinda import figures as pinda
from clutils.figures.training import curves
from tests.course.drawn import inside, line


def history(noise):
    return pd.DataFrame({"step": range(1, len(noise) + 1), "noise": noise})


# ---- the derivation ------------------------------------------------------------------------------------


def test_the_auxiliary_curves_are_gaussians_with_variance_e_to_the_loss():
    losses = [0.0, 0.7, 3.0]
    ax = pinda.auxiliary(losses)
    for curve, loss in zip(ax.lines, losses, strict=True):
        alpha, density = curve.get_data()
        gaussian = stats.norm(0, math.sqrt(math.exp(loss)))
        np.testing.assert_allclose(density, gaussian.pdf(np.asarray(alpha)), rtol=1e-9)
        assert f"{gaussian.entropy():.2f} nats" in curve.get_label()
        assert f"γ = {math.exp(-loss):.3g}" in figures.alt(ax)


@pytest.mark.parametrize("losses", [[], [-0.1, 1.0], [math.inf], [math.nan]])
def test_a_loss_that_no_share_has_is_refused(losses):
    with pytest.raises(ValueError, match="auxiliary: losses are"):
        pinda.auxiliary(losses)


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


def test_along_marks_each_minimum_where_it_is():
    t = torch.linspace(-1, 1, 41)
    curves = {"at 0": t**2, "off 0": (t - 0.5) ** 2 + 1, "at an end": -t}
    ax = pinda.along(t, curves)
    assert ax.lines[0].get_xdata() == [0, 0]
    for curve, loss, where in zip(ax.lines[1:], curves.values(), (0, 0.5, 1), strict=True):
        np.testing.assert_allclose(curve.get_ydata(), loss.numpy(), rtol=1e-6)
        (marked,) = curve.get_markevery()
        assert curve.get_xdata()[marked] == pytest.approx(where, abs=1e-6)
        assert curve.get_label().endswith(f"lowest at {where:.2f}")
    assert "off 0: lowest at 0.50, 1, and 1.25 at 0" in figures.alt(ax)


@pytest.mark.parametrize("draw", [pinda.along, lambda x, lines: curves(x, lines, "x", "y")])
def test_a_curve_of_another_length_is_refused(draw):
    with pytest.raises(ValueError, match="same first dimension"):
        draw([0, 1, 2, 3], {"short": torch.zeros(3)})


# ---- what the maps find --------------------------------------------------------------------------------


MEASURED = pd.DataFrame(
    {
        "map": ["scale", "edge magnitude"],
        **{"object": [0.36, 0.8], "object_low": [0.3, 0.75], "object_high": [0.45, 0.83]},
        **{"outline": [0.55, 0.7], "outline_low": [0.5, 0.65], "outline_high": [0.6, 0.75]},
    }
)


def test_found_has_the_value_its_interval_and_its_inverse_in_both_panels():
    figure = pinda.found(MEASURED)
    for ax, what in zip(figure.axes, ("object", "outline"), strict=True):
        points = [line.get_xdata() for line in ax.lines if line.get_marker() == "o"]
        assert sorted(map(list, points)) == sorted([list(MEASURED[what]), list(1 - MEASURED[what])])
        (bars,) = ax.collections
        ends = [(low, high) for (low, _), (high, _) in bars.get_segments()]
        expected = MEASURED[[f"{what}_low", f"{what}_high"]].to_numpy()
        np.testing.assert_allclose(ends, expected)
        texts = [text.get_text() for text in ax.texts]
        assert ("← more on the background" in texts) == (what == "object")
    hollow = [line for line in figure.axes[0].lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_xdata()) for line in hollow] == [list(1 - MEASURED["object"])]
    assert [t.get_text() for t in figure.axes[0].get_yticklabels()] == list(MEASURED["map"])
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


# ---- what it costs -------------------------------------------------------------------------------------


def costs(encoders=("conv16",)):
    rows = [
        (encoder, contender, ratio, 0.9 * ratio, 1.2 * ratio)
        for encoder in encoders
        for contender, ratio in (("SimCLR", 1.0), ("CLAE", 2.1), ("PiNDA, conv", 1.4))
    ]
    return pd.DataFrame(rows, columns=["encoder", "contender", "ratio", "lowest_ratio", "highest_ratio"])


def test_cost_stands_beside_the_papers_table_5_as_ratios():
    ax = pinda.cost(costs())
    here = [bar.get_width() for bar in ax.patches if not bar.get_hatch()]
    paper = [bar.get_width() for bar in ax.patches if bar.get_hatch()]
    assert here == pytest.approx([2.1, 1.4])
    assert paper == pytest.approx([44 / 39, 50 / 39, 75 / 39])
    ranges = [segment[:, 0].tolist() for bars in ax.collections for segment in bars.get_segments()]
    assert np.ravel(ranges) == pytest.approx([1.89, 2.52, 1.26, 1.68])
    assert "CLAE 2.10, PiNDA, conv 1.40" in figures.alt(ax)
    assert "DNN3 1.13, ResNet-18 1.28, ResNet-50 1.92" in figures.alt(ax)


def test_cost_names_the_encoder_where_there_are_several():
    names = [t.get_text() for t in pinda.cost(costs(("conv16", "resnet18"))).get_yticklabels()]
    assert names[:4] == ["CLAE (conv16)", "PiNDA, conv (conv16)", "CLAE (resnet18)", "PiNDA, conv (resnet18)"]
    assert "resnet18" not in " ".join(t.get_text() for t in pinda.cost(costs()).get_yticklabels())


def test_each_of_them_draws_on_the_axes_it_is_given():
    t = torch.linspace(-1, 1, 5)
    figure, axes = figures.new(9, 9, 2, 2)
    calls = [
        lambda ax: pinda.auxiliary([1.0], ax=ax),
        lambda ax: pinda.collapse({"run": [history([0.2, 0.1])]}, ax=ax),
        lambda ax: pinda.along(t, {"one": t**2}, ax=ax),
        lambda ax: curves(t, {"one": t**2}, "x", "y", ax=ax),
    ]
    for ax, call in zip(axes.flat, calls, strict=True):
        assert call(ax) is ax
    assert inside(figure)


def test_a_long_label_is_folded_and_leaves_the_chart_its_room():
    name = "SimCLR's views, noise on the whole image, λ = 0.1, generator's rate × 0.2"
    t = torch.linspace(-1, 1, 5)
    named = [pinda.collapse({name: [history([0.2, 0.1])]}), pinda.along(t, {name: t**2})]
    labels = [(ax, ax.texts[0]) for ax in named]
    for ax, label in labels:
        assert "\n" in label.get_text() and "λ\xa0=\xa00.1" in label.get_text()
        figures.png(ax)  # settles the layout
        assert ax.get_position().width > 0.4


def test_turning_draws_each_seed_of_both_kinds_of_objects_in_the_panel_of_its_pictures():
    rows = [
        (p, s, t, 0.5 + 0.001 * t, 0.5 - 0.001 * t * (s + 1))
        for p in ("scenes", "scenes-hard")
        for s in (0, 1)
        for t in (0, 100, 200)
    ]
    columns = ["pictures", "seed", "step", "object_plain", "object_textured"]
    figure = pinda.turning(pd.DataFrame(rows, columns=columns))
    left, right = figure.axes
    assert [ax.get_title(loc="left") for ax in (left, right)] == ["scenes", "scenes-hard"]
    lines = [line.get_ydata().tolist() for line in right.lines[:4]]
    np.testing.assert_allclose(lines, [[0.5, 0.4, 0.3], [0.5, 0.3, 0.1], [0.5, 0.6, 0.7], [0.5, 0.6, 0.7]])
    assert right.lines[0].get_color() == right.lines[1].get_color() != right.lines[2].get_color()
    assert "scenes-hard, objects with a texture: 0.10 to 0.30 at the last step" in figures.alt(figure)
