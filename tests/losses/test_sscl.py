"""SSCL: which mixes are made, what they weigh, and who learns from them."""

import pytest
import torch

from clutils import losses
from clutils.similarities import two_views
from tests.losses import oracles
from tests.losses.inputs import assert_same_gradients, close, embeddings, next_draws

OF_HCL = {"temperature": 0.4, "class_prior": 0.15, "beta": 0.7}


def unit(z):
    return torch.nn.functional.normalize(z, dim=1)


def mixed_in_loops(anchors, positives, negatives, drawn, normalise):
    """HCL on each anchor's negatives (lists of unit vectors) and its mixes, built as vectors."""
    rows, (i, j, a) = [], drawn
    for row, anchor in enumerate(anchors):
        first, second = (oracles.ranked(anchor, negatives[row], ranks[row]) for ranks in (i, j))
        mixes = [share * u + (1 - share) * v for u, v, share in zip(first, second, a[row], strict=True)]
        mixes = [mix / mix.norm() for mix in mixes] if normalise else mixes
        rows.append(torch.stack([anchor @ v for v in (*negatives[row], *mixes)]))
    s = (anchors * positives).sum(dim=1, keepdim=True)
    return losses.HardNegative.as_written(s, torch.stack(rows), **OF_HCL).mean()


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("queue", [None, embeddings(9, 7, seed=4)[0]], ids=["a batch", "a queue"])
def test_it_is_hcl_on_the_real_negatives_and_each_anchors_own_mixes(normalise, queue):
    loss = losses.SSCL(**OF_HCL, hardest=4, synthetic=6, normalise=normalise)
    views = [z.requires_grad_() for z in embeddings(5, 7)]
    drawn = next_draws(loss, 10 if queue is None else 5)
    assert not torch.equal(drawn[0], drawn[1])
    assert len({tuple(row) for row in drawn[2].tolist()}) == len(drawn[2]), "anchors share their draw"
    value = loss(*views, queue=queue)
    if queue is None:
        z = unit(torch.cat(views))
        negatives = [[z[b] for b in oracles.negatives_in_order(a, 5)] for a in range(10)]
        expected = mixed_in_loops(z, z.roll(5, 0), negatives, drawn, normalise)
    else:
        expected = mixed_in_loops(*map(unit, views), [list(unit(queue))] * 5, drawn, normalise)
    close(value, expected)
    assert_same_gradients(value, expected, views)


def test_a_batch_is_the_papers_equation_as_written():
    loss = losses.SSCL(**OF_HCL, hardest=4, synthetic=6)
    views = [z.requires_grad_() for z in embeddings(5, 7)]
    i, j, a = next_draws(loss, 10)
    value, pairs = loss(*views), two_views(*map(unit, views))
    hardest = pairs.negatives.argsort(dim=1, descending=True)
    i, j = hardest.gather(1, i), hardest.gather(1, j)
    written = loss.as_written(pairs.positives, pairs.negatives, i, j, a, **OF_HCL).mean()
    close(written, value)
    assert_same_gradients(value, written, views)
