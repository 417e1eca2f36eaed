"""BYOL: predict the embedding of the other view, by an EMA of the network; no negatives."""

from torch import nn

from clutils import encoders, losses
from clutils.methods.base import MOMENTUM, OWN_VIEWS, PREDICTOR_RATE, Given, LossAndViews
from clutils.methods.momentum import Followed
from clutils.settings import setting


class BYOL(Followed):
    r"""Bootstrap your own latent.

    $$\ell = \ell(p_1, z'_2) + \ell(p_2, z'_1), \qquad p = \mathrm{predictor}(z)$$

    Each view's embedding, sent through a predictor, is to meet the other view's in the target network: a copy
    of encoder and head that no gradient reaches and that follows them after each step,
    ξ ← m ξ + (1 - m) θ. The predictor has no copy. Nothing is pushed apart, and one point for all images
    would have loss 0.

    - momentum: may be changed while a run trains. Default 0.8, for runs of hundreds of steps; the paper's
      rises from 0.996 to 1 as half a cosine, over 300,000 steps. Here it stays where it is put.
    - predictor_rate: the predictor's learning rate over all else's. Default 10: it has to keep up
      with a target that moves this fast. With 1, and m = 0.99, as many steps leave the features no better
      than an untrained encoder's; the paper has 1 and many more steps. The run's own default rate is half of
      the encoder's usual one.
    - loss: must compare the two views of an image alone

    Head and predictor are alike, as in the paper: linear, batch normalisation, ReLU, linear; as wide within
    as the encoder's features. Each view is normalised as a batch of its own, in both networks.

    Grill et al. 2020, "Bootstrap your own latent" (arXiv 2006.07733), eq. 2 and algorithm 1.
    """

    paper, year = "BYOL (Grill et al.)", 2020
    usual_loss: nn.Module = losses.Regression()
    usual_share = 0.5  # with 1, two of six runs (300 steps of 128 and of 256) end below untrained weights
    needs = OWN_VIEWS
    hidden = None
    momentum: float = setting(MOMENTUM, default=0.8)
    predictor_rate: float = setting(PREDICTOR_RATE, default=10.0)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.predictor = encoders.ProjectionHead(self.out, encoders.width(encoder), self.out)
        self.start_target()

    def objective(self, given: Given) -> LossAndViews:
        """The embeddings are the first view's prediction and the second view's target."""
        both = given.views()
        p1, p2 = (self.predictor(self.head(self.features_of(view))) for view in both)
        t1, t2 = (self.target(view) for view in both)
        return self.compare(p1, t2, given.index) + self.compare(p2, t1, given.index), p1, t2
