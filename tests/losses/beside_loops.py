"""A loss on similarities beside its paper's equation: by anchor, masked, in a batch, with a queue."""

from functools import partial

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.inputs import embeddings, masks, similarities
from tests.losses.oracles import written


def single_anchors(loss: losses.Loss, *, positives: int = 1, negatives: int = 1) -> None:
    s, n = similarities(20, positives, negatives)
    _near(loss, loss.per_anchor(s, n), written(loss, _rows(s, n)))


def masked(loss: losses.Loss) -> None:
    """Masked entries count for nothing, whatever they hold."""
    s, n = similarities(30, 5, 9)
    keep_s, keep_n = masks(s, n)
    if type(loss).of_the_batch is not losses.Loss.of_the_batch:  # it joins its anchors: rows of one length
        keep_s, keep_n = keep_s[:1].expand(30, -1), keep_n[:1].expand(30, -1)
        s[:, ~keep_s[0]] = 1.0  # which would be seen in what joins them
    rows = [(s[i][keep_s[i]].tolist(), n[i][keep_n[i]].tolist()) for i in range(30)]
    values = loss.per_anchor(s, n, keep_s, keep_n)
    _near(loss, values, written(loss, rows))
    pull, push = anatomy.forces(loss, s, n, keep_s, keep_n)
    assert (pull[~keep_s] == 0).all()
    assert (push[~keep_n] == 0).all()
    poisoned = s.masked_fill(~keep_s, torch.nan), n.masked_fill(~keep_n, torch.nan)
    torch.testing.assert_close(loss.per_anchor(*poisoned, keep_s, keep_n), values)
    for force, clean in zip(anatomy.forces(loss, *poisoned, keep_s, keep_n), (pull, push), strict=True):
        assert torch.equal(force, clean)


def a_batch(loss: losses.Loss) -> None:
    """It compares whom the paper compares."""
    z1, z2 = embeddings(6, 5)
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), other_view=loss.comparison != "both views")
    _near(loss, loss(z1, z2), written(loss, rows).mean(), atol=1e-12)


def a_queue(loss: losses.Loss) -> None:
    """Only q is an anchor, and the queue gives all negatives."""
    q, k = embeddings(4, 5)
    queue = embeddings(9, 5, seed=7)[0]
    rows = oracles.rows_of_a_queue(q.tolist(), k.tolist(), queue.tolist())
    _near(loss, loss(q, k, queue=queue), written(loss, rows).mean(), atol=1e-12)


def with_labels(loss: losses.Loss) -> None:
    """Every image of the anchor's class is a positive."""
    z1, z2 = embeddings(7, 4)
    labels = [0, 1, 0, 2, 1, 0, 2]
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), labels)
    value = loss(z1, z2, labels=torch.tensor(labels))
    _near(loss, value, written(loss, rows).mean(), atol=1e-12)


each_way = pytest.mark.parametrize(
    "compared",
    [
        *(partial(single_anchors, positives=P, negatives=K) for P, K in ((1, 1), (1, 30), (4, 7))),
        *(masked, a_batch, a_queue),
    ],
    ids=["1 positive 1 negative", "1 and 30", "4 and 7", "masked", "a batch", "a queue"],
)


def _near(loss: losses.Loss, found: torch.Tensor, expected: torch.Tensor, atol: float = 1e-10) -> None:
    near = {"rtol": 1e-10, "atol": atol}
    if isinstance(loss, losses.Robust):  # two searches, and the equation is of a ball that binds
        near, binds = {"rtol": 1e-7, "atol": 2e-8}, loss.effective_temperature > 0
        assert found.ndim or binds.all()  # where it does not, test_robust.py knows the value
        found, expected = (values[binds] if found.ndim else values for values in (found, expected))
    torch.testing.assert_close(found, expected, **near)


def _rows(s: torch.Tensor, n: torch.Tensor) -> list[tuple[list[float], list[float]]]:
    return list(zip(s.tolist(), n.tolist(), strict=True))
