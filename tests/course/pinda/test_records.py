"""PiNDA's records: complete, with their seeds, and their shortest rows come out again."""

import runpy

import pytest

from clutils import data
from clutils.course import records
from clutils.course.pinda import experiments, maps

SCRIPT = runpy.run_path(str(records.ROOT / "benchmarks" / "pinda.py"))


def generated(row):
    size, source = int(row.get("size", 32)), row["pictures"]
    return data.load(source, size=size, limit=4000), data.load(source, "test", size=size, limit=200)


def test_the_shortest_recorded_run_of_the_maps_comes_out_again():
    table = records.read("pinda_maps")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    settings, others = SCRIPT["VARIANTS"][row["variant"]]
    _, _, found = experiments.learned_maps(
        *generated(row), SCRIPT["BASE"] | settings, steps=int(row["steps"]), seed=int(row["seed"]), **others
    )
    for column in ("network", "positive", "penalty", "frozen", "batch_size", "augmentation", "padding"):
        assert found[column] == row[column]
    allowed = {"object": 0.05, "object_before": 0.02, "object_indifference": 0.05, "noise": 0.05, "loss": 0.3}
    for column, most in allowed.items():
        assert found[column] == pytest.approx(row[column], abs=most), column


def test_the_shortest_recorded_run_of_the_features_worth_comes_out_again():
    table = records.read("pinda_help")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    name = row["pictures"]
    train, test = data.load(name), data.load(name, "test")
    assert train.source == row["source"]
    _, found = experiments.does_it_help(
        row["contender"], train, test, steps=int(row["steps"]), seed=int(row["seed"])
    )
    for column, most in {"knn": 0.03, "probe": 0.03, "probe_few": 0.06, "loss": 0.3}.items():
        assert found[column] == pytest.approx(row[column], abs=most), column


def test_every_setting_of_the_features_worth_has_its_seeds():
    table = records.read("pinda_help")
    full = table[table["steps"] == 200]
    seeds = full.groupby(["pictures", "augmentation", "contender"])["seed"].nunique()
    assert (seeds["vectors:digits"] >= 5).all()
    assert (seeds >= 3).all()
    assert set(full["pictures"]) == {"vectors:digits", "scenes", "four classes of CIFAR-10"}
    assert not full.duplicated(["pictures", "augmentation", "contender", "seed"]).any()
    assert set(full["contender"]) == set(experiments.CONTENDERS)


def test_the_long_runs_have_three_seeds_on_each_kind_of_pictures_and_every_step_once():
    table = records.read("pinda_along")
    full = table[(table["steps"] == 1600) & (table["variant"] == "base")]
    assert (full.groupby("pictures")["seed"].nunique() >= 3).all()
    assert set(full["pictures"]) == {"scenes", "scenes-hard"}
    assert (
        full.groupby(["pictures", "seed"])["step"].agg(list).map(lambda s: s == list(range(0, 1601, 100)))
    ).all()


def test_the_variants_of_the_maps_are_each_recorded_on_each_kind_of_pictures_for_two_seeds():
    table = records.read("pinda_maps")
    full = table[table["steps"] == 400]
    assert not full.duplicated(["pictures", "variant", "seed"]).any()
    assert set(full["variant"]) <= set(SCRIPT["VARIANTS"])
    counted = full.groupby(["pictures", "variant"])["seed"].nunique()
    assert (counted.loc[["scenes", "scenes-hard"]] >= 2).all()
    assert set(full["pictures"]) == {"scenes", "scenes-hard", "STL-10 sample"}


def test_commands_in_the_records_name_no_path_of_a_machine():
    for name in ("pinda_maps", "pinda_baselines", "pinda_help", "pinda_along", "pinda_cost"):
        for command in records.read(name)["command"]:
            assert command.startswith("python benchmarks/pinda.py") and command.endswith("--record")
            assert "/tmp" not in command and "folder:/" not in command


def test_the_recorded_maps_are_those_of_a_long_run_on_generated_scenes():
    kept = maps.load(records.FOLDER / "pinda_longer_maps.npz")
    scenes = data.load("scenes", limit=len(kept.pictures))
    assert (kept.pictures == scenes.images).all()
    assert kept.steps == list(range(0, 1601, 80))
    last = maps.measure({"scale": kept.scale[-1].mean(dim=1)}, scenes.masks)
    assert last["object"].item() < 0.2  # what notebook 10 says of it
