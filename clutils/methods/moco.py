"""MoCo: queries against a queue of keys from a momentum encoder."""

from typing import Any

from torch import nn
from torch.nn.functional import normalize

from clutils import encoders, losses
from clutils.data import Kind
from clutils.methods.base import MOMENTUM, Given, LossAndViews, Need, takes
from clutils.methods.momentum import Followed
from clutils.methods.queue import QUEUE_SIZE, Queued
from clutils.settings import setting


class MoCo(Queued, Followed):
    r"""Momentum contrast, version 2; `version=1` has the linear head of the first paper.

    The first view's embeddings are the queries, the second's the keys. Keys come from a copy of encoder and
    head that no gradient reaches and that follows them after each step, θk ← m θk + (1 - m) θq. The
    negatives are the queue alone, the keys of earlier batches: a step's own enter it after the step, in
    place of the oldest. So the number of negatives is independent of the batch size.

    - queue_size: keys kept, unit vectors, random ones at the start. Default 4096; the papers have 65,536
      for the 1.28 million images of ImageNet. It need be no multiple of the batch, but a batch must fit in.
    - momentum (live): default 0.99, for runs of hundreds of steps: with the papers' 0.999 three quarters of
      the keys' encoder would still be the random start after 300.
    - version: 2, a head of two layers with a ReLU; 1, a linear one. Neither has batch normalisation. With it
      goes the loss of a run that names none: NT-Xent at a temperature of 0.2, or 0.07. Version 2's other two
      changes, blur and a cosine for the learning rate, are the augmentation's and the run's.
    - hidden: of version 2; loss: must take a queue

    Both encoders are in training mode: each batch is normalised by its own statistics, queries and keys
    apart. The papers shuffle the keys' batch over several devices, so that a key is not normalised together
    with its query's neighbours, which would give it away; on one device a shuffled batch has the same
    statistics. Not done here.

    He et al. 2020, "Momentum contrast for unsupervised visual representation learning" (arXiv 1911.05722),
    algorithm 1 and eq. 2; Chen et al. 2020, "Improved baselines with momentum contrastive learning"
    (arXiv 2003.04297).
    """

    paper, year, equation = "MoCo v2 (Chen, Fan, Girshick, He)", 2020, "algorithm 1 and eq. 2"
    needs = Need("takes a queue", lambda loss: "queue" in takes(loss))
    queue_size: int = setting(QUEUE_SIZE, default=4096)
    momentum: float = setting(MOMENTUM, default=0.99)
    version: int = setting(1, 2, whole=True, default=2, about="MoCo v1's head or v2's")

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        if self.version == 1 and self.hidden is not None:
            raise ValueError(f"MoCo: hidden is {self.hidden}, but the head of version 1 is linear")
        features = encoders.width(encoder)
        width = self.hidden or features
        self.head = nn.Linear(width, self.out)
        if self.version == 2:
            first = nn.Linear(features, width)
            self.head = nn.Sequential(first, nn.ReLU(inplace=True), self.head)
        self.start_target()
        self.start_queue()

    @classmethod
    def default_loss(cls, version: int = 2, **settings: Any) -> nn.Module:
        return losses.NTXent(temperature=0.07 if version == 1 else 0.2)

    def objective(self, given: Given) -> LossAndViews:
        """The embeddings are the queries and their keys."""
        first, second = given.views()
        queries = self.head(self.features_of(first))
        keys = self.target(second)
        self.entering = normalize(keys, dim=1)
        return self.compare(queries, keys, given.index, queue=self.queue), queries, keys

    def negatives(self, batch_size: int) -> int:
        """The queue, whatever the batch."""
        return self.queue_size

    def hindrance(self, kind: Kind, samples: int) -> str:
        """A queue that holds each sample more than once: its own old keys are among its negatives."""
        if self.queue_size <= samples:
            return ""
        return (
            f"the queue of {self.queue_size:,} keys holds each of the {samples:,} {kind} "
            f"{self.queue_size / samples:.1f} times, as negatives of itself: "
            f"queue_size {2 ** (samples.bit_length() - 1):,} suits these data"
        )
