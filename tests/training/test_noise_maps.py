"""Maps of the learned noise: taken along a run, kept in a file, and written by the command."""

import pytest
import torch

from clutils import data, noise, training
from clutils.__main__ import main
from clutils.training import noise_maps

SCENES = data.load("scenes", limit=60)


def run_of(steps=6, **settings) -> training.Run:
    return training.Run(method="pinda", data=SCENES, batch_size=16, steps=steps, method_settings=settings)


def test_the_maps_of_pictures_are_the_generators_scale_and_mean_in_evaluation_mode():
    torch.manual_seed(0)
    generator = noise.NoiseGenerator("resnet18", 3, learned_mean=True)  # its batch norm knows the mode
    generator.train()
    state = torch.get_rng_state()
    scale, mean = noise_maps.of(generator, SCENES.images[:5], batch_size=2)
    assert torch.equal(state, torch.get_rng_state())
    assert generator.training and all(m.training for m in generator.modules())
    generator.eval()
    with torch.no_grad():
        found = generator(SCENES.images[:5])
    torch.testing.assert_close(scale, found.scale, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(mean, found.mean, rtol=1e-4, atol=1e-5)


def test_watching_a_run_keeps_a_map_every_so_many_steps_and_the_last_and_does_not_change_the_run():
    alone, watched = run_of(7), run_of(7)
    watch = noise_maps.NoiseRecorder(SCENES.images[:4], every=3)
    watch.take(watched)
    watched.finish([watch], progress=False)
    alone.finish(progress=False)
    assert watch.maps.steps == [0, 3, 6, 7]
    assert watch.maps.scale.shape == (4, 4, 3, 32, 32) == watch.maps.mean.shape
    assert not torch.equal(watch.maps.scale[0], watch.maps.scale[-1])
    torch.testing.assert_close(
        watch.maps.scale[-1], noise_maps.of(watched.method.noise, SCENES.images[:4])[0]
    )
    assert alone.history.drop(columns="seconds").equals(watched.history.drop(columns="seconds"))


def test_maps_come_back_from_their_file_to_half_precision(tmp_path):
    run = run_of(2, learned_mean=True)
    watch = noise_maps.NoiseRecorder(SCENES, every=1)
    run.finish([watch], progress=False)
    watch.maps.save(tmp_path / "maps.npz")
    back = noise_maps.load(tmp_path / "maps.npz")
    assert back.steps == [1, 2] and torch.equal(back.pictures, SCENES.images)
    torch.testing.assert_close(back.scale, watch.maps.scale, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(back.mean, watch.maps.mean, rtol=1e-3, atol=1e-4)


def test_a_missing_file_and_a_file_of_something_else_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.npz"):
        noise_maps.load(tmp_path / "none.npz")
    for name, content in (("text.npz", b"hello"), ("empty.npz", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name} holds no maps"):
            noise_maps.load(tmp_path / name)


def test_training_pinda_from_the_command_line_keeps_the_maps_as_they_were_learned(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(data, "load", lambda name, *split, **options: SCENES)
    asked = ["train", "--method=pinda", "--data=scenes", "--batch-size=16", f"--out={tmp_path / 'run'}"]
    assert main([*asked, "--steps", "4"]) == 0
    kept = noise_maps.load(tmp_path / "run" / "noise_maps.npz")
    assert kept.steps == [0, 1, 2, 3, 4] and torch.equal(kept.pictures, SCENES.images[:8])
    run = training.resume(tmp_path / "run" / "checkpoint.pt")
    expected = noise_maps.of(run.method.noise, SCENES.images[:8])[0]
    torch.testing.assert_close(kept.scale[-1], expected, rtol=1e-3, atol=1e-4)
    assert main([*asked, "--steps", "6", "--resume"]) == 0
    longer = noise_maps.load(tmp_path / "run" / "noise_maps.npz")
    assert longer.steps == [0, 1, 2, 3, 4, 5, 6] and torch.equal(longer.scale[:5], kept.scale)
    assert not list((tmp_path / "run").glob(".*.part"))
