"""GraphCL: two views of every graph, one encoder and head, and a loss of each graph's own other view."""

from clutils import losses
from clutils.methods.base import SIMILARITIES, Given, LossAndViews, Method, takes


class GraphCL(Method):
    r"""Graph contrastive learning with augmentations.

    $$\ell_i = -\log\frac{e^{s(z_i, z'_i)/\tau}}{\sum_{j\ne i} e^{s(z_i, z'_j)/\tau}}$$

    The sum leaves the positive out: this is the decoupled loss (`losses.Decoupled`, which came a year later),
    one way, of the first view's graphs against the second's. Any loss that is a function of an anchor's
    similarities may take its place, and then has the same anchors and the same B - 1 negatives.

    You et al. 2020, "Graph contrastive learning with augmentations" (arXiv 2010.13902), eq. 3, formula
    and τ = 0.2 as in the authors' code (gsimclr.py of unsupervised_TU, whose first view is the graph itself).
    """

    paper, year, equation = "GraphCL (You et al.)", 2020, "eq. 3"
    usual_loss = losses.Decoupled(temperature=0.2)
    sample_kinds = ("graphs",)
    needs = SIMILARITIES._replace(met=lambda loss: SIMILARITIES.met(loss) and "index" not in takes(loss))

    def negatives(self, batch_size: int) -> int:
        """B - 1, whatever the loss compares elsewhere."""
        return batch_size - 1

    def objective(self, given: Given) -> LossAndViews:
        """(B, V, 1 + F + V) graphs -> the loss, and both views' embeddings (B, out)."""
        z1, z2 = self.projected(*given.views())
        return self.one_way(z1, z2).mean(), z1, z2
