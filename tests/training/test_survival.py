"""Runs survive: whatever kills them, what was saved is whole, and going on is as if nothing had been."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from clutils import __main__ as command_line
from clutils import files, training
from tests.runs import DIGITS, advance, past, same, small, weights
from tests.training.kills import EVERY

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ("train", "--data", "digits", "--batch-size", "32", "--device", "cpu", "--checkpoint-every", "2")


@pytest.fixture(scope="module")
def kills(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], list[dict]]:
    """What the kills left, and what the run that they were done to came to."""
    if not hasattr(os, "fork"):
        pytest.skip("the lives are forked, which this system can't")
    command = [sys.executable, "-m", "tests.training.kills", str(tmp_path_factory.mktemp("killed"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return [line for line in lines if "how" in line], [line for line in lines if "code" in line]


def test_a_run_killed_again_and_again_loses_no_more_than_the_steps_between_two_checkpoints(kills):
    assert len(kills[0]) == 8 and all(kill["killed"] for kill in kills[0])
    assert {"open", "fsync", "replace", "replaced"} < {kill["how"] for kill in kills[0]}
    for kill in kills[0]:
        assert kill["reached"] - kill["kept"] <= EVERY, kill
        assert kill["rows_kept"] and kill["kept"] % EVERY == 0, kill
    kept = [kill["kept"] for kill in kills[0]]
    assert kept == sorted(kept) and kept[-1] > 0, "it went back"


def test_the_listed_history_is_never_ahead_of_the_checkpoint_and_one_save_behind_at_most(kills):
    for kill in kills[0]:
        assert kill["kept"] - EVERY <= kill["listed"] <= kill["kept"], kill


def test_what_a_killed_writer_left_is_removed_by_the_next(kills):
    assert any(kill["left"] for kill in kills[0])
    for kill in kills[0]:
        assert len(kill["left"]) == len(set(kill["left"])), kill  # one a file: the last writer's
    for end in kills[1]:
        assert end["code"] == 0 and not [name for name in end["files"] if name.endswith(".part")], end


def test_after_all_kills_the_run_is_to_the_bit_what_it_would_have_been(kills):
    (end,) = kills[1]
    assert end["steps"] > 0 and end["weights"] and end["optimiser"] and end["history"], end


def test_a_history_behind_its_checkpoint_is_written_anew_before_the_run_goes_on(tmp_path, monkeypatch):
    assert command_line.main([*TRAIN, "--steps", "4", "--out", str(tmp_path)]) == 0
    listed = pd.read_csv(tmp_path / "history.csv")
    listed[:2].to_csv(tmp_path / "history.csv", index=False)  # as if killed between the two writes
    found = []

    def step(run: training.Run) -> None:
        found.append(pd.read_csv(tmp_path / "history.csv"))
        raise KeyboardInterrupt

    monkeypatch.setattr(training.Run, "step", step)
    assert command_line.main(["train", "--resume", "--steps", "5", "--out", str(tmp_path)]) == 130
    pd.testing.assert_frame_equal(found[0], listed)


class FullDisk:
    """An opened file that takes some bytes, and then no more."""

    def __init__(self, path: Path, mode: str) -> None:
        self.file = open(path, mode)  # noqa: SIM115

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        self.file.write(bytes(content[:20]))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_fills_up_is_one_line_and_code_1_and_the_last_checkpoint_stays(
    tmp_path, monkeypatch, capsys
):
    writes = []

    def fills_up(path: Path, mode: str):
        writes.append(path)
        return open(path, mode) if len(writes) <= 3 else FullDisk(path, mode)  # config, checkpoint, history

    with monkeypatch.context() as patch:
        patch.setattr(files, "open", fills_up, raising=False)
        assert command_line.main([*TRAIN, "--steps", "8", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "No space left on device (what was there before is kept)" in said
    assert str(tmp_path / "checkpoint.pt") in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint.pt", "config.json", "history.csv"]
    assert training.resume(tmp_path / "checkpoint.pt").steps_done == 2
    assert command_line.main(["train", "--resume", "--out", str(tmp_path)]) == 0
    whole = training.Run(data="digits", batch_size=32, steps=8, device="cpu").finish(progress=False)
    assert same(weights(whole), weights(training.resume(tmp_path / "checkpoint.pt")))


def test_an_interrupt_while_the_weights_move_ends_the_run_after_that_step_and_not_within_it(
    tmp_path, capsys, request
):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    run = small(steps=6)
    moves = run.optimiser.step

    def interrupted() -> None:
        if run.steps_done == 2:
            os.kill(os.getpid(), signal.SIGINT)
        moves()

    usual = signal.getsignal(signal.SIGINT)
    run.optimiser.step = interrupted
    run.finish(progress=False)
    assert capsys.readouterr().out == "stopped after 3 of 6 steps; what was learned is kept\n"
    assert signal.getsignal(signal.SIGINT) is usual
    run.save(tmp_path / "run.pt")
    resumed = training.resume(tmp_path / "run.pt", data=DIGITS).finish(progress=False)
    straight = advance(small(steps=6), 6)
    assert same(weights(resumed), weights(straight)) and past(resumed).equals(past(straight))
