"""The spectral contrastive loss: a second derivative also where its negatives are at right angles."""

import torch

from clutils import losses
from tests.losses.inputs import close


def test_it_has_a_second_derivative_where_all_negatives_are_at_right_angles():
    found = []
    for loss in (losses.Spectral(), losses.Spectral.as_written):
        views = [torch.eye(4, dtype=torch.float64).requires_grad_() for _ in range(2)]
        slopes = torch.autograd.grad(loss(*views), views, create_graph=True)
        found.append(torch.autograd.grad(sum(slope.sum() for slope in slopes), views))
    close(torch.stack(found[0]), torch.stack(found[1]))
    assert found[0][0].any()
