"""Barlow Twins: SimCLR's two branches, a projector of three layers, and decorrelated features."""

from torch import nn

from clutils import encoders, losses
from clutils.methods.simclr import SimCLR


class BarlowTwins(SimCLR):
    r"""Redundancy reduction: the cross-correlation of the two views' features becomes the identity matrix.

    $$\ell = \sum_f (1 - C_{ff})^2 + \lambda \sum_f \sum_{g \ne f} C_{fg}^2$$

    Nothing compares two images: what keeps the embeddings apart is that each feature has to vary over the
    batch (a correlation has its standard deviation below the line) and that no two may say the same.

    - out: features that the loss correlates. The paper has 8,192, four times the encoder's 2,048, and reports
      a higher accuracy the more there are (from memory)
    - hidden: of the projector's two hidden layers, None = as many as `out`, as in the paper
    - loss: with another it is SimCLR with a deeper head

    The projector is linear, batch normalisation, ReLU, twice, then linear. Each view goes through as a batch
    of its own. Left out: LARS, and the paper's two augmentations that differ in blur and solarisation.

    Zbontar et al. 2021, "Barlow Twins" (arXiv 2103.03230), algorithm 1 and section 2.2; the layers as in the
    authors' code (facebookresearch/barlowtwins, main.py).
    """

    paper, year, equation = "Barlow Twins (Zbontar et al.)", 2021, "algorithm 1"
    usual_loss: nn.Module = losses.BarlowTwins()
    takes_extra_views = False
    views_apart = True

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        width = encoders.width(encoder)
        self.head = encoders.ProjectionHead(width, self.hidden or self.out, self.out, layers=3)
