"""MoCHi: mixes of hard negatives, and of the query with them, join the negatives."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses import mixing
from clutils.losses.base import TEMPERATURE, Loss
from clutils.losses.nt_xent import NTXent
from clutils.settings import setting
from clutils.similarities import Batch, Pairs, among


class MoCHi(Loss):
    r"""Hard negative mixing: InfoNCE on the real negatives and on unit-length mixes of the hardest ones.

    $$h = \frac{a\,n_i + (1-a)\,n_j}{\|\cdot\|},\; a \sim U(0,1), \qquad
      h' = \frac{b\,q + (1-b)\,n_j}{\|\cdot\|},\; b \sim U(0,\tfrac12)$$

    For each anchor q its own draw, new at every call: `synthetic` mixes h of pairs among its `hardest`
    negatives (with replacement), and `query_mixed` mixes h' of itself with one of them, of which it is always
    the smaller part. With p̂ the softmax over real and synthetic negatives: pull W/τ, push (W/τ) p̂_j on
    each, as in NT-Xent.

    No gradient flows into a mix: h and h' are constants, and their push acts on the anchor alone. So it is in
    MoCo, where negatives come from the queue and never learn; the paper knows no other setting. In a batch
    the real negatives learn, as in NT-Xent, and mixes stay constants.

    - temperature: default 0.2, MoCo v2's, which the paper keeps.
    - hardest, synthetic, query_mixed: defaults 1024, 512 and 256, the paper's for ImageNet with a queue of
      65,536. A batch needs smaller ones: hardest is no more than there are negatives.
    - `generator`, an attribute: the torch.Generator to draw from; None = torch's own. A training run sets it.

    Kalantidis et al. 2020, "Hard negative mixing for contrastive learning" (arXiv 2010.01028), section 4.
    """

    level = "feature"
    input_note = "vectors, since the length of a mix needs the similarity of its parents to one another"
    paper, year, equation = "MoCHi (Kalantidis et al.)", 2020, "section 4"
    temperature: float = setting(TEMPERATURE, default=0.2)
    hardest: int = setting(
        1, symbol="N", whole=True, dial=(1, 4096, "doubling"), default=1024, about="negatives that are mixed"
    )
    synthetic: int = setting(
        0,
        symbol="s",
        whole=True,
        dial=(0, 4096, "doubling"),
        default=512,
        about="mixes of two negatives, for each anchor",
    )
    query_mixed: int = setting(
        0,
        symbol="s'",
        whole=True,
        dial=(0, 4096, "doubling"),
        default=256,
        about="mixes of the anchor and a negative",
    )
    generator: torch.Generator | None = None
    extra_negatives = ", and against mixes of the hardest of them and of the anchor with them"

    @staticmethod
    def as_written(q: Tensor, k: Tensor, queue: Tensor, temperature: float, *drawn: Tensor) -> Tensor:
        """Section 4, literally: unit q, k (B, D), queue (K, D), columns, shares of mixes (B, s) -> (B,)."""
        i, j, a, other, b = drawn
        a, b, n = a[:, :, None], b[:, :, None], queue.detach()
        pairs, with_query = a * n[i] + (1 - a) * n[j], b * q.detach()[:, None] + (1 - b) * n[other]
        mixes = F.normalize(torch.cat([pairs, with_query], dim=1), dim=2)
        negatives = torch.cat([q @ n.T, (mixes @ q[:, :, None])[:, :, 0]], dim=1)
        return NTXent.as_written((q * k).sum(dim=1, keepdim=True), negatives, temperature)

    formula = NTXent.formula

    def draw(self, anchors: int, like: Tensor) -> tuple[Tensor, ...]:
        """Ranks of both parents among the hardest, the first one's share; rank and share beside a query."""
        if self.synthetic + self.query_mixed == 0:
            return ()
        ranks = torch.arange(self.hardest, device=like.device).expand(anchors, -1)
        numbers = (self.synthetic, self.synthetic, self.query_mixed)
        (i, a), (j, _), (other, b) = (mixing.draw(ranks, n, self.generator, like.dtype) for n in numbers)
        return i, j, a, other, b / 2

    def pair_up(self, batch: Batch) -> Pairs:
        pairs = super().pair_up(batch)
        if not batch.drawn:
            return pairs
        i, j, a, other, b = batch.drawn
        keys, to_keys = batch.queue, pairs.negatives
        if keys is None:  # all views, as constants: of these similarities the anchors alone learn
            keys, images = torch.cat([batch.first, batch.second]), torch.arange(len(batch.first)).to(i.device)
            same = batch.own[:, None] == images.repeat(2)
            to_keys = (torch.cat(batch.anchors) @ keys.detach().T).masked_fill(same, -torch.inf)
        hardest = mixing.hardest(to_keys, self.hardest, self.name, pairs.negatives.shape[1])
        parents = hardest.gather(1, torch.cat([i, j, other], dim=1))  # rows of the keys
        sizes = i.shape[1], j.shape[1], other.shape[1]
        to_i, to_j, to_other = to_keys.gather(1, parents).split(sizes, dim=1)
        with torch.no_grad():
            i, j, _ = parents.split(sizes, dim=1)
            mixed, query_mixed = mixing.length(a, among(keys, i, j)), mixing.length(b, to_other)
        pairs_mixed = (a * to_i + (1 - a) * to_j) / mixed
        # <q, q> is 1, and its gradient lies along q: normalising took that direction out
        with_query = (b + (1 - b) * to_other) / query_mixed
        return pairs.with_further(torch.cat([pairs_mixed, with_query], dim=1))
