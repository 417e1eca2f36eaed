"""LeJEPA: every view meets the mean of all, and every view's batch is compared with a Gaussian."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from clutils import losses, methods
from tests.methods.steps import a_step, built, in_float64, views


def method(number: int = 2, weight: float = 0.3, **settings) -> methods.LeJEPA:
    loss = losses.SIGReg(weight, directions=5)
    loss.generator = torch.Generator().manual_seed(3)
    lejepa = built(methods.LeJEPA, loss, out=4, **settings)
    lejepa.extra_views = number - 2
    return lejepa


def directions():
    drawn = torch.randn(4, 5, generator=torch.Generator().manual_seed(3)).double()
    return F.normalize(drawn, dim=0)


def embedded(lejepa, number, head=None):
    encoder, head = in_float64(lejepa.encoder, lejepa.head if head is None else head)
    return torch.stack(head(encoder(torch.cat(views(number)))).chunk(number))  # one batch of all views


@pytest.mark.parametrize("number", [2, 4])
def test_a_step_is_the_authors_loss_in_plain_loops(number):
    lejepa = method(number)
    z = embedded(lejepa, number).tolist()  # (V, B, D)
    means = [[sum(z[v][b][f] for v in range(number)) / number for f in range(4)] for b in range(9)]
    terms = [(z[v][b][f] - means[b][f]) ** 2 for v in range(number) for b in range(9) for f in range(4)]
    written = losses.SIGReg.as_written
    batches = torch.tensor(z, dtype=torch.float64)
    gaussian = sum(written(one, one, 1.0, 17, directions()).item() for one in batches) / number
    loss, z1, z2 = a_step(lejepa)
    assert loss.item() == pytest.approx(0.7 * sum(terms) / len(terms) + 0.3 * gaussian, rel=1e-4)
    torch.testing.assert_close(z1.double(), torch.tensor(z[0], dtype=torch.float64), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(z2.double(), torch.tensor(z[1], dtype=torch.float64), rtol=1e-3, atol=1e-4)
