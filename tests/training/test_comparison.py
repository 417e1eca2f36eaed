"""Runs side by side: distinguished by what they differ in, and joined by what they share."""

import math

import numpy as np
import pandas as pd
import pytest

from clutils import losses, training, views
from clutils.figures import known_runs
from clutils.training import comparison, saved
from clutils.training.saved import Map, SavedRun
from tests.runs import advance, small


@pytest.fixture(scope="module")
def run() -> training.Run:
    return advance(small(steps=5, data="digits"), 3)


def as_saved(run: training.Run, name: str, knn: float, positions: Map | None = None) -> SavedRun:
    looked = saved.table_of([{"step": run.steps_done, "knn": knn, "effective_rank": 10 * knn}])
    return SavedRun(name, None, run.configuration, run.history, looked, positions)


def test_seeds_of_one_setting_share_a_row_with_their_mean_and_spread():
    found = [as_saved(advance(small(seed=seed), 2), f"s{seed}", 0.5 + 0.1 * seed) for seed in range(3)]
    (row,) = comparison.table(found).to_dict("records")
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
    (row,) = comparison.table(found).to_dict("records")
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
    found = comparison.table([as_saved(advance(small(), 2), "a", 0.4), as_saved(other, "b", 0.8)])
    assert len(found) == 2 and found["knn"].tolist() == [0.4, 0.8]


def test_what_was_turned_on_the_way_is_counted_from_the_history():
    turned = small()
    for temperature in (0.2, 0.7, 0.7, 0.2):
        turned.loss.temperature = temperature
        turned.step()
    still = advance(small(seed=1), 4)
    found = comparison.table([as_saved(turned, "a", 0.4), as_saved(still, "b", 0.8)])
    assert found["turned"].tolist() == [{"temperature": 2}, {}]


def differing(*runs: training.Run) -> list[dict]:
    return comparison.table([as_saved(run, str(k), 0.4) for k, run in enumerate(runs)])["differs"].tolist()


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
    names = [row["augmentation"] for row in comparison.table(found)["differs"]]
    assert names == [views.AUTO, "none", f"{views.AUTO} but blur 0.5", None]


def test_an_early_run_is_one_with_the_settings_that_all_had_then():
    now, seeded = advance(small(), 1), advance(small(seed=1), 1)
    later = ("optimiser", "weight_decay", "extra_views", "compile")
    early = {k: v for k, v in seeded.configuration.items() if k not in later}
    (row,) = comparison.table([as_saved(now, "a", 0.4), SavedRun("b", None, early, seeded.history)]).to_dict(
        "records"
    )
    assert row["seeds"] == "0, 1" and row["differs"] == {}


def test_the_temperature_at_the_end_is_the_one_that_macl_moved_to():
    run = advance(small(loss=losses.MACL(temperature=0.1, alpha=0.5)), 2)
    moved = float(run.loss.adaptive_temperature)
    assert run.history["effective_temperature"].iloc[-1] == pytest.approx(moved)
    assert run.history["temperature"].iloc[-1] == 0.1 and moved != pytest.approx(0.1)
    # A is the mean similarity of the positives, 1 - alignment / 2
    by_hand = 0.1 * (1 + 0.5 * (1 - run.history["alignment"].iloc[-1] / 2))
    assert moved == pytest.approx(by_hand, rel=1e-4)
    assert comparison.temperature(as_saved(run, "a", 0.4)) == pytest.approx(moved)
    assert math.isnan(comparison.temperature(as_saved(advance(small(method="byol"), 1), "b", 0.4)))


def test_two_results_of_one_seed_are_two_rows_and_the_devices_are_told():
    run = advance(small(steps=5, data="digits"), 3)
    other = as_saved(run, "elsewhere", 0.5)
    other.history["loss"] += 0.01  # as another device or number of processes rounds
    other.configuration["device"] = "cuda"
    first = as_saved(run, "here", 0.8)
    first.configuration["device"] = "cpu"
    table = comparison.table([first, other])
    assert table["knn"].tolist() == [0.8, 0.5]
    assert [row["device"] for row in table["differs"]] == ["cpu", "cuda"]


def test_a_setting_called_step_is_turned_when_it_is_and_not_by_each_step(tmp_path):
    def run_of(seed: int, first: float, turned: bool) -> SavedRun:
        run = small(loss=losses.ISogCLR(step=first), seed=seed, steps=4, batch_size=16)
        advance(run, 2)
        if turned:
            run.loss.step = 0.05
        advance(run, 2)
        training.save_run(run, tmp_path / f"{seed}-{turned}")
        return saved.read(tmp_path / f"{seed}-{turned}")

    steady, turned = run_of(0, 0.05, False), run_of(1, 0.01, True)
    assert comparison.table([steady, turned])["turned"].tolist() == [{}, {"step": 1}]  # two lines
    old = turned.history.assign(step=turned.history["step (setting)"]).drop(columns="step (setting)")
    old.to_csv(tmp_path / "1-True" / "history.csv", index=False)  # as until 27 November 2026
    again = saved.read(tmp_path / "1-True")
    assert again.history["step"].tolist() == [1, 2, 3, 4]
    assert comparison.table([steady, again])["turned"].tolist() == [{}, {"step": 1}]
    assert known_runs.own_curve(tmp_path / "1-True" / "history.csv", 1.0, 0.0)["step"].tolist() == [
        1,
        2,
        3,
        4,
    ]
    looked = pd.DataFrame({"step": [0, 2], "knn": [0.1, 0.4], "effective_rank": [9.0, 5.0]})
    before = pd.DataFrame({"step": 0, "loss": [np.nan, 2.0, 1.5, 1.0], "knn": 0.1})  # a setting of 0, a look
    assert saved.numbered(before, looked)["step"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(saved.numbered(before, looked)["knn"], [0.1, np.nan, 0.4, np.nan])
    assert saved.numbered(before[1:])["step"].tolist() == [1, 2, 3]
