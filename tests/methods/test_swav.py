"""SwAV: codes by Sinkhorn-Knopp, each view predicts the other's; written as the decoupled loss."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from clutils import losses, methods
from clutils.methods.swav import sinkhorn
from tests.losses.inputs import assert_same_gradients
from tests.methods.steps import VECTORS, Fixed, built, views_of
from tests.runs import advance, small


def method(**settings) -> methods.SwAV:
    return built(methods.SwAV, losses.Decoupled(0.2), out=8, **settings)


def codes_in_loops(scores, sharpness, rounds):
    """Sinkhorn-Knopp of scores [B][K], as the authors' code: plain exponentials, sums one after the other."""
    Q = [[math.exp(s / sharpness) for s in row] for row in scores]
    B, K = len(Q), len(Q[0])
    for _ in range(rounds):
        columns = [sum(row[k] for row in Q) for k in range(K)]
        Q = [[row[k] / columns[k] / K for k in range(K)] for row in Q]
        Q = [[q / sum(row) / B for q in row] for row in Q]
    return [[q / sum(row) for q in row] for row in Q]


def cross_entropy_in_loops(codes, scores, temperature):
    total = 0.0
    for q, s in zip(codes, scores, strict=True):
        denominator = sum(math.exp(x / temperature) for x in s)
        shares = [math.exp(x / temperature) / denominator for x in s]
        total -= sum(qk * math.log(pk) for qk, pk in zip(q, shares, strict=True))
    return total / len(codes)


def test_a_step_is_the_papers_cross_entropy_in_loops_with_its_gradient():
    swav = method(prototypes=6, sharpness=0.1, rounds=3)
    views = views_of(VECTORS[:9], 2)
    loss, *_ = swav(VECTORS[:9], Fixed(*views), torch.Generator())
    z = normalize(swav.head(swav.encoder(torch.cat(views))), dim=1)
    c = normalize(swav.vectors, dim=1)
    scores = (z @ c.T).chunk(2)
    codes = [torch.tensor(codes_in_loops(s.tolist(), 0.1, 3), dtype=torch.float64) for s in scores]
    pairs = ((codes[1], scores[0]), (codes[0], scores[1]))
    expected = sum(cross_entropy_in_loops(q.tolist(), s.tolist(), 0.2) for q, s in pairs) / 2
    assert loss.item() == pytest.approx(expected, rel=1e-10)
    written = sum(-(q * (s / 0.2).log_softmax(dim=1)).sum(dim=1).mean() for q, s in pairs) / 2
    assert_same_gradients(loss, written, list(swav.parameters()))


def test_balanced_codes_share_the_prototypes_equally_and_are_finite_however_sharp():
    scores = torch.rand(40, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores[:, 0] += 0.5  # all would take the first
    codes = sinkhorn(scores, 0.1, 60)
    torch.testing.assert_close(
        codes.sum(dim=0), torch.full((8,), 5.0, dtype=torch.float64), rtol=1e-3, atol=0
    )
    torch.testing.assert_close(codes.sum(dim=1), torch.ones(40, dtype=torch.float64))
    assert torch.isfinite(sinkhorn(scores.float().clamp(-1, 1), 0.003, 3)).all()


def test_prototypes_are_learned_and_chance_is_their_logarithm():
    run = small(method="swav", method_settings={"prototypes": 20})
    before = run.method.vectors.detach().clone()
    assert not torch.equal(advance(run, 1).method.vectors, before)
    assert run.rows[0]["chance"] == pytest.approx(math.log(20))
