"""DINO: the cross-entropy of a centred, sharpened target; what collapses without either."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import normalize

from clutils import losses, methods
from tests.losses.inputs import assert_same_gradients
from tests.methods.steps import VECTORS, Fixed, built, moved, views_of
from tests.runs import small


def method(**settings) -> methods.DINO:
    dino = built(methods.DINO, losses.Decoupled(0.1), out=8, **settings)
    moved((*dino.target_encoder.parameters(), *dino.target_vectors.parameters()), 0.05)
    dino.centre += torch.linspace(-0.2, 0.3, dino.prototypes).to(dino.centre)
    return dino


def cross_entropy_in_loops(targets, scores, centre, sharp, soft):
    """Algorithm 1's H with plain exponentials: scores [B][K] of target and student."""
    total = 0.0
    for of_target, of_student in zip(targets, scores, strict=True):
        raised = [math.exp((s - c) / sharp) for s, c in zip(of_target, centre, strict=True)]
        shares = [math.exp(s / soft) for s in of_student]
        total -= sum(a / sum(raised) * math.log(b / sum(shares)) for a, b in zip(raised, shares, strict=True))
    return total / len(scores)


def scores_of(views, encoder, head, vectors):
    z = normalize(head(encoder(torch.cat(views))), dim=1)
    return (z @ normalize(vectors.weight, dim=1).T).chunk(2)


def test_a_step_is_algorithm_1_in_loops_and_its_gradient_reaches_the_student_alone():
    dino, views = method(prototypes=6), views_of(VECTORS[:9], 2)
    loss, *_ = dino(VECTORS[:9], Fixed(*views), torch.Generator())
    own = scores_of(views, dino.encoder, dino.head, dino.vectors)
    with torch.no_grad():
        target = scores_of(views, dino.target_encoder, dino.target_head, dino.target_vectors)
    centre = dino.centre.tolist()
    expected = sum(
        cross_entropy_in_loops(t.tolist(), s.tolist(), centre, 0.04, 0.1)
        for t, s in ((target[1], own[0]), (target[0], own[1]))
    )
    assert loss.item() == pytest.approx(expected / 2, rel=1e-8)
    q = [((t - dino.centre) / 0.04).softmax(dim=1) for t in target]
    pairs = ((q[1], own[0]), (q[0], own[1]))
    written = sum(-(a * (s / 0.1).log_softmax(dim=1)).sum(dim=1).mean() for a, s in pairs) / 2
    learned = [p for p in dino.parameters() if p.requires_grad]
    assert_same_gradients(loss, written, learned)
    frozen = (dino.target_encoder, dino.target_head, dino.target_vectors)
    assert not any(p.requires_grad for part in frozen for p in part.parameters())


def test_after_a_step_the_centre_follows():
    dino, views = method(prototypes=5, centre_momentum=0.6), views_of(VECTORS[:9], 2)
    dino(VECTORS[:9], Fixed(*views), torch.Generator())
    with torch.no_grad():
        target = torch.cat(scores_of(views, dino.target_encoder, dino.target_head, dino.target_vectors))
    centre = 0.6 * dino.centre + 0.4 * target.mean(dim=0)
    dino.after_step()
    torch.testing.assert_close(dino.centre, centre)


def test_without_the_centre_one_prototype_takes_all_and_without_sharpening_all_answers_are_even():
    """Its goal: answers that differ from image to image; each of the two parts alone collapses."""
    ends = {}
    for name, settings in {
        "whole": {},
        "no centre": {"centre_momentum": 1.0},  # which then stays at 0
        "no sharpening": {"target_temperature": 0.5},
    }.items():
        run = small(method="dino", steps=60, method_settings={"prototypes": 16, **settings})
        run.finish(progress=False)
        last = run.history.iloc[-1]
        if name == "whole":  # what a constant answer gives, all prototypes alike
            assert run.history.loss[-10:].mean() < math.log(16)
        ends[name] = last["prototypes_used"], last["prototypes_of_an_image"]
    used, of_an_image = ends["whole"]
    assert used > 12 and of_an_image < 0.8 * used
    assert ends["no centre"][0] < 0.5 * used, ends
    assert ends["no sharpening"][1] > 15, ends
