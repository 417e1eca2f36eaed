"""MODALS: SimCLR with latent augmentations, four ways to move a representation by those of the batch."""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import normalize

from clutils.methods.base import Given, LossAndViews, Method, drawing_on
from clutils.settings import setting
from clutils.views.checks import drawn

OPERATIONS = ("interpolate", "extrapolate", "difference", "noise")


class MODALS(Method):
    r"""Each view's features h are moved before the head, by one of four operations:

    $$h + s\,(h_{near} - h), \qquad h + s\,(h - \mu), \qquad h + s\,(h_a - h_b), \qquad h + s\,\sigma\odot n$$

    interpolation towards a near one, extrapolation from the mean μ, the difference of two drawn ones, and
    Gaussian noise n by each feature's spread σ. They need no knowledge of the data, only the features of the
    view's batch, which count as constants; only h has a gradient.

    - operation: one of these, or "any": each row draws its own
    - strength: s (live). Default 0.3

    h_near is the nearest by cosine, of features less their mean, of a drawn twentieth of the batch. Not here:
    the paper's search (how often and how strongly each, by population-based training on labels), so one
    strength serves all; the classes (μ, σ, the pool and the hard examples are per class there); its triplet
    and discriminator losses. There the moved features train a classifier; here they are views.

    Cheung & Yeung 2021, "MODALS: modality-agnostic automated data augmentation in the latent space" (ICLR),
    read in the authors' code (jamestszhim/modals, augmentation_transforms.py).
    """

    paper, year = "MODALS (Cheung & Yeung)", 2021
    varies = True
    out, hidden = 128, None
    operation: str = setting(choices=("any", *OPERATIONS), default="any", about="change of the features")
    strength: float = setting(0, symbol="s", dial=(0, 1, "even"), default=0.3, about="size of the change")

    def objective(self, given: Given) -> LossAndViews:
        features = self.features_of(torch.cat(given.views()))
        generator = drawing_on(features.device, given.generator)
        moved = [h + self.strength * self.direction(h, generator) for h in features.chunk(2)]
        z1, z2 = self.head(torch.cat(moved)).chunk(2)
        return self.compare(z1, z2, given.index), z1, z2

    def direction(self, h: Tensor, generator: torch.Generator) -> Tensor:
        """Where each row of h (B, features) goes at a strength of 1."""
        pool, size = h.detach(), len(h)
        draw = partial(drawn, like=h, generator=generator)
        centred = pool - pool.mean(dim=0)
        unit = normalize(centred, dim=1)
        cosines = (unit @ unit.T).fill_diagonal_(-torch.inf)
        some = draw((size, size)).fill_diagonal_(2).argsort(dim=1)[:, : max(1, size // 20)]  # never itself
        near = some.gather(1, cosines.gather(1, some).argmax(dim=1, keepdim=True))[:, 0]
        a, b = draw((size, size)).argsort(dim=1)[:, :2].T  # two different ones
        normal = draw(h.shape, draw=torch.randn)
        ways = (pool[near] - h, h - pool.mean(dim=0), pool[a] - pool[b], pool.std(dim=0) * normal)
        chosen = (draw((size,)) * len(ways)).long()
        if self.operation != "any":
            chosen = torch.full_like(chosen, OPERATIONS.index(self.operation))
        return torch.stack(ways)[chosen, torch.arange(size, device=h.device)]
