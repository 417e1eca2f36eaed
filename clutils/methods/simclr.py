"""SimCLR: two views of every image, one encoder, one head, and the loss between them."""

import torch

from clutils.methods.base import Given, LossAndViews, Method


class SimCLR(Method):
    """Chen et al. 2020, algorithm 1. encoder, loss, out, hidden: see `Method`."""

    paper, year, equation = "SimCLR (Chen et al.)", 2020, "algorithm 1"
    takes_extra_views = True
    views_apart = False  # whether each view goes through the networks as a batch of its own

    def objective(self, given: Given) -> LossAndViews:
        """All views go through the encoder as one batch, unless they are to be apart."""
        views = given.views(2 + self.extra_views)
        if self.views_apart:
            z1, z2, *further = (self.head(self.features_of(view)) for view in views)
        else:
            z1, z2, *further = self.projected(*views)
        beside = {"extra_views": torch.stack(further, dim=1)} if further else {}
        return self.compare(z1, z2, given.index, **beside), z1, z2
