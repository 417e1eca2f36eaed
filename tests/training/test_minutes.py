"""A run of so many minutes: its steps fit into them, and trying how many fit leaves no trace."""

import itertools
from dataclasses import replace

import pytest
import torch

from clutils import data, training, views
from clutils.training import minutes
from tests.runs import same, small, weights


@pytest.mark.parametrize("method", ["simclr", "moco"])
def test_what_was_tried_is_undone_and_the_steps_fit_into_the_minutes(method, monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(minutes.time, "perf_counter", lambda: next(clock) / 10)
    run = small(method=method)
    minutes.fit(run, 1.0, began=0.0)
    monkeypatch.undo()
    assert (run.steps_done, run.rows, run.optimiser.state) == (0, [], {})
    assert 20 < run.steps < 600
    run.steps, same = 3, small(method=method, steps=3).finish(progress=False)
    run.finish(progress=False)
    kept, expected = run.method.state_dict(), same.method.state_dict()
    assert all(torch.equal(kept[name], expected[name]) for name in expected)


def test_time_that_has_passed_before_the_first_step_is_in_the_minutes(monkeypatch):
    found = []
    for began in (0.0, -30.0):
        clock = itertools.count()
        monkeypatch.setattr(minutes.time, "perf_counter", lambda clock=clock: next(clock) / 10)
        run = small()
        minutes.fit(run, 1.0, began=began)
        found.append(run.steps)
    assert found[1] < 0.6 * found[0]


def test_more_minutes_have_a_wider_encoder_and_a_gpu_has_a_resnet():
    scenes, vectors = (data.load(name, limit=100).inputs for name in ("scenes", "vectors:digits"))
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert minutes.suiting(1, scenes, cpu) == {"encoder": "conv16"}
    assert minutes.suiting(10, scenes, cpu) == {"encoder": "conv32"}
    assert minutes.suiting(10, vectors, cpu) == {}
    on_gpu = minutes.suiting(3, scenes, gpu)
    assert (on_gpu["encoder"], on_gpu["batch_size"]) == ("resnet18", 100)
    assert on_gpu["augmentation"] == replace(views.suiting(scenes), size=24)
    assert set(on_gpu) <= set(training.settings.names())
    assert minutes.suiting(3, torch.zeros(2000, 3, 96, 96, dtype=torch.uint8), gpu)["batch_size"] == 113
    assert "learning_rate" not in minutes.suiting(3, scenes, gpu, "moco")


def test_a_tried_step_that_fails_leaves_the_run_as_it_was():
    run = small(learning_rate=1e30, steps=7)
    before = weights(run)
    with pytest.raises(ValueError, match="was not taken"):
        minutes.fit(run, 1.0, 0.0)
    assert (run.steps_done, run.steps, run.rows) == (0, 7, []) and same(before, weights(run))


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "3"])
def test_minutes_that_are_no_time_are_refused(wrong):
    with pytest.raises(ValueError, match=f"minutes is {wrong!r}"):
        minutes.fit(small(), wrong, 0.0)
