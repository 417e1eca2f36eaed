"""VICReg: Barlow Twins' branches and projector of three layers, and a loss of two moments."""

from torch import nn

from clutils import losses
from clutils.methods.barlow_twins import BarlowTwins


class VICReg(BarlowTwins):
    r"""Variance-invariance-covariance regularisation: each view's features vary, and say different things.

    $$\ell = \lambda \frac1B\sum_b \|z^1_b - z^2_b\|^2 + \mu\,[v(z^1) + v(z^2)] + \nu\,[c(z^1) + c(z^2)]$$

    with v the lack of a standard deviation of 1, c the squared covariances of features (`losses.VICReg` has
    both in full). Nothing compares two images. The expander is `BarlowTwins`' projector, `hidden` too.

    - out: the paper's is four times as many as the encoder has features (8,192 of 2,048)
    - loss: with another it is SimCLR with a deeper head. By default it is the authors' code's, whose 25, 25
      and 1 stand before means (the equation above is the printed one: see `losses.VICReg`)

    Left out: LARS, solarisation, and branches that differ in weights or architecture.

    Bardes et al. 2022, "VICReg" (arXiv 2105.04906), section 4; the layers as in a copy of the authors' code
    (facebookresearch/vicreg, main_vicreg.py).
    """

    paper, year, equation = "VICReg (Bardes et al.)", 2022, "section 4"
    usual_loss: nn.Module = losses.VICReg()
