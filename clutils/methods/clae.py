"""CLAE: an adversarial view. PiNDA looks for the noise that helps; this takes the step that hurts most."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from clutils.methods.base import Augment, Method, several_views


class CLAE(Method):
    r"""Ho & Vasconcelos 2020, "Contrastive learning with adversarial examples" (arXiv 2010.12050).

    View one takes one step of the fast gradient sign method, uphill:

    $$x_1' = x_1 + s\,\operatorname{sign}\nabla_{x_1}\ell(x_1, x_2)$$

    and the weights then descend ℓ(x₁', x₂). Their method adds the loss of the clean views, weighted; here
    `clean` is that weight, 0 by default, so that nothing but the direction differs from PiNDA. Twice the work
    of a SimCLR step; the batch statistics of both passes enter the running averages.

    - strength: s, in units of the input (live); 0.03 is 8 of 255 gray levels
    """

    paper, year = "CLAE (Ho & Vasconcelos)", 2020
    live = ("strength", "clean")

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        bfloat16: bool = False,
        strength: float = 0.03,
        clean: float = 0.0,
    ) -> None:
        super().__init__(encoder, loss, bfloat16=bfloat16)
        self.strength, self.clean = strength, clean

    def forward(
        self, images: Tensor, augment: Augment, generator: torch.Generator, labels: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) pictures or vectors -> the loss, and both views' embeddings (B, out), detached.

        The history gets `loss`, of the adversarial pair, and `clean_loss`, of the pair it started from.
        """
        for name in ("strength", "clean"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise ValueError(f"CLAE: {name} is {value!r}, but must be a number from 0 on")
        first, second = several_views(augment, images, generator)
        first = first.detach().requires_grad_()
        clean, *_ = self._compared(first, second)
        (uphill,) = torch.autograd.grad(clean, first, retain_graph=self.clean > 0)
        loss, z1, z2 = self._compared((first + self.strength * uphill.sign()).detach(), second)
        self.reported = {"loss": loss.detach(), "clean_loss": clean.detach()}
        total = loss + self.clean * clean if self.clean else loss
        return total, z1.detach(), z2.detach()

    def _compared(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        z1, z2 = self.head(self.features_of(torch.cat([first, second]))).chunk(2)
        return self.loss(z1, z2), z1, z2
