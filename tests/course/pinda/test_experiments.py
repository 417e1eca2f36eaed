"""PiNDA's experiments: what moves, what a row says, and what a network trained with masks finds."""

import runpy

import pytest
import torch

from clutils import data
from clutils.course import records
from clutils.course.pinda import detectors, experiments, maps
from clutils.training import noise_maps

SCENES = data.load("scenes", limit=60)
learned_maps = runpy.run_path(str(records.ROOT / "benchmarks" / "pinda.py"))["learned_maps"]


def test_the_row_of_a_run_has_its_settings_and_the_watch_its_maps():
    test = SCENES.subset(slice(0, 10))
    run, watch, row = learned_maps(SCENES, test, {"penalty": 3.0}, steps=4, batch_size=16, every=2)
    assert watch.maps.steps == [0, 2, 4]
    assert row["penalty"] == 3.0 and row["steps"] == 4 and row["start"] == 0.02 and row["skips"]
    torch.testing.assert_close(noise_maps.of(run.method.noise, test)[0], watch.maps.scale[-1])


def test_a_runs_maps_stand_beside_what_they_have_to_beat():
    test = SCENES.subset(slice(0, 10))
    run, watch, _ = learned_maps(SCENES, test, {}, steps=2, batch_size=16)
    controls = {"trained with the outline": torch.rand(10, 32, 32)}
    found = experiments.compared(run, test, watch.maps.scale[0], controls)
    assert [*found][:2] == ["scale, trained", "scale, untrained"] and [*found][
        -1
    ] == "trained with the outline"
    assert all(each.shape == test.masks.shape for each in found.values())
    whole = torch.nn.Sequential(run.encoder, run.method.head)  # where the loss is, not where the features are
    assert torch.equal(found["encoder's indifference"], maps.indifference(whole, test.images))
    rows = experiments.measured(found, test).set_index("map")
    each = detectors.auroc(found["scale, trained"], test.masks)
    assert rows.loc["scale, trained", "object"] == pytest.approx(each.mean().item())


def test_pictures_without_an_object_or_without_a_background_are_left_out_of_the_measure():
    test = SCENES.subset(slice(0, 6))
    test.masks = test.masks.clone()
    test.masks[0], test.masks[1] = False, True
    each = {"one": torch.rand(6, 32, 32)}
    rows = experiments.measured(each, test)
    expected = maps.measure({"one": each["one"][2:]}, test.masks[2:])
    assert rows.equals(expected)


def test_each_network_finds_what_it_was_trained_with_better_than_the_other_and_nothing_before():
    train, test = SCENES.subset(slice(0, 40)), SCENES.subset(slice(40, 60))
    at_first, later = (
        maps.measure(
            experiments.positive_controls(train, test, steps=steps, batch_size=16), test.masks
        ).set_index("map")
        for steps in (0, 60)
    )
    of_object, of_outline = (later.loc[f"trained with the {what}"] for what in ("masks", "outline"))
    assert of_object["object"] > 0.75 > at_first["object"].max()
    assert of_outline["outline"] > of_object["outline"] + 0.02
    assert of_object["object"] > of_outline["object"]
    state = torch.random.get_rng_state()
    experiments.supervised_maps(train, test, network="unet", skips=False, steps=1, batch_size=4)
    assert torch.equal(state, torch.random.get_rng_state())
    with pytest.raises(ValueError, match="have no masks"):
        experiments.supervised_maps(data.load("digits", limit=8), test)
    with pytest.raises(ValueError, match="target is 'edge', but must be one of object, outline"):
        experiments.supervised_maps(train, test, "edge")
