"""AttentionNCE: InfoNCE between prototypes, which an attention over the positives and negatives makes."""

import math

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, counted, masked, softplus
from clutils.settings import SWITCH, Setting, setting
from clutils.similarities import Pairs

SCALE = Setting(1e-6, 1e12, dial=(0.05, 20, "log"), also=(math.inf,), about="temperature of an attention")


class AttentionNCE(Loss):
    r"""InfoNCE on attention-weighted similarities.

    $$\ell = -\log \frac{e^{\bar s/\tau}}{e^{\bar s/\tau} + \sum_j e^{\beta_j s^-_j/\tau}}, \qquad
      \bar s = \sum_i \alpha_i s^+_i, \quad \alpha = \mathrm{softmax}(s^+/d_{pos}), \quad
      \beta = N\,\mathrm{softmax}(s^-/d_{neg})$$

    Two views: the other view is the one positive (M = 1). `extra_views` (B, M, D): those M are the positives
    of both anchor views, and the other anchor view is neither positive nor negative. `labels`: all other
    views of the anchor's label are positives. Negatives are the 2B - 2 anchor views of other images (with
    labels: all views of other labels), or a queue; N is their number.

    With detached attention, W = sigmoid(c) and p̂ the softmax of β s-/τ: pull_i = α_i W/τ,
    push_j = β_j p̂_j W/τ. Without, the weights move with the similarities:
    pull_i = (W/τ) α_i (1 + (s+_i - s̄)/d_pos) and
    push_k = (W/τ) β_k (p̂_k (1 + s-_k/d_neg) - Σ_j p̂_j β_j s-_j / (N d_neg)).

    - temperature: default 0.5, table 5.
    - d_pos, d_neg: infinity is a flat attention; scales, no dimensions. Defaults 1 and 1, table 5 for
      CIFAR-10. STL-10 2 and 0.5, CIFAR-100 1 and 10, Tiny-ImageNet 4 and 1; M = 4 in all. The authors' code
      has d_neg = 10 for CIFAR-10 too. A small d_neg explodes: β_j can reach N and stands in the exponent, so
      a logit can reach N/τ.
    - detach_attention: no gradient through α and β. The paper is silent; its authors' code detaches (True).

    The paper's eq. 10 lets the index of β run to M where N is meant. The authors' code adds 1e-6 to each
    share of β, so that they sum to a little more than N; not done here.

    AttentionNCE (ICLR 2025 submission), eq. 7 to 10 and 14.
    """

    paper, year, equation = "AttentionNCE", 2024, "eq. 14"
    temperature: float = setting(TEMPERATURE, default=0.5)
    d_pos: float = setting(SCALE, default=1.0)
    d_neg: float = setting(SCALE, default=1.0)
    detach_attention: bool = setting(
        SWITCH, default=True, about="attention weights are constants of the gradient"
    )
    accepts = frozenset({"queue", "labels", "extra_views"})

    @staticmethod
    def as_written(
        positives: Tensor,
        negatives: Tensor,
        temperature: float,
        d_pos: float,
        d_neg: float,
        detach_attention: bool,
    ) -> Tensor:
        """Eq. 7 to 10 and 14, literally: (A, M), (A, N) -> (A,)."""
        alpha = torch.softmax(positives / d_pos, dim=1)
        beta = negatives.shape[1] * torch.softmax(negatives / d_neg, dim=1)
        if detach_attention:
            alpha, beta = alpha.detach(), beta.detach()
        E_plus = torch.exp((alpha * positives).sum(dim=1) / temperature)
        E_minus = torch.exp(beta * negatives / temperature)
        return -torch.log(E_plus / (E_plus + E_minus.sum(dim=1)))

    def formula(self, pairs: Pairs) -> Tensor:
        alpha = self.attention(pairs.positives, pairs.positive_mask, self.d_pos)
        beta = counted(pairs) * self.attention(pairs.negatives, pairs.negative_mask, self.d_neg)
        prototype = (alpha * pairs.positives).sum(dim=1, keepdim=True)
        attended = Pairs(prototype, beta * pairs.negatives, None, pairs.negative_mask)
        return softplus(contrast(attended, self.temperature))[:, 0]

    def attention(self, similarities: Tensor, mask: Tensor | None, scale: float) -> Tensor:
        """Shares that sum to one over each row's counted entries: (A, n) -> (A, n)."""
        if self.detach_attention:
            similarities = similarities.detach()
        return torch.softmax(masked(similarities / scale, mask, -torch.inf), dim=1)
