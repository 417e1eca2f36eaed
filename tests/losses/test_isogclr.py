"""iSogCLR: a temperature for each sample."""

import math

import pytest
import torch

from clutils import losses, training
from tests.losses import oracles
from tests.losses.inputs import embeddings, fails
from tests.runs import DIGITS


def of_one_size(seed=0):
    """Two equal views, so that both anchors of a sample have the same negatives."""
    z = embeddings(6, 3, seed=seed)[0]
    return z, z.clone()


def test_a_step_of_the_temperature_is_the_slope_in_plain_loops():
    z1, z2 = embeddings(5, 3)
    loss = losses.ISogCLR(0.3, rate=0.7, temperature=0.2, step=0.05, lowest=0.01)
    loss.allocate(5)
    index, averages = torch.tensor([4, 2, 0, 1, 3]), {}
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist())
    for _ in range(2):  # the second step has averages, and temperatures of their own
        tau = {i: float(loss.temperatures[i]) for i in range(5)}
        slopes, values, found = {i: [] for i in range(5)}, [], {}
        for a, ((positive,), negatives) in enumerate(rows):
            i = int(index[a % 5])
            E = [math.exp(n / tau[i]) for n in negatives]
            g = sum(E) / 8
            u = 0.3 * averages[i] + 0.7 * g if i in averages else g
            found.setdefault(i, []).append(u)
            weighed = sum(e / u * n / tau[i] for e, n in zip(E, negatives, strict=True)) / 8
            slopes[i].append(math.log(u) + 0.3 - weighed)
            values.append(tau[i] * math.log(u) - positive + tau[i] * 0.3)
        averages.update({i: sum(us) / 2 for i, us in found.items()})
        assert loss(z1, z2, index=index).item() == pytest.approx(sum(values) / 10, rel=1e-5)
        for i in range(5):
            moved = tau[i] - 0.05 * sum(slopes[i]) / 2
            assert float(loss.temperatures[i]) == pytest.approx(min(max(moved, 0.01), 0.7), rel=1e-4)


def test_temperatures_stay_between_their_bounds_and_no_step_is_sogclr():
    z1, z2 = of_one_size()
    loss = losses.ISogCLR(0.3, step=100.0)
    loss.allocate(6)
    for _ in range(5):
        loss(z1, z2, index=torch.arange(6))
    assert ((loss.temperatures == 0.05) | (loss.temperatures == 0.7)).all()
    still, plain = losses.ISogCLR(0.3, 0.6, 0.2, step=0.0), losses.SogCLR(0.2, 0.6)
    for one in (still, plain):
        one.allocate(6)
    for seed in range(3):
        z1, z2 = embeddings(6, 3, seed=seed)
        values = (one(z1, z2, index=torch.arange(6)) for one in (still, plain))
        assert float(next(values)) - 0.2 * 0.3 == pytest.approx(float(next(values)), rel=1e-6)
    assert float(still.reported["effective_temperature"]) == pytest.approx(0.2)


def test_bounds_of_the_temperature_that_are_the_wrong_way_round_are_refused():
    fails(lambda: losses.ISogCLR(lowest=0.7, highest=0.05), "lowest is 0.7 but highest is 0.05")
    assert losses.ISogCLR(lowest=0.1, highest=0.1).lowest == 0.1


def test_its_setting_called_step_leaves_the_number_of_the_step_in_the_history(tmp_path):
    run = training.Run(data=DIGITS, loss=losses.ISogCLR(step=0.02), steps=3, batch_size=16)
    run.step()
    run.step()
    run.rows[0]["step"] = run.rows[1]["step"] = 0.02  # as files have it from before
    run.save(tmp_path / "run.pt")
    again = training.resume(tmp_path / "run.pt", data=DIGITS)
    again.step()
    assert again.history["step"].tolist() == [1, 2, 3]
    assert again.history["step (setting)"].tolist() == [0.02] * 3
