"""Maps: embeddings of many dimensions laid out on a page, and two numbers that say how far to trust one.

Every map looks at directions only: rows are brought to unit length first, so that the distances it starts
from are the cosine similarities which kNN and the losses work with.

A map is a picture, not a measurement. What none of them can show:

- how far apart two clusters are: t-SNE and UMAP keep neighbours, not distances
- how wide or dense a cluster is: both even densities out
- a meaning of the axes, or of up and down; another seed turns, mirrors or reorders the picture
- that there are no clusters: in noise a low perplexity finds some

So read its colours (do neighbours share a class?), and let `neighbour_share` and `trustworthiness` check.
"""

from __future__ import annotations

import threading
import warnings

import numpy as np
import torch

from clutils.measures import Vectors, as_classes, unit_rows

ROWS = 1024  # of a table of distances held at a time


def tsne(z: Vectors, perplexity: float = 30.0, seed: int = 0, init: str = "pca") -> np.ndarray:
    """t-SNE (van der Maaten & Hinton 2008), Barnes-Hut by scikit-learn: z (N, D) -> (N, 2) float32.

    - perplexity: how many neighbours a point tries to keep, about; below N
    - init: "pca" starts from the principal components, which keeps something of the large-scale layout (Kobak
      & Linderman 2021) and leaves little to the seed; "random" starts anywhere, so that the seed shows
    - the same seed gives the same map, bit for bit

    Raises ValueError on a perplexity that is not between 1 and N.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    z = _rows(z, "tsne")
    if not isinstance(perplexity, int | float) or not 1 <= perplexity < len(z):
        raise ValueError(
            f"tsne: perplexity is {perplexity!r}, but must be at least 1 and below the {len(z)} rows of z"
        )
    if init not in ("pca", "random"):
        raise ValueError(f"tsne: init is {init!r}, but must be 'pca' or 'random'")
    # scikit-learn adds up one sum by thread, in the order they finish: two of them commute, more do not
    with threadpool_limits(limits=2, user_api="openmp"):
        return TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(z)


def umap(z: Vectors, neighbours: int = 15, min_distance: float = 0.1, seed: int = 0) -> np.ndarray:
    """UMAP (McInnes, Healy & Melville 2018), by umap-learn: z (N, D) -> (N, 2) float32.

    - neighbours: how many of them a point tries to keep; below N
    - min_distance: how tightly points may be packed on the page, from 0 to 1
    - starts from the principal components; one thread, so that the same seed gives the same map

    The first call in a process takes some ten seconds more: see `warm_up`. Raises ValueError on settings
    outside their range.
    """
    z = _rows(z, "umap")
    if not isinstance(neighbours, int) or not 2 <= neighbours < len(z):
        raise ValueError(
            f"umap: neighbours is {neighbours!r}, but must be from 2 to {len(z) - 1}, as z has {len(z)} rows"
        )
    if not isinstance(min_distance, int | float) or not 0 <= min_distance <= 1:
        raise ValueError(f"umap: min_distance is {min_distance!r}, but must be from 0 to 1")
    start = pca(z)
    start = (
        10 * start / max(np.abs(start).max(), np.finfo(np.float32).tiny)
    )  # the size that umap-learn expects
    return _UMAP()(
        n_neighbors=neighbours, min_dist=min_distance, init=start, random_state=seed, n_jobs=1
    ).fit_transform(z)


def pca(z: Vectors) -> np.ndarray:
    """The first two principal components of the unit rows: z (N, D) -> (N, 2) float32.

    The one map here that is linear: distances in it are never larger than the true ones. Of the two signs of
    an axis it takes the one that makes the axis's largest entry positive.
    """
    z = torch.from_numpy(_rows(z, "pca")).double()
    z = z - z.mean(dim=0)
    left, values, axes = torch.linalg.svd(z, full_matrices=False)
    largest = axes.gather(1, axes.abs().argmax(dim=1, keepdim=True))[:2, 0]
    positions = left[:, :2] * values[:2] * largest.sign()
    return torch.nn.functional.pad(positions, (0, 2 - positions.shape[1])).float().numpy()


def trustworthiness(z: Vectors, positions: Vectors, k: int = 10) -> float:
    """How far neighbours in the map are neighbours in truth, in [0, 1]; near 0.5 is chance.

    z: (N, D); positions: (N, 2), the map; k neighbours, fewer than N / 2. Every false neighbour costs by its
    true rank. Venna & Kaski 2001, by scikit-learn; memory for N x N distances.
    """
    from sklearn.manifold import trustworthiness

    z, positions = _rows(z, "trustworthiness"), _positions(positions, "trustworthiness")
    if len(z) != len(positions):
        raise ValueError(f"trustworthiness: z has {len(z)} rows but the map has {len(positions)}")
    if not isinstance(k, int) or not 1 <= k < len(z) / 2:
        raise ValueError(
            f"trustworthiness: k is {k!r}, but must be from 1 to less than half of {len(z)} rows"
        )
    return float(trustworthiness(z, positions, n_neighbors=k))


def neighbour_share(positions: Vectors, labels: Vectors, k: int = 10) -> float:
    """Of a point's k nearest in the map, the share that has its class; mean over all points, in [0, 1].

    positions: (N, 2), the map; labels: (N,). A map of pure confetti over C classes of one size has 1/C.
    """
    at = torch.from_numpy(_positions(positions, "neighbour_share"))
    labels = as_classes(labels, "neighbour_share", "labels", at)
    if not isinstance(k, int) or not 1 <= k < len(at):
        raise ValueError(
            f"neighbour_share: k is {k!r}, but must be from 1 to {len(at) - 1}: there are {len(at)}"
        )
    same = 0
    for start in range(0, len(at), ROWS):
        distances = torch.cdist(at[start : start + ROWS], at)
        here = torch.arange(len(distances))
        distances[here, start + here] = torch.inf  # no point is its own neighbour
        nearest = distances.topk(k, dim=1, largest=False).indices
        same += (labels[nearest] == labels[start : start + ROWS, None]).sum().item()
    return same / (k * len(at))


def warm_up() -> threading.Thread:
    """Load and compile UMAP in the background, so that the reader's first map does not wait for it.

    Returns the thread, which a caller may join.
    """
    thread = threading.Thread(target=lambda: umap(np.eye(32, dtype=np.float32)), name="umap", daemon=True)
    thread.start()
    return thread


def _UMAP() -> type:
    # umap-learn says at its first import that it found no Tensorflow, which nothing here needs
    warnings.filterwarnings("ignore", message="Tensorflow not installed", category=ImportWarning)
    from umap import UMAP

    return UMAP


def _rows(z: Vectors, who: str) -> np.ndarray:
    return unit_rows(z, who, "z").float().cpu().numpy()


def _positions(positions: Vectors, who: str) -> np.ndarray:
    positions = torch.as_tensor(positions)
    if positions.ndim != 2 or positions.shape[1] != 2 or not positions.isfinite().all():
        raise ValueError(f"{who}: positions is {tuple(positions.shape)}, but a map is (N, 2) finite numbers")
    return positions.double().cpu().numpy()
