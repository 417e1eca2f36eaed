"""ADNCE: Gaussian weights on the negatives, without a gradient of their own."""

import torch

from clutils import anatomy, losses

SETTINGS = [losses.ADNCE(), losses.ADNCE(0.2, -0.3, 0.3)]


def test_negatives_beyond_the_mean_weigh_less_than_those_at_it():
    n = torch.tensor([[-0.5, 0.2, 0.95]], dtype=torch.float64)
    narrow = anatomy.forces(losses.ADNCE(5.0, mean=0.2, deviation=0.3), n[:, :1], n)[1][0]
    assert narrow.argmax() == 1  # a warm τ leaves the weights alone to decide
    assert anatomy.forces(losses.NTXent(5.0), n[:, :1], n)[1][0].argmax() == 2
