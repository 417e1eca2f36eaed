"""Runs that earlier versions wrote still open, are compared, and go on as the code that wrote them did.

`written_before/` has a folder a run: what `saved` wrote when half of its steps were done, and `finished.csv`,
the history of the same run without a break. MACL is of commit 1a7f19c: digits, stopped after 3 of 6 steps, τ
turned from 0.2 to 0.3, with a map. The others are of commit bd1ea0e, stopped after 6 of 12 steps: MoCo with τ
along a cosine; BYOL; PiNDA with maps of the noise; SogCLR with τ turned from 0.1 to 0.3; vectors by MACL,
with rankme and kNN every 3 steps; graphs; sentences from the file beside the run. These have small encoders,
given as modules (`ENCODERS`), so that the files are small.
"""

import json
import shutil
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
import torch

from clutils import __main__ as command_line
from clutils import checkpoints, data, encoders, training
from clutils.encoders.graphs import GINLayer, GraphNetwork
from clutils.training import comparison, noise_maps, saved

WRITTEN = Path(__file__).parent / "written_before"
ENCODERS = {
    "macl": lambda: None,  # by name
    "moco": lambda: encoders.ConvNet(1, width=8),
    "byol": lambda: encoders.ConvNet(1, width=8),
    "pinda": lambda: encoders.ConvNet(1, width=8),
    "sogclr": lambda: encoders.ConvNet(1, width=4),
    "vectors": lambda: encoders.MLP(13, hidden=16, features=8),
    "graphs": lambda: GraphNetwork(1, GINLayer, width=8, layers=2),
    "sentences": lambda: encoders.Transformer(24, width=4, heads=2, layers=1),
}
EXACT = (
    "step",
    "chance",
    "learning_rate",
    "temperature",
    "alpha",
    "alignment_threshold",
    "penalty",
    "momentum",
)
MEASURED = ["rankme", "knn"]


@pytest.fixture
def folder(request, tmp_path, monkeypatch) -> Path:
    """A copy of a run's folder, as the current folder: a file beside the run is found by its name."""
    copy = Path(shutil.copytree(WRITTEN / request.param, tmp_path / request.param))
    monkeypatch.chdir(copy)
    return copy


def of(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("folder", names, indirect=True)


def resume(folder: Path) -> training.Run:
    return training.resume(folder / "checkpoint.pt", encoder=ENCODERS[folder.name](), device="cpu")


def demand_same(found: pd.DataFrame, folder: Path) -> None:
    """The recorded columns and their numbers; a column that has come since is empty where nobody kept it.

    What is measured of a nearly collapsed encoder moves by 1e-3 with the last bit of an embedding. On graphs,
    the gradient of the fourth resumed step was 3e-4 longer on another kind of processor.
    """
    expected, before = (pd.read_csv(WRITTEN / folder.name / name) for name in ("finished.csv", "history.csv"))
    assert [name for name in found if name in expected] == list(expected.columns)
    assert len(found) == len(expected)
    for name in expected.columns.drop("seconds"):
        within = {"rel": 1e-12} if name in EXACT else {"rel": 5e-3 if name in MEASURED else 1e-4, "abs": 1e-5}
        now, then = found[name].to_numpy(float), expected[name].to_numpy(float)
        if (folder.name, name) == ("graphs", "gradient_norm"):  # its rounding grows, see above
            end = len(before) + 3
            assert now[end:] == pytest.approx(then[end:], rel=1e-3)
            now, then = now[:end], then[:end]
        assert now == pytest.approx(then, nan_ok=True, **within), name
    for name in found.columns.difference(expected.columns):
        assert found[name][: len(before)].isna().all(), name


@of(*ENCODERS)
def test_its_checkpoint_goes_on_as_the_code_that_wrote_it_did(folder):
    run, kept = resume(folder), json.loads((folder / "config.json").read_text())
    assert (run.steps_done, run.steps, run.settings.seed) == (kept["steps"] / 2, kept["steps"], kept["seed"])
    found = run.finish(progress=False).history
    if folder.name == "vectors":  # measured again by the command alone
        later = found["step"] > kept["steps"] / 2
        assert found.loc[later, MEASURED].isna().all(axis=None)
        found.loc[later, MEASURED] = pd.read_csv(folder / "finished.csv").loc[later, MEASURED]
    demand_same(found, folder)


@of(*ENCODERS)
def test_its_settings_are_written_again_as_they_were(folder):
    before = json.loads((folder / "config.json").read_text())
    now = json.loads(json.dumps(resume(folder).configuration))
    if folder.name == "macl":
        assert now.pop("threads") == torch.get_num_threads()  # which it did not keep
    assert now == {name: before[name] for name in now}
    left = {"data_source", "pictures", "device", "processes", "resumed_at_step", "date", "machine", "cores"}
    left |= {"python", "versions", "commit", "earlier"}
    assert set(before) - set(now) == left | ({"schedules"} if folder.name != "macl" else set())


@of(*ENCODERS)
def test_the_command_resumes_it(folder, monkeypatch):
    looking = ["--look", ",".join(MEASURED), "--look-every", "3"] if folder.name == "vectors" else []
    monkeypatch.setattr(training, "resume", partial(training.resume, encoder=ENCODERS[folder.name]()))
    before = json.loads((folder / "config.json").read_text())
    assert command_line.main(["train", "--resume", "--out", str(folder), "--device", "cpu", *looking]) == 0
    demand_same(pd.read_csv(folder / "history.csv"), folder)
    config = json.loads((folder / "config.json").read_text())
    assert set(config) >= set(before) and config["resumed_at_step"] == before["steps"] / 2
    assert [part["commit"] for part in config["earlier"]] == [before["commit"]]


@of("pinda")
def test_its_noise_maps_go_on_from_those_it_has(folder, monkeypatch):
    before = noise_maps.load(folder / "noise_maps.npz")
    monkeypatch.setattr(training, "resume", partial(training.resume, encoder=ENCODERS["pinda"]()))
    assert command_line.main(["train", "--resume", "--out", str(folder), "--device", "cpu"]) == 0
    after, run = noise_maps.load(folder / "noise_maps.npz"), resume(folder)
    assert before.steps == [*range(7)] and after.steps == [*range(13)]
    assert torch.equal(after.scale[:7], before.scale) and torch.equal(after.mean[:7], before.mean)
    for found, expected in zip(
        (after.scale[-1], after.mean[-1]), noise_maps.of(run.method.noise, after.pictures), strict=True
    ):
        assert torch.allclose(found, expected, rtol=1e-3, atol=1e-4)  # in half precision


@of("macl")
def test_its_folder_is_read_and_compared(folder):
    run = saved.read(folder)
    assert len(run.history) == 3 and list(run.measured["step"]) == [3] and len(run.map.positions) == 445
    row = comparison.table([run]).to_dict("records")[0]
    assert (row["method"], row["loss"], row["data"]) == ("simclr", "MACL", "digits")
    assert (row["steps"], row["seed"]) == ("3 of 6", 3)
    assert row["temperature"] == pytest.approx(0.25626, abs=1e-4)  # where MACL had moved it to


@of("macl", "moco", "byol", "pinda")
def test_its_encoder_opens_as_anyones_checkpoint_does(folder):
    opened = checkpoints.open(folder / "checkpoint.pt")
    images = data.load("digits", "test", limit=20).images
    run = resume(folder)
    with torch.no_grad():
        found = opened.encoder.eval()(images.float() / 255)
    assert torch.allclose(found, run.embed(images), atol=1e-5)
    assert opened.untempered == ("BYOL" if folder.name == "byol" else "")
    if folder.name == "pinda":  # whose noise is the run's, and no encoder's
        assert opened.dropped["noise."] and torch.isfinite(noise_maps.of(run.method.noise, images)[0]).all()


@of("vectors", "graphs", "sentences")
def test_its_encoder_is_of_no_images_and_says_what_opens_it(folder):
    with pytest.raises(ValueError, match=r"is a run of this package on .*training\.resume"):
        checkpoints.open(folder / "checkpoint.pt")
