"""MoCo v3: both views predict the other's key among the batch's keys; a momentum encoder, no queue."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, similarities
from clutils.losses.base import Loss
from clutils.losses.hyperparameters import declare
from clutils.methods.base import MOMENTUM, WIDTH, Augment, Method, several_views
from clutils.methods.momentum import follow, follower


class MoCoV3(Method):
    r"""Momentum contrast without a queue, with BYOL's predictor.

    $$\ell = \mathrm{ctr}(q_1, k_2) + \mathrm{ctr}(q_2, k_1), \qquad
      \mathrm{ctr}(q, k) = -\frac{2\tau}{B}\sum_b
      \log\frac{e^{\langle q_b, k_b\rangle/\tau}}{\sum_{b'} e^{\langle q_b, k_{b'}\rangle/\tau}}$$

    A query is what the predictor makes of a view's embedding; its key is what a copy of encoder and head,
    without a predictor, makes of the other view. No gradient reaches the copy, which follows after each step,
    ξ ← m ξ + (1 - m) θ. The negatives are the other images' keys of this batch: at the paper's 4,096 (from
    memory) there is no need for a queue. The factor 2τ makes up for the gradient's 1/τ; AdamW divides any
    factor out.

    - momentum: may be changed while a run trains. Default 0.9, for runs of hundreds of steps; the
      authors' rises from 0.99 to 1 as half a cosine. Here it stays where it is put.
    - encoder, loss, out, bfloat16: see `Method`. The loss must have a temperature and work on cosines alone,
      as NT-Xent's `per_anchor` does.

    Head and predictor have two layers, as for the paper's ResNet (the head for its ViT has three). Each view
    is normalised as a batch of its own, in both networks. Left out: the batch normalisation without weights
    behind head and predictor, the ViT and its frozen patch projection.

    No default is tuned yet, no run measured: `benchmarks/evidence.py further_methods` is to do both.

    Chen, Xie & He 2021, "An empirical study of training self-supervised vision transformers" (arXiv
    2104.02057), algorithm 1, as in the authors' code (facebookresearch/moco-v3, moco/builder.py).
    """

    paper, year, equation = "MoCo v3 (Chen, Xie & He)", 2021, "algorithm 1"
    ranges = declare(out=WIDTH, momentum=MOMENTUM)
    live = ("momentum",)
    takes_extra_views = False
    loss: Any  # one with a temperature, see `fits`
    needs = "has a temperature and works on cosines alone"

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        momentum: float = 0.9,
        bfloat16: bool = False,
    ) -> None:
        super().__init__(encoder, loss, out, bfloat16)
        self.momentum = momentum
        self.check_settings()
        self.predictor = encoders.ProjectionHead(out, encoders.width(encoder), out)
        self.target_encoder, self.target_head = follower(encoder), follower(self.head)

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        """Losses of similarities with a τ; not those that mix negatives or know the samples: in `per_anchor`
        they would be others."""
        kind = loss if isinstance(loss, type) else type(loss)
        if not issubclass(kind, Loss) or kind.level != "similarity" or "temperature" not in kind.ranges:
            return False
        return kind.pair_up is Loss.pair_up and "index" not in kind.takes

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the loss, the first view's queries and the second's keys, (B, out)
        each, detached."""
        self.check_settings()
        both = several_views(augment, images, generator)
        q1, q2 = (self.predictor(self.head(self.features_of(view))) for view in both)
        with torch.no_grad():
            k1, k2 = (self.target_head(self.features_of(view, self.target_encoder)) for view in both)
        return self.compare(q1, k2) + self.compare(q2, k1), q1.detach(), k2

    def compare(self, z1: Tensor, z2: Tensor, index: Tensor | None = None, **given: Tensor | None) -> Tensor:
        """ctr: queries (B, out) against keys (B, out), each with its own and B - 1 others."""
        check = self.loss.check_inputs
        queries, keys = (similarities.normalise(z, who="MoCoV3", check=check) for z in (z1, z2))
        pairs = similarities.two_views(queries, keys, "one way")
        return 2 * self.temperature * self.loss.per_anchor(pairs.positives, pairs.negatives).mean()

    def chance(self, batch_size: int) -> float | None:
        chance = self.loss.chance(batch_size - 1)
        return None if chance is None else 2 * 2 * self.temperature * chance

    @property
    def temperature(self) -> float:
        return self.loss.temperature

    def after_step(self) -> None:
        """The copy follows."""
        follow((self.target_encoder, self.target_head), (self.encoder, self.head), self.momentum)
