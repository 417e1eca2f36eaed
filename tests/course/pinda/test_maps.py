"""Maps of the learned noise: taken along a run, kept in a file, measured against masks."""

import pytest
import torch
from torch import nn

from clutils import data, noise, training
from clutils.__main__ import main
from clutils.course.pinda import detectors, maps

SCENES = data.load("scenes", limit=60)


def run_of(steps=6, **settings) -> training.Run:
    return training.Run(method="pinda", data=SCENES, batch_size=16, steps=steps, method_settings=settings)


# ---- taken -------------------------------------------------------------------------------------------------


def test_the_maps_of_pictures_are_the_generators_scale_and_mean_in_evaluation_mode():
    torch.manual_seed(0)
    generator = noise.NoiseGenerator("resnet18", 3, learned_mean=True)  # its batch norm knows the mode
    generator.train()
    scale, mean = maps.of(generator, SCENES.images[:5], batch_size=2)
    assert generator.training and all(m.training for m in generator.modules())
    generator.eval()
    with torch.no_grad():
        found = generator(SCENES.images[:5])
    torch.testing.assert_close(scale, found.scale, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mean, found.mean, rtol=1e-4, atol=1e-5)


def test_taking_maps_neither_draws_from_nor_moves_the_global_random_numbers():
    generator = noise.NoiseGenerator("conv", 3)
    state = torch.get_rng_state()
    maps.of(generator, SCENES.images[:3])
    assert torch.equal(state, torch.get_rng_state())


def test_watching_a_run_keeps_a_map_every_so_many_steps_and_the_last_and_does_not_change_the_run():
    alone, watched = run_of(7), run_of(7)
    watch = maps.Watch(SCENES.images[:4], every=3)
    watch.take(watched)
    watched.finish(watch, progress=False)
    alone.finish(progress=False)
    assert watch.maps.steps == [0, 3, 6, 7]
    assert watch.maps.scale.shape == (4, 4, 3, 32, 32) == watch.maps.mean.shape
    assert not torch.equal(watch.maps.scale[0], watch.maps.scale[-1])
    torch.testing.assert_close(watch.maps.scale[-1], maps.of(watched.method.noise, SCENES.images[:4])[0])
    assert alone.history.drop(columns="seconds").equals(watched.history.drop(columns="seconds"))


def test_maps_come_back_from_their_file_to_half_precision(tmp_path):
    run = run_of(2, learned_mean=True)
    watch = maps.Watch(SCENES, every=1)
    run.finish(watch, progress=False)
    watch.maps.save(tmp_path / "maps.npz")
    back = maps.load(tmp_path / "maps.npz")
    assert back.steps == [1, 2] and torch.equal(back.pictures, SCENES.images)
    torch.testing.assert_close(back.scale, watch.maps.scale, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(back.mean, watch.maps.mean, rtol=1e-3, atol=1e-4)


def test_a_missing_file_and_a_file_of_something_else_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.npz"):
        maps.load(tmp_path / "none.npz")
    for name, content in (("text.npz", b"hello"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} holds no maps"):
            maps.load(tmp_path / name)


# ---- measured ----------------------------------------------------------------------------------------------


class Left(nn.Module):
    """Sees the left half of the first channel, a weighted sum of it, and nothing else."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(5, 8, 4))

    def forward(self, x):
        return torch.einsum("nhw,fhw->nf", x[:, 0, :, :4], self.weight) + torch.arange(5.0)


def test_indifference_is_minus_the_log_of_the_squared_jacobian_of_the_direction():
    encoder, x = Left(), torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    found = maps.indifference(encoder, x)
    assert (found[:, :, 4:].min() > found[:, :, :4].max()).item()  # blind on the right
    jacobian = torch.autograd.functional.jacobian(
        lambda picture: nn.functional.normalize(encoder(picture[None]), dim=1)[0], x[0].float() / 255
    )
    exact = jacobian.pow(2).sum(dim=(0, 1))[:, :4]  # over features and channels
    many = torch.stack([(-maps.indifference(encoder, x[:1], seed=s)[0]).exp() for s in range(200)])
    torch.testing.assert_close(many.mean(dim=0)[:, :4], exact, rtol=0.15, atol=0)


def test_the_measure_is_the_mean_auroc_per_picture_of_object_and_outline_with_its_interval():
    masks = SCENES.masks[:20]
    band = detectors.boundary_band(masks, 2)
    draw = torch.Generator().manual_seed(0)
    found = {
        "mask": masks.double(),
        "rest": -masks.double(),
        "band": band.double(),
        "noise": torch.rand(masks.shape, generator=draw),
    }
    table = maps.measure(found, masks).set_index("map")
    assert table.loc["mask", "object"] == 1 and table.loc["rest", "object"] == 0
    assert table.loc["band", "outline"] == 1
    assert table.loc["noise", "object"] == pytest.approx(0.5, abs=0.02)
    expected = detectors.auroc(found["noise"], band)
    assert table.loc["noise", "outline"] == pytest.approx(expected.mean().item())
    low, high = detectors.bootstrap_interval(expected)
    assert (table.loc["noise", "outline_low"], table.loc["noise", "outline_high"]) == (low, high)
    assert low < expected.mean() < high


def test_the_baselines_find_an_easy_object_and_hard_scenes_leave_them_near_chance():
    for name, near_chance in (("scenes", False), ("scenes-hard", True)):
        pictures = data.load(name, "test", limit=100)
        table = maps.measure(maps.detector_maps(pictures), pictures.masks)
        assert list(table["map"]) == ["edge magnitude", "local variance", "centre prior"]
        assert table["object"].sub(0.5).abs().lt(0.15).all() == near_chance


# ---- the command line --------------------------------------------------------------------------------------


def test_training_pinda_from_the_command_line_keeps_the_maps_as_they_were_learned(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(data, "load", lambda name, *split, **options: SCENES)
    asked = ["train", "--method=pinda", "--data=scenes", "--batch-size=16", f"--out={tmp_path / 'run'}"]
    assert main([*asked, "--steps", "4"]) == 0
    kept = maps.load(tmp_path / "run" / "noise_maps.npz")
    assert kept.steps == [0, 1, 2, 3, 4] and torch.equal(kept.pictures, SCENES.images[:8])
    run = training.resume(tmp_path / "run" / "checkpoint.pt")
    expected = maps.of(run.method.noise, SCENES.images[:8])[0]
    torch.testing.assert_close(kept.scale[-1], expected, rtol=1e-3, atol=1e-4)
    assert main([*asked, "--steps", "6", "--resume"]) == 0
    longer = maps.load(tmp_path / "run" / "noise_maps.npz")
    assert longer.steps == [0, 1, 2, 3, 4, 5, 6] and torch.equal(longer.scale[:5], kept.scale)
    assert not list((tmp_path / "run").glob(".*.part"))


def test_other_methods_write_no_maps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data, "load", lambda name, *split, **options: SCENES)
    assert main(["train", "--steps", "1", "--batch-size", "16", "--out", str(tmp_path / "run")]) == 0
    assert not (tmp_path / "run" / "noise_maps.npz").exists()
