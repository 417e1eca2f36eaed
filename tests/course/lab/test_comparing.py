"""Runs compared: distinguished by what they differ in, in the panel's words, and never too many."""

import os
import re

import pytest

from clutils import training, views
from clutils.course import lab as lesson
from clutils.course.lab.runs import free_name
from clutils.training import saved
from tests.course.drawn import exported
from tests.course.lab.test_panel import LONG, made
from tests.runs import advance, small

pytestmark = pytest.mark.usefixtures("undrawn", "not_laid_out")


def test_runs_of_the_session_and_saved_ones_are_compared_and_a_damaged_one_is_named(tmp_path):
    lab = made(steps=3, folder=tmp_path).start()
    lab.wait(LONG)
    lab.menus["seed"].value = 1
    lab.start().wait(LONG)
    lab.keep("second")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    compared = lesson.compare_runs(lab, tmp_path)
    names = [run.name for run in lab.runs]
    assert list(compared.runs) == [*reversed(names), "second"] and compared.chosen == tuple(reversed(names))
    assert "broken can" in compared.notes.value and "no checkpoint.pt" in compared.notes.value
    assert compared.table.value.count("<tr") == 3  # a heading and a row a run
    assert "Curves of 2 runs" in compared.curves.value and "Maps of" in compared.maps.value
    assert "<td>–</td>" in compared.table.value  # nothing was turned
    compared.choose("second")
    assert "Curves of 1 run against" in compared.curves.value
    lab.menus["seed"].value = 2
    lab.start().wait(LONG)
    compared.refresh_button.click()
    assert len(compared.runs) == 4 and compared.chosen == ("second",)
    with pytest.raises(ValueError, match="no run 'third'"):
        compared.choose("third")


def test_runs_are_told_apart_by_what_they_differ_in_in_the_panel_s_words(tmp_path):
    lab = made(steps=2, folder=tmp_path)
    for size, augmentation in ((32, views.AUTO), (32, "none"), (64, views.AUTO)):
        lab.menus["batch_size"].value, lab.menus["augmentation"].value = size, augmentation
        lab.start().wait(LONG)
    compared = lesson.compare_runs(lab, tmp_path)
    compared.choose(*compared.runs)
    table = compared.table.value
    for words in ("batch size", "augmentation", views.AUTO, "none", ">64<"):
        assert words in table
    compared.choose(next(iter(compared.runs)))
    assert "batch size" not in compared.table.value


def test_a_run_that_was_stopped_says_of_how_many_steps():
    runs = [lasting(small(steps=steps), "a") for steps in (4000, 2)]
    compared = lesson.compare_runs(runs)
    compared.choose(*compared.runs)
    assert ">2 of 4,000</td>" in compared.table.value and "<td>2</td>" in compared.table.value


def lasting(run: training.Run, name: str) -> saved.SavedRun:
    advance(run, 2)
    return saved.SavedRun(name, None, run.configuration, run.history)


def test_the_newest_runs_stand_first_and_what_is_picked_is_in_view(tmp_path):
    run = advance(small(), 1)
    for age, name in enumerate(("old", "young")):
        training.save_run(run, tmp_path / name)
        for path in (tmp_path / name).iterdir():
            os.utime(path, (1e9 + age, 1e9 + age))
    here = [lasting(small(), f"run {k}") for k in range(12)]
    compared = lesson.compare_runs(here, tmp_path)
    newest = [f"run {k}" for k in reversed(range(12))]
    assert list(compared.runs) == [*newest, "young", "old"] == list(compared.pick.options)
    assert compared.chosen == ("run 11", "run 10") and compared.pick.rows == 8
    assert "run 10 ends" in compared.curves.value.split("run 11 ends")[0]  # drawn as they were made
    compared.choose("old")
    assert compared.pick.rows == 14
    here.append(lasting(small(), "old"))
    compared.refresh()
    assert compared.chosen == ("old",) and next(iter(compared.runs)) == "old (2)" and compared.pick.rows == 15


def test_nothing_that_is_long_makes_the_table_wider_than_a_page():
    run = advance(small(), 1)
    long = run.configuration | {"data": "folder:" + "/very_long" * 20, "encoder": "net" * 100}
    runs = [
        saved.SavedRun(name, None, config, run.history)
        for name, config in (
            ("r" * 80, long),
            ("b", run.configuration | {"data": "digits", "encoder": "mlp"}),
        )
    ]
    compared = lesson.compare_runs(runs)
    assert "overflow-wrap: anywhere" in compared.table.value and "net" * 41 not in compared.table.value


def test_where_no_kernel_runs_a_comparison_is_its_table_curves_and_maps(tmp_path):
    """nbconvert, as any front end without the widget's state, falls back on the HTML beside the widget."""
    lab = made(steps=2, folder=tmp_path).start()
    lab.wait(LONG)
    lab.keep("first")
    compared = lesson.compare_runs(folder=tmp_path)
    page = exported(compared)
    cells = re.findall("<td>.*</td>", compared.table.value)
    assert len(cells) == 11 and all(cell in page for cell in cells)
    assert 'alt="Curves of 1 run' in page and 'alt="Maps of' in page
    compared.choose()
    assert "<td" not in exported(compared) and "Curves of" not in exported(compared)
    none = lesson.compare_runs(folder=tmp_path / "nowhere")
    assert "There is no run yet" in exported(none) and none.curves.value == ""


def test_more_runs_than_can_be_told_apart_are_refused_in_a_line():
    runs = [saved.SavedRun(f"r{k}", None) for k in range(8)]
    compared = lesson.compare_runs(runs)
    compared.choose(*compared.runs)
    assert "8 runs are picked" in compared.error.value


def test_a_name_that_is_taken_counts_on_to_one_that_is_not(tmp_path):
    assert free_name(tmp_path / "nowhere", "run-1") == "run-1"
    for name in ("run-1", "run-2", "a-b", "run-9"):
        (tmp_path / name).write_text("taken")
    assert free_name(tmp_path, "run-1") == "run-3"
    assert free_name(tmp_path, "run-9") == "run-10"
    assert free_name(tmp_path, "a-b") == "a-b-2"
