"""DCLW: the decoupled loss, whose positives weigh less the nearer they are."""

import math

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, masked, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class WeightedDecoupled(Loss):
    r"""Decoupled contrastive learning with weights on the positives (DCLW), both views as anchors.

    $$\ell_i = -\mathrm{sg}[w_i]\,\frac{s^+_i}{\tau} + \log \sum_j e^{s^-_{ij}/\tau}, \qquad
      w_i = 2 - \frac{B\, e^{s^+_i/\sigma}}{\sum_{k} e^{s^+_k/\sigma}}$$

    Pull w_i/τ, push p̂_j/τ. The weights have mean one over the batch; the pull moves from pairs that are near
    already to those that are not. Their softmax runs over the batch, so a pair's weight depends on the
    others', and with a small σ the nearest pair has w = 2 - B: it is pushed apart. σ → ∞ is `Decoupled`.

    No gradient flows through w: so it is in lightly; the first public port lets it flow, and what the paper
    means could not be read here. Over two views the 2B anchors hold each pair twice, which leaves w as it is.
    With several positives: the mean over them, with a weight each, over all of them that count.

    - temperature, sigma: defaults 0.1 and 0.5, lightly's

    Yeh et al. 2022, "Decoupled contrastive learning" (arXiv 2110.06848), L_DCW with the negative von
    Mises-Fisher weights, as the documentation of two libraries (lightly, nidl) has them.
    """

    paper, year, equation = "DCLW (Yeh et al.)", 2022, "L_DCW"
    temperature: float = setting(TEMPERATURE, default=0.1)
    sigma: float = setting(
        1e-6,
        1e12,
        "σ",
        dial=(0.01, 5, "log"),
        also=(math.inf,),
        default=0.5,
        about="width of the weights of positives, inf = all alike",
    )

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, sigma: float) -> Tensor:
        """L_DCW, literally: (A, P), (A, K) -> (A,)."""
        e = torch.exp(positives / sigma)
        w = (2 - e / e.mean()).detach()
        return (-w * positives / temperature).mean(1) + torch.exp(negatives / temperature).sum(1).log()

    def of_the_batch(self, positives: Tensor) -> dict[str, Tensor]:
        return {"everyone": positives.detach()}

    def formula(self, pairs: Pairs, everyone: Tensor | None = None) -> Tensor:
        s, mask = pairs.positives.detach(), pairs.positive_mask
        if everyone is None:
            everyone = s if mask is None else s[mask]
        largest = everyone.amax()
        mean = ((everyone - largest) / self.sigma).exp().mean()
        e = masked((s - largest) / self.sigma, mask, -torch.inf).exp()
        pull_less = (e / mean - 1) * pairs.positives / self.temperature  # 1 - w, times s+/τ
        return mean_over_positives(contrast(pairs, self.temperature) + pull_less, pairs)
