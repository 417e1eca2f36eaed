"""SSCL: the hard-negative loss with synthetic negatives among the real ones."""

import torch
from torch import Tensor

from clutils.losses import mixing
from clutils.losses.base import TEMPERATURE, Loss
from clutils.losses.hard_negative import HardNegative
from clutils.settings import SWITCH, setting
from clutils.similarities import Batch, Pairs


class SSCL(Loss):
    r"""Synthetic hard negative samples: `HardNegative` on K real negatives and k mixes of the hardest ones.

    $$h = a\, z_i + (1-a)\, z_j, \qquad a \sim U(0, 1), \qquad
      \langle z, h\rangle = a\, s^-_i + (1-a)\, s^-_j$$

    i and j are drawn, with replacement, from the anchor's own s hardest negatives: each anchor draws its own
    pairs (algorithm 2), new at every call. The second equation is exact, so a mix is never harder than its
    harder parent: it raises the share of the hard ones. N in the debiasing term is K + k.
    Gradients flow through the mixes to the parents. With f_j the push that HCL gives to column j, a real
    negative gets f_j and, from each mix it is a parent of, a f or (1-a) f; the pull is HCL's.

    `per_anchor` is HCL on the negatives it is given: mixes are made in a batch, where there is something to
    draw from. `chance(K)` is that of K negatives: ask with the mixes counted, K + k, for a batch's own.

    - temperature, class_prior, beta: as in `HardNegative`
    - hardest: no more than there are negatives; synthetic: 0 = plain HCL.
      Defaults 0.5, 0.1, 1.0, 32 and 8: the paper's table 2 for CIFAR-10, at batch size 256 (s = B/8,
      k = B/32). CIFAR-100 and TinyImageNet: class prior 0.05. With MoCo v2: β 0.2, class prior 0,
      s = k = 1024.
    - normalise: bring the mixes back to unit length, as MoCHi does. The paper's pseudocode does not (False).
      Then a mix may be harder than both parents.
    - `generator`, an attribute: the torch.Generator to draw from; None = torch's own. A training run sets it.

    The weights follow the paper's algorithm 1, E^β over its mean; its eq. 3 has β E, from which β would
    cancel. The clamp of HCL is kept; the pseudocode has none, and is NaN where the estimate turns negative.

    Dong et al., "Synthetic hard negative samples for contrastive learning" (arXiv 2304.02971), eq. 2 to 4,
    algorithms 1 and 2.
    """

    in_batches = ("hardest", "synthetic", "normalise")
    paper, year, equation = "SSCL (Dong et al.)", 2023, "eq. 4"
    temperature: float = setting(TEMPERATURE, default=0.5)
    class_prior: float = setting(HardNegative.ranges["class_prior"], default=0.1)
    beta: float = setting(HardNegative.ranges["beta"], default=1.0)
    hardest: int = setting(
        1, symbol="s", whole=True, dial=(1, 4096, "doubling"), default=32, about="negatives that are mixed"
    )
    synthetic: int = setting(
        0,
        symbol="k",
        whole=True,
        dial=(0, 4096, "doubling"),
        default=8,
        about="mixes of two negatives, for each anchor",
    )
    normalise: bool = setting(SWITCH, default=False, about="mixes have unit length")
    generator: torch.Generator | None = None
    extra_negatives = ", and against mixes of the hardest of them"

    @staticmethod
    def as_written(
        positives: Tensor, negatives: Tensor, i: Tensor, j: Tensor, a: Tensor, **of_hcl: float
    ) -> Tensor:
        """Eq. 2 to 4, literally: (A, P), (A, K), columns i, j and share a of mixes (A, k) -> (A,)."""
        mixes = a * negatives.gather(1, i) + (1 - a) * negatives.gather(1, j)
        everyone = torch.cat([negatives, mixes], dim=1)
        return HardNegative.as_written(positives, everyone, **of_hcl)

    formula = HardNegative.formula

    def draw(self, anchors: int, like: Tensor) -> tuple[Tensor, ...]:
        """Ranks of both parents among the hardest, and the first one's share: (anchors, k) each."""
        if self.synthetic == 0:
            return ()
        ranks = torch.arange(self.hardest, device=like.device).expand(anchors, -1)
        (i, a), (j, _) = (mixing.draw(ranks, self.synthetic, self.generator, like.dtype) for _ in range(2))
        return i, j, a

    def pair_up(self, batch: Batch) -> Pairs:
        pairs = super().pair_up(batch)
        if not batch.drawn:
            return pairs
        real, (i, j, a) = pairs.negatives, batch.drawn
        parents = mixing.hardest(real, self.hardest, self.name).gather(1, torch.cat([i, j], dim=1))
        to_i, to_j = real.gather(1, parents).chunk(2, dim=1)
        mixes = a * to_i + (1 - a) * to_j  # (anchors, synthetic)
        if self.normalise:
            mixes = mixes / mixing.length(a, batch.among_negatives(*parents.chunk(2, dim=1)))
        return pairs.with_further(mixes)
