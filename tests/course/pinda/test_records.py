"""PiNDA's records: complete, with their seeds, and their shortest rows come out again."""

import argparse
import runpy

import pytest

from clutils import data
from clutils.course import records
from clutils.course.pinda import experiments, maps
from clutils.training import noise_maps

SCRIPT = runpy.run_path(str(records.ROOT / "benchmarks" / "pinda.py"))


@pytest.mark.sweep  # seconds of training: a benchmark's numbers, made again
def test_the_shortest_recorded_run_of_the_maps_comes_out_again():
    table = records.read("pinda_maps")
    rows = table[(table["steps"] == table["steps"].min()) & (table["pictures"] == "scenes")].set_index("map")
    row = rows.iloc[0]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    train, test = data.load("scenes", limit=4000), data.load("scenes", "test", limit=200)
    settings, others = SCRIPT["VARIANTS"][row["variant"]]
    run, watch, found = SCRIPT["learned_maps"](
        train, test, settings, steps=int(row["steps"]), seed=int(row["seed"]), **others
    )
    for column in ("network", "positive", "penalty", "skips", "start", "batch_size", "augmentation"):
        assert found[column] == row[column]
    assert found["noise"] == pytest.approx(row["noise"], abs=0.05)
    assert found["loss"] == pytest.approx(row["loss"], abs=0.3)
    again = experiments.measured(experiments.compared(run, test, watch.taken[0][0]), test)
    again = again.replace({"map": SCRIPT["ON_RECORD"]}).set_index("map")
    assert set(rows.index) == {*again.index, "told the masks: the ceiling"}
    for name in again.index:
        for column in ("object", "outline"):
            assert again.loc[name, column] == pytest.approx(rows.loc[name, column], abs=0.05), (name, column)
    assert rows.loc["told the masks: the ceiling", "object"] > 0.85


def test_the_long_runs_have_three_seeds_on_each_kind_of_pictures_and_every_step_once():
    table = records.read("pinda_along")
    full = table[(table["steps"] == 1600) & (table["variant"] == "base")]
    assert (full.groupby("pictures")["seed"].nunique() >= 3).all()
    assert set(full["pictures"]) == {"scenes", "scenes-hard"}
    assert (
        full.groupby(["pictures", "seed"])["step"].agg(list).map(lambda s: s == list(range(0, 1601, 100)))
    ).all()


def test_the_recorded_maps_are_those_of_a_long_run_on_generated_scenes():
    kept = noise_maps.load(records.FOLDER / "pinda_longer_maps.npz")
    scenes = data.load("scenes", limit=len(kept.pictures))
    assert (kept.pictures == scenes.images).all()
    assert kept.steps == list(range(0, 1601, 80))
    last = maps.measure({"scale": kept.scale[-1].mean(dim=1)}, scenes.masks)
    assert last["object"].item() < 0.2  # what notebook 10 says of it


@pytest.mark.sweep
def test_a_recorded_run_of_the_planted_set_comes_out_again(monkeypatch):
    kept, rows = records.read("pinda_planted").query("seed == 0 and noise == 'oracle'"), []
    monkeypatch.setattr(records, "keep", lambda name, row, record: rows.append(row))
    monkeypatch.setitem(SCRIPT["planted"].__globals__, "AMOUNTS", (0.25,))
    SCRIPT["planted"](argparse.Namespace(seeds=[0], variants=["oracle"], record=False))
    for row, before in zip(rows, kept[kept["amount"] == 0.25].to_dict("records"), strict=True):
        assert {key: row[key] for key in ("noise", "amount", "seed", "step")}.items() <= before.items()
        assert row["knn"] == pytest.approx(before["knn"], abs=0.05)


def test_the_planted_set_is_a_test_and_the_learned_noise_leaves_the_shortcut():
    end = records.read("pinda_planted").query("step == 120")
    assert (end.groupby(["noise", "amount"])["seed"].nunique() == 5).all()
    mean = end.groupby(["noise", "amount"])[["knn", "place"]].mean()
    for amount in (0.05, 0.1, 0.25):
        assert mean.loc["oracle", "knn"][amount] > mean.loc["none", "knn"][0.0] + 0.03
    assert mean.loc["learned", "place"].is_monotonic_decreasing and mean.loc["learned", "place"].max() < 0.22
