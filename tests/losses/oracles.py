"""Oracles of a loss: its paper's equation `as_written`, on pairs that plain loops find."""

import inspect
import math

import torch


def written(loss, rows):
    """The equation of a loss, of anchors with these [(positives, negatives)], lists of floats -> (A,).

    Row by row where rows differ in length: a loss that joins its anchors needs rows alike.
    """
    alike = len({(len(positives), len(negatives)) for positives, negatives in rows}) == 1
    names = inspect.signature(loss.as_written).parameters
    settings = {name: getattr(loss, name) for name in names if hasattr(loss, name)}
    values = []
    for table in [rows] if alike else [[row] for row in rows]:
        sides = (torch.tensor(side, dtype=torch.float64) for side in zip(*table, strict=True))
        values.append(loss.as_written(*sides, **settings))
    return torch.cat(values)


# ---- who is compared with whom -----------------------------------------------------------------------------


def inner(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return inner(a, b) / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def negatives_in_order(anchor, batch, other_view=False):
    """Whose similarities a row of negatives holds, in order, as rows of [*z1, *z2]."""
    views = [anchor < batch] if other_view else [False, True]
    return [batch * second + i for i in range(batch) if i != anchor % batch for second in views]


def ranked(anchor, negatives, ranks):
    """Those of an anchor's negatives, vectors, that stand at these ranks, the hardest first."""
    order = sorted(negatives, key=lambda negative: -(anchor @ negative).item())
    return [order[rank] for rank in ranks.tolist()]


def rows_of_a_batch(z1, z2, labels=None, other_view=False):
    """[(positives, negatives)] of the 2B anchors of two views, lists of floats."""
    views = list(z1) + list(z2)
    batch = len(z1)
    picture = [i % batch for i in range(2 * batch)]
    group = picture if labels is None else [labels[i] for i in picture]
    rows = []
    for a in range(2 * batch):
        others = [b for b in range(2 * batch) if b != a]
        if other_view:
            others = [b for b in others if (b < batch) != (a < batch)]
        rows.append(
            (
                [cosine(views[a], views[b]) for b in others if group[b] == group[a]],
                [cosine(views[a], views[b]) for b in others if group[b] != group[a]],
            )
        )
    return rows


def rows_of_a_queue(q, k, queue):
    return [([cosine(a, b)], [cosine(a, negative) for negative in queue]) for a, b in zip(q, k, strict=True)]
