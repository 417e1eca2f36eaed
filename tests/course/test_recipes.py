"""Recipes: the one for this machine is chosen, both times are told, and none is made up."""

import inspect
import json
import runpy

import pytest
import torch

from clutils import data, measures, training
from clutils.course import recipes, records


@pytest.fixture(params=["cpu", "cuda"])
def kind(request, monkeypatch):
    monkeypatch.setattr(training, "device", lambda name=None: torch.device(request.param))
    monkeypatch.delenv("CLUTILS_FAST", raising=False)
    return request.param


@pytest.mark.parametrize("name", recipes.LESSONS)
def test_what_is_here_decides_which_recipe_is_taken(name, kind):
    assert recipes.here(name) == recipes.LESSONS[name][kind == "cuda"]
    assert f"(This machine: {'GPU' if kind == 'cuda' else 'CPU'}.)" in recipes.describe(name)


def test_both_recipes_are_told_with_the_time_or_with_none_where_it_was_never_run(monkeypatch, kind):
    pair = recipes.Recipe("conv16", 300, 256, None, 29.6, "2 cores"), recipes.Recipe("resnet18", 2000, 512)
    monkeypatch.setitem(recipes.LESSONS, "lab", pair)
    cpu, gpu = recipes.describe("lab").splitlines()
    assert cpu == "CPU recipe: conv16, 300 steps of 256, about 30 s on 2 cores."
    assert gpu.startswith("GPU recipe: resnet18, 2,000 steps of 512 (not timed yet). (This")
    assert str(recipes.Recipe("mlp", 9, 8, None, 600, "a GPU")).endswith("about 10 min on a GPU")


def test_fast_shortens_either_recipe_and_says_so(monkeypatch, kind):
    whole = recipes.here("start")
    monkeypatch.setenv("CLUTILS_FAST", "1")
    short = recipes.here("start")
    assert short.steps == training.FAST_STEPS < whole.steps
    assert short.settings() == whole.settings() | {"steps": training.FAST_STEPS}
    assert f"CLUTILS_FAST=1: {training.FAST_STEPS} steps instead of {whole.steps:,}" in recipes.describe(
        "start"
    )


def test_a_recipe_s_settings_are_those_of_a_run():
    known = inspect.signature(training.Settings).parameters
    for both in recipes.LESSONS.values():
        for recipe in both:
            assert set(recipe.settings()) <= set(known)
            assert recipe.seconds is None or recipe.on


def test_an_unknown_recipe_names_those_there_are():
    with pytest.raises(ValueError, match="no recipe is called 'soup'; there are start, temperature"):
        recipes.here("soup")


@pytest.mark.parametrize("name", sorted(recipes.LESSONS))
def test_a_notebook_tells_both_times_and_trains_by_its_recipe(name):
    texts = [file.read_text() for file in sorted((records.ROOT / "notebooks").glob("[0-9]*.ipynb"))]
    sources = [["".join(cell["source"]) for cell in json.loads(text)["cells"]] for text in texts]
    (cells,) = [cells for cells in sources if any(f'recipes.here("{name}")' in cell for cell in cells)]
    said, used = (
        next(k for k, cell in enumerate(cells) if text in cell)
        for text in (f'recipes.describe("{name}")', "recipe.s")  # .settings() or .steps
    )
    assert said < used


# ---- the named recipes on CIFAR-10 ---------------------------------------------------------------------


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
