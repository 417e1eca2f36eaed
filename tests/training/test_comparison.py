"""Runs side by side: distinguished by what they differ in, and joined by what they share."""

import math

import numpy as np
import pandas as pd
import pytest

from clutils import losses, training, views
from clutils.figures import known_runs
from clutils.training import comparison, migrations, saved
from clutils.training.saved import Map, SavedRun
from tests.runs import advance, small


def as_saved(run: training.Run, name: str, knn: float, positions: Map | None = None) -> SavedRun:
    looked = saved.table_of([{"step": run.steps_done, "knn": knn, "effective_rank": 10 * knn}])
    return SavedRun(name, None, run.configuration, run.history, looked, positions)


def table(*runs: training.Run) -> pd.DataFrame:
    return comparison.table([as_saved(run, str(k), 0.4) for k, run in enumerate(runs)])


def test_a_row_a_run_has_what_it_is_what_it_ended_at_and_no_setting_that_all_share():
    runs = [advance(small(seed=seed), 2) for seed in range(2)]
    found = comparison.table([as_saved(run, f"s{k}", 0.5 + 0.1 * k) for k, run in enumerate(runs)])
    first = ["run", "method", "loss", "data", "steps", "seed"]
    assert list(found) == [*first, "turned", "temperature", "knn", "effective_rank", "uniformity"]
    assert found["run"].tolist() == ["s0", "s1"] and found["seed"].tolist() == [0, 1]
    assert found["steps"].tolist() == ["2 of 20"] * 2 and set(found["data"]) == {"your own"}
    assert found["knn"].tolist() == [0.5, 0.6] and found["effective_rank"].tolist() == [5.0, 6.0]
    assert found["uniformity"].tolist() == [run.history["uniformity"].iloc[-1] for run in runs]


@pytest.mark.parametrize(
    ("settings", "column", "values"),
    [
        ({"batch_size": 16}, "batch_size", [32, 16]),
        ({"encoder": "conv32", "learning_rate": 5e-3}, "encoder", ["conv16", "conv32"]),
        ({"learning_rate": 1e-3}, "learning_rate", [5e-3, 1e-3]),
        ({"weight_decay": 0.01}, "weight_decay", [1e-4, 0.01]),
        ({"precision": "bfloat16"}, "precision", ["float32", "bfloat16"]),
        ({"method_settings": {"out": 64}}, "out", [128, 64]),
        ({"augmentation": "none"}, "augmentation", [views.AUTO, "none"]),
        ({"loss": losses.MACL(0.2, alpha=0.8)}, None, []),  # the loss has a column, and α no other run
        ({"loss": losses.NTXent(0.3), "seed": 3}, None, []),  # so has τ
    ],
)
def test_a_setting_has_a_column_where_two_runs_differ_in_it(settings, column, values):
    normal = {"precision": "float32", "learning_rate": 5e-3}
    given = [{"pictures": [100, 1, 8, 8]} | normal, {"pictures": [100, 1, 8, 8]} | normal | settings]
    runs = []
    for k, own in enumerate(given):
        shape = own.pop("pictures")
        run = advance(small(**own), 1)
        runs.append(SavedRun(str(k), None, run.configuration | {"pictures": shape}, run.history))
    found = comparison.table(runs)
    usual = {"run", "method", "loss", "data", "steps", "seed", "turned", "temperature"}
    assert set(found) - usual - {"knn", "effective_rank", "uniformity"} == ({column} if column else set())
    assert column is None or found[column].tolist() == values


def test_settings_of_one_loss_are_compared_where_several_runs_have_them():
    macl = [advance(small(loss=losses.MACL(0.1, alpha=alpha)), 1) for alpha in (0.5, 0.8)]
    found = table(*macl, advance(small(), 1))
    assert found["alpha"].tolist()[:2] == [0.5, 0.8] and math.isnan(found["alpha"][2])
    assert "alpha" not in table(macl[0])


def test_what_was_turned_on_the_way_is_named_even_if_it_was_turned_back():
    run = small()
    for temperature in (0.2, 0.7, 0.2):
        run.loss.temperature = temperature
        run.step()
    assert table(run, advance(small(seed=1), 3))["turned"].tolist() == ["temperature", ""]


def test_an_early_run_has_the_settings_that_all_had_then():
    now, seeded = advance(small(), 1), advance(small(seed=1), 1)
    later = ("optimiser", "weight_decay", "extra_views", "compile")
    early = {k: v for k, v in seeded.configuration.items() if k not in later}
    found = comparison.table([as_saved(now, "a", 0.4), SavedRun("b", None, early, seeded.history)])
    assert not set(found) & set(later)


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
    assert comparison.table([steady, turned])["turned"].tolist() == ["", "step"]
    old = turned.history.assign(step=turned.history["step (setting)"]).drop(columns="step (setting)")
    old.to_csv(tmp_path / "1-True" / "history.csv", index=False)  # as until 27 November 2026
    again = saved.read(tmp_path / "1-True")
    assert again.history["step"].tolist() == [1, 2, 3, 4]
    assert comparison.table([steady, again])["turned"].tolist() == ["", "step"]
    assert known_runs.own_curve(tmp_path / "1-True" / "history.csv", 1.0, 0.0)["step"].tolist() == [
        1,
        2,
        3,
        4,
    ]
    looked = pd.DataFrame({"step": [0, 2], "knn": [0.1, 0.4], "effective_rank": [9.0, 5.0]})
    before = pd.DataFrame({"step": 0, "loss": [np.nan, 2.0, 1.5, 1.0], "knn": 0.1})  # a setting of 0, a look
    assert migrations.of_history(before, looked)["step"].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(migrations.of_history(before, looked)["knn"], [0.1, np.nan, 0.4, np.nan])
    assert migrations.of_history(before[1:])["step"].tolist() == [1, 2, 3]
