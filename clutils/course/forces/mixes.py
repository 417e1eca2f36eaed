"""SSCL with mixes made from similarities alone, so that its forces can be drawn."""

import torch
from torch import Tensor

from clutils.losses import SSCL, mixing
from clutils.similarities import Pairs


class FixedMixes(SSCL):
    """SSCL as a function of similarities, to look at its forces: `per_anchor` makes the mixes itself.

    The similarity of a mix is the mix of its parents' similarities, so none of it needs a vector. Which ranks
    among the s hardest are mixed, and by how much, is drawn from `seed`: the same for every anchor and each
    call, so that an image changes only by what a reader changes. `anatomy.forces` then leads the push
    on each mix back to its parents, as autograd does in a batch.

    Arguments as in `SSCL`; `normalise` needs vectors, and masks would need ranks of their own: ValueError.
    """

    seed, in_batches = 0, ()

    @property
    def name(self) -> str:
        return SSCL.__name__

    def check_hyperparameters(self) -> None:
        super().check_hyperparameters()
        if self.normalise:
            raise ValueError(
                "SSCL: normalise is True, but it acts on vectors, and here are only similarities"
            )

    def formula(self, pairs: Pairs) -> Tensor:
        real = pairs.negatives
        return super().formula(Pairs(pairs.positives, torch.cat([real, self.mixes(pairs)], dim=1)))

    def mixes(self, pairs: Pairs) -> Tensor:
        """Similarities of the mixes to their anchors, (A, k), those that `formula` adds."""
        if pairs.negative_mask is not None:
            raise ValueError("FixedMixes: negatives came with a mask, but every anchor must have all of them")
        real = pairs.negatives
        columns = mixing.hardest(real, self.hardest, self.name)
        draw = torch.Generator().manual_seed(self.seed)
        ranks = torch.arange(self.hardest)[None, :]
        i, a = mixing.draw(ranks, self.synthetic, draw, torch.float64)
        j, _ = mixing.draw(ranks, self.synthetic, draw, torch.float64)
        i, j, a = i[0].to(real.device), j[0].to(real.device), a.to(real)
        return a * real.gather(1, columns[:, i]) + (1 - a) * real.gather(1, columns[:, j])
