"""DACL: a view is the image with a little of another mixed in; no augmentation is needed."""

import torch
from torch import Tensor

from clutils.methods.base import Given, LossAndViews, Method, drawing_on
from clutils.settings import setting
from clutils.views.checks import drawn


class DACL(Method):
    r"""Domain-agnostic contrastive learning: mixup in the input makes both views.

    $$\tilde x = \lambda x + (1 - \lambda)\,x', \qquad \lambda \sim U(\alpha, 1)$$

    x' is another image of the batch, and each of the two views has its own x' and its own λ. The mix is x
    with noise, and the noise is data: it needs no scale, as Gaussian noise does. On images it comes on top
    of the augmentation, as in the paper's runs with SimCLR.

    - mixed: 1 - α, the largest share of the other image (live). Default 0.3; the paper's α is 0.5 to 0.9
      by the data (from memory). At most 0.5: beyond, the other image would be most of the mix

    The paper's other two mixes, geometric and by a binary mask, and mixing in a hidden layer are not here.

    Verma et al. 2021, "Towards domain-agnostic contrastive learning" (arXiv 2011.04419), algorithm 1, from
    memory; the abstract alone could be read.
    """

    paper, year, equation = "DACL (Verma et al.)", 2021, "algorithm 1"
    varies = True
    sample_kinds = ("pictures", "vectors")  # what numbers can be added to
    out, hidden = 128, None
    mixed: float = setting(
        0, 0.5, "1 - α", dial=(0, 0.5, "even"), default=0.3, about="largest share of the other sample"
    )

    def objective(self, given: Given) -> LossAndViews:
        z1, z2 = self.projected(*(self.mix(view, given.generator) for view in given.views()))
        return self.compare(z1, z2, given.index), z1, z2

    def mix(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """x (B, ...) with a share, drawn from U(0, `mixed`), of another row in each."""
        which, share = drawn((2, len(x)), x, drawing_on(x.device, generator))
        own = torch.arange(len(x), device=x.device)
        # 1 to B - 1 places on: any row but the own
        other = x[(own + 1 + (which * (len(x) - 1)).long().clamp(max=max(len(x) - 2, 0))) % len(x)]
        share = (self.mixed * share).to(x.dtype).view(-1, *[1] * (x.ndim - 1))
        return x + share * (other - x)
