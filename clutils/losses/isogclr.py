"""iSogCLR: SogCLR in which each sample learns a temperature of its own."""

import math

import torch
from torch import Tensor

from clutils.losses import moving_average
from clutils.losses.base import TEMPERATURE, Loss
from clutils.losses.sogclr import SogCLR
from clutils.settings import setting
from clutils.similarities import Pairs


class ISogCLR(Loss):
    r"""`Robust` over the whole data, by moving averages: both views as anchors.

    $$F = \frac1n\sum_i \min_{\tau_i}\, \tau_i \log \mathbb E_j\, e^{(s^-_{ij} - s^+_i)/\tau_i} + \tau_i\rho$$

    u_i, the values and the forces are `SogCLR`'s at each sample's own τ_i (pull 1, push_j E_j/(K u_i)), and
    after every call τ_i moves against the slope of F,

    $$\tau_i \leftarrow \tau_i - \eta\,\Bigl[\log u_i + \rho -
      \frac1K\sum_j \frac{E_j}{u_i}\frac{s^-_{ij}}{\tau_i}\Bigr],$$

    the mean over its two anchors, clipped to bounds. At γ = 1 an anchor's bracket is ρ - KL(q‖u), and τ_i
    rests where the mean of the two is 0, between the temperatures that `Robust` gives them.
    `effective_temperature` has each anchor's, as the last call used it. Without samples, as in `per_anchor`,
    all have `temperature`, and it rests. log u and τ move in `eval()` and under `no_grad` too; they are kept
    in float32 unless `loss.double()` came first.

    - radius, rate, temperature (ρ, γ, the first τ_i): defaults 0.3, 0.9 and 0.1, LibAUC's; it recommends ρ
      from 0.1 to 0.5 for images, 6 for pairs of image and text
    - step (η), lowest, highest: defaults 0.01, 0.05 and 0.7, LibAUC's, which also mixes a tenth of the last
      slopes into the new, and whose loss and gradient are twice these: it adds the two views' losses

    Qiu et al. 2023, "Not all semantics are created equal" (arXiv 2305.11965), as in the authors' library
    (LibAUC, libauc/losses/contrastive.py).
    """

    accepts = frozenset({"index"})
    log_average: Tensor
    temperatures: Tensor
    in_batches = ("rate", "step", "lowest", "highest")
    paper, year, equation = "iSogCLR (Qiu et al.)", 2023, "RGCL"
    radius: float = setting(
        0, 100, "ρ", dial=(0, 6, "even"), default=0.3, about="KL radius that each sample's temperature keeps"
    )
    rate: float = setting(SogCLR.ranges["rate"], default=0.9)
    temperature: float = setting(TEMPERATURE, default=0.1)
    step: float = setting(
        0, 1e3, "η", dial=(0, 0.1, "even"), default=0.01, about="step size of the temperatures"
    )
    lowest: float = setting(TEMPERATURE, symbol="τ min", default=0.05, about="smallest temperature")
    highest: float = setting(TEMPERATURE, symbol="τ max", default=0.7, about="largest temperature")

    def check_hyperparameters(self) -> None:
        super().check_hyperparameters()
        if self.lowest > self.highest:
            raise ValueError(
                f"ISogCLR: lowest is {self.lowest} but highest is {self.highest}: no temperature lies between"
            )

    def of_an_unseen_sample(self) -> dict[str, float]:
        return {"log_average": -math.inf, "temperatures": self.temperature}

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float, radius: float) -> Tensor:
        """F of a batch at one τ, literally: (A, P), (A, K) -> (A,)."""
        expected = torch.exp((negatives[:, None, :] - positives[:, :, None]) / temperature).mean(dim=2)
        return (temperature * expected.log() + temperature * radius).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        s, samples = pairs.negatives, self.samples
        if samples is None:
            return moving_average.values(self, pairs, self.temperature)[0] + self.temperature * self.radius
        tau = self.effective_temperature = moving_average.of_samples(self, self.temperatures, s)
        values, log_u, share = moving_average.values(self, pairs, tau)
        with torch.no_grad():
            q = torch.softmax(s / tau[:, None], dim=1)
            expected = share * (q * s).sum(dim=1) / tau
            slope = (log_u + self.radius - expected).view(2, -1).mean(dim=0)
            own = self.temperatures[samples]
            moved = (own - self.step * slope.to(own)).clamp(self.lowest, self.highest)
            moving_average.keep(self, self.temperatures, moved)
        return values + tau * self.radius
