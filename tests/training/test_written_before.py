"""What was written before the package was laid out anew opens, goes on and is compared as ever.

`written_before/` holds a run's folder and its map as commit 1a7f19c wrote them (MACL on digits, stopped after
3 of 6 steps, τ turned from 0.2 to 0.3), and `finished.csv`, what that code made of the other three.
"""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch

from clutils import __main__ as command_line
from clutils import checkpoints, data, training
from clutils.training import comparison, saved

WRITTEN = Path(__file__).parent / "written_before"
EXACT = ["step", "chance", "learning_rate", "temperature", "alpha", "alignment_threshold"]


@pytest.fixture
def folder(tmp_path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "run"))


def same_course(found: pd.DataFrame) -> None:
    expected = pd.read_csv(WRITTEN / "finished.csv").iloc[: len(found)]
    assert found.pop("gradient_norm").notna().tolist() == [step > 3 for step in found["step"]]  # kept since
    assert list(found.columns) == list(expected.columns)
    assert found[EXACT].to_numpy(float) == pytest.approx(expected[EXACT].to_numpy(float), rel=1e-12)
    for column in ("loss", "alignment", "uniformity", "effective_temperature"):
        assert found[column].to_numpy(float) == pytest.approx(expected[column].to_numpy(float), rel=1e-4)


def test_its_checkpoint_goes_on_as_the_code_that_wrote_it_did(folder):
    run = training.resume(folder / "checkpoint.pt", device="cpu")
    assert (run.steps_done, run.steps, run.settings.seed, run.settings.batch_size) == (3, 6, 3, 32)
    assert (run.settings.optimiser, run.settings.weight_decay, run.learning_rate) == ("sgd", 5e-4, 0.00375)
    same_course(run.finish(progress=False).history)


def test_its_settings_are_written_again_as_they_were(folder):
    before = json.loads((folder / "config.json").read_text())
    now = training.resume(folder / "checkpoint.pt", device="cpu").configuration
    assert now.pop("threads") == torch.get_num_threads()  # which it did not keep
    assert json.loads(json.dumps(now)) == {name: before[name] for name in now}
    left = ["data_source", "pictures", "device", "processes", "resumed_at_step", "date", "machine", "cores"]
    assert set(before) - set(now) == {*left, "python", "versions", "commit", "earlier"}


def test_the_command_resumes_it(folder, capsys):
    assert command_line.main(["train", "--resume", "--out", str(folder), "--device", "cpu"]) == 0
    same_course(pd.read_csv(folder / "history.csv"))
    config = json.loads((folder / "config.json").read_text())
    assert config["resumed_at_step"] == 3 and [part["commit"] for part in config["earlier"]] == ["1a7f19c"]


def test_its_folder_is_read_and_compared(folder):
    run = saved.read(folder)
    assert len(run.history) == 3 and list(run.measured["step"]) == [3] and len(run.map.positions) == 445
    row = comparison.table([run]).to_dict("records")[0]
    assert (row["method"], row["loss"], row["data"]) == ("simclr", "MACL", "digits")
    assert (row["steps"], row["planned"], row["seeds"]) == (3, 6, "3")
    assert row["temperature"] == pytest.approx(0.25626, abs=1e-4)  # where MACL had moved it to


def test_its_encoder_opens_as_anyones_checkpoint_does(folder):
    opened = checkpoints.open(folder / "checkpoint.pt")
    images = data.load("digits", "test", limit=20).images
    run = training.resume(folder / "checkpoint.pt", device="cpu")
    with torch.no_grad():
        found = opened.encoder.eval()(images.float() / 255)
    assert torch.allclose(found, run.embed(images), atol=1e-5)
