"""Exercises of notebook 01."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils import losses
from clutils.course import toys
from clutils.course.exercise import written

exercise = written(__file__)


def _nt_xent(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    z = torch.cat([z1, z2])
    z = z / z.norm(dim=1, keepdim=True)
    logits = z @ z.T / temperature
    logits.fill_diagonal_(-torch.inf)
    positive = torch.arange(len(z)).roll(len(z1))
    return -logits.log_softmax(dim=1)[torch.arange(len(z)), positive].mean()


def _variant(
    z1: Tensor,
    z2: Tensor,
    temperature: float,
    normalise: bool = True,
    diagonal: float | None = -torch.inf,
    anchors: int = 2,
    shift: int = 0,
) -> Tensor:
    """NT-Xent, or one of its wrong forms: rows of so many views as anchors, the positive `shift` rows off."""
    z = torch.cat([z1, z2])
    z = F.normalize(z, dim=1) if normalise else z
    logits, rows = z @ z.T / temperature, anchors * len(z1)
    if diagonal is not None:
        logits.fill_diagonal_(diagonal)
    return F.cross_entropy(logits[:rows], torch.arange(len(z)).roll(len(z1) + shift)[:rows])


def _ones_masked(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    """NT-Xent that takes every similarity of 1 for an anchor with itself."""
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    s, positive = z @ z.T, torch.arange(len(z)).roll(len(z1))
    own = (s > 1 - 1e-6).scatter(1, positive[:, None], False)
    return F.cross_entropy((s / temperature).masked_fill(own, -torch.inf), positive)


def _other_view_only(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
    cross = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature
    own = torch.arange(len(z1))
    return (F.cross_entropy(cross, own) + F.cross_entropy(cross.T, own)) / 2


def _batches() -> list[tuple[Tensor, Tensor, float]]:
    """Views of different lengths, so that normalising matters; in the last batch two images are equal."""
    dice = torch.Generator().manual_seed(1)
    found = []
    for batch, dimension, temperature in ((3, 2, 0.2), (5, 8, 0.5), (16, 4, 0.1)):
        z1 = torch.randn(batch, dimension, generator=dice, dtype=torch.float64)
        near = z1 + 0.5 * torch.randn(batch, dimension, generator=dice, dtype=torch.float64)
        found.append((z1, 3 * near, temperature))
    z1, z2, temperature = found[0]
    return [*found, (torch.cat([z1, z1[:1]]), torch.cat([z2, z2[1:2]]), temperature)]


def _negatives_of_an_anchor(batch: int, views: int) -> int:
    return views * (batch - 1)


def _mined_push(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    hardest = negatives == negatives.max(dim=1, keepdim=True).values
    active = 2 * negatives - 2 * positives + margin > 0
    return 2.0 * (hardest & active)


def _all_active(positives: Tensor, negatives: Tensor, margin: float) -> Tensor:
    return 2 / negatives.shape[1] * (2 * negatives - 2 * positives + margin > 0)


def _triplets() -> list[tuple[Tensor, Tensor, float]]:
    """Rows in order and rows in disorder in each case."""
    dice = torch.Generator().manual_seed(2)
    return [
        (*toys.random_similarities(12, 1, 6, dice), 0.2),
        (*toys.random_similarities(12, 1, 3, dice), 1.0),
        (torch.tensor([[0.9], [0.2]], dtype=torch.float64), toys.three_points()[1].repeat(2, 1), 0.5),
    ]


EXERCISES = [
    exercise(
        name="nt_xent",
        answer=_nt_xent,
        wrong={
            "without normalising": partial(_variant, normalise=False),
            "an anchor compared with itself": partial(_variant, diagonal=None),
            "every similarity of 1 masked": _ones_masked,
            "a mask of zeros": partial(_variant, diagonal=0.0),
            "the other view's negatives alone": _other_view_only,
            "one view as anchor": partial(_variant, anchors=1),
            "a positive from the wrong row": partial(_variant, shift=1),
            "the decoupled loss": lambda *views: losses.Decoupled(views[2])(*views[:2]),
            "a sum over the anchors": lambda *views: 2 * len(views[0]) * _nt_xent(*views),
            "multiplied by τ": lambda z1, z2, t: _nt_xent(z1, z2, 1 / t),
            "NT-Xent at τ = 1": lambda z1, z2, t: _nt_xent(z1, z2, 1.0),
            "log p⁺": lambda *views: -_nt_xent(*views),
        },
        cases=_batches,
    ),
    exercise(
        name="negatives_of_an_anchor",
        answer=_negatives_of_an_anchor,
        wrong={
            "right for two views alone": lambda batch, views: views * batch - 2,
            "two views of every image": lambda batch, views: 2 * batch - 2,
            "its own positives among the negatives": lambda batch, views: views * batch - 1,
            "all views": lambda batch, views: views * batch,
            "a view of each other image": lambda batch, views: batch - 1,
        },
        cases=lambda: [(2, 2), (4, 3), (256, 2), (64, 8)],
    ),
    exercise(
        name="mined_push",
        answer=_mined_push,
        wrong={
            "the loss without mining": _all_active,
            "2/K on the hardest": lambda s, n, m: _mined_push(s, n, m) / n.shape[1],
            "the loss without its hinge": lambda s, n, m: _mined_push(s, n, torch.inf),
            "the farthest negative": lambda s, n, m: _mined_push(s, -n, m),
            "similarities in place of squared distances": lambda s, n, m: _mined_push(s, n, 2 * m) / 2,
            "the gradient of the mean over the anchors": lambda s, n, m: _mined_push(s, n, m) / len(n),
            "the other sign": lambda s, n, m: -_mined_push(s, n, m),
        },
        cases=_triplets,
    ),
]
