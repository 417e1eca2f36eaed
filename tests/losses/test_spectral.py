"""The spectral contrastive loss: a factorisation, on vectors as they are."""

import torch

from clutils import losses
from tests.losses.inputs import close


def test_over_a_population_it_is_the_factorisation_of_the_graph_of_augmentations():
    """n views, pair (x, x') with probability P: -2 E<f, f+> + E<f, f'>² = ‖A - FFᵀ‖² - ‖A‖²."""
    draw = torch.Generator().manual_seed(0)
    P = torch.rand(6, 6, generator=draw, dtype=torch.float64)
    P = (P + P.T) / (P + P.T).sum()
    w = P.sum(dim=1)
    f = torch.randn(6, 3, generator=draw, dtype=torch.float64)
    products = f @ f.T
    population = -2 * (P * products).sum() + (w[:, None] * w * products**2).sum()
    A, Fw = P / (w[:, None] * w).sqrt(), w.sqrt()[:, None] * f
    close(population, ((A - Fw @ Fw.T) ** 2).sum() - (A**2).sum())
    # a batch of i.i.d. pairs estimates that without bias
    pairs = torch.multinomial(P.flatten(), 4000, replacement=True, generator=draw)
    estimate = losses.Spectral()(f[pairs // 6], f[pairs % 6])
    torch.testing.assert_close(estimate, population, rtol=0.1, atol=0.1)


def test_it_has_a_second_derivative_where_all_negatives_are_at_right_angles():
    found = []
    for loss in (losses.Spectral(), losses.Spectral.as_written):
        views = [torch.eye(4, dtype=torch.float64).requires_grad_() for _ in range(2)]
        slopes = torch.autograd.grad(loss(*views), views, create_graph=True)
        found.append(torch.autograd.grad(sum(slope.sum() for slope in slopes), views))
    close(torch.stack(found[0]), torch.stack(found[1]))
    assert found[0][0].any()
