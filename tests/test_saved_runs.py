"""Runs in folders: whole or refused, never written over, and compared by what they share."""

from __future__ import annotations

import json
import math
import os

import numpy as np
import pandas as pd
import pytest
import torch

from clutils import __main__, live_measures, losses, saved_runs, training, views
from clutils.saved_runs import Map, SavedRun
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
    return saved_runs.write(
        run, tmp_path / "first", LOOKED, positions, torch.tensor([0, 1, 1, 0]), ("a", "b")
    )


def test_what_is_written_is_read_again(run, kept, tmp_path):
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == [
        *("checkpoint.pt", "config.json", "history.csv", "map.npz", "measured.csv")
    ]
    found = saved_runs.read(tmp_path / "first")
    assert found.name == "first" and found.problem is None
    assert found.configuration == found.configuration | json.loads(json.dumps(run.configuration))
    pd.testing.assert_frame_equal(found.history.drop(columns="seconds"), past(run), check_dtype=False)
    assert found.measured.to_dict("records") == LOOKED
    assert (found.map.positions == np.arange(8.0).reshape(4, 2)).all() and found.map.step == 3
    assert found.map.labels.tolist() == [0, 1, 1, 0] and found.map.class_names == ("a", "b")
    assert training.resume(tmp_path / "first" / "checkpoint.pt").steps_done == 3


def test_the_command_line_goes_on_with_what_was_written(kept, tmp_path):
    assert __main__.main(["train", "--resume", "--out", str(tmp_path / "first")]) == 0
    found = saved_runs.read(tmp_path / "first")
    assert found.history["step"].tolist() == [1, 2, 3, 4, 5]
    assert found.measured.to_dict("records")[:-1] == LOOKED and found.measured["step"].iloc[-1] == 5


def test_the_command_line_s_runs_are_listed_too_with_what_was_seen_at_their_end(tmp_path):
    assert __main__.main(["train", *SHORT, "--out", str(tmp_path / "deep" / "er")]) == 0
    (found,) = saved_runs.listed(tmp_path)
    assert found.name == os.path.join("deep", "er") and found.problem is None
    assert len(found.history) == 3 and found.measured["step"].tolist() == [3] and found.map.step == 3
    again = training.resume(found.path / "checkpoint.pt")
    seen = live_measures.watching(again, "digits").look(again)
    assert found.measured["knn"].tolist() == [pytest.approx(seen.knn)]
    assert found.measured["effective_rank"].tolist() == [pytest.approx(seen.effective_rank, rel=1e-4)]


def test_a_look_follows_those_of_steps_before_and_takes_the_place_of_others(kept):
    positions = np.arange(8.0).reshape(4, 2)
    for step, knn in ((2, 0.3), (7, 0.5), (7, 0.6)):
        measured = {"step": step, "knn": knn, "effective_rank": 2.0}
        saved_runs.add_look(kept.path, measured, Map(positions, np.zeros(4, int), ("one",), step))
    found = saved_runs.read(kept.path)
    assert found.measured["step"].tolist() == [*(r["step"] for r in LOOKED if r["step"] < 2), 2, 7]
    assert found.measured["knn"].iloc[-1] == 0.6 and found.map.step == 7


def test_nothing_is_written_over(run, kept, tmp_path):
    before = {path.name: path.read_bytes() for path in (tmp_path / "first").iterdir()}
    for refused in (
        lambda: saved_runs.write(run, tmp_path / "first"),
        lambda: saved_runs.place(tmp_path, "first"),
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
            saved_runs.place(tmp_path, name)
    assert not list((tmp_path / "elsewhere").iterdir()) and (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        ".",
        "..",
        "../up",
        "a/b",
        "/tmp/x",
        "a\\b",
        "~",
        ".hidden",
        "a\nb",
        "a\x00b",
        "x" * 81,
        "end.",
        "C:x",
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match="a run's name is"):
        saved_runs.place(tmp_path, name)


@pytest.mark.parametrize("name", ["run-1", "τ = 0.5, MACL", " für später ", "a.b"])
def test_plain_names_are_taken(name, tmp_path):
    assert saved_runs.place(tmp_path, name).parent == tmp_path


def test_a_write_that_fails_leaves_nothing(run, monkeypatch, tmp_path):
    def full(self, path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(training.Run, "save", full)
    with pytest.raises(OSError, match="No space left"):
        saved_runs.write(run, tmp_path / "new", LOOKED)
    assert not list(tmp_path.iterdir())


def test_a_run_without_a_step_is_not_kept(tmp_path):
    with pytest.raises(ValueError, match="no step yet"):
        saved_runs.write(small(), tmp_path / "new")
    assert not list(tmp_path.iterdir())


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
        ("checkpoint.pt", b"half", "checkpoint.pt is damaged"),
        ("checkpoint.pt", None, "there is no checkpoint.pt"),
        ("history.csv", None, "there is no history.csv"),
    ],
)
def test_a_damaged_run_is_listed_with_one_line_and_the_others_as_they_are(
    run, kept, tmp_path, file, content, says
):
    saved_runs.write(run, tmp_path / "sound", LOOKED)
    path = tmp_path / "first" / file
    path.unlink() if content is None else path.write_bytes(content)
    found = {run.name: run for run in saved_runs.listed(tmp_path)}
    assert sorted(found) == ["first", "sound"] and found["sound"].problem is None
    problem = found["first"].problem
    assert says in problem and "\n" not in problem and len(found["first"].history) == 0


def test_an_array_of_objects_in_a_map_is_not_unpickled(kept, tmp_path):
    bad = np.array([print], dtype=object)
    np.savez(tmp_path / "first" / "map.npz", positions=bad, labels=bad, class_names=bad, step=bad)
    (found,) = saved_runs.listed(tmp_path)
    assert "map.npz is damaged" in found.problem


def test_runs_are_listed_newest_last_and_a_missing_folder_has_none(run, tmp_path):
    for age, name in enumerate(("c", "a", "b")):
        saved_runs.write(run, tmp_path / name)
        for path in (tmp_path / name).iterdir():
            os.utime(path, (1e9 + age, 1e9 + age))
    assert [found.name for found in saved_runs.listed(tmp_path)] == ["c", "a", "b"]
    assert saved_runs.listed(tmp_path / "nowhere") == []


# ---- side by side ------------------------------------------------------------------------------------------


def as_saved(run: training.Run, name: str, knn: float, positions: Map | None = None) -> SavedRun:
    looked = saved_runs.table_of([{"step": run.steps_done, "knn": knn, "effective_rank": 10 * knn}])
    return SavedRun(name, None, run.configuration, run.history, looked, positions)


def test_seeds_of_one_setting_share_a_row_with_their_mean_and_spread():
    found = [as_saved(advance(small(seed=seed), 2), f"s{seed}", 0.5 + 0.1 * seed) for seed in range(3)]
    (row,) = saved_runs.comparison(found).to_dict("records")
    assert row["knn"] == pytest.approx(0.6) and (row["knn_low"], row["knn_high"]) == (0.5, pytest.approx(0.7))
    assert row["seeds"] == "0, 1, 2" and row["effective_rank"] == pytest.approx(6.0) and row["steps"] == 2
    assert row["uniformity"] == pytest.approx(np.mean([run.history["uniformity"].iloc[-1] for run in found]))


def test_a_run_and_its_kept_copy_are_one_seed():
    run = advance(small(), 2)
    found = [
        as_saved(run, "here", 0.4),
        as_saved(run, "kept", 0.4),
        as_saved(advance(small(seed=1), 2), "b", 0.8),
    ]
    (row,) = saved_runs.comparison(found).to_dict("records")
    assert row["knn"] == pytest.approx(0.6) and row["seeds"] == "0, 1"


@pytest.mark.parametrize("how", ["temperature", "steps", "batch", "optimiser", "on the way"])
def test_another_setting_is_another_row_even_one_that_was_turned_back(how):
    other = small(
        seed=1,
        loss=losses.NTXent(0.3) if how == "temperature" else None,
        batch_size=16 if how == "batch" else 32,
        **({"optimiser": "sgd", "learning_rate": 5e-3, "weight_decay": 1e-4} if how == "optimiser" else {}),
    )
    if how == "on the way":
        other.loss.temperature = 0.7
        other.step()
        other.loss.temperature = 0.2
        other.step()
    else:
        advance(other, 3 if how == "steps" else 2)
    found = saved_runs.comparison([as_saved(advance(small(), 2), "a", 0.4), as_saved(other, "b", 0.8)])
    assert len(found) == 2 and found["knn"].tolist() == [0.4, 0.8]


def test_what_was_turned_on_the_way_is_counted_from_the_history():
    turned = small()
    for temperature in (0.2, 0.7, 0.7, 0.2):
        turned.loss.temperature = temperature
        turned.step()
    still = advance(small(seed=1), 4)
    found = saved_runs.comparison([as_saved(turned, "a", 0.4), as_saved(still, "b", 0.8)])
    assert found["turned"].tolist() == [{"temperature": 2}, {}]


def differing(*runs: training.Run) -> list[dict]:
    return saved_runs.comparison([as_saved(run, str(k), 0.4) for k, run in enumerate(runs)])[
        "differs"
    ].tolist()


@pytest.mark.parametrize(
    "settings, usual",
    [
        ({"batch_size": 16}, {"batch_size": 32}),
        ({"encoder": "conv32", "learning_rate": 5e-3}, {"encoder": "conv16"}),
        ({"learning_rate": 1e-3}, {"learning_rate": 5e-3}),
        ({"weight_decay": 0.01}, {"weight_decay": 1e-4}),
        ({"precision": "bfloat16"}, {"precision": "float32"}),
        ({"method_settings": {"out": 64}}, {"out": 128}),
        ({"loss": losses.MACL(0.2, alpha=0.8)}, {}),  # the loss has a column, and α no other run
        ({"loss": losses.NTXent(0.3), "seed": 3}, {}),
    ],
)
def test_what_rows_differ_in_is_what_no_other_column_tells(settings, usual):
    normal = {"precision": "float32", "learning_rate": 5e-3}
    runs = [advance(small(**normal), 1), advance(small(**normal | settings), 1)]
    mine, other = differing(*runs)
    assert mine == usual and other == {
        name: (settings | settings.get("method_settings", {}))[name] for name in usual
    }


def test_settings_of_one_loss_or_method_are_compared_where_several_runs_have_them():
    macl = [advance(small(loss=losses.MACL(0.1, alpha=alpha)), 1) for alpha in (0.5, 0.8)]
    assert differing(*macl, advance(small(), 1)) == [{"alpha": 0.5}, {"alpha": 0.8}, {}]
    assert differing(macl[0]) == [{}]


def test_an_augmentation_is_told_by_its_name_and_one_of_one_s_own_too():
    own = views.Augmentation(size=8, flip=0.0, crop_scale=(0.5, 1.0), grayscale=0.0, blur=0.5)
    given = (None, "none", own, lambda images, generator: images.float() / 255)
    runs = [advance(small(augmentation=augmentation), 1) for augmentation in given]
    found = [
        SavedRun(str(k), None, run.configuration | {"pictures": [100, 1, 8, 8]}, run.history)
        for k, run in enumerate(runs)
    ]
    names = [row["augmentation"] for row in saved_runs.comparison(found)["differs"]]
    assert names == [training.FITTING, "none", f"{training.FITTING} but blur 0.5", None]


def test_an_early_run_is_one_with_the_settings_that_all_had_then():
    now, seeded = advance(small(), 1), advance(small(seed=1), 1)
    early = {k: v for k, v in seeded.configuration.items() if k not in ("optimiser", "weight_decay")}
    (row,) = saved_runs.comparison(
        [as_saved(now, "a", 0.4), SavedRun("b", None, early, seeded.history)]
    ).to_dict("records")
    assert row["seeds"] == "0, 1" and row["differs"] == {}


def test_a_name_that_is_taken_counts_on_to_one_that_is_not(tmp_path):
    assert saved_runs.free_name(tmp_path / "nowhere", "run-1") == "run-1"
    for name in ("run-1", "run-2", "a-b", "run-9"):
        (tmp_path / name).write_text("taken")
    assert saved_runs.free_name(tmp_path, "run-1") == "run-3"
    assert saved_runs.free_name(tmp_path, "run-9") == "run-10"
    assert saved_runs.free_name(tmp_path, "a-b") == "a-b-2"


def test_the_temperature_at_the_end_is_the_one_that_macl_moved_to():
    run = advance(small(loss=losses.MACL(temperature=0.1, alpha=0.5)), 2)
    moved = float(run.loss.adaptive_temperature)
    assert run.history["effective_temperature"].iloc[-1] == pytest.approx(moved)
    assert run.history["temperature"].iloc[-1] == 0.1 and moved != pytest.approx(0.1)
    # A is the mean similarity of the positives, 1 - alignment / 2
    by_hand = 0.1 * (1 + 0.5 * (1 - run.history["alignment"].iloc[-1] / 2))
    assert moved == pytest.approx(by_hand, rel=1e-4)
    assert saved_runs.temperature(as_saved(run, "a", 0.4)) == pytest.approx(moved)
    assert math.isnan(saved_runs.temperature(as_saved(advance(small(method="byol"), 1), "b", 0.4)))


def test_two_results_of_one_seed_are_two_rows_and_the_devices_are_told():
    run = advance(small(steps=5, data="digits"), 3)
    other = as_saved(run, "elsewhere", 0.5)
    other.history["loss"] += 0.01  # as another device or number of processes rounds
    other.configuration["device"] = "cuda"
    first = as_saved(run, "here", 0.8)
    first.configuration["device"] = "cpu"
    table = saved_runs.comparison([first, other])
    assert table["knn"].tolist() == [0.8, 0.5]
    assert [row["device"] for row in table["differs"]] == ["cpu", "cuda"]


def test_a_run_that_goes_on_keeps_where_its_steps_before_were_made(tmp_path):
    assert __main__.main(["train", *SHORT, "--out", str(tmp_path / "a")]) == 0
    first = json.loads((tmp_path / "a" / "config.json").read_text())
    assert first["earlier"] == []
    assert __main__.main(["train", "--resume", "--steps", "4", "--out", str(tmp_path / "a")]) == 0
    second = json.loads((tmp_path / "a" / "config.json").read_text())
    assert second["resumed_at_step"] == 3
    assert second["earlier"] == [{name: first[name] for name in saved_runs.PART}]
    assert __main__.main(["train", "--resume", "--out", str(tmp_path / "a")]) == 0  # nothing is left to do
    assert json.loads((tmp_path / "a" / "config.json").read_text()) == second
