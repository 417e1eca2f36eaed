"""AttentionNCE: its several positives, and the scale that explodes."""

import pytest
import torch

from clutils import losses
from tests.losses import oracles
from tests.losses.inputs import close, embeddings, fails, similarities


def test_extra_views_are_the_positives_of_both_anchors_and_the_other_anchor_is_neither():
    z1, z2 = embeddings(6, 5)
    extra = torch.randn(6, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    loss = losses.AttentionNCE(0.4, 0.7, 1.5)
    anchors, rows = [*z1.tolist(), *z2.tolist()], []
    for a, anchor in enumerate(anchors):
        positives = [oracles.cosine(anchor, view) for view in extra[a % 6].tolist()]
        negatives = [oracles.cosine(anchor, anchors[b]) for b in oracles.negatives_in_order(a, 6)]
        assert len(negatives) == 10
        rows.append((positives, negatives))
    value = loss(z1, z2, extra_views=extra)
    close(value, oracles.written(loss, rows).mean())
    # the other view as the one extra view is not two views: there it belongs to both anchors
    assert loss(z1, z2, extra_views=z2[:, None]) != loss(z1, z2)
    extra.requires_grad_()
    assert torch.autograd.grad(loss(z1, z2, extra_views=extra), extra)[0].abs().sum() > 0


def test_bad_extra_views_are_named():
    loss, (z1, z2) = losses.AttentionNCE(), embeddings(6, 5)
    good = embeddings(18, 5)[0].view(6, 3, 5)
    for bad in (good[:5], good[:, :0], good[:, :, :4], good[:, 0], good.long()):
        fails(
            lambda bad=bad: loss(z1, z2, extra_views=bad),
            "extra_views",
            tuple(bad.shape),
            "(6, at least 1, 5)",
        )
    fails(lambda: loss(z1, z2, extra_views=good.float()), "float32", "float64")
    zero = good.clone()
    zero[2, 1] = 0
    fails(lambda: loss(z1, z2, extra_views=zero), "extra_views (6, 3, 5)", "row 7", "zero vector")
    fails(lambda: loss(z1, z2, extra_views=good * torch.nan), "extra_views", "NaN")
    fails(lambda: loss(z1, z2, extra_views=good, labels=torch.arange(6)), "extra_views and labels")
    fails(lambda: loss(z1, z2, extra_views=good, queue=z1), "extra_views and queue")


def test_a_small_d_neg_explodes_but_never_overflows():
    """All of N on one negative: at most N/τ, which e^x could hold in no type."""
    s, n = similarities(40, 4, 510, dtype=torch.float32)
    narrow = losses.AttentionNCE(0.5, 1.0, 0.01).per_anchor(s, n)
    usual = losses.AttentionNCE(0.5, 1.0, 1.0).per_anchor(s, n)
    assert narrow.min() > 10 * usual.max() and torch.isfinite(narrow).all()
    one = losses.AttentionNCE(0.5, 1.0, 1e-6).per_anchor(torch.zeros(1, 1), torch.tensor([[1.0, 0.5, 0.0]]))
    assert float(one) == pytest.approx(3 / 0.5, rel=1e-2)  # β = (3, 0, 0), two logits of 0 beside it
