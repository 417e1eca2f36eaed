"""SIGReg: embeddings are driven to a Gaussian, one random direction at a time (LeJEPA)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.losses.base import Loss
from clutils.settings import setting
from clutils.similarities import Batch

FARTHEST = 3.0  # the largest frequency compared


class SIGReg(Loss):
    r"""LeJEPA: the views agree, and each view's embeddings are an isotropic Gaussian; not normalised.

    $$\ell = (1-\lambda)\,\frac{1}{VBD}\sum_{v,b} \|z^v_b - \bar z_b\|^2 + \lambda\,\frac1V\sum_v
      \frac1M\sum_m T(\langle z^v, a_m\rangle), \qquad
      T(x) = B\int \bigl|\hat\varphi_x(t) - e^{-t^2/2}\bigr|^2 e^{-t^2/2}\,dt$$

    with z̄_b the mean of an image's V views (two, and `extra_views`), a_m unit vectors drawn again at every
    call, and φ̂ the empirical characteristic function, (1/B) Σ_b e^{itx_b}: T is the Epps-Pulley statistic, by
    the trapezoid rule at `knots` of [0, 3], doubled. A distribution whose every projection is N(0, 1) is
    N(0, I) (Cramér-Wold): all moments are asked for, not VICReg's two. T's gradient is bounded, and a point
    far out is hardly felt. No anchors and no negatives (level "batch").

    - weight (λ): default 0.05, the paper's (from memory); the authors' minimal example has 0.02
    - directions (M), knots: defaults 256 and 17, the minimal example's. The paper's text has the interval
      [-5, 5] (as a summary of it says), the authors' example [0, 3] by symmetry; lightly has M = 1024.
    - `generator`, an attribute: the torch.Generator to draw from; None = torch's own. A training run sets it.

    Balestriero & LeCun 2025, "LeJEPA" (arXiv 2511.08544), as in the authors' code (rbalestr-lab/lejepa,
    MINIMAL.md).
    """

    level = "batch"
    input_note = "the distribution of a whole batch along random directions: it has no anchors"
    comparison = "whole batch"
    normalised = False
    accepts = frozenset({"extra_views"})
    paper, year, equation = "LeJEPA (Balestriero & LeCun)", 2025, "SIGReg"
    weight: float = setting(
        0, 1, "λ", dial=(0, 1, "even"), default=0.05, about="weight of the test for a Gaussian"
    )
    directions: int = setting(
        1, symbol="M", whole=True, dial=(1, 4096, "doubling"), default=256, about="random projections a step"
    )
    knots: int = setting(
        2, symbol="knots", whole=True, dial=(2, 64, "doubling"), default=17, about="points of the integral"
    )
    generator: torch.Generator | None = None

    @staticmethod
    def as_written(z1: Tensor, z2: Tensor, weight: float, knots: int, drawn: Tensor) -> Tensor:
        """The authors' example, literally: (B, D), (B, D), unit directions (D, M) -> scalar."""
        views = torch.stack([z1, z2])
        t = torch.linspace(0, FARTHEST, knots).to(views)
        phi = torch.exp(-t.square() / 2)
        tx = (views @ drawn)[..., None] * t  # (2, B, M, knots)
        error = (tx.cos().mean(dim=1) - phi).square() + tx.sin().mean(dim=1).square()
        statistic = 2 * len(z1) * torch.trapezoid(error * phi, t)
        return (1 - weight) * (views.mean(dim=0) - views).square().mean() + weight * statistic.mean()

    def pair_up(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The views' differences from their mean (V, B, D), and their projections (V, B, M)."""
        further = () if batch.extra_views is None else batch.extra_views.unbind(dim=1)
        views = torch.stack([batch.first, batch.second, *further])
        device = views.device if self.generator is None else self.generator.device
        drawn = torch.randn(views.shape[2], self.directions, generator=self.generator, device=device)
        return views.mean(dim=0) - views, views @ F.normalize(drawn.to(views), dim=0)

    def formula(self, compared: tuple[Tensor, Tensor]) -> Tensor:
        differences, projections = compared
        t = torch.linspace(0, FARTHEST, self.knots, dtype=differences.dtype, device=differences.device)
        phi = torch.exp(-t.square() / 2)
        errors = [  # a knot at a time: (V, B, M) is the largest table ever held
            ((projections * f).cos().mean(1) - p).square() + (projections * f).sin().mean(1).square()
            for f, p in zip(t, phi, strict=True)
        ]
        statistic = 2 * projections.shape[1] * torch.trapezoid(torch.stack(errors, dim=-1) * phi, t)
        return (1 - self.weight) * differences.square().mean() + self.weight * statistic.mean()
