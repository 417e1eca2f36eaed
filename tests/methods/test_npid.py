"""NPID: a softmax over a memory bank with a vector for each sample, which follows what is seen of it."""

from __future__ import annotations

import math

import pytest
import torch

from clutils import losses, methods
from tests.losses.inputs import fails
from tests.methods.steps import VECTORS, Fixed, built, views_of
from tests.runs import DIGITS, advance, small


def method(samples=30, **settings) -> methods.NPID:
    made = built(methods.NPID, losses.NTXent(0.3), out=8, **settings)
    made.allocate(samples)
    return made


def unit(vector):
    length = math.sqrt(sum(x * x for x in vector))
    return [x / length for x in vector]


def test_a_step_is_the_papers_softmax_over_the_bank_in_loops_and_then_its_entries_move():
    npid = method(momentum=0.7)
    for number in range(3):
        index = torch.tensor([3, 29, 0, 11, 12 + number])
        (view,) = views_of(VECTORS[index], 1, number)
        bank = npid.bank.tolist()
        vectors = [unit(v) for v in npid.head(npid.encoder(view)).tolist()]
        total = 0.0
        for i, v in zip(index.tolist(), vectors, strict=True):
            scores = [math.exp(sum(a * b for a, b in zip(v, entry, strict=True)) / 0.3) for entry in bank]
            total -= math.log(scores[i] / sum(scores)) / 5
        loss, *_ = npid(VECTORS[index], Fixed(view), torch.Generator(), index=index)
        assert loss.item() == pytest.approx(total, rel=1e-10)
        assert npid.bank.tolist() == bank  # only after the step
        npid.after_step()
        for i, v in zip(index.tolist(), vectors, strict=True):
            bank[i] = unit([0.7 * b + 0.3 * a for a, b in zip(v, bank[i], strict=True)])
        torch.testing.assert_close(npid.bank, torch.tensor(bank, dtype=torch.float64))


def test_no_gradient_reaches_the_bank_and_it_keeps_what_it_holds():
    npid = method()
    npid(VECTORS[:7], Fixed(VECTORS[:7]), torch.Generator(), index=torch.arange(7))[0].backward()
    assert npid.bank.grad is None and not npid.bank.requires_grad
    assert not any(buffer is npid.bank for buffer in npid.changing_buffers())
    before = npid.bank.clone()
    npid.allocate(30)
    assert torch.equal(npid.bank, before)


def test_an_epoch_moves_every_entry_once_and_chance_is_that_of_the_bank():
    run = small(method="npid", batch_size=25)
    before = run.method.bank.clone()
    advance(run, 3)
    assert int((run.method.bank != before).any(dim=1).sum()) == 75
    advance(run, 1)
    assert bool((run.method.bank != before).any(dim=1).all())
    assert run.rows[0]["chance"] == pytest.approx(math.log(len(DIGITS)))


def test_without_the_samples_numbers_it_says_so():
    fails(lambda: method()(VECTORS[:7], Fixed(VECTORS[:7]), torch.Generator()), "index is None", "(7,)")
