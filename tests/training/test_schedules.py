"""Schedules: the paper's cosine in plain words of mathematics; a run follows one and keeps it."""

from __future__ import annotations

import math

import pytest

from clutils import losses
from clutils.training import Cosine
from tests.losses.inputs import fails
from tests.runs import advance, same, small, weights


def test_the_cosine_is_the_papers_at_each_step():
    schedule = Cosine(0.1, 1.0, period=8)
    for t in range(40):
        expected = (1.0 - 0.1) * (1 + math.cos(2 * math.pi * t / 8)) / 2 + 0.1
        assert schedule(t) == pytest.approx(expected, rel=1e-12)
    assert schedule(0) == schedule(8) == 1.0 and schedule(4) == pytest.approx(0.1, rel=1e-12)
    assert Cosine(0.2, 0.2, period=3)(1) == 0.2


def test_a_run_learns_at_the_schedules_temperature_and_its_history_says_so():
    run, plain = small(loss=losses.NTXent(0.3)), small(loss=losses.NTXent(0.3))
    schedule = run.schedules["temperature"] = Cosine(0.1, 1.0, period=6)
    advance(run, 6)
    assert run.history["temperature"].tolist() == [schedule(t) for t in range(6)]
    for t in range(6):  # the same by hand
        plain.loss.temperature = schedule(t)
        plain.step()
    assert same(weights(run), weights(plain))


def test_what_no_run_can_follow_is_quoted():
    fails(lambda: Cosine(0.5, 0.1, period=9), "lowest is 0.5", "0.1")
    fails(lambda: Cosine(0.1, 0.5, period=0), "period is 0")
    fails(lambda: Cosine(0.1, math.inf, period=9), "highest is inf")
    run = small(loss=losses.NTXent(0.3))
    run.schedules["heat"] = Cosine(0.1, 0.5, period=9)
    fails(run.step, "'heat'", "temperature, learning_rate")
    run.schedules = {"temperature": Cosine(0.0, 0.5, period=2)}
    run.step()
    before = weights(run)
    fails(run.step, "temperature is 0.0")
    assert same(before, weights(run))
