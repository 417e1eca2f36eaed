"""NNCLR: each view is replaced by its nearest neighbour in a support set."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss
from clutils.losses.nt_xent import NTXent
from clutils.settings import setting
from clutils.similarities import Batch, Pairs, without_own


class NNCLR(Loss):
    r"""Nearest-neighbour contrastive learning of representations.

    $$\ell_i = -\log \frac{e^{\langle \mathrm{NN}(z^1_i),\, z^2_i\rangle/\tau}}
      {\sum_k e^{\langle \mathrm{NN}(z^1_i),\, z^2_k\rangle/\tau}}, \qquad
      \mathrm{NN}(z) = \arg\min_{q \in Q} \|z - q\|$$

    and the same with the views exchanged, each half. The neighbour is another image's vector: its view
    as positive goes beyond what an augmentation can make of one image. It is a constant: the pull W/τ and
    the push (W/τ) p̂_j on its B - 1 cross negatives move z2 alone. A queue gives the positives here, where
    MoCo's gives the negatives.

    Q is `queue`; who fills it (in the paper one view of each batch, the oldest go) is the method's business.
    Without one the support is the batch, where each vector is its own neighbour: `CLIP`'s value, and of its
    gradient what does not pass through the anchor.

    - temperature: default 0.1, the paper's (from memory)

    Dwibedi et al. 2021, "With a little help from my friends" (arXiv 2104.14548), the equation of its
    section 3.2 as a review gives it; lightly's memory bank does the same.
    """

    level = "feature"
    input_note = "vectors, since each is replaced by its nearest in a support set"
    comparison = "other view"
    extra_negatives = ", with the nearest vector of a queue in the anchor's place"
    paper, year, equation = "NNCLR (Dwibedi et al.)", 2021, "section 3.2"
    temperature: float = setting(TEMPERATURE, default=0.1)

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor, temperature: float, queue: Tensor | None = None) -> Tensor:
        """The loss in both directions, literally: (B, D), (B, D), (K, D) -> scalar."""
        z1, z2, own = F.normalize(z1, dim=1), F.normalize(z2, dim=1), torch.arange(len(z1), device=z1.device)
        support = torch.cat([z1, z2]) if queue is None else F.normalize(queue, dim=1)
        near1, near2 = (support[torch.cdist(z, support).argmin(dim=1)].detach() for z in (z1, z2))
        first, second = near1 @ z2.T / temperature, near2 @ z1.T / temperature
        return (F.cross_entropy(first, own) + F.cross_entropy(second, own)) / 2

    def pair_up(self, batch: Batch) -> Pairs:
        if len(batch.first) < 2:
            raise ValueError("NNCLR: a batch of 1 is too small: its negatives are the batch's other images")
        z1, z2 = batch.anchors
        near1, near2 = z1.detach(), z2.detach()  # each its own neighbour
        if batch.queue is not None:
            support = batch.queue.detach()
            near1, near2 = (support[(z @ support.T).argmax(dim=1)] for z in (near1, near2))
        positives = torch.cat([near1 * z2, near2 * z1]).sum(dim=1, keepdim=True)
        table = torch.cat([near1 @ batch.second.T, near2 @ batch.first.T])
        return Pairs(positives, without_own(table, len(z1), start=batch.start))

    formula = NTXent.formula
