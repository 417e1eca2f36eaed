"""MoCo: queries against a queue of keys from a momentum encoder."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clutils import encoders, losses
from clutils.losses.hyperparameters import Hyperparameter, declare
from clutils.methods.base import MOMENTUM, Augment, Method, several_views
from clutils.methods.momentum import follow, follower


class MoCo(Method):
    r"""Momentum contrast, version 2; `version=1` has the linear head of the first paper.

    The first view's embeddings are the queries, the second's the keys. Keys come from a copy of encoder and
    head that no gradient reaches and that follows them after each step, θk ← m θk + (1 - m) θq. The
    negatives are the queue alone, the keys of earlier batches: a step's own enter it after the step, in
    place of the oldest. So the number of negatives is independent of the batch size.

    - queue_size: keys kept, unit vectors, random ones at the start. Default 4096; the papers have 65,536
      for the 1.28 million images of ImageNet. It need be no multiple of the batch, but a batch must fit in.
    - momentum: may be changed while a run trains. Default 0.99, for runs of hundreds of steps: the papers'
      0.999 remembers some 1,000 steps, so that after 300 three quarters of the keys' encoder would still be
      the random start.
    - version: 2, a head of two layers with a ReLU; 1, a linear one. Neither has batch normalisation. With it
      goes the loss of a run that names none: NT-Xent at a temperature of 0.2, or 0.07. Version 2's other two
      changes, blur and a cosine for the learning rate, are the augmentation's and the run's.
    - encoder, loss, out, hidden (of version 2), bfloat16: see `Method`. The loss must take a queue.

    Both encoders are in training mode: each batch is normalised by its own statistics, queries and keys
    apart, and the running ones of the keys' encoder are its own, not the follower's share of the other's.
    The papers shuffle the keys' batch over several devices, so that a key is not normalised together with its
    query's neighbours, which would give it away; on one device there is one batch to normalise, and a
    shuffled one has the same statistics. Not done here.

    He et al. 2020, "Momentum contrast for unsupervised visual representation learning" (arXiv 1911.05722),
    algorithm 1 and eq. 2; Chen et al. 2020, "Improved baselines with momentum contrastive learning"
    (arXiv 2003.04297).
    """

    paper, year, equation = "MoCo v2 (Chen, Fan, Girshick, He)", 2020, "algorithm 1 and eq. 2"
    ranges = declare(
        **Method.ranges,
        queue_size=Hyperparameter(1, symbol="K", whole=True),
        momentum=MOMENTUM,
        version=Hyperparameter(1, 2, whole=True),
    )
    live = ("momentum",)
    takes_extra_views = False
    needs = "takes a queue"
    queue: Tensor
    next_place: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        queue_size: int = 4096,
        momentum: float = 0.99,
        version: int = 2,
        hidden: int | None = None,
        bfloat16: bool = False,
    ) -> None:
        super().__init__(encoder, loss, out, bfloat16, hidden)
        self.queue_size, self.momentum, self.version = queue_size, momentum, version
        self.check_settings()
        if version == 1 and hidden is not None:
            raise ValueError(f"MoCo: hidden is {hidden}, but the head of version 1 is linear")
        features = encoders.width(encoder)
        width = hidden or features
        self.head = nn.Linear(width, out)
        if version == 2:
            first = nn.Linear(features, width)
            self.head = nn.Sequential(first, nn.ReLU(inplace=True), self.head)
        self.target_encoder, self.target_head = follower(encoder), follower(self.head)
        self.register_buffer("queue", normalize(torch.randn(queue_size, out), dim=1))
        self.register_buffer("next_place", torch.zeros((), dtype=torch.int64))
        self.keys: Tensor | None = None  # of a step that is under way

    @classmethod
    def default_loss(cls, version: int = 2, **settings: Any) -> nn.Module:
        return losses.NTXent(temperature=0.07 if version == 1 else 0.2)

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        return "queue" in getattr(loss, "takes", ())

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the loss, the queries and their keys (B, out), detached.

        Raises ValueError on a batch that is larger than the queue.
        """
        self.check_settings()
        self.check_batch(len(images))
        first, second = several_views(augment, images, generator)
        queries = self.head(self.features_of(first))
        with torch.no_grad():
            keys = self.target_head(self.features_of(second, self.target_encoder))
        self.keys = normalize(keys, dim=1)
        return self.compare(queries, keys, index, queue=self.queue), queries.detach(), keys

    def check_batch(self, size: int) -> None:
        """Raise ValueError on a batch that is larger than the queue."""
        check_room("MoCo", size, self.queue_size)

    @torch.no_grad()
    def after_step(self) -> None:
        """The keys' encoder follows; the step's keys take the places of the oldest."""
        follow((self.target_encoder, self.target_head), (self.encoder, self.head), self.momentum)
        assert self.keys is not None  # `forward` came before
        enter(self.queue, self.next_place, self.keys)
        self.keys = None

    def changing_buffers(self) -> list[Tensor]:
        return [buffer for name, buffer in self.named_buffers() if name not in ("queue", "next_place")]

    def chance(self, batch_size: int) -> float | None:
        """The loss of a batch where all similarities are 0: against the queue, whatever the batch."""
        chance = getattr(self.loss, "chance", None)
        return None if chance is None else chance(self.queue_size)


def enter(queue: Tensor, next_place: Tensor, vectors: Tensor) -> None:
    """Vectors (B, D) take the places of the oldest in the queue (K, D), first in, first out; in place.

    - next_place: 0-d int64, where the oldest stands; moved by B, and from the end to the start
    """
    places = (next_place + torch.arange(len(vectors), device=queue.device)) % len(queue)
    queue[places] = vectors
    next_place.add_(len(vectors)).remainder_(len(queue))


def check_room(who: str, size: int, queue_size: int) -> None:
    """Raise ValueError on a batch that is larger than the queue."""
    if size > queue_size:
        raise ValueError(
            f"{who}: a batch of {size} does not fit into a queue of {queue_size}: "
            f"a smaller batch, or queue_size {size} at least"
        )
