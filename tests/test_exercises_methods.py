"""The exercises of notebook 09 agree with the package, and take other ways of writing the right answer."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from clutils import encoders, exercises, losses, methods
from clutils.methods import momentum


def test_the_package_follows_as_the_exercise_does():
    torch.manual_seed(0)
    leader, target = nn.Linear(3, 2), nn.Linear(3, 2)
    expected = [
        exercises.follow.answer(old.detach().clone(), new.detach(), 0.9)
        for old, new in zip(target.parameters(), leader.parameters(), strict=True)
    ]
    target.requires_grad_(False)
    momentum.follow([target], [leader], 0.9)
    for found, right in zip(target.parameters(), expected, strict=True):
        torch.testing.assert_close(found, right)
    assert exercises.follow.check(lambda target, online, momentum: torch.lerp(online, target, momentum))


def test_the_packages_loss_against_a_queue_is_that_of_the_exercise():
    for queries, keys, queue, temperature in exercises.moco_step.cases():
        loss, after = exercises.moco_step.answer(queries, keys, queue, temperature)
        torch.testing.assert_close(losses.NTXent(temperature)(queries, keys, queue=queue), loss)
        torch.testing.assert_close(after, torch.cat([queue, keys])[-len(queue) :])


def test_the_queue_may_be_written_with_cross_entropy():
    def with_cross_entropy(queries, keys, queue, temperature):
        own = torch.einsum("nc,nc->n", queries, keys)[:, None]
        logits = torch.cat([own, torch.einsum("nc,kc->nk", queries, queue)], dim=1)
        loss = F.cross_entropy(logits / temperature, torch.zeros(len(queries), dtype=torch.int64))
        return loss, torch.vstack([queue, keys])[len(keys) :]

    assert exercises.moco_step.check(with_cross_entropy)


def test_simsiams_step_has_the_gradient_of_the_exercise():
    """The method's default loss is 2 - 2s, so twice the exercise's, and 2 more."""
    torch.manual_seed(0)
    simsiam = methods.SimSiam(encoders.MLP(6, 8, 5), losses.Regression(), out=4).train()
    x = torch.randn(7, 6)
    views = iter([x, x + torch.randn(7, 6)])
    drawn = [next(views), next(views)]

    class Given:
        def several_views(self, images, generator, number):
            return drawn

    loss, _, _ = simsiam(x, Given(), torch.Generator())
    (found,) = torch.autograd.grad(loss, [simsiam.encoder[0].weight])
    z1, z2 = (simsiam.head(simsiam.encoder(view)) for view in drawn)
    right = exercises.simsiam_loss.answer(simsiam.predictor(z1), simsiam.predictor(z2), z1, z2)
    (expected,) = torch.autograd.grad(right, [simsiam.encoder[0].weight])
    torch.testing.assert_close(loss, 2 + 2 * right)
    torch.testing.assert_close(found, 2 * expected)


def test_the_stop_gradient_may_be_written_with_no_grad():
    def frozen(p1, p2, z1, z2):
        with torch.no_grad():
            z1, z2 = F.normalize(z1, dim=1), F.normalize(z2, dim=1)
        p1, p2 = F.normalize(p1, dim=1), F.normalize(p2, dim=1)
        return -((p1 * z2).sum(dim=1) + (p2 * z1).sum(dim=1)).mean() / 2

    assert exercises.simsiam_loss.check(frozen)


def test_what_differs_from_simsiams_loss_is_named():
    def tripled(p1, p2, z1, z2):
        return 3 * exercises.simsiam_loss.answer(p1, p2, z1, z2)

    assert "the gradient by p1" in repr(exercises.simsiam_loss.check(tripled))
    assert "z1" not in repr(exercises.simsiam_loss.check(tripled))
    assert "scalar" in repr(exercises.simsiam_loss.check(lambda p1, p2, z1, z2: p1))


@pytest.mark.parametrize("name", ["follow", "moco_step", "simsiam_loss"])
def test_a_constant_is_no_answer(name):
    assert not getattr(exercises, name).check(lambda *_: torch.tensor(-0.5))


def test_of_a_step_of_moco_the_part_that_is_off_is_named():
    right = exercises.moco_step.answer

    def loss_off(q, k, queue, t):
        loss, after = right(q, k, queue, t)
        return loss + 1, after

    def queue_off(q, k, queue, t):
        loss, after = right(q, k, queue, t)
        return loss, torch.cat([after[:-1], 2 * after[-1:]])

    for answer, said in (
        (loss_off, r"the loss is \d+\.\d{4} and should be \d+\.\d{4}; the queue is right"),
        (queue_off, r"the loss is right; 1 of the queue's 7 rows"),
        (
            lambda q, k, queue, t: (right(q, k, queue, t)[0], queue[:, :2]),
            r"shape \(7, 2\) and should be .*\(7, 4\)",
        ),
        (lambda q, k, queue, t: right(q, k, queue, t)[0], "two things are asked for"),
        (lambda q, k, queue, t: (q @ k.T, queue), r"to be one number.*shape \(3, 3\)"),
        (lambda q, k, queue, t: (1.0, queue), "both are to be tensors; it returned 1.0 and"),
        (lambda q, k, queue, t: 1 / 0, "raised ZeroDivisionError"),
        (lambda q, k, queue, t: None, "returned nothing yet"),
    ):
        assert re.search(said, exercises.moco_step.check(answer).message), said
