"""SogCLR: a moving average per sample replaces the negatives that a small batch lacks."""

import math

import torch
from torch import Tensor

from clutils.losses import moving_average
from clutils.losses.base import TEMPERATURE, Loss
from clutils.settings import setting
from clutils.similarities import Pairs


class SogCLR(Loss):
    r"""Stochastic optimisation of the global contrastive loss, both views as anchors.

    $$F = \frac1n\sum_i \tau \log \mathbb E_j\, e^{(s^-_{ij} - s^+_i)/\tau}, \qquad
      u_i \leftarrow (1-\gamma)\,u_i + \gamma\, g_i, \qquad g_i = \frac1K\sum_j e^{s^-_{ij}/\tau}$$

    The mean runs over the negatives of the whole data; a batch's own mean inside the logarithm is biased, by
    more the smaller the batch. So each sample keeps u_i, and the gradient of log is taken there: pull 1,
    push_j E_j/(K u_i). The pushes sum to g_i/u_i, above 1 where this batch is harder than the sample's past.
    The value is τ log u_i - s+. γ = 1 is the batch's own: `Decoupled` times τ, less τ log K.

    u is kept as its logarithm, on the samples' numbers (`index`); a sample seen for the first time starts at
    its batch's own. Both its anchors use the average before the call, and the mean of what they find is kept,
    in float32, whatever the embeddings are, unless `loss.double()` came first. Without samples, as in
    `per_anchor`, u is g.

    - temperature, rate (τ, γ): defaults 0.1 and 0.9, LibAUC's; its γ, too, is the weight of what is new

    LibAUC adds the losses of both views where here is their mean: its loss and gradient are twice these. It
    starts a batch's averages where all of them are zero, here each by itself, and adds a bound of 1e-8. The
    averages move at every call with `index`, in `eval()` and under `no_grad` too, as LibAUC's do; not under
    `torch.func`, whose transforms know no state.

    Yuan et al. 2022, "Provable stochastic optimization for global contrastive learning" (arXiv 2202.12387),
    as in the authors' library (LibAUC, libauc/losses/contrastive.py).
    """

    accepts = frozenset({"index"})
    log_average: Tensor
    in_batches = ("rate",)
    paper, year, equation = "SogCLR (Yuan et al.)", 2022, "algorithm 1"
    temperature: float = setting(TEMPERATURE, default=0.1)
    rate: float = setting(
        1e-6,
        1,
        "γ",
        dial=(0.05, 1, "even"),
        default=0.9,
        about="weight of the new batch in each moving average",
    )

    def of_an_unseen_sample(self) -> dict[str, float]:
        return {"log_average": -math.inf}

    @staticmethod
    def as_written(positives: Tensor, negatives: Tensor, temperature: float) -> Tensor:
        """F of a batch, literally: (A, P), (A, K) -> (A,)."""
        differences = negatives[:, None, :] - positives[:, :, None]
        return (temperature * torch.exp(differences / temperature).mean(dim=2).log()).mean(dim=1)

    def formula(self, pairs: Pairs) -> Tensor:
        return moving_average.values(self, pairs, self.temperature)[0]
