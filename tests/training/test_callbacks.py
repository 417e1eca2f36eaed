"""Callbacks: called at their moments and in their order; what they save is the run, and never another's."""

import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch

from clutils import training
from clutils.course.lab.background import Background
from clutils.training import saved
from tests.runs import past, same, small, weights

DOCS = Path(__file__).resolve().parents[2] / "docs" / "training.md"


class Diary:
    """A callback that notes when it was called."""

    def __init__(self, name: str, said: list[str]) -> None:
        self.name, self.said = name, said

    def before_run(self, run):
        self.said.append(f"{self.name} before {run.steps_done}")

    def after_step(self, run):
        self.said.append(f"{self.name} {run.steps_done}")

    def after_run(self, run):
        self.said.append(f"{self.name} after {run.steps_done}")


@pytest.mark.parametrize("way", ["finish", "background"])
def test_each_is_called_at_its_moments_and_the_last_of_the_list_ends_first(way):
    said: list[str] = []
    callbacks = [Diary("a", said), Diary("b", said), lambda run: said.append(f"f {run.steps_done}")]
    if way == "background":
        assert Background(small(steps=2), callbacks).start().wait(60)
    else:
        small(steps=2).finish(callbacks, progress=False)
    moments = ["a before 0", "b before 0", "a 1", "b 1", "f 1", "a 2", "b 2", "f 2", "b after 2", "a after 2"]
    assert said == moments


@pytest.mark.parametrize(
    ("event", "moments"),
    [
        ("before_run", ["a before 0", "a after 0"]),
        ("after_step", ["a before 0", "a 1", "b ends", "a after 1"]),
    ],
)
def test_each_that_began_ends_also_where_another_fails_and_the_first_error_is_raised(event, moments):
    said: list[str] = []

    def fails(run):
        raise OSError("full")

    def still_fails(run):
        said.append("b ends")
        raise OSError("still full")

    run, breaks = small(steps=3), SimpleNamespace(after_run=still_fails, **{event: fails})
    with pytest.raises(OSError, match=r"^full$"):
        run.finish([Diary("a", said), breaks], progress=False)
    assert said == moments


@pytest.mark.parametrize(
    ("wrong", "said"), [(object(), "has no method before_run"), (Diary, r"has the class Diary, .* Diary\(")]
)
def test_what_is_no_callback_is_refused_before_the_first_step(wrong, said):
    run = small(steps=3)
    with pytest.raises(ValueError, match=said):
        run.finish([wrong], progress=False)
    assert not run.steps_done


def test_a_run_is_the_same_to_the_bit_with_all_of_them_and_its_folder_resumes_it(tmp_path):
    settings = {"steps": 4, "data": "digits", "method": "moco", "precision": "bfloat16"}
    run, random, looked = small(**settings), torch.get_rng_state(), ("rankme", "lidar", "probe")
    watcher = training.watching(run, "digits", numbers=looked, every=2, folder=tmp_path)
    run.finish([watcher, training.Checkpoints(tmp_path, every=3)], progress=False)
    assert torch.equal(torch.get_rng_state(), random) and run.encoder.training
    bare = small(**settings).finish(progress=False)
    steps = saved.taken(past(run)).reset_index(drop=True)[list(past(bare))]
    pd.testing.assert_frame_equal(steps, past(bare), check_dtype=False, rtol=0, atol=0)
    resumed = training.resume(tmp_path)
    assert same(weights(run), weights(bare)) and same(weights(resumed), weights(run)) and resumed.done
    assert run.history["rankme"].notna().tolist() == [True, False, True, False, True]  # row 0 is the first
    assert {"history.csv", "config.json", "measured.csv", "map.npz"} < {
        file.name for file in tmp_path.iterdir()
    }


def test_another_runs_checkpoint_is_not_written_over_and_its_own_is(tmp_path):
    checkpoints = training.Checkpoints(tmp_path)
    run = small(steps=2).finish([checkpoints], progress=False)
    before = (tmp_path / "checkpoint.pt").read_bytes()
    with pytest.raises(ValueError, match="exists already"):
        small(steps=3, seed=1).finish([training.Checkpoints(tmp_path)], progress=False)
    assert (tmp_path / "checkpoint.pt").read_bytes() == before
    run.steps = 3
    run.finish([checkpoints], progress=False)
    assert (tmp_path / "checkpoint.pt").read_bytes() != before


def test_the_example_in_the_docs_runs(tmp_path, monkeypatch, capsys):
    text = DOCS.read_text("utf-8").partition("## Callbacks")[2]
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], found)
    temperatures = [row["temperature"] for row in found["run"].rows]
    assert temperatures == pytest.approx([0.2 * (1 - 0.5 * step / 40) for step in range(40)])
    assert len(capsys.readouterr().out.splitlines()) == 40 + len(found["watcher"].table) + 1
    assert {"checkpoint.pt", "measured.csv", "replay.html"} < {
        file.name for file in Path("runs/mine").iterdir()
    }


def test_a_method_that_a_callback_gets_while_the_run_trains_is_called():
    """Methods were looked up once, before the run: one that was set in `before_run` was never called."""
    called = []

    class Late:
        def before_run(self, run):
            self.after_step = lambda run: called.append(run.steps_done)

    small(steps=2).finish([Late()], progress=False)
    assert called == [1, 2]
