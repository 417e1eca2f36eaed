"""SupCon: SimCLR's step, with the labels of the batch's own images handed to the loss."""

from __future__ import annotations

import math

import pytest
import torch

from clutils import data, losses, methods, training
from tests.losses.inputs import fails
from tests.methods.steps import VECTORS, Fixed, built
from tests.runs import DIGITS, small


def method(loss=None) -> methods.SupCon:
    return built(methods.SupCon, losses.SupCon(temperature=0.3) if loss is None else loss, out=8)


def test_a_run_hands_over_the_labels_of_the_pictures_that_the_step_took():
    vectors = VECTORS.float()
    numbered = data.VectorSet(vectors, torch.arange(96), tuple(map(str, range(96))), "numbered")
    run = training.Run(method="supcon", data=numbered, batch_size=16, steps=2)
    taken, forward = [], run.method.forward
    run.method.forward = lambda images, *rest: taken.append((images, rest[2])) or forward(images, *rest)
    run.step()
    ((images, labels),) = taken
    assert torch.equal(images, vectors[labels])


def test_data_without_labels_or_with_some_is_refused():
    fails(lambda: small(method="supcon", data=DIGITS.images), "learns from labels, but 100 of 100 images")
    some = DIGITS.labels.clone()
    some[:3] = -1
    half = data.ImageSet(DIGITS.images, some, DIGITS.class_names, None, "half")
    fails(lambda: small(method="supcon", data=half), "3 of 100 images have none")
    fails(lambda: method()(VECTORS[:6], Fixed(), torch.Generator()), "labels is None", "(6,)")


def test_chance_is_nt_xents_and_none_where_it_depends_on_the_labels():
    sup = method()
    z = torch.eye(16)  # all similarities 0
    at_zero = sup.loss(z[:8], z[8:], labels=torch.tensor([0, 0, 0, 1, 1, 2, 2, 2]))
    assert sup.chance(8) == pytest.approx(math.log(15)) == pytest.approx(at_zero.item(), abs=1e-5)
    assert method(losses.AttentionNCE()).chance(8) is None
