"""The named recipes on CIFAR-10: their table is what the record says, and they train as they say."""

import runpy

import pytest

from clutils import data, measures
from clutils.course import records


@pytest.fixture(scope="module")
def published():
    return runpy.run_path(str(records.ROOT / "benchmarks" / "recipes.py"))


def test_the_readme_s_table_of_recipes_is_what_the_record_says(published):
    text = published["README"].read_text("utf-8")
    assert published["with_table"](text) == text, "python benchmarks/recipes.py --table writes it anew"
    for name in published["RECIPES"]:
        runs = records.read("recipes").query(
            f"recipe == '{name}' and steps == {published['RECIPES'][name]['steps']}"
        )
        seeds = " ".join(str(seed) for seed in sorted(runs["seed"])) or "0 1 2"
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{name}`")]
        assert f"`{published['command'](name, seeds)}`" in line


def test_a_recipe_that_was_run_shows_its_seeds_and_one_that_was_not_says_so(published, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert all("| not run |" in line for line in published["table"]().splitlines()[2:])
    row = {"recipe": "cpu-1min", "source": "10 of CIFAR-10", "steps": 646, "threads": 1}
    for seed, knn, steps in ((0, 0.25, 646), (1, 0.75, 646), (2, 0.99, 20)):  # the last is a trial
        found = {"knn_10": knn, "knn_200": 0.5, "probe": 0.5, "seconds": 60 + seed}
        records.append("recipes", row | {"seed": seed, "steps": steps} | found)
    ran, *others = published["table"]().splitlines()[2:]
    assert "| 0.500 (0.250 to 0.750) | 0.500 (0.500 to 0.500) |" in ran
    assert "| 0, 1 | 60 s |" in ran
    assert all("| not run |" in line for line in others)


def test_a_recipe_trains_as_it_says_and_its_line_has_the_baselines(published, monkeypatch):
    train, test = data.load("digits", limit=300), data.load("digits", "test", limit=100)
    monkeypatch.setitem(published["RECIPES"]["cpu-1min"], "batch_size", 64)
    run = published["begun"]("cpu-1min", train, 3, steps=2)
    assert (run.steps, run.settings.seed, run.loss.temperature) == (2, 3, 0.2)
    row = published["measured"]("cpu-1min", train, test, 3, steps=2)
    assert row["steps"] == 2 and row["source"] == train.source
    for column in ("knn_10", "knn_200", "probe", "knn_10_raw", "knn_200_untrained", "probe_untrained"):
        assert 0 < row[column] <= 1
    raw = data.load("digits", limit=300).images.flatten(1).float() / 255 - 0.5
    seen = test.images.flatten(1).float() / 255 - 0.5
    assert row["knn_10_raw"] == pytest.approx(
        measures.knn_accuracy(raw, train.labels, seen, test.labels, k=10), abs=1e-3
    )


def test_the_gpu_s_recipe_is_the_public_one_but_for_what_it_says(published, monkeypatch):
    scenes = data.load("scenes", limit=1024)
    for name, value in {"encoder": "conv16", "compile": False}.items():  # it is the rest that counts
        monkeypatch.setitem(published["RECIPES"]["gpu-3min"], name, value)
    run = published["begun"]("gpu-3min", scenes, 0)
    assert (run.settings.optimiser, run.settings.weight_decay) == ("sgd", 5e-4)
    assert run.learning_rate == pytest.approx(5 * 0.03 * 1024 / 256)
    assert (run.augmentation.crop_scale, run.augmentation.grayscale) == ((0.2, 1.0), 0.1)
    assert run.loss.temperature == 0.2
    assert [layer.out_features for layer in run.method.head if hasattr(layer, "out_features")] == [1024, 128]
