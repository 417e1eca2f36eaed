"""The N-pair loss: one anchor, one positive, and the positives of all other pairs as negatives."""

import torch
from torch import Tensor

from clutils.losses.base import Loss, contrast, mean_over_positives, softplus
from clutils.similarities import Pairs


class NPair(Loss):
    r"""Multi-class N-pair loss, on inner products of vectors that are not normalised.

    $$\ell_i = \log\Bigl(1 + \sum_{j \ne i} e^{z^1_i \cdot z^2_j - z^1_i \cdot z^2_i}\Bigr)$$

    z1 are the anchors, z2 their positives, one way: the B - 1 other positives are an anchor's negatives. It
    is InfoNCE at τ = 1 on inner products: pull W, push W p̂_j. With vectors of length r it is InfoNCE on
    cosines at τ = 1/r², so the lengths are a temperature that is learned, and the loss falls as they grow,
    for ever once every positive is nearest. The paper therefore adds a penalty on the squared lengths, and
    TensorFlow's contrib had 0.0005 (mean ‖z1‖² + mean ‖z2‖²); neither here nor in pytorch-metric-learning.

    Sohn 2016, "Improved deep metric learning with multi-class N-pair loss objective" (NeurIPS), the
    N-pair-mc loss as reviews of it give it; the paper's own text could not be read here.
    """

    level = "feature"
    input_note = "inner products of vectors that are not normalised"
    comparison = "one way"
    normalised = False
    unbounded = "it works on vectors of any length, and longer ones lower it further"
    accepts = frozenset()
    paper, year, equation = "N-pair (Sohn)", 2016, "L_N-pair-mc"

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor) -> Tensor:
        """L_N-pair-mc, literally: (B, D), (B, D) -> scalar."""
        products = z1 @ z2.T
        differences = torch.exp(products - products.diagonal()[:, None])  # the pair's own is 1
        return differences.sum(dim=1).log().mean()

    def formula(self, pairs: Pairs) -> Tensor:
        return mean_over_positives(softplus(contrast(pairs, 1.0)), pairs)
