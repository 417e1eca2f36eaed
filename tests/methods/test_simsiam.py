"""SimSiam: the other view's embedding, predicted; without the stop-gradient, one point for everything."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity, normalize

from clutils import data, methods
from tests.losses.inputs import assert_same_gradients, close
from tests.methods.steps import VECTORS, Fixed, apart, built, views_of
from tests.runs import advance, small

DIGITS = data.load("digits", limit=32)


@pytest.mark.parametrize("stop", [True, False])
def test_loss_and_gradient_are_the_papers_with_the_embeddings_held_fixed_or_not(stop):
    siam, views = built(methods.SimSiam, out=8, stop_gradient=stop), views_of(VECTORS[:9], 2)
    loss, p, z = siam(VECTORS[:9], Fixed(*views), torch.Generator())
    z1, z2 = apart(siam, views)
    p1, p2 = siam.predictor(z1), siam.predictor(z2)
    fixed = [embedding.detach() if stop else embedding for embedding in (z1, z2)]
    papers = -cosine_similarity(p1, fixed[1]).mean() / 2 - cosine_similarity(p2, fixed[0]).mean() / 2
    expected = 2 + 2 * papers
    close(loss, expected)
    assert_same_gradients(loss, expected, list(siam.parameters()))
    torch.testing.assert_close(p, p1.detach())
    torch.testing.assert_close(z, z2.detach())
    assert not p.requires_grad and not z.requires_grad


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in (1, 2))])
def test_it_collapses_to_one_point_without_the_stop_gradient_and_not_with_it(seed):
    spread = {}
    for stop in (True, False):
        settings = {
            "steps": 40,
            "seed": seed,
            "learning_rate": 5e-3,
            "method_settings": {"stop_gradient": stop},
        }
        run = small(method="simsiam", data=DIGITS, **settings).finish(progress=False)
        z = normalize(run.project(DIGITS), dim=1)
        spread[stop] = float(z.std(dim=0).mean()) * z.shape[1] ** 0.5  # about 1 for directions at random
    assert spread[True] > 0.3 and spread[False] < 0.1


def test_the_predictor_keeps_the_width_and_the_head_alone_projects():
    siam = built(methods.SimSiam)
    assert [siam.predictor[0].in_features, siam.predictor[0].out_features] == [128, 128]
    assert siam.predictor[3].out_features == 128
    run = advance(small(method="simsiam", data=DIGITS), 1)
    with torch.no_grad():
        run.method.eval()
        projected = run.method.head(run.encoder(DIGITS.images / 255))
    torch.testing.assert_close(run.project(DIGITS), projected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", [methods.SimSiam, methods.BYOL])
def test_the_predictor_alone_learns_faster_and_nothing_is_left_out(kind):
    method = built(kind, out=8, predictor_rate=7.0)
    slow, fast = method.parameter_groups()
    assert (slow["factor"], fast["factor"]) == (1.0, 7.0)
    assert {id(p) for p in fast["params"]} == {id(p) for p in method.predictor.parameters()}
    learning = {id(p) for p in method.parameters() if p.requires_grad}
    assert {id(p) for group in (slow, fast) for p in group["params"]} == learning


def test_a_run_that_names_no_learning_rate_takes_a_fifth_of_the_usual_one():
    usual, slow = (small(method=name).learning_rate for name in ("simclr", "simsiam"))
    assert slow == pytest.approx(usual / 5)
    assert small(method="pinda", method_settings={"base": "simsiam"}).learning_rate == slow
