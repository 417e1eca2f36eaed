"""MoCHi: which mixes are made, in a batch and with a queue, and who learns from them."""

import torch

from clutils import losses
from tests.losses import oracles
from tests.losses.inputs import close, embeddings


def unit(z):
    return torch.nn.functional.normalize(z, dim=-1)


def mixes_of(anchor, parents, row, drawn):
    """The synthetic negatives of one anchor, as constant unit vectors."""
    (i, a), (j, _), (n, b) = drawn
    made = []
    for p, q, share in zip(i[row].tolist(), j[row].tolist(), a[row].tolist(), strict=True):
        made.append(unit(share * parents[p] + (1 - share) * parents[q]).detach())
    for p, share in zip(n[row].tolist(), b[row].tolist(), strict=True):
        made.append(unit(share / 2 * anchor + (1 - share / 2) * parents[p]).detach())
    return made


def in_loops(loss, anchors, positives, negatives, parents, drawn):
    """InfoNCE of each anchor against its real negatives and its mixes, from vectors."""
    total = 0.0
    for row, anchor in enumerate(anchors):
        everyone = [*negatives[row], *mixes_of(anchor, parents, row, drawn)]
        logits = torch.stack([anchor @ positives[row], *(anchor @ v for v in everyone)]) / loss.temperature
        total = total + logits.logsumexp(dim=0) - logits[0]
    return total / len(anchors)


def test_in_a_batch_it_is_infonce_on_real_and_constant_synthetic_negatives(drawn):
    loss = losses.MoCHi(0.3, hardest=4, synthetic=5, query_mixed=3)
    z1, z2 = (z.requires_grad_() for z in embeddings(5, 6))
    value = loss(z1, z2)
    z = unit(torch.cat([z1, z2]))
    negatives = [[z[b] for b in oracles.negatives_in_order(a, 5)] for a in range(10)]
    expected = in_loops(loss, z, z.roll(5, 0), negatives, z, drawn)
    close(value, expected)
    ours, theirs = (torch.autograd.grad(v, (z1, z2)) for v in (value, expected))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_with_a_queue_it_is_the_papers_section_as_written(drawn):
    loss = losses.MoCHi(0.3, hardest=4, synthetic=5, query_mixed=3)
    q, k = (z.requires_grad_() for z in embeddings(5, 6))
    queue = embeddings(9, 6, seed=3)[0].requires_grad_()
    value = loss(q, k, queue=queue)
    (i, a), (j, _), (other, b) = drawn
    written = loss.as_written(unit(q), unit(k), unit(queue), 0.3, i, j, a, other, b / 2).mean()
    close(written, value)
    assert torch.autograd.grad(value, queue, allow_unused=True, retain_graph=True) == (None,)
    for ours, theirs in zip(*(torch.autograd.grad(v, (q, k)) for v in (value, written)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_mixes_come_from_the_hardest_and_the_query_is_the_smaller_part(drawn):
    losses.MoCHi(0.3, hardest=3, synthetic=50, query_mixed=50)(*embeddings(6, 4))
    z = unit(torch.cat(embeddings(6, 4)))
    for row in range(12):
        order = oracles.negatives_in_order(row, 6)
        sims = [float(z[row] @ z[b]) for b in order]
        hardest = {order[c] for c in sorted(range(10), key=lambda c: -sims[c])[:3]}
        for columns, _ in drawn:
            assert set(columns[row].tolist()) == hardest
