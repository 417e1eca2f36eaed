"""MACL: alignment-adaptive temperature, and InfoNCE reweighted by 1/W."""

from typing import Any

import torch
from torch import Tensor

from clutils.losses.base import SLACK, TEMPERATURE, Loss, contrast, loss_over_weight, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class MACL(Loss):
    r"""Model-aware contrastive learning, both views as anchors.

    $$\ell = -\mathrm{sg}\!\left[\tfrac{1}{W}\right] \log p^+ \ \text{at}\ \tau_a, \qquad
      \tau_a = \tau_0 \,\bigl(1 + \alpha\,(A - A_0)\bigr)$$

    A is the mean positive similarity of the batch, sg the stop-gradient (also on τ_a). In terms of the
    contrast c at τ_a the value is softplus(c)/sigmoid(c), which tends to 1 for an easy pair, and the
    gradient is ∇c: pull 1/τ_a, push p̂_j/τ_a. Written so, it has no NaN; the paper's pseudocode,
    V = 1/(1 - P) times -log P, is infinity times zero there.

    - temperature, alpha, alignment_threshold: defaults 0.1, 0.5, 0.0, the fixed settings of the paper's
      table 8; its own range of α is 0 to 1
    - minimum_temperature: τ_a never falls below it; None = τ0/10. The paper has no floor, and its own range
      for τ_a reaches 0 and below at α = 1, A0 >= 0.

    After a call `adaptive_temperature` holds the τ_a it used (0-d tensor); `floored` counts the calls in
    which the floor acted, `calls` all of them.

    Huang et al. 2023 (arXiv 2207.07874), eq. 11 and algorithm 1.
    """

    paper, year, equation = "MACL (Huang et al.)", 2023, "eq. 11"
    temperature: float = setting(TEMPERATURE, symbol="τ₀", default=0.1)
    alpha: float = setting(
        0, 10, "α", dial=(0, 2, "even"), default=0.5, about="how much the temperature follows the alignment"
    )
    alignment_threshold: float = setting(
        -1, 1, "A₀", dial=(-1, 1, "even"), default=0.0, about="alignment at which the temperature is τ₀"
    )
    minimum_temperature: float | None = setting(
        TEMPERATURE,
        symbol="τ min",
        dial=(0.001, 5, "log"),
        also=(None,),
        default=None,
        about="lower bound of the temperature",
    )
    floored: Tensor | int = 0
    calls = 0
    adaptive_temperature = property(lambda self: self.effective_temperature)

    def per_anchor(self, *tables: Any, alignment: float | Tensor | None = None, **known: Any) -> Tensor:
        """The formula alone, as in `Loss.per_anchor`; alignment (A): None = mean of the given positives."""
        if alignment is not None:
            given = torch.as_tensor(alignment)
            if given.numel() != 1 or not bool(given.abs() <= 1 + SLACK):
                raise ValueError(
                    f"MACL: alignment is {alignment}, but a mean similarity is one number between -1 and 1"
                )
            known["temperature"] = self.temperature_at(given.reshape(()))
        return super().per_anchor(*tables, **known)

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, temperature: float, alpha: float, alignment_threshold: float
    ) -> Tensor:
        """Eq. 7 and 11, literally, without a floor: (A, P), (A, K) -> (A,)."""
        tau = temperature * (1 + alpha * (positives.mean().detach() - alignment_threshold))
        E_plus, E_minus = torch.exp(positives / tau), torch.exp(negatives / tau)
        p = E_plus / (E_plus + E_minus.sum(dim=1, keepdim=True))
        return (-torch.log(p) / (1 - p).detach()).mean(dim=1)

    def of_the_batch(self, positives: Tensor) -> dict[str, Tensor]:
        return {"temperature": self.temperature_at(positives.mean())}

    def formula(self, pairs: Pairs, temperature: Tensor | None = None) -> Tensor:
        if temperature is None:
            s, mask = pairs.positives, pairs.positive_mask
            temperature = self.temperature_at((s if mask is None else s[mask]).mean())
        c = contrast(pairs, temperature)
        return mean_over_positives(loss_over_weight(c.detach()) + c - c.detach(), pairs)

    def temperature_at(self, alignment: float | Tensor) -> Tensor:
        """τ_a for an alignment A (one number; a tensor of them gives as many): eq. 7, with its floor."""
        alignment = torch.as_tensor(alignment).detach()
        adapted = self.temperature * (1 + self.alpha * (alignment - self.alignment_threshold))
        lowest = self.temperature / 10 if self.minimum_temperature is None else self.minimum_temperature
        self.calls += 1
        self.floored = self.floored + (adapted < lowest)
        self.effective_temperature = adapted.clamp(min=lowest)
        return self.effective_temperature
