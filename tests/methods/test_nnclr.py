"""NNCLR: a queue of one view gives each embedding's nearest neighbour, which stands in for it."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import normalize

from clutils import losses, methods
from tests.methods.given_views import VECTORS, Fixed, built, views_of


def method(**settings) -> methods.NNCLR:
    return built(methods.NNCLR, losses.NNCLR(0.3), out=8, **settings)


def test_a_step_is_the_papers_equation_in_loops_against_the_queue_as_it_was():
    nnclr = method(queue_size=20)
    for number in range(4):
        x = VECTORS[number * 7 : number * 7 + 7]
        views = views_of(x, 2, number)
        before = nnclr.queue.clone()
        z1, z2 = nnclr.head(nnclr.encoder(torch.cat(views))).chunk(2)
        expected = losses.NNCLR.as_written(z1, z2, 0.3, before).item()
        loss, *_ = nnclr(x, Fixed(*views), torch.Generator())
        assert loss.item() == pytest.approx(expected, rel=1e-10)
        nnclr.after_step()
        places = [(7 * number + k) % 20 for k in range(7)]  # the second view's, in place of the oldest
        torch.testing.assert_close(nnclr.queue[places], normalize(z2.detach(), dim=1))
        kept = [k for k in range(20) if k not in places]
        assert torch.equal(nnclr.queue[kept], before[kept])
