"""MoCo v3: both views predict the other's key among the batch's keys; a momentum encoder, no queue."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from clutils.losses.base import Loss
from clutils.methods.base import MOMENTUM, Method, Need
from clutils.methods.byol import BYOL
from clutils.settings import setting


def _of_cosines(kind: type[nn.Module]) -> bool:
    """Losses of similarities with a τ; not those that mix negatives or know the samples: in `per_anchor` they
    would be others."""
    if not issubclass(kind, Loss) or kind.level != "similarity" or "temperature" not in kind.ranges:
        return False
    return kind.pair_up is Loss.pair_up and "index" not in kind.accepts


class MoCoV3(BYOL):
    r"""Momentum contrast without a queue, with BYOL's predictor.

    $$\ell = \mathrm{ctr}(q_1, k_2) + \mathrm{ctr}(q_2, k_1), \qquad
      \mathrm{ctr}(q, k) = -\frac{2\tau}{B}\sum_b
      \log\frac{e^{\langle q_b, k_b\rangle/\tau}}{\sum_{b'} e^{\langle q_b, k_{b'}\rangle/\tau}}$$

    Queries and keys are BYOL's predictions and targets. The negatives are the other images' keys of this
    batch: at the paper's 4,096 (from memory) there is no need for a queue. The factor 2τ makes up for the
    gradient's 1/τ, at the τ that the loss used where its temperature moves; AdamW divides any factor out.

    - momentum (live): default 0.9, for runs of hundreds of steps; the authors' rises from 0.99 to 1 as half a
      cosine. Here it stays where it is put.
    - loss: must have a temperature and work on cosines alone, as NT-Xent's `per_anchor` does

    Head and predictor have two layers, as for the paper's ResNet (the head for its ViT has three). Each view
    is normalised as a batch of its own, in both networks. Left out: the batch normalisation without weights
    behind the head (and, of the ViT, behind the predictor too), the ViT and its frozen patch projection.

    Chen, Xie & He 2021, "An empirical study of training self-supervised vision transformers" (arXiv
    2104.02057), algorithm 1, as in the authors' code (facebookresearch/moco-v3, moco/builder.py).
    """

    paper, year, equation = "MoCo v3 (Chen, Xie & He)", 2021, "algorithm 1"
    usual_loss = Method.usual_loss
    usual_share = Method.usual_share
    needs = Need("has a temperature and works on cosines alone", _of_cosines)
    momentum: float = setting(MOMENTUM, default=0.9)
    predictor_rate = 1.0  # as all else

    def compare(self, z1: Tensor, z2: Tensor, index: Tensor | None = None, **given: Tensor | None) -> Tensor:
        """ctr: queries (B, out) against keys (B, out), each with its own and B - 1 others."""
        value = self.one_way(z1, z2).mean()
        return 2 * _temperature(self.loss) * value

    def chance(self, batch_size: int) -> float | None:
        chance = self.loss.chance(batch_size - 1)
        if chance is None:
            return None
        asked, zero = copy.copy(self.loss), torch.zeros(1, 1)
        asked.per_anchor(zero, zero)  # MACL's τ is another where all similarities are 0
        return 2 * 2 * float(_temperature(asked)) * chance


def _temperature(loss: Any) -> Tensor | float:
    """τ, where it moves (MACL, a learned logit scale) that of the loss's last call."""
    moved = loss.effective_temperature
    return loss.temperature if moved is None else moved.mean()
