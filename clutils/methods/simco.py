"""SimCo: MoCo without its queue and without its second encoder, by the dual-temperature loss."""

from torch import nn

from clutils import encoders, losses
from clutils.methods.simclr import SimCLR


class SimCo(SimCLR):
    r"""Dual temperature in place of a queue.

    $$\ell = \tfrac12\,[\ell_{DT}(z_1, z_2) + \ell_{DT}(z_2, z_1)]$$

    What a queue does for MoCo, the paper says, is to make anchors count more alike: the gate W that shuts for
    easy anchors is nearly open for all where there are many negatives. A second, hotter temperature for W
    does that without them. Each view goes through the encoder as a batch of its own, with a gradient.

    - loss: any; the default is `DualTemperature`, τ = 0.1 for the shares and ten times that for W

    The head is MoCo v2's, without batch normalisation. The authors' later code has the second temperature at
    infinity, where W is the same for all anchors, and one negative more: the anchor's own other view, its
    similarity set to 0. Neither is here.

    Zhang et al. 2022, "Dual temperature helps contrastive learning without many negative samples" (CVPR,
    arXiv 2203.17248), read in the authors' code (moco/builder.py, `forward_simco`).
    """

    paper, year, equation = "SimCo (Zhang et al.)", 2022, "L_DT"
    usual_loss = losses.DualTemperature()
    takes_extra_views = False
    views_apart = True

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        features = encoders.width(encoder)
        width = self.hidden or features
        layers = nn.Linear(features, width), nn.ReLU(inplace=True), nn.Linear(width, self.out)
        self.head = nn.Sequential(*layers)
