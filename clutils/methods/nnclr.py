"""NNCLR: each view is replaced by its nearest neighbour in a queue of earlier ones."""

from torch import nn
from torch.nn.functional import normalize

from clutils import losses
from clutils.methods.base import Given, LossAndViews, Need
from clutils.methods.queue import QUEUE_SIZE, Queued
from clutils.settings import setting


class NNCLR(Queued):
    r"""Nearest-neighbour contrastive learning of representations.

    $$\ell = \tfrac12\,\ell\bigl(\mathrm{NN}(z_1, Q),\, z_2\bigr) +
      \tfrac12\,\ell\bigl(\mathrm{NN}(z_2, Q),\, z_1\bigr)$$

    Each embedding is replaced by its nearest vector in the support set Q, another image's; that vector's
    positive is the image's other view, its negatives are the other images of the batch in that view. Q is
    a queue of earlier embeddings of the second view. MoCo's queue gives negatives, this one positives, and
    there is no second encoder.

    - queue_size: vectors kept, unit length, random ones at the start. Default 1024; the paper has 98,304 for
      the 1.28 million images of ImageNet. In a short run an old vector is one of another encoder.
    - loss: must take neighbours from a queue

    The paper also sends z₂ through a prediction head before it is compared, as BYOL does, and reports a small
    gain for it; here there is none, for the loss looks its neighbours up among what it compares.

    Dwibedi et al. 2021, "With a little help from my friends" (arXiv 2104.14548), section 3.2, as a review
    (seunghan96.github.io) and lightly's module have it.
    """

    paper, year, equation = "NNCLR (Dwibedi et al.)", 2021, "section 3.2"
    usual_loss = losses.NNCLR(temperature=0.1)
    needs = Need("takes its positives from a queue", lambda loss: issubclass(loss, losses.NNCLR))
    queue_size: int = setting(QUEUE_SIZE, default=1024)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.start_queue()

    def objective(self, given: Given) -> LossAndViews:
        z1, z2 = self.projected(*given.views())
        self.entering = normalize(z2.detach(), dim=1)
        return self.compare(z1, z2, given.index, queue=self.queue), z1, z2

    def chance(self, batch_size: int) -> float | None:
        """log B, where all similarities are 0: each neighbour against the batch's other view."""
        return losses.NTXent().chance(batch_size - 1)
