"""A record says where it came from, and can be read back."""

from __future__ import annotations

import re
import runpy

import pytest
import torch

from clutils import data, experiments, records


def test_a_row_comes_back_with_its_provenance(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1, "knn": 0.5})
    records.append("sample", {"seed": 2, "knn": 0.25})
    table = records.read("sample")
    assert table["knn"].tolist() == [0.5, 0.25]
    assert table["seed"].tolist() == [1, 2]
    row = table.iloc[0]
    assert row["machine"]
    assert f"torch=={torch.__version__.partition('+')[0]}" in row["versions"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])


def test_columns_that_do_not_fit_are_refused_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1, "knn": 0.5})
    with pytest.raises(ValueError, match=r"sample\.csv has the columns"):
        records.append("sample", {"seed": 2})
    assert len(records.read("sample")) == 1


def test_an_unknown_record_names_the_known_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1})
    with pytest.raises(FileNotFoundError, match=r"no record 'nothing'.*there are sample"):
        records.read("nothing")


def test_every_committed_record_names_its_machine_and_commit():
    files = sorted(records.FOLDER.glob("*.csv"))
    for file in files:
        table = records.read(file.stem)
        for column in ("machine", "cores", "python", "versions", "date"):
            assert column in table, f"{file.name} lacks {column}"
            assert table[column].notna().all(), f"{file.name}: {column} is empty"


# how far a rerun may be from its record: sums differ by machine, thread and version, and 20 steps amplify it
ALLOWED = {"knn": 0.05, "uniformity": 0.25, "tolerance": 0.15, "classmates": 0.03, "turns": 0.1, "loss": 0.15}


def test_the_shortest_recorded_run_at_a_temperature_comes_out_again():
    table = records.read("temperature")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    train, test = data.load("scenes"), data.load("scenes", split="test")
    assert train.source == row["source"]
    _, found = experiments.at_temperature(
        float(row["temperature"]), train, test, int(row["steps"]), int(row["seed"]), row["precision"]
    )
    for column in ("temperature", "seed", "steps", "precision"):
        assert found[column] == row[column]
    for column, allowed in ALLOWED.items():
        assert found[column] == pytest.approx(row[column], abs=allowed), column


def test_each_recorded_temperature_has_three_seeds_and_can_be_run_again_by_its_command():
    table = records.read("temperature")
    full = table[table["steps"] > 20]
    assert full["steps"].nunique() == 1, "runs of different length in one comparison"
    assert (full.groupby("temperature")["seed"].nunique() >= 3).all()
    assert not table.duplicated(["temperature", "seed", "steps"]).any()
    for _, row in table.iterrows():
        settings = f"--steps {row['steps']} --temperatures {row['temperature']} --seeds {row['seed']}"
        assert row["command"].startswith("python benchmarks/temperature.py")
        assert row["command"].endswith(settings)


@pytest.fixture(scope="module")
def comparison():
    return runpy.run_path(str(records.ROOT / "benchmarks" / "comparison.py"))


def test_the_shortest_recorded_run_of_the_comparison_comes_out_again(comparison):
    table = records.read("comparison")
    row = table.loc[table["steps"].idxmin()]
    assert row["steps"] <= 20, "a row short enough to be run again is missing"
    name, train, validation, test = comparison["pictures"]("scenes")
    assert (name, train.source) == (row["pictures"], row["source"])
    loss, views = comparison["build"](row["loss"], float(row["temperature"]))
    settings = {"seed": int(row["seed"]), "batch_size": int(row["batch_size"]), "precision": row["precision"]}
    _, found = experiments.with_loss(
        loss, train, validation, test, int(row["steps"]), extra_views=views, **settings
    )
    for column in ("loss", "temperature", "extra_views", "seed", "steps", "precision"):
        assert found[column] == row[column]
    for column, allowed in {"knn": 0.05, "knn_validation": 0.05, "final_loss": 0.15}.items():
        assert found[column] == pytest.approx(row[column], abs=allowed), column


def test_the_comparison_has_five_seeds_a_loss_at_two_temperatures_and_no_test_picture_chooses(comparison):
    table = records.read("comparison")
    full = table[table["steps"] > 20]
    assert set(full["pictures"]) == {"scenes", "4 classes of CIFAR-10"}
    for _, runs in full.groupby(["pictures", "loss", "extra_views", "temperature"]):
        assert runs["seed"].nunique() >= 5 and runs["steps"].nunique() == 1
    for _, runs in full.groupby(["pictures", "loss", "extra_views"]):
        assert runs["temperature"].nunique() >= 2
    assert full.groupby("pictures")["steps"].nunique().max() == 1, (
        "runs of different length in one comparison"
    )
    listed = {name.partition("+")[0] for name in comparison["LOSSES"]}
    assert set(full["loss"]) == listed
    _, train, validation, test = comparison["pictures"]("scenes")
    seen = {picture.numpy().tobytes() for picture in train.images}
    assert not seen & {picture.numpy().tobytes() for picture in validation.images}
    assert len(validation) == comparison["KEPT_APART"] and len(test) > 1000
