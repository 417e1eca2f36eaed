"""GRACE: SimCLR whose images are the nodes of one graph."""

from clutils import losses
from clutils.methods.base import Need, takes
from clutils.methods.simclr import SimCLR


class GRACE(SimCLR):
    r"""Deep graph contrastive representation learning: each node against its own other view.

    $$\ell(u_i, v_i) = -\log\frac{e^{s(u_i, v_i)/\tau}}{e^{s(u_i, v_i)/\tau}
    + \sum_{j\ne i} e^{s(u_i, v_j)/\tau} + \sum_{j\ne i} e^{s(u_i, u_j)/\tau}}$$

    and the same for v_i: NT-Xent, letter by letter, with the B nodes of a graph in the place of a batch. So
    the step is SimCLR's. The encoder gives a row a node; the head has batch normalisation and ReLU, where the
    paper's has ELU. Its views: `views.NodeAugmentation`.

    Zhu et al. 2020, "Deep graph contrastive representation learning" (arXiv 2006.04131), eq. 1 and 2, the
    formula as in the authors' code (model.py, semi_loss); τ = 0.4 is theirs for Cora.
    """

    paper, year, equation = "GRACE (Zhu et al.)", 2020, "eq. 1 and 2"
    usual_loss = losses.NTXent(temperature=0.4)
    sample_kinds = ("nodes",)
    takes_extra_views = False
    needs = Need("keeps no state per sample", lambda loss: "index" not in takes(loss))
