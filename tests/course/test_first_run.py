"""Notebook 03: what it measures and shows as recorded, and its panels."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from clutils import data, maps, training, views
from clutils.course import experiments, records
from clutils.course import first_run as lesson

# how far a rerun may be from its record: sums differ by machine, thread and version, and 20 steps amplify it
ALLOWED = {
    "knn_raw": 1e-3,
    "knn_untrained": 0.02,
    "knn": 0.05,
    "knn_head": 0.05,
    "loss": 0.15,
    "alignment": 0.15,
}


@pytest.fixture(scope="module")
def runs():
    return records.read("first_run")


def test_the_shortest_recorded_first_run_comes_out_again(runs):
    row = runs.loc[runs["steps"].idxmin()]
    assert row["steps"] <= 20 and row["pictures"] == "scenes", "a row short enough to be run again is missing"
    train, test = data.load("scenes"), data.load("scenes", split="test")
    _, found = experiments.first_run(
        train,
        test,
        views.preset(row["augmentation"]),
        int(row["steps"]),
        int(row["batch_size"]),
        int(row["seed"]),
        float(row["command"].split("--learning-rate ")[1].split()[0]),
        row["precision"],
    )
    for column, allowed in ALLOWED.items():
        assert found[column] == pytest.approx(row[column], abs=allowed), column


def test_every_recorded_comparison_has_three_seeds_of_one_length(runs):
    full = runs[runs["steps"] > 20]
    assert set(full.loc[full["pictures"] == "scenes", "augmentation"]) == {"simclr", "crop"}
    for _, part in full.groupby(["pictures", "augmentation"]):
        assert part["seed"].nunique() >= 3
    for _, part in full.groupby("pictures"):
        assert part["steps"].nunique() == part["batch_size"].nunique() == 1
    assert not runs.duplicated(["pictures", "augmentation", "seed", "steps"]).any()
    for _, row in runs.iterrows():
        settings = f"--steps {row['steps']} --augmentations {row['augmentation']} --seeds {row['seed']}"
        assert settings in row["command"]


def test_what_notebook_03_says_of_the_record_is_in_it(runs):
    scenes = runs[(runs["pictures"] == "scenes") & (runs["steps"] > 20)]
    jitter, without = (scenes[scenes["augmentation"] == name] for name in ("simclr", "crop"))
    assert without["loss"].max() < jitter["loss"].min()
    assert without["knn"].max() < jitter["knn_untrained"].min() < jitter["knn"].min()
    assert (jitter["probe_right"] - jitter["probe_right_head"]).min() > 0.1, "the head forgets the place"
    assert (jitter["probe_class"] - jitter["probe_class_head"]).abs().max() < 0.05, "but not the class"
    photographs = runs[runs["pictures"] != "scenes"]
    assert photographs["knn"].min() > 0.8 > photographs["knn_untrained"].max()


def test_the_recorded_maps_are_of_the_recorded_runs():
    kept = json.loads((records.FOLDER / "first_run_maps.json").read_text())
    labels = data.load("scenes", "test", limit=600).labels.tolist()
    for augmentation in ("simclr", "crop"):
        one = kept[augmentation]
        assert one["labels"] == labels
        assert one["augmentation"] == augmentation and one["machine"] and one["commit"]
        for name in ("t-SNE", "UMAP"):
            assert np.asarray(one[name]).shape == (600, 2)
    share = {a: maps.neighbour_share(np.array(kept[a]["t-SNE"]), labels) for a in kept}
    assert share["simclr"] > 0.5 > 0.2 > share["crop"]


def test_one_of_the_flat_runs_has_not_collapsed_and_it_is_the_exercises_answer():
    ailing = records.read("ailing_runs")
    flat, alive = set(), set()
    for row in ailing.itertuples():
        loss, alignment, uniformity = (
            [float(v) for v in getattr(row, name).split()] for name in ("loss", "alignment", "uniformity")
        )
        assert len(loss) == row.steps
        chance = math.log(2 * row.batch_size - 1)
        if abs(loss[-1] - chance) < 0.1:
            flat.add(row.run)
        if alignment[-1] > 0.2 and uniformity[-1] < -0.5:
            alive.add(row.run)
    assert len(flat) == 3
    assert flat & alive == {lesson.flat_but_not_collapsed.answer}
    assert {w.answer for w in lesson.flat_but_not_collapsed.wrong} == set("ABCD") - (flat & alive)


# ---- panels ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scenes():
    return data.load("scenes", "test", limit=120)


@pytest.fixture(scope="module")
def world():
    """Ten classes around ten centres: embeddings, a map that keeps them, labels."""
    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(120) % 10
    z = torch.randn(10, 20, generator=draw)[labels] + 0.2 * torch.randn(120, 20, generator=draw)
    return z, maps.pca(z), labels


def test_the_map_panel_shows_the_map_of_its_sliders_and_says_its_numbers(world):
    z, at, labels = world
    turned = at[:, ::-1].copy()
    mixed = at[torch.randperm(120, generator=torch.Generator().manual_seed(1)).numpy()]
    found = {(5, 0): at, (5, 1): turned, (30, 0): mixed, (30, 1): at}
    panel = lesson.map_settings(found, z, labels)
    assert panel.values() == {"perplexity": 30, "seed": 0}
    assert f"share the class; trustworthiness {maps.trustworthiness(z, mixed):.2f}" in panel.readout.value
    first = panel.live.image.value
    panel.set(perplexity=5, seed=1)
    assert panel.live.image.value != first
    assert f"{maps.neighbour_share(turned, labels):.0%} share the class" in panel.readout.value
    with pytest.raises(ValueError, match=r"no map for .*30, 1"):
        lesson.map_settings({k: v for k, v in found.items() if k != (30, 1)}, z, labels)


def test_the_view_panel_keeps_its_draws_while_a_slider_moves(scenes):
    panel = lesson.view_strength(scenes.images[:3])
    assert "Crops of 20% to 100%" in panel.readout.value
    first = panel.live.image.value
    panel.set(colour=0.0)
    grey = panel.live.image.value
    assert grey != first
    panel.set(colour=1.0)
    assert panel.live.image.value == first
    panel.set(seed=1)
    assert panel.live.image.value not in (first, grey)
    panel.set(smallest=1.0)
    assert "100% is in both" in panel.readout.value


def test_umap_waits_for_its_button(world, monkeypatch):
    z, at, labels = world
    asked = []
    monkeypatch.setattr(maps, "umap", lambda z, **options: asked.append(options) or at)
    box = lesson.umap_beside(at, z, labels)
    assert not asked
    start, result = box.children[0].children[0], box.children[-1]
    start.click()
    assert len(asked) == 1
    assert "UMAP: " in result.value or "<img" in result.value


# ---- watching ----------------------------------------------------------------------------------------------


class Screen:
    """Stands in for the notebook's page: keeps what was shown."""

    def __init__(self):
        self.bundles = []

    def __call__(self, bundle, **options):
        self.bundles.append(bundle)
        return self

    def update(self, bundle, **options):
        self.bundles.append(bundle)


@pytest.fixture
def screen(monkeypatch):
    from clutils.course.first_run import watching

    monkeypatch.setattr(watching, "display", found := Screen())
    monkeypatch.delenv("CLUTILS_FAST", raising=False)
    return found


def tiny(steps=6):
    images = data.load("digits", limit=64)
    return training.Run(data=images, batch_size=16, steps=steps, seed=0)


def test_watching_changes_nothing_about_the_run(screen):
    alone = tiny().finish(progress=False)
    watched = tiny()
    measured = lesson.watch(watched, lambda run: run.steps_done / 10, every=2)
    assert measured == {0: 0.0, 2: 0.2, 4: 0.4, 6: 0.6}
    assert [r["loss"] for r in watched.rows] == [r["loss"] for r in alone.rows]
    last = screen.bundles[-1]
    assert f"to {watched.rows[-1]['loss']:.2f} (chance is {math.log(31):.2f})" in last["text/plain"]
    assert 'alt="Three charts' in last["text/html"]


def test_the_stop_button_keeps_what_was_learned_and_watching_goes_on_from_there(screen, capsys):
    run, alone = tiny(), tiny().finish(progress=False)

    def stop(run):
        if run.steps_done == 4 and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        return 0.5

    stopped = []
    measured = lesson.watch(run, stop, every=2)
    assert run.steps_done == 4
    assert sorted(measured) == [0, 2, 4]
    assert "stopped after 4 of 6 steps" in capsys.readouterr().out
    assert sorted(lesson.watch(run, stop, every=2)) == [4, 6]
    assert run.rows[-1]["loss"] == alone.rows[-1]["loss"]


def test_a_fast_session_shortens_the_run_and_says_so(screen, capsys, monkeypatch):
    monkeypatch.setenv("CLUTILS_FAST", "1")
    run = tiny(steps=50)
    lesson.watch(run, lambda run: 0.5, every=50)
    assert run.steps_done == training.FAST_STEPS
    assert f"{training.FAST_STEPS} steps instead of 50" in capsys.readouterr().out
    with pytest.raises(ValueError, match="every is 0"):
        lesson.watch(run, lambda run: 0.5, every=0)
