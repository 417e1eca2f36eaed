"""NNCLR: the nearest neighbour of a view in a queue of earlier ones stands in for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clutils import losses
from clutils.losses.hyperparameters import Hyperparameter, declare
from clutils.methods.base import Augment, Method, several_views
from clutils.methods.moco import check_room, enter


class NNCLR(Method):
    r"""Nearest-neighbour contrastive learning of representations.

    $$\ell = \tfrac12\,\ell\bigl(\mathrm{NN}(z_1, Q),\, z_2\bigr) +
      \tfrac12\,\ell\bigl(\mathrm{NN}(z_2, Q),\, z_1\bigr)$$

    Both views go through one encoder and one head. Each embedding is replaced by its nearest vector in the
    support set Q, another picture's; that vector's positive is the picture's other view, its negatives are
    the other pictures of the batch in that view. Q is a queue of earlier embeddings of the second view; the
    step's own enter after the step, in place of the oldest. MoCo's queue gives negatives, this one positives,
    and there is no second encoder.

    - queue_size: vectors kept, unit length, random ones at the start. Default 1024; the paper has 98,304 for
      the 1.28 million images of ImageNet. In a short run an old vector is one of another encoder.
    - encoder, loss, out, hidden, bfloat16: see `Method`. The loss must take neighbours from a queue.

    The paper also sends z₂ through a prediction head before it is compared, as BYOL does, and reports a small
    gain for it; here there is none, for the loss looks its neighbours up among what it compares.

    Dwibedi et al. 2021, "With a little help from my friends" (arXiv 2104.14548), section 3.2, as a review
    (seunghan96.github.io) and lightly's module have it.
    """

    paper, year, equation = "NNCLR (Dwibedi et al.)", 2021, "section 3.2"
    ranges = declare(**Method.ranges, queue_size=Hyperparameter(1, symbol="K", whole=True))
    takes_extra_views = False
    needs = "takes its positives from a queue"
    queue: Tensor
    next_place: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        queue_size: int = 1024,
        hidden: int | None = None,
        bfloat16: bool = False,
    ) -> None:
        super().__init__(encoder, loss, out, bfloat16, hidden)
        self.queue_size = queue_size
        self.check_settings()
        self.register_buffer("queue", normalize(torch.randn(queue_size, out), dim=1))
        self.register_buffer("next_place", torch.zeros((), dtype=torch.int64))
        self.entering: Tensor | None = None  # of a step that is under way

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        return losses.NNCLR(temperature=0.1)

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return issubclass(loss if isinstance(loss, type) else type(loss), losses.NNCLR)

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the loss, and both views' embeddings (B, out), detached.

        Raises ValueError on a batch that is larger than the queue.
        """
        self.check_settings()
        self.check_batch(len(images))
        z1, z2 = self.head(self.features_of(torch.cat(several_views(augment, images, generator)))).chunk(2)
        self.entering = normalize(z2.detach(), dim=1)
        return self.compare(z1, z2, index, queue=self.queue), z1.detach(), z2.detach()

    @torch.no_grad()
    def after_step(self) -> None:
        """The second view's embeddings take the places of the oldest."""
        assert self.entering is not None  # `forward` came before
        enter(self.queue, self.next_place, self.entering)
        self.entering = None

    def check_batch(self, size: int) -> None:
        """Raise ValueError on a batch that is larger than the queue."""
        check_room("NNCLR", size, self.queue_size)

    def changing_buffers(self) -> list[Tensor]:
        return [buffer for name, buffer in self.named_buffers() if name not in ("queue", "next_place")]

    def chance(self, batch_size: int) -> float | None:
        """log B, where all similarities are 0: each neighbour against the batch's other view."""
        return losses.NTXent().chance(batch_size - 1)
