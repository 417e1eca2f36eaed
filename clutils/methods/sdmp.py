"""SDMP: mixed images as further anchors, whose positives are both sources, and mixes that share them."""

import torch

from clutils.methods.base import SIMILARITIES, Given, LossAndViews, Method, drawing_on
from clutils.settings import setting
from clutils.views.checks import drawn


class SDMP(Method):
    r"""A simple data mixing prior: what is mixed is known, so it may be asked for.

    $$\ell_{ms} = \lambda_i\,\ell(m_i, z_i) + (1-\lambda_i)\,\ell(m_i, z_{\bar\imath}), \qquad
      \ell_{mm} = \frac{\ell(m_i, m'_i) + c_i\,\ell(m_i, m'_{\bar\imath})}{1 + c_i}$$

    Image i is mixed with $\bar\imath$, its mirror place in the batch: $\lambda_i$ of it, the rest of the
    other. m is the embedding of the first view's mix, m' of the second's, by the same λ; z is the second
    view's own. A step adds both terms to SimCLR's loss of the two views: a mix is to lie near its two
    sources, by their shares, and near mixes of the same sources, by what they share,
    $c_i = \min(\lambda_i, 1-\lambda_{\bar\imath}) + \min(1-\lambda_i, \lambda_{\bar\imath})$.

    - mixing: weight of the sum of both terms (live). Default 0.5, as in the authors' code; 0 is SimCLR
    - loss: one of similarities

    λ ~ U(0.1, 0.9) for each image. The paper stands on MoCo v3 and DINO, whose second branch is a moving
    average without gradient; here, on SimCLR, both get it. Mixup is one of its choices; ResizeMix is not
    here. Its code takes the logarithm of the mixed probabilities; an earlier README, as here, mixes the
    losses. As released, moco/builder.py mixes nothing: its `datamixing` guards the line that does so with
    `i >= rank*bz and i < rank*bz`, which is never true.

    Ren et al. 2022, "A simple data mixing prior for improving self-supervised learning" (CVPR), read in an
    earlier README of the authors and in moco/builder.py (OliverRensu/SDMP).
    """

    paper, year = "SDMP (Ren et al.)", 2022
    varies = True
    sample_kinds = ("pictures", "vectors")  # what can be mixed
    needs = SIMILARITIES
    out, hidden = 128, None
    mixing: float = setting(0, dial=(0, 2, "even"), default=0.5, about="weight of the mixes' terms")

    def objective(self, given: Given) -> LossAndViews:
        """The history gets `plain`, SimCLR's loss, `to_sources` and `to_mixes`."""
        first, second = given.views()
        share = 0.1 + 0.8 * drawn((len(first),), first, drawing_on(first.device, given.generator))
        of = share.view(-1, *[1] * (first.ndim - 1))
        mixes = [of * x + (1 - of) * x.flip(0) for x in (first, second)]
        z1, z2, m1, m2 = self.projected(first, second, *mixes)
        common = torch.minimum(share, 1 - share.flip(0)) + torch.minimum(1 - share, share.flip(0))
        plain = self.compare(z1, z2, given.index)
        to_sources = (share * self.one_way(m1, z2) + (1 - share) * self.one_way(m1, z2.flip(0))).mean()
        to_mixes = ((self.one_way(m1, m2) + common * self.one_way(m1, m2.flip(0))) / (1 + common)).mean()
        parts = {"plain": plain, "to_sources": to_sources, "to_mixes": to_mixes}
        self.reported = {name: value.detach() for name, value in parts.items()}
        return plain + self.mixing * (to_sources + to_mixes), z1, z2

    def chance(self, batch_size: int) -> float | None:
        """The loss where all similarities are 0, of all three parts."""
        both = super().chance(batch_size)
        return None if both is None else both + 2 * self.mixing * self.loss.chance(batch_size - 1)
