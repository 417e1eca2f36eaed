"""NPID: tell every image of the data from all others, each remembered as one vector of a memory bank."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from clutils import losses
from clutils.methods.base import MOMENTUM, SIMILARITIES, Given, LossAndViews, Method
from clutils.settings import setting


class NPID(Method):
    r"""Non-parametric instance discrimination.

    $$P(i \mid v) = \frac{e^{v\cdot b_i/\tau}}{\sum_{j=1}^{n} e^{v\cdot b_j/\tau}}, \qquad
      b_i \leftarrow \frac{m\,b_i + (1-m)\,v_i}{\|m\,b_i + (1-m)\,v_i\|}$$

    One view of each image. Its positive is what the bank remembers of the same image, its negatives are
    the entries of all others. An entry has no gradient and moves after a step that saw its image, once an
    epoch; so entries grow as old as that, which MoCo's queue is the answer to.

    - momentum: m (live). Default 0.5, the paper's
    - loss: any of similarities, against the bank

    The softmax is over the whole bank, as in the authors' code for CIFAR-10. NCE, which estimates it from
    4,096 entries, and the proximal term are not here; nor is their linear head, but that of all methods.

    Wu et al. 2018, "Unsupervised feature learning via non-parametric instance discrimination"
    (arXiv 1805.01978), eq. 2, with the update read in the authors' code (lemniscate, LinearAverage.py).
    """

    paper, year, equation = "NPID (Wu et al.)", 2018, "eq. 2"
    varies = True
    usual_loss = losses.NTXent(temperature=0.1)
    needs = SIMILARITIES
    after_step_only = ("bank",)
    momentum: float = setting(MOMENTUM, default=0.5)
    bank: Tensor
    seen: tuple[Tensor, Tensor] | None = None  # samples and vectors of a step that is under way

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.register_buffer("bank", torch.zeros(0, self.out))

    def allocate(self, samples: int) -> None:
        """A random unit vector for each sample, where there is no bank of as many already."""
        if len(self.bank) != samples:
            self.bank = normalize(torch.randn(samples, self.out), dim=1).to(self.bank)

    def objective(self, given: Given) -> LossAndViews:
        """The embeddings are the batch's and the bank's. Raises ValueError without the samples' numbers."""
        index = given.index
        if index is None:
            raise ValueError(f"NPID: index is None, but must be the samples' numbers, ({len(given.images)},)")
        (view,) = given.views(1)
        v = normalize(self.head(self.features_of(view)), dim=1)
        self.seen = index, v.detach()
        return self.against_bank(v, index), v, self.bank[index]

    def against_bank(self, v: Tensor, index: Tensor) -> Tensor:
        """The mean over v (B, out): the own entry is the positive, all others are negatives."""
        cosines = v @ self.bank.T  # (B, samples)
        others = torch.ones_like(cosines, dtype=torch.bool).scatter_(1, index[:, None], False)
        return self.loss.per_anchor(cosines.gather(1, index[:, None]), cosines, negative_mask=others).mean()

    @torch.no_grad()
    def after_step(self) -> None:
        """The entries of the step's samples move towards what was seen of them."""
        index, v = cast(tuple[Tensor, Tensor], self.seen)
        self.bank[index] = normalize(self.momentum * self.bank[index] + (1 - self.momentum) * v, dim=1)
        self.seen = None

    def negatives(self, batch_size: int) -> int:
        """All samples but the own."""
        return len(self.bank) - 1
