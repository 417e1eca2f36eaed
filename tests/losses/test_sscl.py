"""SSCL: which mixes are made, what they weigh, and that HCL is all there is without them."""

import pytest
import torch

from clutils import losses
from clutils.similarities import two_views
from tests.losses import oracles
from tests.losses.inputs import close, embeddings


def unit(z):
    return torch.nn.functional.normalize(z, dim=1)


def mixed_in_loops(loss, anchors, positives, negatives, drawn):
    """HCL in loops on each anchor's negatives (lists of unit vectors) and its mixes, built as vectors."""
    (i, a), (j, _) = drawn
    hcl, rows = losses.HardNegative(loss.temperature, loss.class_prior, loss.beta), []
    for row, anchor in enumerate(anchors):
        parents = negatives[row]
        near = sorted(range(len(parents)), key=lambda n: -float(anchor @ parents[n]))[: loss.hardest]
        everyone = list(parents)
        for p, q, share in zip(i[row].tolist(), j[row].tolist(), a[row].tolist(), strict=True):
            assert p in near and q in near and 0 <= share <= 1
            mix = share * parents[p] + (1 - share) * parents[q]
            everyone.append(mix / mix.norm() if loss.normalise else mix)
        sims = [float(anchor @ negative) for negative in everyone]
        rows.append(([float(anchor @ positives[row])], sims))
    return float(oracles.written(hcl, rows).mean())


@pytest.mark.parametrize("normalise", [False, True])
def test_a_batch_is_hcl_on_the_real_negatives_and_each_anchors_own_mixes(drawn, normalise):
    loss = losses.SSCL(0.4, 0.15, 0.7, hardest=4, synthetic=6, normalise=normalise)
    z1, z2 = embeddings(5, 7)
    value = float(loss(z1, z2))
    z = unit(torch.cat([z1, z2]))
    negatives = [[z[b] for b in oracles.negatives_in_order(a, 5)] for a in range(10)]
    assert value == pytest.approx(mixed_in_loops(loss, z, z.roll(5, 0), negatives, drawn), rel=1e-10)
    assert not torch.equal(drawn[0][0], drawn[1][0])
    assert len({tuple(row) for row in drawn[0][1].tolist()}) == 10, "anchors share their draw"


def test_a_batch_is_the_papers_equation_as_written(drawn):
    loss = losses.SSCL(0.4, 0.15, 0.7, hardest=4, synthetic=6)
    views = [z.requires_grad_() for z in embeddings(5, 7)]
    value = loss(*views)
    (i, a), (j, _) = drawn
    pairs = two_views(*map(unit, views))
    of_hcl = {"temperature": 0.4, "class_prior": 0.15, "beta": 0.7}
    written = loss.as_written(pairs.positives, pairs.negatives, i, j, a, **of_hcl).mean()
    close(written, value)
    for ours, theirs in zip(*(torch.autograd.grad(v, views) for v in (value, written)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("normalise", [False, True])
def test_with_a_queue_the_mixes_are_of_the_queue(drawn, normalise):
    loss = losses.SSCL(0.4, 0.15, 0.7, hardest=4, synthetic=6, normalise=normalise)
    q, k = embeddings(5, 7)
    queue = embeddings(9, 7, seed=4)[0].requires_grad_()
    value = loss(q.requires_grad_(), k, queue=queue)
    vectors = unit(q.detach()), unit(k), [list(unit(queue.detach()))] * 5
    assert value.item() == pytest.approx(mixed_in_loops(loss, *vectors, drawn), rel=1e-10)
    value.backward()
    assert queue.grad is None and q.grad.abs().sum() > 0


@pytest.mark.parametrize("normalise", [False, True])
def test_gradients_flow_through_the_mixes_to_their_parents(normalise):
    loss = losses.SSCL(0.5, 0.1, 0.5, hardest=3, synthetic=4, normalise=normalise)
    views = [z.requires_grad_() for z in embeddings(4, 3)]

    def repeated(z1, z2):
        loss.generator = torch.Generator().manual_seed(1)
        return loss(z1, z2)

    assert torch.autograd.gradcheck(repeated, views, eps=1e-6, atol=1e-6)
