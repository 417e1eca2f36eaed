"""ADNCE: Gaussian weights on the negatives, without a gradient of their own."""

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, similarities

SETTINGS = [losses.ADNCE(), losses.ADNCE(0.2, -0.3, 0.3)]


@pytest.mark.parametrize("loss", SETTINGS, ids=repr)
def test_forces_are_the_closed_forms_of_fixed_weights(loss):
    s, n = similarities(50, 1, 40)
    pull, push = anatomy.forces(loss, s, n)
    w = torch.exp(-((n - loss.mean) ** 2) / (2 * loss.deviation**2))
    E = w / w.mean(dim=1, keepdim=True) * torch.exp(n / loss.temperature)
    Z = torch.exp(s / loss.temperature) + E.sum(dim=1, keepdim=True)
    close(pull, (1 - torch.exp(s / loss.temperature) / Z) / loss.temperature)
    close(push, E / Z / loss.temperature)


def test_negatives_beyond_the_mean_weigh_less_than_those_at_it():
    n = torch.tensor([[-0.5, 0.2, 0.95]], dtype=torch.float64)
    narrow = anatomy.forces(losses.ADNCE(5.0, mean=0.2, deviation=0.3), n[:, :1], n)[1][0]
    assert narrow.argmax() == 1  # a warm τ leaves the weights alone to decide
    assert anatomy.forces(losses.NTXent(5.0), n[:, :1], n)[1][0].argmax() == 2
