"""SupCon: outside the logarithm, everyone in the denominator, and images without a label."""

import math

import pytest
import torch

from clutils import anatomy, losses
from tests.losses.inputs import close, embeddings, masks, similarities


def test_without_labels_or_with_labels_of_their_own_it_is_nt_xent():
    views = embeddings(8, 5)
    close(losses.SupCon(0.2)(*views), losses.NTXent(0.2)(*views))
    close(losses.SupCon(0.2)(*views, labels=torch.arange(8)), losses.NTXent(0.2)(*views))
    queue = embeddings(9, 5, seed=3)[0]
    close(losses.SupCon(0.2)(*views, queue=queue), losses.NTXent(0.2)(*views, queue=queue))


def test_a_positive_with_more_than_its_share_is_pushed_away_and_the_optimum_is_log_p():
    pull, _ = anatomy.forces(losses.SupCon(0.1), torch.tensor([[0.9, 0.1]]), torch.tensor([[-1.0]]))
    assert pull[0, 0] < 0 < pull[0, 1]
    far = losses.SupCon(0.05).per_anchor(torch.ones(1, 4), -torch.ones(1, 9))
    assert float(far) == pytest.approx(math.log(4), rel=1e-6)


def test_a_batch_of_one_class_is_legal_and_only_makes_the_positives_equal():
    z1, z2 = (z.requires_grad_() for z in embeddings(4, 5))
    value = losses.SupCon(0.1)(z1, z2, labels=torch.zeros(4, dtype=torch.long))
    s, n = similarities(6, 3, 5)
    keep = masks(n)[0]
    keep[2] = False
    values = losses.SupCon(0.1).per_anchor(s, n, None, keep)
    expected = s[2].div(0.1).logsumexp(dim=0) - s[2].mean() / 0.1
    close(values[2], expected)
    assert value.item() > math.log(7) and torch.isfinite(torch.autograd.grad(value, z1)[0]).all()
    one = losses.SupCon(0.1).per_anchor(s[:, :1], n, None, keep)
    assert float(one[2]) == 0


@pytest.mark.parametrize("none", [-1, -100])
@pytest.mark.parametrize(
    "name", [name for name, of in losses.catalogue().items() if "labels" in of.cls.accepts]
)
def test_an_image_without_a_label_has_its_own_other_view_alone(name, none):
    z1, z2 = (z.requires_grad_() for z in embeddings(6, 5))
    loss = losses.catalogue()[name].cls()
    found = loss(z1, z2, labels=torch.tensor([0, 0, 1, none, none, none]))
    own = loss(z1, z2, labels=torch.tensor([0, 0, 1, 2, 3, 4]))
    close(found, own)
    for a, b in zip(torch.autograd.grad(found, (z1, z2)), torch.autograd.grad(own, (z1, z2)), strict=True):
        close(a, b)
    nobody = torch.full((6,), none)
    close(loss(z1, z2, labels=nobody), loss(z1, z2, labels=torch.arange(6)))
    small = torch.tensor([0, 0, 1, none, none, none], dtype=torch.int8)
    close(loss(z1, z2, labels=small), own)
