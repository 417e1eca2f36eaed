"""PiNDA's experiments: what moves, what a row says, and every contender on vectors and pictures."""

import pytest
import torch

from clutils import data, encoders, training
from clutils.course.pinda import detectors, experiments, maps

SCENES = data.load("scenes", limit=60)


def run_of(steps=6, **settings) -> training.Run:
    return training.Run(method="pinda", data=SCENES, batch_size=16, steps=steps, method_settings=settings)


def test_a_run_with_a_frozen_encoder_moves_the_generator_alone():
    test = SCENES.subset(slice(0, 10))
    run, _, row = experiments.learned_maps(
        SCENES, test, {"penalty": 3.0}, steps=3, batch_size=16, frozen=True
    )
    fresh = run_of(3)
    torch.testing.assert_close(run.encoder.convolutions[0].weight, fresh.encoder.convolutions[0].weight)
    assert not torch.equal(run.method.noise.network[0].weight, fresh.method.noise.network[0].weight)
    assert row["frozen"] and row["steps"] == 3 and row["penalty"] == 3.0


def test_the_row_of_a_run_is_what_its_maps_measure():
    test = SCENES.subset(slice(0, 10))
    run, watch, row = experiments.learned_maps(SCENES, test, {}, steps=4, batch_size=16, every=2)
    assert watch.maps.steps == [0, 2, 4]
    scale = maps.of(run.method.noise, test)[0].mean(dim=1)
    assert row["object"] == pytest.approx(detectors.auroc(scale, test.masks).mean().item())
    before = detectors.auroc(watch.maps.scale[0].mean(dim=1), test.masks).mean().item()
    assert row["object_before"] == pytest.approx(before)
    blind = maps.indifference(run.encoder, test.images)
    assert row["object_indifference"] == pytest.approx(detectors.auroc(blind, test.masks).mean().item())
    assert row["object_low"] <= row["object"] <= row["object_high"]


@pytest.mark.parametrize("contender", experiments.CONTENDERS)
def test_every_contender_runs_on_vectors_and_on_pictures(contender):
    vectors = data.load("vectors:digits", limit=150)
    for train, augmentation in ((vectors, None), (SCENES, None), (SCENES, "simclr")):
        run, row = experiments.does_it_help(
            contender, train, train, augmentation, steps=2, batch_size=16, labels=50
        )
        assert row["steps"] == 2 and 0 <= row["knn"] <= 1 and 0 <= row["probe_few"] <= 1
        assert isinstance(run.encoder, encoders.MLP) == (train is vectors)
        if run.settings.method == "pinda":
            assert run.method.on == ("view" if augmentation else "picture")


def test_task_entropy_is_the_integral_of_minus_p_log_p():
    for loss in (0.0, 0.7, 3.0):
        sd = torch.tensor(loss, dtype=torch.float64).div(2).exp()  # variance 1/γ = e^ℓ
        at = torch.linspace(-12, 12, 200_001, dtype=torch.float64) * sd
        p = torch.exp(-(at**2) / (2 * sd**2)) / (sd * (2 * torch.pi) ** 0.5)
        integral = torch.trapezoid(torch.special.entr(p), at)
        found = experiments.task_entropy(torch.tensor(loss, dtype=torch.float64))
        assert found.item() == pytest.approx(integral.item(), rel=1e-9)
