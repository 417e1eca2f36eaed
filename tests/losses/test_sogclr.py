"""SogCLR: a moving average for each sample."""

import math

import pytest
import torch

from clutils import losses
from clutils.similarities import owners
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, fails


def by_loops(rows, averages, index, temperature, rate):
    """rows of the 2B anchors of two views; averages: {sample: u} -> (values, forces as (pull, pushes))."""
    values, forces, found = [], [], {}
    for a, ((positive,), negatives) in enumerate(rows):
        sample = index[a % len(index)]
        g = sum(math.exp(n / temperature) for n in negatives) / len(negatives)
        u = (1 - rate) * averages[sample] + rate * g if sample in averages else g
        found.setdefault(sample, []).append(u)
        values.append(temperature * math.log(u) - positive)
        forces.append((1.0, [math.exp(n / temperature) / len(negatives) / u for n in negatives]))
    averages.update({sample: sum(us) / len(us) for sample, us in found.items()})
    return values, forces


@pytest.mark.parametrize("rate", [0.1, 0.9, 1.0])
def test_steps_over_a_data_set_are_the_algorithm_in_plain_loops(rate):
    loss = losses.SogCLR(0.3, rate)
    loss.allocate(9)
    averages = {}
    # the oracle's columns are the views of other images in order, a batch's are as `owners` says
    whose, own = owners(torch.arange(8).expand(10, -1), 5), torch.arange(10)[:, None] % 5
    columns = whose - (whose > own).int() - (whose > own + 5).int()
    for step in range(4):
        index = torch.randperm(9, generator=torch.Generator().manual_seed(step))[:5]
        views = [z.requires_grad_() for z in embeddings(5, 4, seed=step)]
        rows = oracles.rows_of_a_batch(*(z.tolist() for z in views))
        values, forces = by_loops(rows, averages, index.tolist(), 0.3, rate)
        value = loss(*views, index=index)
        assert value.item() == pytest.approx(sum(values) / 10, rel=1e-5)  # the averages are float32
        gradient = torch.autograd.grad(value, views)
        expected = [z.clone() for z in views]
        pairs = loss.compare(*expected)
        pull, push = (torch.tensor(side, dtype=torch.float64) for side in zip(*forces, strict=True))
        push = push.gather(1, columns)
        total = ((push * pairs.negatives).sum() - (pull * pairs.positives[:, 0]).sum()) / 10
        for a, b in zip(gradient, torch.autograd.grad(total, views), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-8)
        for sample, u in averages.items():
            assert float(loss.log_average[sample].exp()) == pytest.approx(u, rel=1e-5)
    assert (loss.log_average[[i for i in range(9) if i not in averages]] == -torch.inf).all()


def test_at_rate_1_it_is_the_batchs_own_decoupled_loss_times_the_temperature():
    z1, z2 = (z.requires_grad_() for z in embeddings(6, 4))
    loss = losses.SogCLR(0.3, 1.0)
    loss.allocate(6)
    loss.log_average.fill_(7.0)  # a past that must not count
    value = loss(z1, z2, index=torch.arange(6))
    decoupled = losses.Decoupled(0.3)(z1, z2)
    close(value, 0.3 * (decoupled - torch.tensor(10.0, dtype=torch.float64).log()))
    for a, b in zip(torch.autograd.grad(value, z1), torch.autograd.grad(0.3 * decoupled, z1), strict=True):
        close(a, b)


def test_a_sample_beyond_the_room_is_named():
    loss = losses.SogCLR()
    z1, z2 = embeddings(4, 3)
    named = "SogCLR", "index has the number 3", "room for 0", "allocate"
    fails(lambda: loss(z1, z2, index=torch.arange(4)), *named)
    fails(lambda: loss(z1, z2), "SogCLR", "needs index=")
