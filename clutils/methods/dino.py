"""DINO: each view predicts what a momentum encoder says of the other, over prototypes that it centres."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from clutils import losses
from clutils.methods.base import MOMENTUM, Given, LossAndViews
from clutils.methods.momentum import Followed
from clutils.methods.swav import Prototyped
from clutils.settings import setting


class DINO(Prototyped, Followed):
    r"""Self-distillation with no labels.

    $$\ell = \tfrac12\,[H(q_2, p_1) + H(q_1, p_2)], \qquad H(q, p) = -\sum_k q_k\log p_k, \qquad
      p = \mathrm{softmax}\Bigl(\frac{s}{\tau}\Bigr), \quad
      q = \mathrm{softmax}\Bigl(\frac{s' - c}{\tau'}\Bigr)$$

    s are a view's cosines with K prototypes, s' the same by the target: a copy of encoder, head and
    prototypes that no gradient reaches and that follows after each step. Nothing is pushed apart. Two things
    keep all images from one answer, and each alone would fail: the *centre* c, a moving average of s' that is
    subtracted, keeps one prototype from taking all images, and favours the even answer; the *sharpening*,
    τ' < τ, keeps the answer from being even, and favours one prototype. Since q sums to 1, H is `Decoupled`
    with $\sum_k q_k s_k$ for the positive and all prototypes for negatives: `SwAV`'s loss, with a centre in
    place of Sinkhorn-Knopp and a target in place of the encoder itself.

    - prototypes: how many. Default 64; the paper has 65,536 for the 1,000 classes of ImageNet
    - momentum (live): default 0.99, for runs of hundreds of steps; the paper's rises from 0.996 to 1. With
      0.9 the target outruns the centre: on the digits all answers were one for some steps, and came back
    - target_temperature: τ' (live), default 0.04, the paper's; at the loss's own τ nothing is sharpened
    - centre_momentum: of c (live), default 0.9, the paper's
    - loss: one of similarities; its temperature is τ, the paper's 0.1

    `prototypes_used` in the history is the perplexity of the batch's mean q, and `prototypes_of_an_image`
    that of one q, on average. The first near 1: all images have one answer. The second near K: every answer
    is even. Either is a collapse.

    Left out: multi-crop, the warm-up of τ', weight decay's rise, and the freezing of the prototypes at first.
    The head has batch normalisation, as all heads here; the authors' has none with a ViT.

    Caron et al. 2021, "Emerging properties in self-supervised vision transformers" (arXiv 2104.14294),
    algorithm 1, read in the authors' code (facebookresearch/dino, main_dino.py).
    """

    paper, year, equation = "DINO (Caron et al.)", 2021, "algorithm 1"
    usual_loss = losses.Decoupled(temperature=0.1)
    usual_share = 0.5
    after_step_only = ("centre",)
    followed = (*Followed.followed, "vectors")
    momentum: float = setting(MOMENTUM, default=0.99)
    target_temperature: float = setting(
        0.003, 1e3, "τ'", dial=(0.01, 1, "log"), default=0.04, about="temperature of the target's answers"
    )
    centre_momentum: float = setting(MOMENTUM, default=0.9, about="momentum of the centre")
    centre: Tensor
    target_vectors: nn.Linear
    seen: Tensor | None = None  # (K,), the target's mean scores of a step that is under way

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        super().build(encoder, loss)
        self.vectors = nn.Linear(self.out, self.prototypes, bias=False)
        self.register_buffer("centre", torch.zeros(self.prototypes))
        self.start_target()

    def objective(self, given: Given) -> LossAndViews:
        """The history gets `prototypes_used` and `prototypes_of_an_image`."""
        both = torch.cat(given.views())
        z = normalize(self.head(self.features_of(both)), dim=1)
        scores = linear(z, normalize(self.vectors.weight, dim=1)).chunk(2)  # (B, K) each
        with torch.no_grad():
            followed = normalize(self.target(both), dim=1)
            of_target = linear(followed, normalize(self.target_vectors.weight, dim=1))
            self.seen = of_target.mean(dim=0)
            answers = ((of_target - self.centre) / self.target_temperature).softmax(dim=1)
            self.reported = {
                "prototypes_used": torch.special.entr(answers.mean(dim=0)).sum().exp(),
                "prototypes_of_an_image": torch.special.entr(answers).sum(dim=1).mean().exp(),
            }
        z1, z2 = z.chunk(2)
        return self.swapped(scores, answers.chunk(2)), z1, z2

    @torch.no_grad()
    def after_step(self) -> None:
        """The target follows, prototypes and all, and the centre moves towards what it saw."""
        super().after_step()
        assert self.seen is not None  # `forward` came before
        self.centre.lerp_(self.seen, 1 - self.centre_momentum)
        self.seen = None
