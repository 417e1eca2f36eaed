"""A loss on similarities beside the plain loops of its paper: by anchor, masked, in a batch, with a queue.

For a loss whose value of an anchor is a function of that anchor's row, given the mean positive of all.
"""

import inspect
from collections.abc import Callable
from functools import partial

import pytest
import torch

from clutils import anatomy, losses
from tests.losses import oracles
from tests.losses.inputs import embeddings, masks, similarities

FORMULAS = {
    losses.NTXent: oracles.nt_xent,
    losses.Decoupled: oracles.decoupled,
    losses.FlatNCE: oracles.flatnce,
    losses.MACL: oracles.macl,
    losses.DualTemperature: oracles.dual_temperature,
    losses.Debiased: oracles.debiased,
    losses.HardNegative: oracles.hard_negative,
    losses.SSCL: oracles.hard_negative,  # where it makes no mixes
    losses.AttentionNCE: oracles.attention_nce,
    losses.SupCon: oracles.supcon,
    losses.PairMargin: oracles.pair_margin,
    losses.Triplet: oracles.triplet,
    losses.SigLIP: oracles.siglip,
    losses.ADNCE: oracles.adnce,
    losses.RINCE: oracles.rince,
    losses.AlphaCL: oracles.alpha_cl,
    losses.CLIP: oracles.nt_xent,
    losses.Robust: oracles.robust,
    losses.SogCLR: oracles.decoupled_mean,  # where no sample has a past
    losses.ISogCLR: oracles.in_a_ball,
}


def in_loops(loss: losses.Loss, positives: list[float], negatives: list[float], alignment: float) -> float:
    """The loss's formula, given the settings that it names."""
    return by_loops(FORMULAS[type(loss)], loss, positives=positives, negatives=negatives, alignment=alignment)


def by_loops(formula: Callable[..., float], loss: losses.Loss, **known: object) -> float:
    """A formula of what is known, and of the settings that it names."""
    names = inspect.signature(formula).parameters
    return formula(**{name: known[name] if name in known else getattr(loss, name) for name in names})


def single_anchors(loss: losses.Loss, *, positives: int = 1, negatives: int = 1) -> None:
    s, n = similarities(20, positives, negatives)
    mean = sum(s.flatten().tolist()) / s.numel()
    expected = [in_loops(loss, *row, mean) for row in zip(s.tolist(), n.tolist(), strict=True)]
    _near(loss, loss.per_anchor(s, n), expected)


def masked(loss: losses.Loss) -> None:
    """Masked entries count for nothing, whatever they hold."""
    s, n = similarities(30, 5, 9)
    keep_s, keep_n = masks(s, n)
    mean = float(s[keep_s].mean())
    rows = [(s[i][keep_s[i]].tolist(), n[i][keep_n[i]].tolist()) for i in range(30)]
    values = loss.per_anchor(s, n, keep_s, keep_n)
    _near(loss, values, [in_loops(loss, *row, mean) for row in rows])
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
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), other_view=loss.against == "other view")
    _near(loss, loss(z1, z2), _mean(loss, rows), atol=1e-12)


def a_queue(loss: losses.Loss) -> None:
    """Only q is an anchor, and the queue gives all negatives and gets no gradient."""
    q, k = embeddings(4, 5)
    queue = embeddings(9, 5, seed=7)[0].requires_grad_()
    q.requires_grad_()
    rows = oracles.rows_of_a_queue(q.tolist(), k.tolist(), queue.tolist())
    value = loss(q, k, queue=queue)
    _near(loss, value, _mean(loss, rows), atol=1e-12)
    value.backward()
    assert queue.grad is None
    assert q.grad.abs().sum() > 0


def with_labels(loss: losses.Loss) -> None:
    """Every picture of the anchor's class is a positive."""
    z1, z2 = embeddings(7, 4)
    labels = [0, 1, 0, 2, 1, 0, 2]
    rows = oracles.rows_of_a_batch(z1.tolist(), z2.tolist(), labels)
    value = loss(z1, z2, labels=torch.tensor(labels))
    _near(loss, value, _mean(loss, rows), atol=1e-12)


each_way = pytest.mark.parametrize(
    "compared",
    [
        *(partial(single_anchors, positives=P, negatives=K) for P, K in ((1, 1), (1, 30), (4, 7))),
        *(masked, a_batch, a_queue),
    ],
    ids=["1 positive 1 negative", "1 and 30", "4 and 7", "masked", "a batch", "a queue"],
)


def _near(loss: losses.Loss, found: torch.Tensor, expected: object, atol: float = 1e-10) -> None:
    near = {"rtol": 1e-10, "atol": atol}
    if isinstance(loss, losses.Robust):  # two searches; where the ball does not bind one ends short of τ = 0
        near = {"rtol": 1e-7, "atol": 2e-8}
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), **near)


def _mean(loss: losses.Loss, rows: list[tuple[list[float], list[float]]]) -> float:
    mean = sum(positives[0] for positives, _ in rows) / len(rows)
    return sum(in_loops(loss, *row, mean) for row in rows) / len(rows)
