"""CLIP: pictures and texts, each to be found by the other."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clutils.losses.base import Loss, contrast, mean_over_positives, softplus
from clutils.losses.hyperparameters import SWITCH, TEMPERATURE, hyperparameter
from clutils.similarities import Pairs


class CLIP(Loss):
    r"""Symmetric cross-entropy on the (B, B) table of similarities between two modalities or views.

    $$\ell = \frac12\left(\frac1B\sum_i -\log \frac{e^{s_{ii}/\tau}}{\sum_j e^{s_{ij}/\tau}} +
      \frac1B\sum_j -\log \frac{e^{s_{jj}/\tau}}{\sum_i e^{s_{ij}/\tau}}\right)$$

    It is InfoNCE: each row and each column of the table is an anchor, with the B - 1 others of the opposite
    view as negatives; views of one kind are never compared with one another. Pull W/τ, push (W/τ) p̂_j, as
    in NT-Xent. In the batch's mean, with p_ij the softmax of row i and r_ij that of column j, s_ij is pushed
    by (p_ij + r_ij)/(2Bτ) and s_ii pulled by (2 - p_ii - r_ii)/(2Bτ).

    - temperature: default 0.07, where the paper's learned temperature starts
    - learned_scale: learn t = log 1/τ, the paper's logit scale, from there on, 1/τ at most 100. dℓ/dt is the
      anchors' mean of (E_p[s] - s+)/τ, p over positive and negatives: τ falls once positives stand out.
      `effective_temperature` is where it is; setting `temperature` starts anew. A run learns t without weight
      decay and keeps it in checkpoints; in your own loop the optimiser needs `loss.parameters()`.

    Radford et al. 2021, "Learning transferable visual models from natural language supervision"
    (arXiv 2103.00020), figure 3; the start, 0.07, and the bound, 100, as a textbook gives them.
    """

    against = "other view"
    accepts = frozenset()
    paper, year, equation = "CLIP (Radford et al.)", 2021, "figure 3"
    temperature: float = hyperparameter(TEMPERATURE, default=0.07)
    learned_scale: bool = hyperparameter(SWITCH, default=False)
    started = 0.0  # the temperature that the learned scale began from

    def check_hyperparameters(self) -> None:
        super().check_hyperparameters()
        if self.learned_scale and not hasattr(self, "log_scale"):
            self.started = self.temperature
            self.log_scale = nn.Parameter(torch.tensor(-math.log(self.temperature)))
        if not self.learned_scale and hasattr(self, "log_scale"):
            del self.log_scale
            self.effective_temperature = None

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor, temperature: float) -> Tensor:
        """Figure 3, literally: (B, D), (B, D) -> scalar."""
        logits = F.normalize(z1, dim=1) @ F.normalize(z2, dim=1).T / temperature
        own = torch.arange(len(z1), device=z1.device)
        return (F.cross_entropy(logits, own) + F.cross_entropy(logits.T, own)) / 2

    def scale(self) -> Tensor:
        """The learned 1/τ, 0-d, with a gradient."""
        with torch.no_grad():
            if self.temperature != self.started:
                self.started = self.temperature
                self.log_scale.fill_(-math.log(self.temperature))
            self.log_scale.clamp_(max=math.log(100))  # so the gradient leads back from there
        scale = self.log_scale.exp()
        self.effective_temperature = 1 / scale.detach()
        return scale

    def chance(self, K: int) -> float | None:
        return CLIP().chance(K) if self.learned_scale else super().chance(K)  # whatever the temperature

    def prepare(self, z: Tensor, name: str) -> Tensor:
        """Unit vectors; those of one side times the learned scale, so that their products are logits."""
        z = super().prepare(z, name)
        return z * self.scale() if self.learned_scale and name == "z1" else z

    def of_the_batch(self, positives: Tensor) -> dict[str, Any]:
        return {"temperature": 1.0} if self.learned_scale else {}

    def formula(self, pairs: Pairs, temperature: float | Tensor | None = None) -> Tensor:
        if temperature is None:
            temperature = 1 / self.scale() if self.learned_scale else self.temperature
        return mean_over_positives(softplus(contrast(pairs, temperature)), pairs)
