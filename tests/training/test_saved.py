"""Runs in folders: whole or refused, never written over."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from clutils import __main__, explorers, losses, training
from clutils.training import comparison, saved, watcher
from clutils.training.saved import Map, SavedRun
from tests.runs import advance, past, small

SHORT = ("--data", "digits", "--batch-size", "32", "--steps", "3", "--device", "cpu")
LOOKED = [
    {"step": 0, "knn": 0.25, "effective_rank": 8.0},
    {"step": 3, "knn": 0.5, "effective_rank": 16.5},
]


@pytest.fixture(scope="module")
def run() -> training.Run:
    return advance(small(steps=5, data="digits"), 3)


@pytest.fixture
def kept(run, tmp_path) -> SavedRun:
    positions = np.arange(8.0).reshape(4, 2)
    seen = Map(positions, np.array([0, 1, 1, 0]), ("a", "b"), run.steps_done)
    looked = saved.table_of(LOOKED)
    training.save_run(
        run, tmp_path / "first", [lambda run, folder: saved.add_evaluations(folder, looked, seen)]
    )
    return saved.read(tmp_path / "first")


def test_what_is_written_is_read_again(run, kept, tmp_path):
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == [
        *("checkpoint.pt", "config.json", "history.csv", "map.npz", "measured.csv")
    ]
    found = saved.read(tmp_path / "first")
    assert found.name == "first" and found.problem is None
    assert found.configuration == found.configuration | json.loads(json.dumps(run.configuration))
    pd.testing.assert_frame_equal(found.history.drop(columns="seconds"), past(run), check_dtype=False)
    assert found.measured.to_dict("records") == LOOKED
    assert (found.map.positions == np.arange(8.0).reshape(4, 2)).all() and found.map.step == 3
    assert found.map.labels.tolist() == [0, 1, 1, 0] and found.map.class_names == ("a", "b")
    assert training.resume(tmp_path / "first" / "checkpoint.pt").steps_done == 3


def test_the_command_line_s_runs_are_listed_too_with_what_was_seen_at_their_end(tmp_path):
    assert __main__.main(["train", *SHORT, "--out", str(tmp_path / "deep" / "er")]) == 0
    (found,) = saved.listed(tmp_path)
    assert found.name == os.path.join("deep", "er") and found.problem is None
    assert len(found.history) == 3 and found.measured["step"].tolist() == [3] and found.map.step == 3
    again = training.resume(found.path / "checkpoint.pt")
    seen = watcher.watching(again, "digits").look(again)
    assert found.measured["knn"].tolist() == [pytest.approx(seen.knn)]
    assert found.measured["effective_rank"].tolist() == [pytest.approx(seen.effective_rank, rel=1e-4)]


def test_a_look_follows_those_of_steps_before_and_takes_the_place_of_others(kept):
    positions = np.arange(8.0).reshape(4, 2)
    for step, knn in ((2, 0.3), (7, 0.5), (7, 0.6)):
        measured = {"step": step, "knn": knn, "effective_rank": 2.0}
        seen = Map(positions, np.zeros(4, int), ("one",), step)
        saved.add_evaluations(kept.path, saved.table_of([measured]), seen)
    found = saved.read(kept.path)
    assert found.measured["step"].tolist() == [*(r["step"] for r in LOOKED if r["step"] < 2), 2, 7]
    assert found.measured["knn"].iloc[-1] == 0.6 and found.map.step == 7


def test_nothing_is_written_over(run, kept, tmp_path):
    before = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    for refused in (
        lambda: training.save_run(run, tmp_path / "first"),
        lambda: saved.place(tmp_path, "first"),
    ):
        with pytest.raises(ValueError, match="first is there already, and nothing is written over"):
            refused()
    assert {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()} == before
    assert list(tmp_path.iterdir()) == [tmp_path / "first"]


def test_a_link_or_a_file_in_the_place_is_not_followed_or_replaced(run, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").write_text("mine")
    for name in ("link", "file"):
        with pytest.raises(ValueError, match="is there already"):
            saved.place(tmp_path, name)
    assert not list((tmp_path / "elsewhere").iterdir()) and (tmp_path / "file").read_text() == "mine"


BAD = ["", " ", ".", "..", "../up", "a/b", "/tmp/x", "a\\b", "~", ".hidden", "a\nb", "a\x00b", "x" * 81]


@pytest.mark.parametrize("name", [*BAD, "end.", "C:x"])
def test_a_name_that_leads_elsewhere_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="a run's name is"):
        saved.place(tmp_path, name)


@pytest.mark.parametrize("name", ["run-1", "τ = 0.5, MACL", " für später ", "a.b"])
def test_plain_names_are_taken(name, tmp_path):
    assert saved.place(tmp_path, name).parent == tmp_path


@pytest.mark.parametrize("made", [False, True])
def test_a_write_that_fails_leaves_the_folder_as_it_was(run, monkeypatch, tmp_path, made):
    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    def folders(run, folder):
        (folder / "events").mkdir()
        (folder / "events" / "1").write_text("")

    if made:
        (tmp_path / "new").mkdir()
    monkeypatch.setattr(training.Run, "save", full)
    with pytest.raises(OSError, match="No space left"):
        training.save_run(run, tmp_path / "new", [folders])
    assert [path.name for path in tmp_path.rglob("*")] == ["new"] * made


def test_a_writer_that_fails_on_the_way_leaves_what_the_run_wrote_before(tmp_path):
    def broken(run, folder):
        raise ValueError("no map")

    run = advance(small(steps=5, data="digits"), 1)
    training.save_run(run, tmp_path / "own")
    before = {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()}
    run.step()
    with pytest.raises(ValueError, match="no map"):
        training.save_run(run, tmp_path / "own", [broken], replace=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "own").iterdir()} == before


def test_a_loop_of_ones_own_leaves_what_the_command_leaves(tmp_path, capsys):
    asked = ["train", *SHORT, "--loss", "MACL", "--out", str(tmp_path / "command")]
    assert __main__.main(asked) == 0
    given = {"data": "digits", "batch_size": 32, "steps": 3, "device": "cpu", "loss": losses.MACL()}
    run = training.Run(**given)
    watcher = training.watching(run, "digits")
    watcher.look(run)
    while not run.done:
        run.step()
        training.save_run(run, tmp_path / "own", replace=True)
    training.save_run(run, tmp_path / "own", [], True)
    watcher.write(run, tmp_path / "own", last=True)
    explorers.Replay(watcher).write(run, tmp_path / "own")
    one, other = ({path.name: path for path in (tmp_path / name).iterdir()} for name in ("command", "own"))
    assert sorted(one) == sorted(other)
    for name in ("measured.csv", "config.json"):  # a map is turned to the one before it, wherever that was
        assert one[name].read_bytes() == other[name].read_bytes(), name
    histories = [pd.read_csv(folder["history.csv"]).drop(columns="seconds") for folder in (one, other)]
    assert histories[0].equals(histories[1])


def test_a_resumed_run_says_in_the_folder_where_it_went_on(tmp_path):
    training.save_run(advance(small(steps=5, data="digits"), 2), tmp_path / "own")
    run = training.resume(tmp_path / "own")
    before = (tmp_path / "own" / "config.json").read_bytes()
    first = json.loads(before)
    training.save_run(run, tmp_path / "own", replace=True)  # nothing was added
    assert (tmp_path / "own" / "config.json").read_bytes() == before
    training.save_run(advance(run, 1), tmp_path / "own", replace=True)
    now = json.loads((tmp_path / "own" / "config.json").read_text())
    assert first["earlier"] == [] and first["resumed_at_step"] == 0 and now["resumed_at_step"] == 2
    assert now["earlier"] == [{name: first[name] for name in saved.PART}]


@pytest.mark.parametrize("folder", ["", "  "])
def test_a_folder_without_a_name_is_refused_and_nothing_lands_in_the_one_we_are_in(
    run, folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="must have a name"):
        training.save_run(run, folder)
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_step_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="no step yet"):
        training.save_run(small(), tmp_path / "new")
    assert not list(tmp_path.iterdir())


def holding(**parts):
    """Write these arrays into a map in place of its own."""

    def spoil(path):
        with np.load(path) as whole:
            kept = dict(whole)
        np.savez(path, **kept | parts)

    return spoil


@pytest.mark.parametrize(
    ("file", "content", "says"),
    [
        ("config.json", b"{", "config.json is damaged"),
        ("config.json", b"[]", "describes no run"),
        ("config.json", b"\xff\xfe", "config.json is damaged"),
        ("history.csv", b"", "history.csv is damaged"),
        ("history.csv", b"a,b\n1,2\n", "no numbers in a column 'step'"),
        ("history.csv", b"step,loss\nx,y\n", "no numbers in a column 'step'"),
        ("measured.csv", b"step\n1\n", "no numbers in a column 'knn'"),
        ("map.npz", b"PK", "map.npz is damaged"),
        ("map.npz", holding(labels=np.array(["a"] * 445)), "map.npz is damaged"),
        ("map.npz", holding(labels=np.full(445, 0.5)), "map.npz is damaged"),
        ("map.npz", holding(labels=np.array(1)), "map.npz is damaged"),
        ("map.npz", holding(step=np.array([1, 2])), "map.npz is damaged"),
        ("map.npz", holding(positions=np.zeros((2, 2))), "map.npz is damaged"),
        ("map.npz", holding(labels=np.array([print], object)), "map.npz is damaged"),  # not unpickled
        ("map.npz", holding(more=np.zeros(2**12)), "bytes, and 10,000 are the most"),
        ("checkpoint.pt", b"half", "checkpoint.pt is damaged"),
        ("checkpoint.pt", Path.unlink, "there is no checkpoint.pt"),
        ("history.csv", Path.unlink, "there is no history.csv"),
    ],
)
def test_a_damaged_run_is_listed_with_one_line_and_the_others_as_they_are(
    run, kept, tmp_path, monkeypatch, file, content, says
):
    monkeypatch.setattr(saved, "MOST", 10_000)
    training.save_run(run, tmp_path / "sound")
    path = tmp_path / "first" / file
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    found = {run.name: run for run in saved.listed(tmp_path)}
    assert sorted(found) == ["first", "sound"] and found["sound"].problem is None
    problem = found["first"].problem
    assert says in problem and "\n" not in problem and len(found["first"].history) == 0


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"loss": "a word"}, "its 'loss' is 'a word'"),
        ({"loss": {"name": "NTXent", "settings": 3}}, "its settings can't be read: "),
        ({"loss": {"settings": {}}}, "its settings can't be read: 'name'"),
        ({"method_settings": "many"}, "its settings can't be read: "),
        ({"steps": "many"}, "its 'steps' is 'many'"),
        ({"steps": None}, "its 'steps' is None"),
        ({"method": 3}, "its 'method' is 3"),
        ({"method": "flying"}, "'flying'"),
        ({"augmentation": {"size": "wide"}, "optimiser": ["adamw"]}, None),
        ({"pictures": "none"}, ""),
        ({"schedules": 3, "seed": {"a": [1]}, "encoder": None, "device": [1, 2]}, None),
    ],
)
def test_a_strange_configuration_is_one_line_and_never_the_end_of_the_comparison(
    run, kept, tmp_path, changed, says
):
    training.save_run(run, tmp_path / "sound")
    path = tmp_path / "first" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    found = {run.name: run for run in saved.listed(tmp_path)}
    sound = [of for of in found.values() if comparison.problem(of) is None]
    assert len(comparison.table(sound)) == len(sound) == (1 if says is not None else 2)
    problem = comparison.problem(found["first"])
    assert problem is None if says is None else says in problem and "\n" not in problem


@pytest.mark.parametrize("name", saved.WRITTEN)
def test_a_file_that_no_run_wrote_is_not_replaced_and_what_a_run_left_that_died_early_is(name, tmp_path):
    (tmp_path / name).write_text("mine")
    command = ["train", *SHORT, "--out", str(tmp_path)]
    assert __main__.main(command) == 2
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]
    with pytest.raises(ValueError, match="is no run's, and would be replaced"):
        small().finish([training.Checkpoints(tmp_path)], progress=False)
    (tmp_path / name).unlink()
    saved.describe(small(), tmp_path)
    assert __main__.main(command) == 0


def test_runs_are_listed_newest_last_and_a_missing_folder_has_none(run, tmp_path):
    for age, name in enumerate(("c", "a", "b")):
        training.save_run(run, tmp_path / name)
        for path in (tmp_path / name).iterdir():
            os.utime(path, (1e9 + age, 1e9 + age))
    assert [found.name for found in saved.listed(tmp_path)] == ["c", "a", "b"]
    assert saved.listed(tmp_path / "nowhere") == []
