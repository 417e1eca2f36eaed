"""InfoNCE as a bound on mutual information, on Gaussian pairs whose information is known."""

import math

import torch

from clutils import figures
from clutils.course.panels import Panel, among, panel
from clutils.figures import style

KS = (1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, 2047, 4095)
INFORMATIONS = tuple(0.5 * k for k in range(1, 25))  # nats


def told(information: float, K: int, dimensions: int = 20, anchors: int = 128, seed: int = 0) -> float:
    r"""log(K + 1) - ℓ of the best similarity there is, in nats, on pairs of `information` nats.

    Each of the entries of x is Gaussian, and a has the correlation ρ with it: I = -(D/2) log(1 - ρ²). The
    best similarity is log p(x|a)/p(x) (van den Oord et al. 2018, eq. 5), so that no encoder shows more.
    The draws get exactly the spread and correlation that was asked for, so that these anchors share
    `information` nats on average, not only in the long run.
    """
    draw = torch.Generator().manual_seed(seed)
    rho = math.sqrt(1 - math.exp(-2 * information / dimensions))
    a, noise = torch.randn(2, anchors, dimensions, generator=draw, dtype=torch.float64)
    noise -= (a * noise).sum() / a.square().sum() * a
    a, noise = (entries / entries.square().mean().sqrt() for entries in (a, noise))
    positive = rho * a + math.sqrt(1 - rho**2) * noise
    others = torch.randn(K, dimensions, generator=draw, dtype=torch.float64)

    def ratio(squares: torch.Tensor, products: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        explained = (squares - 2 * rho * products + rho**2 * own) / (2 * (1 - rho**2))
        return squares / 2 - explained - dimensions / 2 * math.log(1 - rho**2)

    own = a.square().sum(dim=1)
    of_positive = ratio(positive.square().sum(dim=1), (a * positive).sum(dim=1), own)
    of_others = ratio(others.square().sum(dim=1), a @ others.T, own[:, None])
    row = torch.cat([of_positive[:, None], of_others], dim=1)
    return math.log(K + 1) + row.log_softmax(dim=1)[:, 0].mean().item()


def explore_bound(K: int = 63) -> Panel:
    """Panel: what InfoNCE shows of the information that pairs share, by the number of negatives."""
    figure, ax = figures.new(8.6, 3.8)
    with style.course():
        ax.plot(INFORMATIONS, INFORMATIONS, color="#B0B0B0", linestyle="--", label="all there is")
        (curve,) = ax.plot(
            INFORMATIONS, INFORMATIONS, color=style.BLUE, linestyle="-", label="shown: log(K + 1) − ℓ"
        )
        most = ax.axhline(0, color=style.VERMILLION, linestyle=":", label="log(K + 1)")
        ax.set(xlabel="true mutual information, nats", ylabel="nats", xlim=(0, 12), ylim=(0, 12))
        style.legend_outside(ax)
    figures.describe(
        figure,
        "What InfoNCE shows against the true information: along the diagonal while that is small, and flat "
        "below the dotted line at log(K + 1) where it is large.",
    )

    def update(K: int) -> str:
        found = [told(information, K) for information in INFORMATIONS]
        curve.set_ydata(found)
        most.set_ydata([math.log(K + 1)] * 2)
        two, ten = (found[INFORMATIONS.index(information)] for information in (2.0, 10.0))
        return (
            f"With K = {K:,} no more than log {K + 1:,} = {math.log(K + 1):.2f} nats can be shown. "
            f"InfoNCE shows {two:.2f} of 2 nats, and {ten:.2f} of 10."
        )

    return panel(figure, update, K=among("K negatives", KS, K))
