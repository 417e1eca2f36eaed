"""CLIP: images and texts, each to be found by the other."""

import math
from numbers import Real
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from clutils.losses.base import TEMPERATURE, Loss, contrast, mean_over_positives, softplus, transformed
from clutils.settings import SWITCH, setting
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
      `effective_temperature` is where it is; setting `temperature` resets it. A run learns t without weight
      decay and keeps it in checkpoints; in your own loop the optimiser needs `loss.parameters()`.

    Radford et al. 2021, "Learning transferable visual models from natural language supervision"
    (arXiv 2103.00020), figure 3; the start, 0.07, and the bound, 100, as a textbook gives them.
    """

    comparison = "other view"
    accepts = frozenset()
    in_batches = ("learned_scale",)
    paper, year, equation = "CLIP (Radford et al.)", 2021, "figure 3"
    temperature: float = setting(TEMPERATURE, default=0.07)
    learned_scale: bool = setting(SWITCH, default=False, about="1/τ is learned")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute; turning `learned_scale` makes t or removes it, setting τ starts it again."""
        before = self.__dict__.get(name)
        super().__setattr__(name, value)
        if name not in ("temperature", "learned_scale") or (isinstance(value, Real) and value == before):
            return
        switch, temperature = self.__dict__.get("learned_scale"), self.__dict__["temperature"]
        if switch is True and TEMPERATURE.allows(temperature):
            start = torch.tensor(-math.log(temperature))
            if not hasattr(self, "log_scale"):
                self.log_scale = nn.Parameter(start)
            self.log_scale.data.copy_(start)
        elif switch is False and hasattr(self, "log_scale"):
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
        if not transformed():
            with torch.no_grad():
                self.log_scale.clamp_(max=math.log(100))  # so the gradient leads back from there
        scale = self.log_scale.exp()
        self.effective_temperature = 1 / scale.detach()
        return scale

    def chance(self, K: int) -> float | None:
        return CLIP().chance(K) if self.learned_scale else super().chance(K)  # whatever the temperature

    def of_the_batch(self, positives: Tensor) -> dict[str, Tensor]:
        return {"temperature": 1 / self.scale().to(positives)} if self.learned_scale else {}

    def formula(self, pairs: Pairs, temperature: float | Tensor | None = None) -> Tensor:
        if temperature is None:
            temperature = 1 / self.scale().to(pairs.positives) if self.learned_scale else self.temperature
        return mean_over_positives(softplus(contrast(pairs, temperature)), pairs)
