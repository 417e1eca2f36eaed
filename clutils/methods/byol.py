"""BYOL: predict the embedding of the other view, by an EMA of the network; no negatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, losses
from clutils.losses.hyperparameters import declare
from clutils.methods.base import MOMENTUM, PREDICTOR_RATE, WIDTH, Augment, Method, several_views
from clutils.methods.momentum import follow, follower


class BYOL(Method):
    r"""Bootstrap your own latent.

    $$\ell = \ell(p_1, z'_2) + \ell(p_2, z'_1), \qquad p = \mathrm{predictor}(z)$$

    Each view's embedding, sent through a predictor, is to meet the other view's in the target network: a copy
    of encoder and head that no gradient reaches and that follows them after each step,
    ξ ← m ξ + (1 - m) θ. The predictor has no copy. Nothing is pushed apart, and one point for all images
    would have loss 0.

    - momentum: may be changed while a run trains. Default 0.8, for runs of hundreds of steps; the paper's
      rises from 0.996 to 1 as half a cosine, over 300,000 steps. Here it stays where it is put.
    - predictor_rate: the predictor's learning rate over all else's. Default 10: it has to keep up
      with a target that moves this fast. With 1, and m = 0.99, as many steps leave the features no better
      than an untrained encoder's; the paper has 1 and many more steps. The run's own default rate is half of
      the encoder's usual one: with all of it one seed in three ended below an untrained encoder.
    - encoder, loss, out, bfloat16: see `Method`. The loss must compare the two views of an image alone.

    Head and predictor are alike, as in the paper: linear, batch normalisation, ReLU, linear; as wide within
    as the encoder's features. Each view is normalised as a batch of its own, in both networks: the target is
    in training mode, and its running statistics are its own.

    Grill et al. 2020, "Bootstrap your own latent" (arXiv 2006.07733), eq. 2 and algorithm 1.
    """

    paper, year = "BYOL (Grill et al.)", 2020
    ranges = declare(out=WIDTH, momentum=MOMENTUM, predictor_rate=PREDICTOR_RATE)
    live = ("momentum",)
    takes_extra_views = False
    needs = "compares the two views of a picture alone"

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        momentum: float = 0.8,
        predictor_rate: float = 10.0,
        bfloat16: bool = False,
    ) -> None:
        super().__init__(encoder, loss, out, bfloat16)
        self.momentum, self.predictor_rate = momentum, predictor_rate
        self.check_settings()
        self.predictor = encoders.ProjectionHead(out, encoders.width(encoder), out)
        self.target_encoder, self.target_head = follower(encoder), follower(self.head)

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.Regression()

    @classmethod
    def rate_share(cls, **settings: Any) -> float:
        return 0.5  # with 1, two of six runs (300 steps of 128 and of 256) end below untrained weights

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return getattr(loss, "against", "own view") == "own view"  # one of a reader's own need not say

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the loss, and (B, out) each, detached: the first view's prediction
        and the second view's target."""
        self.check_settings()
        both = several_views(augment, images, generator)
        p1, p2 = (self.predictor(self.head(self.features_of(view))) for view in both)
        with torch.no_grad():
            t1, t2 = (self.target_head(self.features_of(view, self.target_encoder)) for view in both)
        loss = self.compare(p1, t2, index) + self.compare(p2, t1, index)
        return loss, p1.detach(), t2

    def parameter_groups(self) -> list[dict[str, Any]]:
        return self.predictor_apart(self.predictor, self.predictor_rate)

    def after_step(self) -> None:
        """The target follows."""
        follow((self.target_encoder, self.target_head), (self.encoder, self.head), self.momentum)
