"""SupCon: SimCLR's step with labels: all images of the anchor's class are its positives."""

from clutils import losses
from clutils.methods.base import Given, LossAndViews, Method, Need, takes


class SupCon(Method):
    """Khosla et al. 2020, "Supervised contrastive learning" (arXiv 2004.11362), section 3.

    encoder, loss, out, hidden: see `Method`; the loss must take labels. The paper's second stage, a
    linear classifier on the frozen encoder, is `measures.linear_probe`.
    """

    paper, year, equation = "SupCon (Khosla et al.)", 2020, "section 3"
    usual_loss = losses.SupCon()
    sample_kinds = (*Method.sample_kinds, "graphs")
    uses_labels = True
    needs = Need("takes labels", lambda loss: "labels" in takes(loss))

    def objective(self, given: Given) -> LossAndViews:
        """Both views go through the encoder as one batch, as in SimCLR. Raises ValueError without labels."""
        if given.labels is None:
            size = len(given.images)
            raise ValueError(f"SupCon: labels is None, but a batch of {size} has ({size},)")
        z1, z2 = self.projected(*given.views())
        return self.compare(z1, z2, given.index, labels=given.labels), z1, z2

    def chance(self, batch_size: int) -> float | None:
        """Chance as without labels, which do not change it; None for AttentionNCE.

        Its chance depends on how many images of other classes a batch happens to have.
        """
        return None if isinstance(self.loss, losses.AttentionNCE) else super().chance(batch_size)
