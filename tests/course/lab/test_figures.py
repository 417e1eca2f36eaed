"""The lab's figure shows what a run did, keeps its background, and says it in words; runs side by side."""

import math

import numpy as np
import pandas as pd
import pytest

from clutils import figures
from clutils.course.lab.figures import MOST_MARKS, LabFigure, compared_curves, compared_maps
from clutils.course.live import LiveFigure
from clutils.training.saved import Map, SavedRun, table_of

LABELS = np.arange(30) % 3
NAMES = ("dots", "rings", "plain")


def row(step: int, **values: float) -> dict[str, float]:
    usual = {"loss": 5 - step / 100, "chance": 5.5, "alignment": 0.9, "uniformity": -2.0, "temperature": 0.2}
    return {"step": step, **usual, **values}


ROWS = [row(step) for step in range(1, 51)]
LOOKED = [
    {"step": 0, "knn": 0.2, "effective_rank": 30.0},
    {"step": 40, "knn": 0.7, "effective_rank": 45.5},
]


def filled(**settings) -> LabFigure:
    settings = {"labels": LABELS, "class_names": NAMES, "ceiling": 128, **settings}
    return LabFigure(100, 5.5, baselines={"untrained": 0.2, "raw pixels": 0.17}, **settings)


def at(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(30, 2))


def test_every_chart_holds_its_column():
    picture = filled()
    picture.update(ROWS, LOOKED, at(0))
    for name in ("loss", "chance", "alignment", "uniformity", "temperature"):
        line = getattr(picture, name)
        assert list(line.get_xdata()) == list(range(1, 51)) and list(line.get_ydata()) == [
            r[name] for r in ROWS
        ]
    assert list(picture.rank.get_ydata()) == [30.0, 45.5] and list(picture.knn.get_ydata()) == [0.2, 0.7]
    assert picture.chance.get_linestyle() == "--" and picture.loss.get_linestyle() == "-"
    shown = np.concatenate([marks.get_offsets() for marks in picture.points.marks])
    assert shown.shape == (30, 2) and np.isfinite(shown).all()
    text = " ".join(t.get_text() for ax in picture.figure.axes for t in (ax.title, ax._left_title))
    assert "effective rank (≤ 128)" in text


def test_everything_shown_lies_inside_its_axes_however_far_it_went():
    picture = filled()
    wild = [
        row(1, loss=40.0, alignment=3.9, uniformity=-7.0, temperature=12.0),
        row(2, loss=-3.0, temperature=0.001),
    ]
    looked = [
        {"step": 1, "knn": 0.0, "effective_rank": 127.0},
        {"step": 2, "knn": 1.0, "effective_rank": 0.0},
    ]
    picture.update(wild, looked)
    for line in (
        picture.loss,
        picture.alignment,
        picture.uniformity,
        picture.temperature,
        picture.rank,
        picture.knn,
    ):
        low, high = line.axes.get_ylim()
        assert low <= min(line.get_ydata()) and max(line.get_ydata()) <= high
    assert picture.knn.axes.get_ylim() == (0, 1)


def test_macl_s_own_temperature_is_the_one_that_is_drawn():
    picture = filled()
    picture.update([row(1, effective_temperature=0.13), row(2, effective_temperature=0.14)])
    assert list(picture.temperature.get_ydata()) == [0.13, 0.14]
    assert "the temperature is now 0.14" in figures.alt(picture.figure)


def test_a_loss_without_temperature_or_chance_says_so():
    picture = filled()
    rows = [{k: v for k, v in row(s, chance=math.nan).items() if k != "temperature"} for s in (1, 2)]
    picture.update(rows)
    assert picture.without.get_text() == "this loss has none"
    assert "chance" not in figures.alt(picture.figure) and "temperature" not in figures.alt(picture.figure)
    picture.update(ROWS)
    assert picture.without.get_text() == ""


def test_the_title_names_chance_only_where_the_method_has_one():
    assert filled().charts[0].get_title("left") == "loss (dashed: chance)"
    for without in (None, math.nan):
        assert LabFigure(100, without).charts[0].get_title("left") == "loss"


def test_alignment_and_uniformity_have_their_names_at_their_last_values():
    picture = filled()
    assert [text.get_text() for text in picture.names] == ["", ""]
    picture.update([*ROWS, row(51, alignment=0.3, uniformity=-3.5)])
    assert [(text.get_text().strip(), text.get_position()[1]) for text in picture.names] == [
        ("alignment", 0.3),
        ("uniformity", -3.5),
    ]


@pytest.mark.parametrize("values", [(0.2, 0.17), (0.94, 0.98)])
def test_the_lines_to_compare_knn_with_have_names_that_do_not_cover_each_other(values):
    baselines = dict(zip(("untrained", "raw pixels"), values, strict=True))
    picture = LabFigure(100, 5.5, baselines=baselines)
    picture.figure.canvas.draw()
    first, second = (text.get_window_extent() for text in picture.charts[3].texts)
    assert first.y0 >= second.y1 or second.y0 >= first.y1
    frame = picture.charts[3].get_window_extent()
    assert all(frame.y0 <= box.y0 and box.y1 <= frame.y1 for box in (first, second))


def test_a_change_is_said_in_words():
    picture = filled()
    changes = [(10, "stop_gradient", False), (20, "stop_gradient", True), (30, "alignment_threshold", 0.2)]
    picture.update(ROWS, LOOKED, None, [*changes, (40, "off_diagonal", 0.01)])
    assert marks(picture) == [
        (10, "no stop gradient"),
        (20, "stop gradient"),
        (30, "A₀ 0.2"),
        (40, "off diagonal 0.01"),
    ]
    said = figures.alt(picture.figure)
    assert "no stop gradient at step 10" in said and "alignment threshold to 0.2 at step 30" in said


def test_data_without_labels_has_no_knn_and_says_so():
    picture = filled(measures_knn=False, labels=np.full(30, -1))
    picture.update(ROWS, [{"step": 0, "knn": math.nan, "effective_rank": 3.0}], at(0))
    assert any("no labels" in text.get_text() for text in picture.knn.axes.texts)
    assert "kNN accuracy from" not in figures.alt(picture.figure)


def marks(picture: LabFigure) -> list[tuple[float, str]]:
    return [
        (text.get_position()[0], text.get_text().strip()) for _, text in picture._marks if text.get_visible()
    ]


def test_a_changed_setting_is_a_line_in_every_chart_with_its_new_value():
    picture = filled()
    picture.update(ROWS, LOOKED, None, [(10, "temperature", 0.5), (30, "learning_rate", 0.001)])
    assert marks(picture) == [(10, "τ 0.5"), (30, "rate 0.001")]
    for ax in picture.charts:
        here = [line for line in ax.lines if line.get_visible() and list(line.get_xdata()) == [10, 10]]
        assert len(here) == 1
    assert "temperature to 0.5 at step 10" in figures.alt(picture.figure)
    picture.update(ROWS, LOOKED, None, [])
    assert marks(picture) == []


@pytest.mark.parametrize("loss", [4.5, 60.0])
def test_the_words_at_a_mark_are_of_a_size_to_read_and_not_on_the_line_of_chance(loss):
    picture = filled()
    rows = [*ROWS, row(51, loss=loss)]
    picture.update(rows, LOOKED, None, [(1, "temperature", 0.5), (30, "stop_gradient", False)])
    picture.figure.canvas.draw()
    ax = picture.charts[0]
    chance, frame = ax.transData.transform((0, 5.5))[1], ax.get_window_extent()
    texts = [text for _, text in picture._marks if text.get_visible()]
    assert len(texts) == 2
    for text in texts:
        box = text.get_window_extent()
        assert text.get_fontsize() >= 8 and not box.y0 <= chance <= box.y1
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and frame.y0 <= box.y0 and box.y1 <= frame.y1


def test_a_slider_on_its_way_is_one_mark_and_only_the_newest_are_shown():
    picture = filled()
    picture.update(
        ROWS, (), None, [(10, "temperature", 0.3), (11, "temperature", 0.4), (12, "temperature", 0.5)]
    )
    assert marks(picture) == [(12, "τ 0.5")]
    picture.update(ROWS, (), None, [(10, "temperature", 0.3), (11, "alpha", 0.4), (12, "temperature", 0.5)])
    assert len(marks(picture)) == 3
    many = [(5 * k, "alpha", k / 10) for k in range(20)]
    picture.update(ROWS, (), None, many)
    assert [step for step, _ in marks(picture)] == [step for step, _, _ in many[-MOST_MARKS:]]


def test_what_stands_still_is_not_drawn_again_while_the_run_goes_on():
    picture = filled()
    picture.update((), [LOOKED[0] | {"effective_rank": 45.0}], at(0))  # so that its axis is high enough
    live = LiveFigure(picture.figure, scale=1.0)
    live.draw()
    for k in range(1, 6):
        changes = [(8, "temperature", 0.5)] if k > 2 else []
        picture.update(ROWS[: 10 * k], LOOKED[: 1 + k // 4], at(k), changes)
        before = live.image.value
        live.draw()
        assert live.image.value != before
    assert live.backgrounds == 1


def test_the_sentence_follows_the_run():
    picture = filled()
    assert "fill while a run trains" in figures.alt(picture.figure)
    picture.update(ROWS, LOOKED, at(0))
    said = figures.alt(picture.figure)
    for part in (
        "loss goes from 4.99 to 4.50 (chance is 5.50)",
        "effective rank from 30.0 to 45.5",
        "0.20 to 0.70",
    ):
        assert part in said


def ticks(axis) -> list[str]:
    """The words at an axis, those that lie on it."""
    low, high = sorted(axis.get_view_interval())
    labels = [t.label1.get_text() for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
    labels += [t.label1.get_text() for t in axis.get_minor_ticks() if low <= t.get_loc() <= high]
    return [label for label in labels if label]


def test_thousands_of_steps_are_written_as_in_the_line_above_the_charts():
    many = [row(step, loss=4.0) for step in (1, 4000)]
    picture = LabFigure(4000, 5.5)
    picture.update(many, (), None, [(1500, "temperature", 0.5)])
    compared = compared_curves([saved("a", many)])
    for figure in (picture.figure, compared):
        figure.canvas.draw()
    for ax in (*picture.charts, *compared.axes):
        thousands = [words for words in ticks(ax.xaxis) if len(words) > 3]
        assert thousands and all("," in words for words in thousands)
    assert "4,000 steps" in figures.alt(picture.figure) and "at step 1,500" in figures.alt(picture.figure)
    mapped = compared_maps([saved("a", many, seen=Map(at(0), LABELS, NAMES, 4000))])
    assert "a\nstep 4,000" in mapped.axes[0]._left_title.get_text()
    assert "at step 4,000" in figures.alt(mapped)


# ---- side by side ------------------------------------------------------------------------------------------


def saved(name: str, rows=ROWS, looked=LOOKED, seen: Map | None = None) -> SavedRun:
    return SavedRun(name, None, {}, pd.DataFrame(rows), table_of(looked), seen)


def test_each_run_is_a_curve_in_each_chart_told_apart_without_colour():
    runs = [
        saved("first"),
        saved("second", [row(s, effective_temperature=0.3) for s in range(1, 9)]),
        saved("cli", looked=()),
    ]
    figure = compared_curves(runs)
    loss, uniformity, knn, temperature = figure.axes
    assert [len(line.get_xdata()) for line in loss.lines] == [50, 8, 50]
    assert [len(line.get_xdata()) for line in knn.lines] == [2, 2, 0]
    assert list(temperature.lines[1].get_ydata()) == [0.3] * 8
    for ax in (loss, uniformity, temperature):
        assert len({str(line.get_linestyle()) + str(line._dash_pattern) for line in ax.lines}) == 3
        assert len({line.get_color() for line in ax.lines}) == 3
    said = figures.alt(figure)
    assert "first ends at loss 4.50, uniformity -2.00, kNN accuracy 0.70, temperature 0.2" in said
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "second", "cli"]


def test_runs_without_any_accuracy_or_temperature_leave_a_word_in_the_chart():
    rows = [{k: v for k, v in r.items() if k != "temperature"} for r in ROWS]
    figure = compared_curves([saved("a", rows, ())])
    words = [text.get_text() for ax in figure.axes for text in ax.texts]
    assert set(words) == {
        "not measured in these runs",
        "these losses have none",
    }
    with pytest.raises(ValueError, match="no run with a step"):
        compared_curves([])


def test_a_long_name_without_a_space_has_its_beginning_in_the_legend():
    figure = compared_curves([saved("a_folder_of_" + "x" * 60)])
    (text,) = figure.legends[0].get_texts()
    assert text.get_text().startswith("a_folder_of_xxx") and len(text.get_text()) == 44


@pytest.mark.parametrize("temperature", [0.03, 0.07, 0.2, 0.5, 3.0])
def test_the_axis_of_a_single_temperature_has_plain_numbers_to_read_it_by(temperature):
    figure = compared_curves([saved("a", [row(step, temperature=temperature) for step in range(1, 9)])])
    figure.canvas.draw()
    axis = figure.axes[3].yaxis
    assert len(ticks(axis)) >= 4 and all(words == f"{float(words):g}" for words in ticks(axis))
    low, high = axis.get_view_interval()
    assert low < temperature < high


def test_maps_stand_side_by_side_under_their_names_and_none_is_an_error():
    seen = Map(at(0), LABELS, NAMES, 40)
    figure = compared_maps([saved("a", seen=seen), saved("no map"), saved("b", seen=seen)])
    assert [ax._left_title.get_text() for ax in figure.axes] == [
        "a\nstep 40, kNN 0.70",
        "b\nstep 40, kNN 0.70",
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["dots", "rings", "plain"]
    assert "a at step 40; b at step 40" in figures.alt(figure)
    for wrong in ([saved("no map")], [saved(str(k), seen=seen) for k in range(5)]):
        with pytest.raises(ValueError, match="runs have a map; one to four fit in a row"):
            compared_maps(wrong)


def test_maps_use_the_width_that_curves_have():
    seen = Map(at(0), LABELS, NAMES, 40)
    for number in (2, 3, 4):
        figure = compared_maps([saved(str(k), seen=seen) for k in range(number)])
        figure.canvas.draw()
        boxes = [ax.get_window_extent() for ax in figure.axes]
        assert figure.get_figwidth() == compared_curves([saved("a")]).get_figwidth()
        assert sum(box.width for box in boxes) > 0.85 * figure.bbox.width


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_no_title_of_a_map_is_cut(number):
    seen = Map(at(0), np.arange(30) % 10, tuple("class of images " + str(k) for k in range(10)), 40)
    figure = compared_maps(
        [saved(f"{k}: simclr, NTXent, scenes-hard, seed {k}", seen=seen) for k in range(number)]
    )
    figure.canvas.draw()
    for ax in figure.axes:
        box = ax._left_title.get_window_extent()
        assert box.y1 <= figure.bbox.y1 and box.x1 <= figure.bbox.x1 + 1
        assert "seed" in ax._left_title.get_text() and "…" not in ax._left_title.get_text()
        assert ax.get_window_extent().y0 >= figure.legends[0].get_window_extent().y1
