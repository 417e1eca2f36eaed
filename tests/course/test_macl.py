"""Notebook 04: figures show what the loss and the paper's tables say; its exercises take other ways."""

import math

import numpy as np
import pytest
import torch

from clutils import anatomy, figures, losses
from clutils.course import forces, toys
from clutils.course import macl as lesson
from clutils.course.macl import figures as macl
from clutils.course.sphere import figures as circles
from tests.course.answers import Mistake, judged
from tests.course.drawn import line


def test_w_is_lowest_where_the_weighed_negatives_meet_the_positive():
    positives, negatives = toys.one_hard_negative()
    at, lowest = forces.turning_point(0.5, forces.few_hard(0.9, -0.9), 201)
    above, below = macl.turn(positives, negatives, at).axes
    t, mean = line(above, "mean negative, weighed: Σ p̂ⱼ s⁻ⱼ")
    assert math.exp(np.interp(-0.5, -mean, np.log(t))) == pytest.approx(at, rel=0.01)
    grid, W = line(below, "W")
    assert grid[W.argmin()] == pytest.approx(at, rel=0.05) and W.min() == pytest.approx(lowest, abs=1e-3)
    assert "meets the positive, 0.5, at 0.275" in figures.alt(above)


def test_the_temperature_is_eq_7_where_it_may_be_and_its_floor_where_not():
    loss = losses.MACL(0.05, alpha=2.0, alignment_threshold=0.8)
    ax = macl.against_alignment([losses.MACL(0.1, alpha=0.5), loss])
    A, ratio = line(ax, "α = 0.5, A₀ = 0")
    np.testing.assert_allclose(ratio, 1 + 0.5 * A, atol=1e-9)
    A, ratio = line(ax, "α = 2, A₀ = 0.8")
    np.testing.assert_allclose(ratio, np.maximum(1 + 2 * (A - 0.8), 0.1), atol=1e-9)
    assert "to 1.5; α = 2" in figures.alt(ax), "said to be floored where it is not"
    assert "floored for 67% of all A" in figures.alt(ax)
    assert loss.calls == 0, "drawing is not training"


ANGLES = {"positive": [30], "negative": [90, -120], "false negative": [-40]}


def test_each_arrow_points_away_from_the_anchor_and_is_as_long_as_its_push():
    ax = macl.penalties(losses.NTXent(0.5), ANGLES, "now")
    at = np.deg2rad([90, -120, -40])
    push = np.exp(np.cos(at) / 0.5)  # but for a factor
    (arrows,) = [c for c in ax.collections if hasattr(c, "U")]
    U, V = np.asarray(arrows.U), np.asarray(arrows.V)
    np.testing.assert_allclose(np.hypot(U, V), macl.REACH * push / push.max(), rtol=1e-6)
    moved = np.arctan2(np.sin(at) + 1e-3 * U, np.cos(at) + 1e-3 * V)  # angle from the anchor, at the top
    assert (np.abs(moved) > np.abs(at)).all()
    share = push[2] / push.sum()
    assert f"{share:.0%} of the push on false ones" in figures.alt(ax)
    assert any(f"{share:.0%} of the push" in text.get_text() for text in ax.texts)


def test_the_tables_are_the_papers_and_agree_where_they_repeat_each_other():
    for row in macl.TABLE_8.values():
        assert len(row) == 4
    assert {row[macl.FIXED[name]] for name, row in macl.TABLE_8.items()} == {78.14}, "one run, three times"
    assert macl.TABLE_8["alpha"][0.0] == macl.TABLE_7["MACL, α = 0"][0]
    assert macl.TABLE_8["alignment_threshold"][0.2] == macl.TABLE_7["MACL"][0]
    gains = {
        (True, False): (0.9, 1.9),
        (False, True): (1.0, 2.2),
        (True, True): (1.2, 2.5),
    }  # as printed there
    for case, gain in gains.items():
        found = np.subtract(macl.TABLE_6[case], macl.TABLE_6[False, False])
        np.testing.assert_allclose(found, gain, atol=1e-9)
    assert all(len(values) == len(macl.BATCHES) for both in macl.TABLE_B3.values() for values in both)


def test_table_8_is_drawn_value_by_value():
    figure = macl.table_8()
    for ax, (name, row) in zip(figure.axes, macl.TABLE_8.items(), strict=True):
        assert ax.lines[0].get_ydata() == pytest.approx(list(row.values()))
        assert [t.get_text() for t in ax.get_xticklabels()] == [f"{v:g}" for v in row]
        assert macl.LABELS[name] in ax.get_xlabel()
    assert figure.axes[0].get_title("left") == "spread 16.42"


@pytest.mark.parametrize("column", [0, 1])
def test_table_b3_has_a_line_for_each_loss(column):
    ax = macl.table_b3(column)
    assert len(ax.lines) == 5
    assert line(ax, "dual temperature")[1].tolist() == list(macl.TABLE_B3["DualTemperature"][column])
    assert len({(artist.get_linestyle(), artist.get_marker()) for artist in ax.lines}) == 5, "without colour"


def test_reruns_are_the_rows_with_one_gradient_and_the_lead_is_over_the_best_other():
    table = macl.reruns()
    assert len(table) == 12
    assert table["apart"][0] == pytest.approx(0.06)
    row = table.query("measure == 'kNN, k = 200' and batch == 128").iloc[0]
    assert row["apart"] == pytest.approx(84.64 - 84.47)
    assert row["lead"] == pytest.approx(84.85 - 84.69)
    assert row["dual"] == pytest.approx(84.69 - (84.47 + 84.64) / 2, abs=1e-3)


@pytest.mark.parametrize("measure", macl.MEASURES)
def test_the_lead_is_drawn_over_the_gap_of_the_reruns(measure):
    ax = macl.lead(measure)
    rows = macl.reruns().query("measure == @measure")
    assert [bar.get_height() for bar in ax.patches] == pytest.approx(rows["apart"].tolist())
    assert line(ax, "MACL's lead over the best of the others")[1].tolist() == pytest.approx(
        rows["lead"].tolist()
    )
    assert f"up to {rows['apart'].max():.2f} apart" in figures.alt(ax)


def test_macls_name_leaves_out_what_is_not_set():
    assert circles.name_of(losses.MACL(0.2)) == "MACL, τ = 0.2, α = 0.5, A₀ = 0"


# ---- the exercises ------------------------------------------------------------------------------------


def contrast(s, n, t):
    return torch.logsumexp(n / t, dim=1) - s[:, 0] / t


def with_gradient_of(slope):
    """MACL's value, with the gradient of slope(s, n, t)."""

    def answer(s, n, t):
        value, x = losses.MACL(t, alpha=0.0).per_anchor(s, n).detach(), slope(s, n, t)
        return value + x - x.detach()

    return answer


def by_cases(s, n, t):
    """MACL's value without a gradient, and its c, by gaps to the positive."""
    gaps = torch.nn.functional.pad((n - s) / t, (1, 0))  # the positive's is 0
    value, c = torch.logsumexp(gaps, dim=1), torch.logsumexp(gaps[:, 1:], dim=1)
    return torch.where(c < -15, torch.ones_like(c), value / torch.sigmoid(c)).detach(), c


def by_gaps(s, n, t):
    value, c = by_cases(s, n, t)
    return value - c.detach() + c


def pseudocode_with(weight):
    """MACL as algorithm 1 has it, with another weight of P."""

    def answer(s, n, t):
        P = torch.softmax(torch.cat([s, n], dim=1) / t, dim=1)[:, 0]
        return -weight(P).detach() * torch.log(P)

    return answer


ANSWERS = {
    "counter_example": [
        (0.8, [0.95] + 19 * [-1.0]),
        [torch.tensor(0.7), torch.tensor([0.85] + 19 * [-1.0])],
        (0.85, 14 * [-1.0] + [1.0]),
    ],
    "adaptive_temperature": [
        lambda s, t, a, a0, low: torch.clamp(t + t * a * (s.detach().mean() - a0), min=low),
        lambda s, t, a, a0, low: losses.MACL(t, a, a0, low).temperature_at(s.mean()),
        lambda s, t, a, a0, low: torch.maximum((t * (1 + a * (s.mean() - a0))).detach(), torch.tensor(low)),
    ],
    "macl_loss": [
        lambda s, n, t: losses.MACL(t, alpha=0.0).per_anchor(s, n),
        by_gaps,
        with_gradient_of(lambda s, n, t: torch.logsumexp((n - s) / t, dim=1)),
        with_gradient_of(lambda s, n, t: losses.Decoupled(t).per_anchor(s, n)),
    ],
}
MISTAKES = {  # beside those that the exercises know by name
    "counter_example": [
        (0.8, [0.95] * 20),
        (0.8, [0.95] + 5 * [-1.0]),
        (0.8, [1.5] + 19 * [-1.0]),
        (0.8, [0.8] + 19 * [-1.0]),
        (0.8, [0.81] + 19 * [-1.0]),
        (0.8, [0.95] * 10 + 10 * [-1.0]),
        (0.8, [0.95] + 19 * [float("nan")]),
        (0.8,),
        0.8,
    ],
    "adaptive_temperature": [
        lambda s, t, a, a0, low: (t * (1 + a * (s[:, 0] - a0))).detach().clamp(min=low),
        Mistake(
            lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0))).clamp(min=0.1 * t),
            "a floor of its own",
        ),
        Mistake(
            lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0).abs())).clamp(min=low),
            ": τ_a differs",
        ),
        lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0))).clamp(max=low),
        lambda s, t, a, a0, low: (t * (1 + a * (s.detach().median() - a0))).clamp(min=low),
        lambda s, t, a, a0, low: (t * (1 + a * (s.detach().mean() - a0))).clamp(min=t / 10 + low),
        lambda s, t, a, a0, low: (t * (1 + a * s.detach().mean() - a0)).clamp(min=low),
        lambda s, t, a, a0, low: t * (1 + (a * (s.detach().mean() - a0)).clamp(min=low)),
        lambda s, t, a, a0, low: (t * (1 + a * (s.detach().abs().mean() - a0))).clamp(min=low),
        lambda s, t, a, a0, low: t * (1 + a * (s.mean() - a0)),
        lambda s, t, a, a0, low: float((t * (1 + a * (s.mean() - a0))).clamp(min=low)),
        lambda s, t, a, a0, low: (t * (1 + a * (s.mean() - a0.__float__()))).clamp(min=low),
    ],
    "macl_loss": [
        Mistake(lambda s, n, t: by_cases(s, n, t)[0], "right: value."),
        Mistake(lambda s, n, t: (s - n).sum(), "your result has shape (), expected shape (1,)"),
        Mistake(pseudocode_with(lambda P: 1 / (1 - P + 1e-8)), "a small number in the weight"),
        Mistake(pseudocode_with(lambda P: 1 / (1 - P)), "infinity times nothing"),
        lambda s, n, t: losses.MACL(2 * t, alpha=0.0).per_anchor(s, n),
        with_gradient_of(lambda s, n, t: -s[:, 0] / t - n.mean(dim=1) / t),
        with_gradient_of(lambda s, n, t: -s[:, 0] / t + n.mean(dim=1) / t),
        with_gradient_of(lambda s, n, t: -s[:, 0] / t),
        with_gradient_of(lambda s, n, t: -contrast(s, n, t)),
        with_gradient_of(lambda s, n, t: t * contrast(s, n, t)),
        with_gradient_of(lambda s, n, t: torch.logsumexp(n / (2 * t), dim=1) - s[:, 0] / t),
        with_gradient_of(lambda s, n, t: contrast(s.detach(), n, t)),
        lambda s, n, t: losses.MACL(t, alpha=0.0).per_anchor(s, n) + 1,
        lambda s, n, t: losses.MACL(t, alpha=0.5).per_anchor(s, n),
        lambda s, n, t: losses.NTXent(t).per_anchor(s, n) / anatomy.gradient_scale(s, n, t).detach(),
    ],
}


test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
