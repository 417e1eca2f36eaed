"""CLAE: an adversarial view, one signed gradient step up the loss."""

import torch

from clutils.methods.base import Given, LossAndViews, Method
from clutils.settings import setting


class CLAE(Method):
    r"""Ho & Vasconcelos 2020, "Contrastive learning with adversarial examples" (arXiv 2010.12050).

    View one takes one step of the fast gradient sign method (FGSM), up the loss:

    $$x_1' = x_1 + s\,\operatorname{sign}\nabla_{x_1}\ell(x_1, x_2)$$

    and the weights then descend ℓ(x₁', x₂). Their method adds the loss of the clean views; here `clean` is
    its weight, 0 by default, so that nothing but the direction differs from PiNDA. Twice the work of SimCLR.

    - strength: in units of the input (live); 0.03 is 8 of 255 gray levels
    """

    paper, year = "CLAE (Ho & Vasconcelos)", 2020
    varies = True
    sample_kinds = ("pictures", "vectors")  # what numbers can be added to
    out, hidden = 128, None
    strength: float = setting(
        0, symbol="s", dial=(0, 2, "even"), default=0.03, about="size of the adversarial step"
    )
    clean: float = setting(0, dial=(0, 2, "even"), default=0.0, about="weight of the loss of clean views")

    def objective(self, given: Given) -> LossAndViews:
        """The history gets `loss`, of the adversarial pair, and `clean_loss`, of the pair it started from."""
        first, second = given.views()
        first = first.detach().requires_grad_()
        z1, z2 = self.projected(first, second)
        clean = self.compare(z1, z2, given.index)
        (ascent,) = torch.autograd.grad(clean, first, retain_graph=self.clean > 0)
        z1, z2 = self.projected((first + self.strength * ascent.sign()).detach(), second)
        loss = self.compare(z1, z2, given.index)
        self.reported = {"loss": loss.detach(), "clean_loss": clean.detach()}
        return loss + self.clean * clean if self.clean else loss, z1, z2
