"""Dual temperature: one for the softmax over negatives, a second for the per-anchor weight W."""

import torch
from torch import Tensor

from clutils.losses.base import TEMPERATURE, Loss, contrast, loss_over_weight, mean_over_positives
from clutils.settings import setting
from clutils.similarities import Pairs


class DualTemperature(Loss):
    r"""Dual temperature, against the B - 1 other images of the opposite view.

    $$\ell = \mathrm{sg}\!\left[\frac{W(m\tau)}{W(\tau)}\right] (-\log p^+), \qquad
      \nabla\ell = W(m\tau)\,\nabla c$$

    -log p+ and the shares p̂ of the push are at τ; the gate W that shuts for easy anchors is at the
    hotter mτ, where it distinguishes anchors less. Pull W(mτ)/τ, push (W(mτ)/τ) p̂_j. m = 1 is InfoNCE; for
    m → ∞, W(mτ) → K/(K+1), the same for all anchors: the decoupled loss's gradient, a little weaker.

    For an easy pair the authors' code has infinity times zero. From the contrasts c at τ and at mτ the value
    is sigmoid(c_mτ) · softplus(c_τ)/sigmoid(c_τ), whose second factor tends to 1.

    - temperature, ratio: defaults 0.1 and 10, the authors' code's

    Zhang et al. 2022, "Dual temperature helps contrastive learning without many negative samples" (CVPR), in
    the form of the authors' code.
    """

    paper, year, equation = "Dual temperature (Zhang et al.)", 2022, "L_DT"
    temperature: float = setting(TEMPERATURE, default=0.1)
    ratio: float = setting(
        1e-6, 1e6, "m", dial=(0.1, 100, "log"), default=10.0, about="second temperature over the first"
    )
    comparison = "other view"

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, ratio: float) -> Tensor:
        """L_DT, literally, as the authors' code: (A, P), (A, K) -> (A,)."""

        def share(tau: float) -> Tensor:  # p+ at this temperature
            E_plus, E_minus = torch.exp(positives / tau), torch.exp(negatives / tau)
            return E_plus / (E_plus + E_minus.sum(dim=1, keepdim=True))

        p, hot = share(temperature), share(ratio * temperature)
        return (((1 - hot) / (1 - p)).detach() * -torch.log(p)).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        c = contrast(pairs, self.temperature)
        with torch.no_grad():
            gate = torch.sigmoid(contrast(pairs, self.temperature * self.ratio))  # W(mτ)
        return mean_over_positives(gate * (loss_over_weight(c.detach()) + c - c.detach()), pairs)
