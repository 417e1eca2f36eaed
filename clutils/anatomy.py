"""Pull, push and W of any loss: how hard each positive is drawn in and each negative pushed away.

Every 'penalty' plot of every notebook is made by these functions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from clutils import similarities
from clutils.losses import base
from clutils.similarities import Pairs, widen


def forces(
    loss: base.Loss,
    positives: Tensor,
    negatives: Tensor,
    positive_mask: Tensor | None = None,
    negative_mask: Tensor | None = None,
    **options: Any,
) -> tuple[Tensor, Tensor]:
    """Pull (A, P) = -∂ℓ_i/∂s+ and push (A, K) = ∂ℓ_i/∂s-, by autograd, per anchor, before any mean.

    - positives (A, P), negatives (A, K): cosine similarities; masks as in `loss.per_anchor`
    - options: handed on to `loss.per_anchor` (MACL's alignment)

    Raises ValueError as `loss.per_anchor` does, also for losses that are no function of similarities.
    """
    with torch.inference_mode(False), torch.enable_grad():
        positives = positives.detach().clone().requires_grad_()
        negatives = negatives.detach().clone().requires_grad_()
        values = loss.per_anchor(positives, negatives, positive_mask, negative_mask, **options)
        # one anchor's loss depends on its own row alone (what joins them, MACL's alignment, is detached),
        # so the sum's gradient is each anchor's own
        pull, push = torch.autograd.grad(values.sum(), (positives, negatives))
    return -pull, push


def contrast(positives: Tensor, negatives: Tensor, temperature: float | Tensor) -> Tensor:
    """c = log Σ_j exp(s-_j/τ) - s+/τ, (A,): positives (A,) or (A, 1), negatives (A, K).

    Raises ValueError when an anchor has more than one positive.
    """
    column = positives[:, None] if positives.ndim == 1 else positives
    if column.ndim != 2 or column.shape[1] != 1 or negatives.ndim != 2 or len(column) != len(negatives):
        raise ValueError(
            f"contrast: one positive per anchor: positives (A,) or (A, 1) and negatives (A, K), "
            f"got {tuple(positives.shape)} and {tuple(negatives.shape)}"
        )
    _above_zero("contrast", temperature)
    similarities.one_device("contrast", positives=positives, negatives=negatives)
    return base.contrast(Pairs(widen(column), widen(negatives)), temperature)[:, 0]


def gradient_scale(positives: Tensor, negatives: Tensor, temperature: float | Tensor) -> Tensor:
    """The gradient-scaling factor W = 1 - p+ = sigmoid(c), (A,): a gate: 1 = open, full force; 0 = shut.

    positives (A,) or (A, 1), negatives (A, K); temperature one number, or (A, 1) to sweep it.
    MACL (arXiv 2207.07874), eq. 3.
    """
    return torch.sigmoid(contrast(positives, negatives, temperature))


def hardness_weights(negatives: Tensor, temperature: float | Tensor) -> Tensor:
    """p̂_j, the share of the push that each negative gets, (A, K), rows sum to 1: softmax of s-/τ.

    Wang & Liu 2021; MACL (arXiv 2207.07874), eq. 4.
    """
    _above_zero("hardness_weights", temperature)
    return torch.softmax(widen(negatives) / temperature, dim=1)


def effective_negatives(negatives: Tensor, temperature: float | Tensor) -> Tensor:
    """How many negatives share the push, (A,): exp of the entropy of the hardness weights (perplexity).

    1 = the hardest takes it all (τ → 0), K = all alike (τ → ∞). negatives (A, K).
    """
    return torch.special.entr(hardness_weights(negatives, temperature)).sum(dim=1).exp()


def push_on_classmates(z1: Tensor, z2: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Share of each anchor's push that falls on views of its own class, its false negatives, (2B,).

    z1, z2: two views (B, D), normalised inside; labels (B,). The anchors are those of NT-Xent: both views,
    each against the 2B - 2 views of other pictures.
    """
    similarities.one_device("push_on_classmates", z1=z1, z2=z2, labels=labels)
    z = similarities.normalise(torch.cat([z1, z2]))
    picture, y = torch.arange(len(z1), device=z.device).repeat(2), labels.repeat(2)
    other = picture[:, None] != picture[None, :]
    weights = torch.softmax((z @ z.T / temperature).masked_fill(~other, -torch.inf), dim=1)
    return (weights * (y[:, None] == y[None, :])).sum(dim=1)


def push_on_hardest(negatives: Tensor, push: Tensor, tenths: float = 1.0) -> Tensor:
    """Share of each anchor's push that falls on the hardest tenth of its negatives, (A,); 0 where none is
    pushed.

    - negatives, push: (A, K), as from `forces`; a negative that is drawn in (push below 0) counts for nothing
    - tenths: how many tenths of the negatives; the number is rounded, and at least one

    Raises ValueError unless tenths lies above 0 and at most at 10.
    """
    if not 0 < tenths <= 10:
        raise ValueError(f"push_on_hardest: tenths is {tenths}, but must be above 0, and at most 10")
    count = max(1, round(negatives.shape[1] * tenths / 10))
    hardest = torch.zeros_like(negatives, dtype=torch.bool)
    return push_share(push, hardest.scatter(1, negatives.topk(count, dim=1).indices, True))


def push_share(push: Tensor, chosen: Tensor) -> Tensor:
    """Share of each anchor's push (A, K) that falls on chosen negatives, bool (A, K) -> (A,).

    A negative that is drawn in (push below 0) counts for nothing; 0 where none is pushed.
    """
    return (_shares(push) * chosen).sum(dim=1)


def sharers(push: Tensor) -> Tensor:
    """How many distinct negatives share a push, (A,): exp of its entropy; 0 where none is pushed.

    `effective_negatives` of any loss's push (A, K): a negative that is drawn in counts for nothing. Where a
    loss adds mixes, this counts the real negatives that they were made of.
    """
    shares = _shares(push)
    return torch.special.entr(shares).sum(dim=1).exp() * (shares > 0).any(dim=1)


def _shares(push: Tensor) -> Tensor:
    pushed = push.clamp(min=0)
    total = pushed.sum(dim=1, keepdim=True)
    return torch.where(total > 0, pushed / total.where(total > 0, 1.0), 0.0)


def turns(positives: Tensor, negatives: Tensor) -> Tensor:
    """Whether W, as a function of τ, falls and rises again, (A,) bool: it has its one minimum inside.

    positives (A,) or (A, 1), negatives (A, K). It does where mean s- < s+ < max s-: the slope of the contrast
    along 1/τ is the mean of the negatives, weighed by p̂, less s+; it grows with 1/τ, from the plain mean to
    the hardest.
    """
    s = positives.flatten()
    return (negatives.mean(dim=1) < s) & (s < negatives.amax(dim=1))


def _above_zero(who: str, temperature: float | Tensor) -> None:
    if not bool(torch.all(torch.as_tensor(temperature) > 0)):
        raise ValueError(f"{who}: temperature is {temperature}, but must be above 0")
