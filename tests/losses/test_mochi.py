"""MoCHi: which mixes are made, in a batch and with a queue, and who learns from them."""

import torch

from clutils import losses
from tests.losses import oracles
from tests.losses.inputs import assert_same_gradients, close, embeddings, next_draws


def unit(z):
    return torch.nn.functional.normalize(z, dim=-1)


def in_loops(loss, anchors, positives, negatives, drawn):
    """InfoNCE of each anchor against its real negatives and its mixes, constant unit vectors."""
    total, (i, j, a, other, b) = 0.0, drawn
    for row, anchor in enumerate(anchors):
        parents = (oracles.ranked(anchor, negatives[row], ranks[row]) for ranks in (i, j, other))
        first, second, beside = parents
        mixes = [share * u + (1 - share) * v for u, v, share in zip(first, second, a[row], strict=True)]
        mixes += [share * anchor + (1 - share) * v for v, share in zip(beside, b[row], strict=True)]
        everyone = [positives[row], *negatives[row], *(unit(mix).detach() for mix in mixes)]
        logits = torch.stack([anchor @ v for v in everyone]) / loss.temperature
        total = total + logits.logsumexp(dim=0) - logits[0]
    return total / len(anchors)


def test_in_a_batch_it_is_infonce_on_real_and_constant_synthetic_negatives():
    loss = losses.MoCHi(0.3, hardest=4, synthetic=5, query_mixed=3)
    views = [z.requires_grad_() for z in embeddings(5, 6)]
    drawn = next_draws(loss, 10)
    assert drawn[4].max() <= 0.5  # the query is the smaller part
    value = loss(*views)
    z = unit(torch.cat(views))
    negatives = [[z[b] for b in oracles.negatives_in_order(a, 5)] for a in range(10)]
    expected = in_loops(loss, z, z.roll(5, 0), negatives, drawn)
    close(value, expected)
    assert_same_gradients(value, expected, views)


def test_with_a_queue_it_is_the_papers_section_as_written():
    loss = losses.MoCHi(0.3, hardest=4, synthetic=5, query_mixed=3)
    q, k = (z.requires_grad_() for z in embeddings(5, 6))
    queue = embeddings(9, 6, seed=3)[0]
    i, j, a, other, b = next_draws(loss, 5)
    value = loss(q, k, queue=queue)
    hardest = (unit(q) @ unit(queue).T).argsort(dim=1, descending=True)
    i, j, other = (hardest.gather(1, ranks) for ranks in (i, j, other))
    written = loss.as_written(unit(q), unit(k), unit(queue), 0.3, i, j, a, other, b).mean()
    close(written, value)
    assert_same_gradients(value, written, (q, k))
