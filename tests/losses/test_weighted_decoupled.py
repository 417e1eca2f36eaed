"""DCLW: weights on the positives, over the batch."""

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, masks, similarities

SETTINGS = [losses.WeightedDecoupled(), losses.WeightedDecoupled(0.3, 2.0)]


@pytest.mark.parametrize("P", [1, 3])
@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_it_is_the_papers_formula_in_plain_loops(loss, P):
    s, n = similarities(20, P, 9)
    rows = list(zip(s.tolist(), n.tolist(), strict=True))
    expected = torch.tensor(
        oracles.weighted_decoupled(rows, loss.temperature, loss.sigma), dtype=torch.float64
    )
    close(loss.per_anchor(s, n), expected)
    keep_s, keep_n = masks(s, n)
    rows = [(s[i][keep_s[i]].tolist(), n[i][keep_n[i]].tolist()) for i in range(20)]
    expected = torch.tensor(
        oracles.weighted_decoupled(rows, loss.temperature, loss.sigma), dtype=torch.float64
    )
    close(loss.per_anchor(s.masked_fill(~keep_s, torch.nan), n, keep_s, keep_n), expected)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_a_batch_and_a_queue_compare_whom_the_paper_compares(loss):
    z1, z2 = embeddings(6, 5)
    queue = embeddings(9, 5, seed=7)[0]
    for value, rows in (
        (loss(z1, z2), oracles.rows_of_a_batch(z1.tolist(), z2.tolist())),
        (loss(z1, z2, queue=queue), oracles.rows_of_a_queue(z1.tolist(), z2.tolist(), queue.tolist())),
    ):
        expected = oracles.weighted_decoupled(rows, loss.temperature, loss.sigma)
        assert float(value) == pytest.approx(sum(expected) / len(expected), rel=1e-10)


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_forces_are_the_closed_forms_of_fixed_weights(loss):
    s, n = similarities(50, 1, 40)
    pull, push = anatomy.forces(loss, s, n)
    weights = 2 - 50 * torch.softmax(s / loss.sigma, dim=0)
    close(pull, weights / loss.temperature)
    close(push, torch.softmax(n / loss.temperature, dim=1) / loss.temperature)
    assert float(weights.mean()) == pytest.approx(1)


def test_a_narrow_one_pushes_the_nearest_pair_apart():
    s, n = similarities(30, 1, 20)
    pull, _ = anatomy.forces(losses.WeightedDecoupled(1.0, 1e-4), s, n)
    assert float(pull[s.argmax()]) == pytest.approx(2 - 30)
    assert int((pull < 0).sum()) == 1 and float(pull.max()) == pytest.approx(2)
