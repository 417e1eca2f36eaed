"""CLIP: pictures and texts, each to be found by the other."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss
from clutils.losses.hyperparameters import TEMPERATURE, declare


class CLIP(Loss):
    r"""Symmetric cross-entropy on the (B, B) table of similarities between two modalities or views.

    $$\ell = \frac12\left(\frac1B\sum_i -\log \frac{e^{s_{ii}/\tau}}{\sum_j e^{s_{ij}/\tau}} +
      \frac1B\sum_j -\log \frac{e^{s_{jj}/\tau}}{\sum_i e^{s_{ij}/\tau}}\right)$$

    The mean of InfoNCE in both directions, each with the B - 1 others of the opposite view as negatives;
    views of one kind are never compared with one another. With p_ij the softmax of row i and r_ij that of
    column j, s_ij is pushed by (p_ij + r_ij)/(2Bτ) and s_ii pulled by (2 - p_ii - r_ii)/(2Bτ).

    Its level is "feature": every similarity belongs to two anchors, a row's and a column's.
    `chance(K)` is log(K + 1), K = B - 1.

    - temperature: default 0.07, where the paper's learned temperature starts (it learns log 1/τ, the logit
      scale, and keeps 1/τ at most 100; here τ is a plain number).

    Radford et al. 2021, "Learning transferable visual models from natural language supervision"
    (arXiv 2103.00020), figure 3.
    """

    level = "feature"
    works_on = "the whole (B, B) table, where each similarity belongs to two anchors"
    against = "other view"
    takes = frozenset()
    paper, year, equation = "CLIP (Radford et al.)", 2021, "figure 3"
    ranges = declare(temperature=TEMPERATURE)

    def __init__(self, temperature: float = 0.07, check_inputs: bool = True) -> None:
        super().__init__(check_inputs)
        self.temperature = temperature
        self.settings()

    def pair_up(self, z1: Tensor, z2: Tensor, *nothing: None) -> Tensor:
        return z1 @ z2.T  # (B, B)

    def formula(self, table: Tensor) -> Tensor:
        """(B, B) similarities -> one value for each row and each column, (2B,)."""
        logits, own = table / self.temperature, torch.arange(len(table), device=table.device)
        return torch.cat(
            [F.cross_entropy(direction, own, reduction="none") for direction in (logits, logits.T)]
        )

    def chance(self, K: int) -> float | None:
        super().chance(K)  # its check
        return math.log(K + 1)
