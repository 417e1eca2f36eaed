"""SimSiam: predict the other view's embedding behind a stop-gradient; no negatives, no EMA."""

from torch import nn

from clutils import encoders, losses
from clutils.methods.base import OWN_VIEWS, PREDICTOR_RATE, Given, LossAndViews, Method
from clutils.settings import SWITCH, setting


class SimSiam(Method):
    r"""Simple siamese representation learning: BYOL without the target network.

    $$\ell = \tfrac12\,\ell\bigl(p_1, \mathrm{sg}[z_2]\bigr) +
      \tfrac12\,\ell\bigl(p_2, \mathrm{sg}[z_1]\bigr), \qquad p = \mathrm{predictor}(z)$$

    One encoder and one head make both sides. Nothing is pushed apart; that the embeddings do not all fall
    onto one point, where the loss is 0, is owed to the stop-gradient sg.

    - stop_gradient (live): False lets the gradient into both sides, and the run collapses: the history's
      alignment and uniformity go to 0.
    - predictor_rate: the predictor's learning rate over all else's. Default 10, and the run's own default
      rate is a fifth of the encoder's usual one: a predictor that does not keep up learns features worse
      than random ones. The paper needs neither, over some hundred thousand steps.
    - loss: must compare the two views of an image alone

    With the default loss, 2 - 2s, the value and its gradient are those of the paper's -s, doubled and raised
    by 2. The predictor is as wide within as `out`; the paper's, 2048-512-2048, is a quarter as wide, which of
    128 leaves 32: too few, tried here. The paper's head has three layers (two for CIFAR-10), and batch
    normalisation at its output too: tried, and no better in short runs. Each view is normalised as a batch of
    its own.

    Chen & He 2021, "Exploring simple siamese representation learning" (arXiv 2011.10566), algorithm 1, eq. 4.
    """

    paper, year = "SimSiam (Chen & He)", 2021
    usual_loss = losses.Regression()
    usual_share = 0.2  # what it predicts moves with every step: slow steps replace BYOL's slow target
    needs = OWN_VIEWS
    live = ("stop_gradient",)
    hidden = None
    stop_gradient: bool = setting(SWITCH, default=True, about="targets are constants")
    predictor_rate: float = setting(PREDICTOR_RATE, default=10.0)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.predictor = encoders.ProjectionHead(self.out, self.out, self.out)

    def objective(self, given: Given) -> LossAndViews:
        """The embeddings are the first view's prediction and the second view's own."""
        z1, z2 = (self.head(self.features_of(view)) for view in given.views())
        p1, p2 = self.predictor(z1), self.predictor(z2)
        if self.stop_gradient:
            z1, z2 = z1.detach(), z2.detach()
        return (self.compare(p1, z2, given.index) + self.compare(p2, z1, given.index)) / 2, p1, z2
