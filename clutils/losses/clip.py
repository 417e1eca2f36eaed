"""CLIP: pictures and texts, each to be found by the other."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss, contrast, mean_over_positives, softplus
from clutils.losses.hyperparameters import TEMPERATURE, declare
from clutils.similarities import Pairs


class CLIP(Loss):
    r"""Symmetric cross-entropy on the (B, B) table of similarities between two modalities or views.

    $$\ell = \frac12\left(\frac1B\sum_i -\log \frac{e^{s_{ii}/\tau}}{\sum_j e^{s_{ij}/\tau}} +
      \frac1B\sum_j -\log \frac{e^{s_{jj}/\tau}}{\sum_i e^{s_{ij}/\tau}}\right)$$

    It is InfoNCE: each row and each column of the table is an anchor, with the B - 1 others of the opposite
    view as negatives; views of one kind are never compared with one another. Pull W/τ, push (W/τ) p̂_j, as
    in NT-Xent. In the batch's mean, with p_ij the softmax of row i and r_ij that of column j, s_ij is pushed
    by (p_ij + r_ij)/(2Bτ) and s_ii pulled by (2 - p_ii - r_ii)/(2Bτ).

    - temperature: default 0.07, where the paper's learned temperature starts (it learns log 1/τ, the logit
      scale, and keeps 1/τ at most 100; here τ is a plain number).

    Radford et al. 2021, "Learning transferable visual models from natural language supervision"
    (arXiv 2103.00020), figure 3.
    """

    against = "other view"
    takes = frozenset()
    paper, year, equation = "CLIP (Radford et al.)", 2021, "figure 3"
    ranges = declare(temperature=TEMPERATURE)

    def __init__(self, temperature: float = 0.07, check_inputs: bool = True) -> None:
        super().__init__(check_inputs)
        self.temperature = temperature
        self.settings()

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
        """Figure 3, literally: (B, D), (B, D) -> scalar."""
        logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature
        own = torch.arange(len(z1), device=z1.device)
        return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2

    def formula(self, pairs: Pairs) -> Tensor:
        return mean_over_positives(softplus(contrast(pairs, self.temperature)), pairs)
