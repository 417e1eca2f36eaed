"""LeJEPA: several views of an image meet at their mean, and their embeddings are kept a Gaussian."""

from torch import nn

from clutils import encoders, losses
from clutils.methods.base import WIDTH
from clutils.methods.simclr import SimCLR
from clutils.settings import setting


class LeJEPA(SimCLR):
    r"""A joint-embedding predictive architecture without heuristics: no target network, no stop-gradient.

    $$\ell = (1-\lambda)\,\frac{1}{VBD}\sum_{v,b} \|z^v_b - \bar z_b\|^2
      + \lambda\,\frac1V\sum_v \mathrm{SIGReg}(z^v), \qquad \bar z_b = \frac1V\sum_v z^v_b$$

    The mean of an image's views is what each of them predicts, with the identity as predictor; the gradient
    flows into both sides. SIGReg asks that along random directions the batch look like N(0, 1), which one
    point for all images does not (`losses.SIGReg` has it in full).

    - a run's `extra_views`: V - 2; the authors' example has V = 4, at twice the cost of two
    - out: default 16, as in that example: the batch has to fill the space with a Gaussian
    - hidden: of the projector's two hidden layers, None = four times the encoder's features, as there
    - loss: another makes it SimCLR with a deeper head

    All views go through the networks as one batch, as in the example. Left out: the paper's smaller, local
    crops, which are drawn to the mean of the full-size ones alone; the vision transformer; weights averaged
    for the evaluation.

    Balestriero & LeCun 2025, "LeJEPA" (arXiv 2511.08544), as in the authors' code (rbalestr-lab/lejepa,
    MINIMAL.md); the local crops as lightly's documentation tells them.
    """

    paper, year, equation = "LeJEPA (Balestriero & LeCun)", 2025, "SIGReg and the views' mean"
    usual_loss = losses.SIGReg()
    out: int = setting(WIDTH, default=16)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        width = encoders.width(encoder)
        self.head = encoders.ProjectionHead(width, self.hidden or 4 * width, self.out, layers=3)
