"""SIGReg: the Epps-Pulley statistic along random directions."""

import pytest
import torch
import torch.nn.functional as F

from clutils import losses
from tests.losses.inputs import close, embeddings


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(dimension, directions, seed=0):
    """The unit vectors that a loss with such a generator draws first, (D, M)."""
    return F.normalize(torch.randn(dimension, directions, generator=generator(seed)).double(), dim=0)


@pytest.mark.parametrize(("weight", "knots"), [(0.0, 2), (0.3, 17), (1.0, 17)])
def test_value_and_gradient_are_those_of_the_example_as_written(weight, knots):
    views = [z.requires_grad_() for z in embeddings(7, 4)]
    loss = losses.SIGReg(weight, directions=5, knots=knots)
    loss.generator = generator()
    ours, written = loss(*views), loss.as_written(*views, weight, knots, drawn(4, 5))
    close(ours, written)
    for a, b in zip(*(torch.autograd.grad(v, views) for v in (ours, written)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-8, atol=1e-12)


def statistic(x, knots=17):
    return float(losses.SIGReg(1.0, directions=1, knots=knots)(x[:, None], x[:, None]))


def test_knots_converge_to_the_integral():
    x = torch.randn(40, generator=generator(), dtype=torch.float64)
    t = torch.linspace(-3, 3, 20_001, dtype=torch.float64)
    phi = (-t.square() / 2).exp()
    empirical = torch.exp(1j * t[:, None] * x).mean(dim=1)
    exact = 40 * torch.trapezoid((empirical - phi).abs().square() * phi, t)
    assert statistic(x, 2000) == pytest.approx(float(exact), rel=1e-5)
    assert statistic(x) == pytest.approx(float(exact), rel=0.02)
