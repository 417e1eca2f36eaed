"""The exercises of notebook 12: what rescues a collapsed run does so; what does not is recognised."""

import pandas as pd
import pytest
import torch
from torch.nn.functional import normalize

from clutils import data, losses, training
from clutils.course import lab as lesson
from clutils.course.lab import exercises as training_lab
from tests.course.answers import Mistake, judged


@pytest.fixture(scope="module")
def fallen():
    return training_lab.collapsed_run()


def test_the_run_has_collapsed_and_the_spread_is_that_of_directions(fallen):
    z = normalize(fallen.project(fallen.data), dim=1).double()
    total = 0.0
    for column in z.T:
        mean = sum(column.tolist()) / len(column)
        total += (sum((x - mean) ** 2 for x in column.tolist()) / (len(column) - 1)) ** 0.5
    assert training_lab.spread(fallen) == pytest.approx(total / z.shape[1] * z.shape[1] ** 0.5, rel=1e-4)
    assert training_lab.spread(fallen) < training_lab.PARTED / 4
    random = torch.randn(600, 128, generator=torch.Generator().manual_seed(0))
    assert float(normalize(random, dim=1).std(dim=0).mean()) * 128**0.5 == pytest.approx(1, abs=0.02)


def fresh(run):
    new = training.Run(data=data.load("digits", limit=600), batch_size=64, seed=5)
    run.encoder.load_state_dict(new.encoder.state_dict())


def forgets(run):
    run.loss = losses.NTXent(1.0)
    run.optimiser.state.clear()


def headless(run):
    run.loss, run.method.head = losses.NTXent(1.0), torch.nn.Identity()


def trains_and_sets_the_count_back(run):
    run.loss, run.steps = losses.NTXent(1.0), 400
    for _ in range(5):
        run.step()
    run.steps_done = training_lab.FALLEN


def by_hand(accuracies):
    best = None
    for t, values in accuracies.items():
        if best is None or sum(values) / len(values) > sum(accuracies[best]) / len(accuracies[best]):
            best = t
    for t in sorted(accuracies):
        if t > best and max(accuracies[t]) < min(accuracies[best]):
            return t


def test_turned_reads_the_history_of_a_run_that_was_turned():
    run = training.Run(data=data.load("digits", limit=32), batch_size=16, steps=6)
    for step in range(6):
        if step == 3:
            run.loss.temperature = 1.5
        run.step()
    assert isinstance(run.history, pd.DataFrame) and lesson.turned.answer(run.history) == [(4, 1.5)]


def row_by_row(history):
    found, before = [], None
    for _, row in history.iterrows():
        if before is not None and row["temperature"] != before:
            found.append((row["step"], row["temperature"]))
        before = row["temperature"]
    return found


ANSWERS = {
    "rescue": [lambda run: setattr(run, "loss", losses.PairMargin()), forgets],
    "too_hot": [by_hand],
    "turned": [row_by_row],
}
MISTAKES = {
    "rescue": [
        Mistake(trains_and_sets_the_count_back, "a fresh start is no rescue"),
        Mistake(headless, "a fresh start is no rescue"),
        Mistake(lambda run: None, "changed no setting, weight or memory"),
        Mistake(lambda run: setattr(run.loss, "_note", 1), "changed no setting, weight or memory"),
        Mistake(lambda run: setattr(run.loss, "temperature", 0.05), "Regression has no setting"),
        Mistake(fresh, "a fresh start is no rescue"),
        Mistake(lambda run: 5, "it returned 5"),
    ],
    "turned": [
        Mistake(lambda h: [(k + 0.5, t) for k, t in row_by_row(h)], "a list of (step, new τ)"),
        lambda h: h["temperature"].diff(),
        lambda h: [(s, round(t)) for s, t in lesson.turned.answer(h)],
    ],
}
test_an_exercise_takes_other_ways_and_no_mistake = judged(lesson, ANSWERS, MISTAKES)
