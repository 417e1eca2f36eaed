"""BGRL: BYOL whose images are the nodes of one graph, without a projection head."""

from torch import nn

from clutils import encoders
from clutils.methods.base import MOMENTUM, PREDICTOR_RATE
from clutils.methods.byol import BYOL
from clutils.settings import setting


class BGRL(BYOL):
    r"""Bootstrapped graph latents: predict a node's features in the other view, by an EMA of the encoder.

    $$\ell = -\frac{2}{B}\sum_i \frac{p_{1,i}^\top h'_{2,i}}{\|p_{1,i}\|\,\|h'_{2,i}\|}, \qquad
    p = \mathrm{predictor}(h)$$

    and the same with the views exchanged; up to a constant it is `losses.Regression`. Nodes are compared with
    themselves alone, so that the cost grows with their number and not with its square.

    - momentum (live), predictor_rate: as BYOL's, with 0.99 and 1 as defaults; the paper's momentum begins
      there and rises to 1
    - encoder: gives a row a node

    The target starts as a copy; the authors' code gives it weights of its own. Its predictor has
    PReLU and no batch normalisation, here ReLU behind batch normalisation.

    Thakoor et al. 2022, "Large-scale representation learning on graphs via bootstrapping" (arXiv 2102.06514),
    eq. 1, taken from secondary sources; the networks as in the authors' code (bgrl.py).
    """

    paper, year, equation = "BGRL (Thakoor et al.)", 2022, "eq. 1"
    sample_kinds = ("nodes",)
    out = 0  # as many as the encoder has features
    momentum: float = setting(MOMENTUM, default=0.99)
    predictor_rate: float = setting(PREDICTOR_RATE, default=1.0)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        self.out = encoders.width(encoder)
        super().build(encoder, loss)
        self.head, self.target_head = nn.Identity(), nn.Identity()
