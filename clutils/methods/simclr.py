"""SimCLR: two views of every image, one encoder, one head, and the loss between them."""

import torch

from clutils.methods.base import Compared, Given, Method


class SimCLR(Method):
    """Chen et al. 2020, algorithm 1. encoder, loss, out, hidden: see `Method`."""

    paper, year, equation = "SimCLR (Chen et al.)", 2020, "algorithm 1"
    takes_extra_views = True
    views_apart = False  # whether each view goes through the networks as a batch of its own

    def objective(self, given: Given) -> Compared:
        """All views go through the encoder as one batch: its batch normalisation sees all of them."""
        views = given.views(2 + self.extra_views)
        apart = (self.head(self.features_of(view)) for view in views)
        z1, z2, *further = apart if self.views_apart else self.embedded(*views)
        beside = {"extra_views": torch.stack(further, dim=1)} if further else {}
        return self.compare(z1, z2, given.index, **beside), z1, z2
