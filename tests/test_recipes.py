"""Recipes: the one for this machine is chosen, both times are told, and none is made up."""

from __future__ import annotations

import inspect
import json

import pytest
import torch

from clutils import recipes, records, training


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
    assert gpu.startswith("GPU recipe: resnet18, 2,000 steps of 512, not run yet: no time is known. (This")
    assert str(recipes.Recipe("mlp", 9, 8, None, 600, "a GPU")).endswith("about 10 min on a GPU")


def test_fast_shortens_either_recipe_and_says_so(monkeypatch, kind):
    whole = recipes.here("start")
    monkeypatch.setenv("CLUTILS_FAST", "1")
    short = recipes.here("start")
    assert short.steps == training.FAST_STEPS < whole.steps
    assert short.settings() == whole.settings() | {"steps": training.FAST_STEPS}
    assert f"CLUTILS_FAST=1: 20 steps instead of {whole.steps:,}" in recipes.describe("start")


def test_a_recipe_s_settings_are_those_of_a_run():
    known = inspect.signature(training.Run.__init__).parameters
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
    assert any(f'recipes.describe("{name}")' in cell for cell in cells[:3])
    assert any("recipe.s" in cell for cell in cells[3:])  # .settings() or .steps
