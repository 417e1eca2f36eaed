"""Panels of notebook 03: views milder or stronger, a map at every perplexity and seed, UMAP at a button."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ipywidgets as W
import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from clutils import figures, maps, views
from clutils.course.first_run import distances
from clutils.course.panels import Panel, among, button, panel, slider
from clutils.figures import maps as drawn
from clutils.figures import pictures, style

DRAWS = 2000  # for the mean under the image


def view_strength(images: Tensor) -> Panel:
    """Two views of some images, with sliders over the smallest crop, the colour jitter and the seed.

    - images: (n, C, H, W), a column each

    The random numbers are the same at every setting: a slider changes these crops and colours, and draws no
    new ones; the seed does. The sentence below says how much two crops have in common on average.
    """
    height, width = images.shape[-2:]
    base = views.Augmentation(size=min(height, width))  # SimCLR's
    shown = pictures.Views(images)

    def update(smallest: float, colour: float, seed: int) -> str:
        *light, hue = (colour * most for most in base.jitter)
        chosen = replace(base, crop_scale=(smallest, 1.0), jitter=(*light, min(hue, 0.5)))
        generator = torch.Generator().manual_seed(seed)
        both = [chosen.draw(len(images), height, width, generator) for _ in range(2)]
        shown.update(both, [chosen.apply(images, parameters) for parameters in both])
        shared = pictures.overlap(*(chosen.draw(DRAWS, height, width, generator) for _ in range(2)))
        return (
            f"Crops of {smallest:.0%} to 100% of the area: of all that two of them show, {shared.mean():.0%} "
            f"is in both, on average over {DRAWS:,} draws; {(shared == 0).float().mean():.1%} share nothing."
        )

    return panel(
        shown.figure,
        update,
        smallest=slider("smallest crop", 0.05, 1.0, base.crop_scale[0], 0.05),
        colour=slider("colour jitter, 1 = SimCLR", 0.0, 2.0, 1.0, 0.1),
        seed=slider("seed", 0, 20, 0),
    )


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
    trust = {key: maps.trustworthiness(z, at) for key, at in found.items()}
    share = {key: maps.neighbour_share(at, labels) for key, at in found.items()}
    apart = {key: distances.class_distances(z, at, labels) for key, at in found.items()}
    figure, (left, right) = figures.new(9.6, 4.9, 1, 2, width_ratios=[1.15, 1])
    with style.course():
        points = drawn.Points(left, labels, class_names)
        left.set_title("the map")
        right.axline((0, 0), slope=1, color=style.GREY, linestyle="--", linewidth=1.4)
        (pairs,) = right.plot([], [], linestyle="none", marker="o", color=style.BLUE, alpha=0.8)
        reach = [1.08 * max(float(pair[k].max()) for pair in apart.values()) for k in (0, 1)]
        right.set(xlim=(0, reach[0]), ylim=(0, reach[1]))
        right.set(xlabel="true distance (1 = mean)", ylabel="distance on the map (1 = mean)")
        right.set_title("two classes apart: a point for each pair")
    figures.describe(
        figure,
        f"Left, a t-SNE map of {len(labels)} embeddings, coloured by class. Right, the distance of every two "
        "classes on the map against their true distance, with a dashed diagonal where a faithful map would "
        "have them.",
    )

    def update(perplexity: float, seed: int) -> str:
        key = (perplexity, seed)
        points.update(found[key])
        pairs.set_data(*apart[key])
        return (
            f"Perplexity {perplexity:g}, seed {seed}: of ten neighbours on the map {share[key]:.0%} share "
            f"the class; trustworthiness {trust[key]:.2f}; rank correlation of the classes' distances with "
            f"the true ones {distances.rank_correlation(*apart[key]):.2f}."
        )

    middle = perplexities[len(perplexities) // 2]
    return panel(
        figure,
        update,
        perplexity=among("perplexity", perplexities, middle),
        seed=among("seed", seeds, seeds[0]),
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
