"""Panels for maps: one embedding under every perplexity and seed, and UMAP at a button."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ipywidgets as W
import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from clutils import figures, maps
from clutils.course.panels import Panel, button, panel
from clutils.figures import maps as drawn
from clutils.figures import style


def map_settings(
    found: Mapping[tuple[float, int], np.ndarray],
    z: Tensor,
    labels: Tensor,
    class_names: Sequence[str] = (),
) -> Panel:
    """Sliders for perplexity and seed over maps that were computed beforehand.

    Left the map; right, for each pair of classes, how far apart they are on it against how far they are in
    truth. Below: the share of neighbours of the same class, the trustworthiness, and the rank correlation of
    those distances.

    - found: (perplexity, seed) -> positions (N, 2), as from `maps.tsne`, for every pair of them
    - z: (N, D), the embeddings of which these are maps; labels: (N,)

    Raises ValueError where a pair of perplexity and seed has no map.
    """
    perplexities, seeds = sorted({p for p, _ in found}), sorted({s for _, s in found})
    missing = [(p, s) for p in perplexities for s in seeds if (p, s) not in found]
    if missing or not found:
        raise ValueError(f"map_settings: there is no map for (perplexity, seed) = {missing[:1] or 'any'}")
    picture = _MapAndDistances(found, z, labels, class_names)
    middle = perplexities[len(perplexities) // 2]
    return panel(
        picture.figure,
        picture.update,
        perplexity=W.SelectionSlider(
            options=[(f"{p:g}", p) for p in perplexities], value=middle, description="perplexity"
        ),
        seed=W.SelectionSlider(options=seeds, value=seeds[0], description="seed"),
    )


class _MapAndDistances:
    """A map, and beside it its distances between classes against the true ones."""

    def __init__(
        self,
        found: Mapping[tuple[float, int], np.ndarray],
        z: Tensor,
        labels: Tensor,
        class_names: Sequence[str],
    ) -> None:
        self.found, self.labels = found, labels
        self.trust = {key: maps.trustworthiness(z, at) for key, at in found.items()}
        self.share = {key: maps.neighbour_share(at, labels) for key, at in found.items()}
        self.apart = {key: drawn.class_distances(z, at, labels) for key, at in found.items()}
        longest = max(float(seen.max()) for _, seen in self.apart.values())
        with style.course():
            self.figure, (left, right) = figures.new(9.6, 4.9, 1, 2, width_ratios=[1.15, 1])
            self.points = drawn.Points(left, labels, class_names)
            left.set_title("the map")
            (self.pairs,) = right.plot([], [], linestyle="none", marker="o", color=style.BLUE, alpha=0.8)
            right.axline((0, 0), slope=1, color=style.GREY, linestyle="--", linewidth=1.4)
            truth = next(iter(self.apart.values()))[0]
            right.set(xlim=(0, 1.08 * truth.max()), ylim=(0, 1.08 * longest))
            right.set(xlabel="true distance (1 = mean)", ylabel="distance on the map (1 = mean)")
            right.set_title("two classes apart: a point for each pair")
            figures.describe(
                self.figure,
                f"Left, a t-SNE map of {len(labels)} embeddings, coloured by class. Right, the distance of "
                "every two classes on the map against their true distance, with a dashed diagonal where a "
                "faithful map would have them.",
            )

    def update(self, perplexity: float, seed: int) -> str:
        key = (perplexity, seed)
        self.points.update(self.found[key])
        truth, seen = self.apart[key]
        self.pairs.set_data(truth, seen)
        return (
            f"Perplexity {perplexity:g}, seed {seed}: of ten neighbours on the map {self.share[key]:.0%} "
            f"share the class; trustworthiness {self.trust[key]:.2f}; rank correlation of the classes' "
            f"distances with the true ones {drawn.rank_correlation(truth, seen):.2f}."
        )


def umap_beside(
    positions: np.ndarray, z: Tensor, labels: Tensor, class_names: Sequence[str] = (), seed: int = 0
) -> W.VBox:
    """A button that draws UMAP of the embeddings beside the t-SNE that is already there.

    positions: (N, 2), the t-SNE; z: (N, D), what it is a map of; labels: (N,).
    """

    def job() -> Figure:
        found = {"t-SNE": positions, "UMAP": maps.umap(z, seed=seed)}
        return drawn.side_by_side(found, labels, class_names)

    return button(
        "draw UMAP", job, "loading UMAP and drawing; the first time takes about 20 s …", icon="map-o"
    )
