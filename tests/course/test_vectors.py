"""Notebook 16: exercises that see through wrong answers, panels, and the ways compared."""

import math
import runpy

import pandas as pd
import pytest
import torch

from clutils import data, training
from clutils.course import records
from clutils.course import vectors as lesson
from clutils.course.vectors import experiments, panels
from clutils.views.vectors import Corruption
from tests.course.answers import judged


def test_the_panel_counts_the_columns_that_drown():
    panel = lesson.one_sigma()
    x, _, columns = panels.raw("wine")
    panel.set(sigma=1)
    assert len(columns) == 13 and f"{int((x.std(dim=0) < 1).sum())} of 13 columns" in panel.readout.value
    assert panel.error.value == ""


def test_the_panel_judges_by_distance_to_the_other_rows():
    """As two loops: raw wines are told by proline alone and keep that, with scaled columns they lose it."""
    x, labels, _ = panels.raw("wine")
    right = 0
    for row in range(len(x)):
        others = sorted((o for o in range(len(x)) if o != row), key=lambda o: float((x[row] - x[o]).norm()))
        near = labels[others[:5]].tolist()
        right += max(sorted(set(near)), key=near.count) == labels[row]
    panel = lesson.one_sigma()
    raw, scaled = {}, {}
    for sigma in (0.01, 1.0, 10.0):
        panel.set(sigma=sigma)
        said = panel.readout.value.split("of a noisy one in ")[1]
        raw[sigma], scaled[sigma] = int(said.split("%")[0]), int(said.split("raw, in ")[1].split("%")[0])
    assert raw[0.01] == pytest.approx(100 * right / len(x), abs=1) and abs(raw[10.0] - raw[0.01]) <= 3
    assert scaled[0.01] > 95 > scaled[1.0] > 60 > scaled[10.0]


@pytest.mark.parametrize("view", ["corruption", "noise", "masking", "mixup"])
def test_the_panel_says_what_is_left_of_the_correlation(view):
    panel = lesson.kept_correlation()
    panel.set(view=view, c=0.6)
    before, after = (float(panel.readout.value.split(" in the ")[k].split()[-1]) for k in (0, 1))
    expected = {"corruption": 0.16, "noise": 0.16, "masking": 0.4, "mixup": 1.0}[view]
    assert before == pytest.approx(0.92, abs=0.01) and after == pytest.approx(expected * before, abs=0.12)


def test_each_way_makes_a_run_and_a_row(monkeypatch, capsys):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    monkeypatch.setattr(training, "FAST_STEPS", 2)
    for way, (_, _, strengths) in (lesson.WAYS | lesson.CONTROL).items():
        row = lesson.train_one(way, strengths[-1], "vectors:wine", seed=1)
        assert row["way"] == way and row["steps"] == 2 and 0 < row["test"] <= 1 and 0 < row["validation"] <= 1
    assert "views" not in capsys.readouterr().out  # a way's name says that its views are equal
    wine = data.load("vectors:wine")
    assert lesson.run_of("SCARF's corruption", 0.3, wine).augmentation == Corruption(0.3)
    assert lesson.run_of("PiNDA", 0.1, wine).method.start == 0.1
    assert lesson.run_of("with labels", 0.5, wine).method.uses_labels


def test_scarf_as_published_replaces_exactly_its_share_of_each_row_out_of_the_whole_table():
    table = torch.arange(1000.0).view(100, 10)
    view = experiments.Published(table, rate=0.66)
    x = -torch.ones(50, 10)
    first, seen = view.several_views(x, torch.Generator().manual_seed(0), 2)
    assert torch.equal(first, x) and ((seen != x).sum(dim=1) == 6).all()
    assert all(value % 10 == column for column in range(10) for value in seen[:, column] if value >= 0)
    assert len({int(value) // 10 for value in seen.flatten() if value >= 0}) > 50  # rows outside the batch


def test_the_made_table_tells_its_class_by_no_one_column_and_few_labels_are_as_many_of_each(monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    monkeypatch.setattr(training, "FAST_STEPS", 1)
    made = experiments.made_table(600, 0)
    assert made.vectors.shape == (600, 120) and made.vectors.std(dim=0).sub(1).abs().max() < 0.15
    monkeypatch.setattr(experiments, "both_parts", lambda name: (made, experiments.made_table(200, 1)))
    whole = experiments.made_table(1500, 0), experiments.made_table(600, 1)
    most = whole[1].labels.bincount().max().item() / 600
    assert most < 0.2 and 0.3 < experiments.by_one_column(*whole) < 0.4  # all kNN's columns: 0.96
    few = {
        name: experiments.with_few_labels(experiments.MADE, 0, name) for name in ("raw", "SCARF, as above")
    }
    rows = pd.DataFrame([row for own in few.values() for row in own])
    assert set(rows["labels"]) == {"all", "few"} and rows["test"].between(0, 1).all()
    assert set(rows.query("features == 'raw'")["judge"]) == {*experiments.JUDGES, experiments.SPREADING}
    assert len(rows) == 5 + 2 + 4  # raw columns, boosted trees on them, SCARF


def test_labels_spread_along_neighbours_and_not_by_the_other_labels():
    """Two arcs: ten labels of each do what all labels do, and hidden labels are not looked at."""
    turn = torch.linspace(0, 3.14, 300).repeat(2)
    y = torch.arange(600) // 300
    z = torch.stack([turn.cos() + y, (1 - 2 * y) * turn.sin() + y / 2], dim=1)
    few = torch.cat([torch.arange(0, 300, 30), torch.arange(300, 600, 30)])
    assert experiments.spread(z, y, few, z, y) > 0.97
    hidden = y.clone()
    hidden[1:30] = 1  # none of the few
    assert experiments.spread(z, hidden, few, z, y) == experiments.spread(z, y, few, z, y)


def test_what_is_chosen_by_is_apart_from_what_is_learned():
    wine = data.load("vectors:wine")
    learned, chosen_by = experiments.parts(wine, 0)
    both = torch.cat([learned.vectors, chosen_by.vectors])
    assert len(both) == len(wine) and len(both.unique(dim=0)) == len(wine.vectors.unique(dim=0))
    assert not torch.equal(learned.vectors, experiments.parts(wine, 1)[0].vectors)


def test_the_table_and_the_differences_are_of_paired_seeds():
    rows = pd.DataFrame(
        {"data": "d", "way": way, "seed": seed, "test": value}
        for way, values in {"raw": (0.5, 0.7), "PiNDA": (0.6, 0.9)}.items()
        for seed, value in enumerate(values)
    )
    assert lesson.table(rows).loc["raw", "d"] == "60.0 ± 14.1"
    gap = lesson.against(rows, "PiNDA", "raw", "d")
    mean, half = gap.mean, gap.half
    assert mean == pytest.approx(0.15) and half == pytest.approx(12.706 * 0.05, rel=1e-4)  # t of one freedom
    assert lesson.points(rows, "PiNDA", "raw") == "d +15.0 ± 63.5"


def test_ways_are_apart_by_students_interval():
    values = {  # of CLAE two standard errors and a half, of five seeds too few
        "untrained": (0.5,) * 5,
        "PiNDA": (0.6, 0.6, 0.6, 0.6, 0.61),
        "SimCL": (0.4, 0.4, 0.4, 0.4, 0.39),
        "CLAE": (0.49, 0.5, 0.51, 0.52, 0.53),
        "masking": (0.5,) * 5,
    }
    rows = pd.DataFrame(
        {"data": "d", "way": way, "seed": seed, "test": value}
        for way, found in values.items()
        for seed, value in enumerate(found)
    )
    verdicts = lesson.differences(rows, "untrained").set_index("way")["verdict"]
    assert verdicts.to_dict() == {
        "masking": "not apart",
        "SimCL": "below",
        "CLAE": "not apart",
        "PiNDA": "above",
    }
    assert "masking" not in set(lesson.differences(rows, "masking")["way"])


@pytest.mark.sweep  # seconds of training: a benchmark's numbers, made again
def test_a_recorded_row_comes_out_again():
    rows = records.read(experiments.RECORD)
    row = rows[(rows["way"] == "raw") & (rows["data"] == "vectors:wine")].iloc[0]
    again = lesson.nothing_learned("raw", row["data"], int(row["seed"]))
    assert again["test"] == pytest.approx(row["test"], abs=1e-4)
    best = lesson.recorded()
    assert (best.groupby(["data", "way"])["strength"].nunique() == 1).all()
    assert callable(runpy.run_path(str(records.ROOT / "benchmarks" / "vectors.py"))["main"])


ANSWERS = {
    "corrupt": [
        lambda x, chosen, rows: x + chosen * (torch.take_along_dim(x, rows, 0) - x),
    ],
    "strength_for": [
        lambda c: math.sqrt(c * (2 - c)) / (1 - c),
    ],
}

test_an_exercise_takes_other_ways = judged(lesson, ANSWERS)
