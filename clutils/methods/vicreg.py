"""VICReg: Barlow Twins' branches and projector of three layers, and a loss of two moments."""

from typing import Any

from torch import nn

from clutils import losses
from clutils.methods.barlow_twins import BarlowTwins


class VICReg(BarlowTwins):
    r"""Variance-invariance-covariance regularisation: each view's features vary, and say different things.

    $$\ell = \lambda \frac1B\sum_b \|z^1_b - z^2_b\|^2 + \mu\,[v(z^1) + v(z^2)] + \nu\,[c(z^1) + c(z^2)]$$

    with v the lack of a standard deviation of 1, c the squared covariances of features (`losses.VICReg` has
    both in full). Nothing compares two images. The expander is `BarlowTwins`' projector, `hidden` too.

    - out: the paper's is four times as many as the encoder has features (8,192 of 2,048)
    - loss: with another it is SimCLR with a deeper head. That of a run that names none is weighted as in the
      authors' code, (25/out, 12.5, 1), whose 25, 25 and 1 stand before means. As printed, 25, 25 and 1 pull
      the views together `out` times as strongly.

    Left out: LARS, solarisation, and branches that differ in weights or architecture.

    Bardes et al. 2022, "VICReg" (arXiv 2105.04906), section 4; the layers as in a copy of the authors' code
    (facebookresearch/vicreg, main_vicreg.py).
    """

    paper, year, equation = "VICReg (Bardes et al.)", 2022, "section 4"

    @classmethod
    def default_loss(cls, out: int = 128, **settings: Any) -> nn.Module:
        return losses.VICReg(25 / out, 12.5, 1.0)  # the authors' code at (25, 25, 1), whose terms are means
