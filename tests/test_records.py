"""A record says where it came from, and can be read back."""

from __future__ import annotations

import re
import runpy

import pytest
import torch

from clutils import data, experiments, measures, records


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


def test_known_tells_which_runs_are_on_record(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert records.known("sample", "views", "seed") == set()
    records.append("sample", {"views": None, "seed": 1, "tau": 0.1})
    records.append("sample", {"views": "none", "seed": 2, "tau": 0.2})
    records.append("sample", {"views": "simclr", "seed": 2, "tau": 0.5})
    known = {("none", 1, 0.1), ("none", 2, 0.2), ("simclr", 2, 0.5)}
    assert records.known("sample", "views", "seed", "tau") == known


def test_keep_prints_a_row_rounded_and_records_it_when_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    row = {"command": "python run.py", "seed": 1, "knn": 1 / 3}
    records.keep("sample", row, record=False)
    assert capsys.readouterr().out == "seed 1 knn 0.33333\n"
    assert not list(tmp_path.iterdir())
    records.keep("sample", row, record=True)
    assert records.read("sample")["knn"].tolist() == [0.33333]


def test_every_committed_record_names_its_machine_and_commit():
    files = sorted(records.FOLDER.glob("*.csv"))
    for file in files:
        table = records.read(file.stem)
        for column in ("machine", "cores", "python", "versions", "date"):
            assert column in table, f"{file.name} lacks {column}"
            assert table[column].notna().all(), f"{file.name}: {column} is empty"


def test_every_record_is_told_of_with_a_script_that_there_is():
    lines = (records.FOLDER / "README.md").read_text().splitlines()
    told = {}
    for line in lines:
        if line.startswith("| `"):
            kept, _, script = (cell.strip() for cell in line.split("|")[1:4])
            for name in kept.replace("`", "").split(", "):
                told[name if "." in name else f"{name}.csv"] = script.strip("`")
    files = {file.name for file in records.FOLDER.iterdir() if file.is_file() and file.name != "README.md"}
    assert set(told) == files
    for name, script in told.items():
        known = script == "python -m clutils train" or (records.ROOT / "benchmarks" / script).is_file()
        assert known, f"{name}: no script {script}"


def test_what_is_promised_of_speed_is_on_record():
    """Twice lightly's pictures a second, float32 on both sides."""
    ratios = records.read("throughput").query("encoder == 'conv16'").set_index("ratio")["median"]
    assert ratios.loc[["clutils, float32 / lightly, float32"]].iloc[-1] >= 2


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


@pytest.fixture(scope="module")
def recipes():
    return runpy.run_path(str(records.ROOT / "benchmarks" / "recipes.py"))


def test_the_readme_s_table_of_recipes_is_what_the_record_says(recipes):
    text = recipes["README"].read_text("utf-8")
    assert recipes["with_table"](text) == text, "python benchmarks/recipes.py --table writes it anew"
    for name in recipes["RECIPES"]:
        runs = records.read("recipes").query(
            f"recipe == '{name}' and steps == {recipes['RECIPES'][name]['steps']}"
        )
        seeds = " ".join(str(seed) for seed in sorted(runs["seed"])) or "0 1 2"
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        assert f"`{recipes['command'](name, seeds)}`" in line


def test_a_recipe_that_was_run_shows_its_seeds_and_one_that_was_not_says_so(recipes, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert all("| not run |" in line for line in recipes["table"]().splitlines()[2:])
    row = {"recipe": "cpu-1min", "source": "10 of CIFAR-10", "steps": 646, "threads": 1}
    for seed, knn, steps in ((0, 0.25, 646), (1, 0.75, 646), (2, 0.99, 20)):  # the last is a trial
        found = {"knn_10": knn, "knn_200": 0.5, "probe": 0.5, "seconds": 60 + seed}
        records.append("recipes", row | {"seed": seed, "steps": steps} | found)
    ran, *others = recipes["table"]().splitlines()[2:]
    assert "| 0.500 (0.250 to 0.750) | 0.500 (0.500 to 0.500) |" in ran
    assert "| 0, 1 | 60 s |" in ran
    assert all("| not run |" in line for line in others)


def test_a_recipe_trains_as_it_says_and_its_line_has_the_baselines(recipes, monkeypatch):
    train, test = data.load("digits", limit=300), data.load("digits", "test", limit=100)
    monkeypatch.setitem(recipes["RECIPES"]["cpu-1min"], "batch_size", 64)
    run = recipes["begun"]("cpu-1min", train, 3, steps=2)
    assert (run.steps, run.seed, run.loss.temperature) == (2, 3, 0.2)
    row = recipes["measured"]("cpu-1min", train, test, 3, steps=2)
    assert row["steps"] == 2 and row["source"] == train.source
    for column in ("knn_10", "knn_200", "probe", "knn_10_raw", "knn_200_untrained", "probe_untrained"):
        assert 0 < row[column] <= 1
    raw = data.load("digits", limit=300).images.flatten(1).float() / 255 - 0.5
    seen = test.images.flatten(1).float() / 255 - 0.5
    assert row["knn_10_raw"] == pytest.approx(
        measures.knn_accuracy(raw, train.labels, seen, test.labels, k=10), abs=1e-3
    )


def test_the_gpu_s_recipe_is_the_public_one(recipes, monkeypatch):
    scenes = data.load("scenes", limit=512)
    for name, value in {"encoder": "conv16", "compile": False}.items():  # it is the rest that counts
        monkeypatch.setitem(recipes["RECIPES"]["gpu-3min"], name, value)
    run = recipes["begun"]("gpu-3min", scenes, 0)
    assert (run.optimiser_name, run.learning_rate, run.weight_decay) == ("sgd", 0.03 * 512 / 256, 5e-4)
    assert (run.augmentation.crop_scale, run.augmentation.grayscale) == ((0.2, 1.0), 0.1)
    assert run.loss.temperature == 0.5
    assert [layer.out_features for layer in run.method.head if hasattr(layer, "out_features")] == [1024, 128]


def test_a_ratio_of_speeds_is_taken_turn_by_turn():
    throughput = runpy.run_path(str(records.ROOT / "benchmarks" / "throughput.py"))
    found = throughput["ratio"]([4.0, 9.0, 40.0], [2.0, 3.0, 10.0])
    assert found == {"median": 3.0, "lowest": 2.0, "highest": 4.0}
    turns = iter(range(100))
    seconds = throughput["in_turns"]({"a": lambda: next(turns), "b": lambda: next(turns)}, 3)
    assert {name: len(found) for name, found in seconds.items()} == {"a": 3, "b": 3} and next(turns) == 8
