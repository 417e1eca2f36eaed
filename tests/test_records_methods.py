"""The methods' records: complete, with their seeds, and their shortest row comes out again."""

import runpy
from itertools import combinations_with_replacement

import pytest
import torch

from clutils import data, experiments, methods, records, training

SCRIPT = runpy.run_path(str(records.ROOT / "benchmarks" / "methods.py"))


def test_the_shortest_recorded_runs_come_out_again():
    table = records.read("methods_batch")
    short = table[table["steps"] == table["steps"].min()]
    assert set(short["method"]) == set(SCRIPT["METHODS"]["batch"])
    train, test = data.load("scenes"), data.load("scenes", "test")
    for row in short.to_dict("records"):
        assert row["steps"] <= 20, "a row short enough to be run again is missing"
        assert train.source == row["source"]
        _, found = experiments.of_method(
            row["method"],
            train,
            test,
            steps=row["steps"],
            batch_size=row["batch_size"],
            learning_rate=row["learning_rate"],
            seed=row["seed"],
        )
        allowed = {"knn": 0.04, "knn_untrained": 0.01, "loss": 0.1, "uniformity": 0.3}
        for column, most in allowed.items():
            assert found[column] == pytest.approx(row[column], abs=most), (row["method"], column)
    assert experiments.accuracy(experiments.pixels, train, test) == pytest.approx(row["knn_raw"], abs=1e-4)


def test_every_batch_size_has_its_seeds_and_saw_as_many_pictures():
    table = records.read("methods_batch")
    full = table[table["steps"] > 20]
    assert (full["steps"] * full["batch_size"] == SCRIPT["PICTURES_SEEN"]["batch"]).all()
    assert not full.duplicated(["method", "batch_size", "seed"]).any()
    counted = full.groupby(["method", "batch_size"])["seed"].nunique()
    wanted = [(m, b) for m in SCRIPT["METHODS"]["batch"] for b in SCRIPT["BATCH_SIZES"]["batch"]]
    assert set(counted.index) == set(wanted)
    assert (counted >= 3).all()


def test_the_learning_rate_went_with_the_root_of_the_batch():
    for row in records.read("methods_batch").itertuples():
        highest = training.LEARNING_RATES["conv16"] * methods.catalogue()[row.method].rate_share()
        assert row.learning_rate == pytest.approx(highest * (row.batch_size / 256) ** 0.5, abs=6e-6)


def test_every_set_of_augmentations_has_its_seeds():
    full = records.read("methods_augmentations").query("steps == 300")
    assert not full.duplicated(["method", "augmentation", "seed"]).any()
    counted = full.groupby(["method", "augmentation"])["seed"].nunique()
    wanted = [(m, name) for m in SCRIPT["METHODS"]["augmentations"] for name in SCRIPT["SETS"]]
    assert set(counted.index) == set(wanted)
    assert (counted >= 3).all()


def test_every_two_augmentations_were_run_once_a_seed():
    full = records.read("methods_composition").query("steps == 300").fillna("none")
    wanted = {("none", "none"), *combinations_with_replacement(SCRIPT["ALONE"], 2)}
    for _, own in full.groupby("seed"):
        assert sorted(zip(own["first"], own["second"], strict=True)) == sorted(wanted)


def test_a_composition_holds_what_it_names_and_nothing_else():
    composed = SCRIPT["composed"]
    assert composed("crop", "blur").crop_scale == (0.2, 1.0) and composed("crop", "blur").blur == 0.5
    assert composed("crop", "blur").jitter == (0.0, 0.0, 0.0, 0.0) and composed("crop", "blur").flip == 0.0
    assert composed("colour", "grayscale").jitter[0] == 0.4
    assert composed("colour", "grayscale").crop_scale == (1.0, 1.0)
    pictures = data.load("scenes", limit=8).images
    torch.testing.assert_close(composed("none", "none")(pictures), pictures.float() / 255)


def test_every_method_of_the_notebook_has_its_cost_and_simclr_is_the_measure():
    table = records.read("methods_cost").set_index("method")
    assert set(table.index) == set(SCRIPT["METHODS"]["cost"])
    assert table.loc["simclr", "processor_ratio"] == 1.0
    assert table.loc["moco", "parameters_and_buffers"] > 4096 * 128 + table.loc["moco", "parameters_trained"]


def test_commands_in_the_records_name_no_path_of_a_machine():
    for what in ("composition", "augmentations", "batch", "cost", "share"):
        for command in records.read(f"methods_{what}")["command"]:
            assert command.startswith(f"python benchmarks/methods.py {what}") and command.endswith("--record")
            assert "/" not in command.removeprefix("python benchmarks/methods.py")
