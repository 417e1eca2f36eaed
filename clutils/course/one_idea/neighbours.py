"""Maps as contrastive losses: from t-SNE to UMAP under a slider, and a map learned from images."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data, figures, losses, maps, training
from clutils.course.panels import Panel, among, panel
from clutils.figures import style
from clutils.figures.maps import Points
from clutils.similarities import Pairs


def cauchy(positions: Tensor, others: Tensor) -> Tensor:
    """log q of two maps' points, -log(1 + d²): (N, 2) and (M, 2) -> (N, M)."""
    return -(torch.cdist(positions, others).square()).log1p()


class CauchyInfoNCE(nn.Module):
    """InfoNCE with log q, -log(1 + d²), in the place of s/τ: vectors keep their lengths. Both views anchors.

    Damrich et al. 2023 (arXiv 2206.01816), InfoNC-t-SNE, on views in place of neighbours: t-SimCNE (Böhm,
    Berens & Kobak, ICLR 2023), from that description.
    """

    def forward(self, z1: Tensor, z2: Tensor) -> Tensor:
        z = torch.cat([z1, z2]).float()
        B, log_q = len(z1), cauchy(z, z)
        own = torch.arange(2 * B, device=z.device)
        positives = log_q.gather(1, own.roll(B)[:, None])
        others = (own[:, None] - own[None, :]) % B != 0  # neither the point itself nor its other view
        return losses.NTXent(1.0).formula(Pairs(positives, log_q[others].view(2 * B, -1))).mean()


def learned_map(steps: int, pictures: data.ImageSet, seed: int = 0) -> training.Run:
    """An encoder whose head ends in two numbers, to be trained by `CauchyInfoNCE`: `run.project` is the map.

    As many steps are done before, with a head that ends in 128; all but its last layer is carried over. (The
    authors train the new layer by itself in between, which is left out.)
    """
    wide, plane = (
        training.Run(
            loss=CauchyInfoNCE(),
            data=pictures,
            steps=steps,
            batch_size=128,
            learning_rate=5e-3,
            seed=seed,
            precision="float32",
            method_settings={"out": out},
        )
        for out in (128, 2)
    )
    for run in (wide, plane):
        training.shorten(run)
    wide.finish(progress=False)
    learned = plane.method.state_dict()
    carried = {k: v for k, v in wide.method.state_dict().items() if v.shape == learned[k].shape}
    plane.method.load_state_dict(learned | carried)
    return plane


def sum_of_q(positions: np.ndarray | Tensor) -> float:
    """Σ q over all ordered pairs of a map (N, 2): t-SNE's normalisation constant."""
    at = torch.as_tensor(positions).double()
    return float(cauchy(at, at).exp().sum()) - len(at)


def spectrum(z: Tensor, labels: Tensor, found: Mapping[float, np.ndarray]) -> Panel:
    """A slider over Neg-t-SNE's maps of z (N, D): found, a place of the spectrum -> its map (N, 2)."""
    sums = {s: sum_of_q(at) for s, at in found.items()}
    figure, (left, right) = figures.new(9.6, 4.6, 1, 2)
    with style.course():
        marks = Points(left, labels, names=False)
        right.plot(list(sums), [x / len(z) for x in sums.values()], "o-", color=style.BLUE)
        (here,) = right.plot([], [], "o", color=style.VERMILLION, markersize=12)
        right.set(xlabel="spectrum: 0 = t-SNE, 1 = UMAP", ylabel="Σ q of the map, over N", ylim=(0, None))
    figures.describe(
        figure,
        f"Left: a map of {len(z):,} embeddings, coloured by class, at a place of the spectrum. Right: "
        "the map's own sum of q against the spectrum: the larger, the more compact the map.",
    )

    def update(spectrum: float) -> str:
        at = found[spectrum]
        marks.update(at)
        here.set_data([spectrum], [sums[spectrum] / len(z)])
        return (
            f"spectrum {spectrum:g}: Σ q = {sums[spectrum] / len(z):.1f} N; of a point's ten nearest "
            f"{maps.neighbour_share(at, labels):.0%} share its class; trustworthiness "
            f"{maps.trustworthiness(z, at):.2f}"
        )

    return panel(figure, update, spectrum=among("spectrum", tuple(found), min(found)))
