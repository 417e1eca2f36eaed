"""Anti-collapse terms without negatives, beside uniformity: what each sees, and where each moves points."""

import math
from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor

from clutils import losses
from clutils.figures import describe, new, style
from clutils.losses.vicreg import moments


def shapes(count: int = 256, jitter: float = 0.0, seed: int = 0) -> dict[str, Tensor]:
    """Five sets of embeddings in two dimensions, (count, 2) each, float64: name -> points.

    - jitter: standard deviation of what is added to each coordinate
    """
    dice = torch.Generator().manual_seed(seed)
    cloud, noise = torch.randn(2, count, 2, generator=dice, dtype=torch.float64)
    angle = torch.arange(count, dtype=torch.float64) * 2 * math.pi / count
    corners = torch.tensor([[1, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64)
    found = {
        "Gaussian cloud": cloud,
        "four points": corners.repeat(math.ceil(count / 4), 1)[:count],
        "ring": math.sqrt(2) * torch.stack([angle.cos(), angle.sin()], dim=1),
        "rank one": cloud[:, :1].expand(-1, 2),
        "collapsed": torch.full((count, 2), 0.7, dtype=torch.float64),
    }
    return {name: points + jitter * noise for name, points in found.items()}


def sigreg(z: Tensor) -> Tensor:
    """LeJEPA's statistic, a mean over 32 directions, the same at every call."""
    loss = losses.SIGReg(1.0, directions=32)
    loss.generator = torch.Generator().manual_seed(0)
    return loss(z, z)


def uniformity(z: Tensor, t: float = 2.0) -> Tensor:
    """`measures.uniformity`, with a gradient: z (N, D), normalised here -> log mean e^(-t d²) over pairs."""
    z = F.normalize(z, dim=1)
    one, other = torch.triu_indices(len(z), len(z), offset=1)
    return (2 * t * ((z @ z.T)[one, other] - 1)).logsumexp(dim=0) - math.log(len(one))


TERMS: dict[str, Callable[[Tensor], Tensor]] = {
    "VICReg's v": lambda z: moments(torch.cov(z.T))[0],
    "VICReg's c": lambda z: moments(torch.cov(z.T))[1],
    "SIGReg": sigreg,
    "uniformity": uniformity,
}
PUSHES: dict[str, Callable[[Tensor], Tensor]] = {  # what `descend` follows, each scaled to one point's way
    "v + c": lambda z: len(z) * sum(moments(torch.cov(z.T))),
    "SIGReg": lambda z: 5 * sigreg(z),
    "uniformity": lambda z: len(z) * uniformity(z),
}


def gradient(term: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Of a term by the points (N, D)."""
    z = z.clone().requires_grad_()
    return torch.autograd.grad(term(z), z)[0]


def descend(push: str, z: Tensor, steps: int = 150, rate: float = 0.1) -> Tensor:
    """Where plain gradient descent on one of `PUSHES` takes the points themselves: (N, D)."""
    for _ in range(steps):
        z = z - rate * gradient(PUSHES[push], z)
    return z


@style.in_course_style
def moves(starts: Mapping[str, Tensor], ends: Mapping[tuple[str, str], Tensor]) -> Figure:
    """A row for each term, a column for each start: the points before (crosses) and after its descent.

    - starts: name -> (N, 2); ends: (term, start) -> (N, 2)
    """
    terms = list(dict.fromkeys(term for term, _ in ends))
    figure, axes = new(2.5 * len(starts) + 0.5, 2.55 * len(terms), len(terms), len(starts), squeeze=False)
    for row, term in zip(axes, terms, strict=True):
        row[0].set_ylabel(term, fontsize=12)
        for ax, (name, before) in zip(row, starts.items(), strict=True):
            ax.plot(*before.T, color=style.GREY, marker="x", markersize=5, linestyle="none", alpha=0.7)
            ax.plot(*ends[term, name].T, color=style.BLUE, marker=".", markersize=6, linestyle="none")
            ax.set(xlim=(-3.4, 3.4), ylim=(-3.4, 3.4), aspect="equal", xticks=(-2, 0, 2), yticks=(-2, 0, 2))
    for ax, name in zip(axes[0], starts, strict=True):
        ax.set_title(name)
    ways = [f"{n} under {t} {float((z - starts[n]).norm(dim=1).mean()):.2f}" for (t, n), z in ends.items()]
    said = "Points before (grey crosses) and after (blue dots) the descent of each term, from each start"
    return describe(figure, f"{said}. The mean way of a point: {'; '.join(ways)}.")
