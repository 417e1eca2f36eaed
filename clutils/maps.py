"""Dimensionality reduction (PCA, t-SNE, UMAP, Neg-t-SNE), and two numbers that say how far to trust a map.

Every map looks at directions only: rows are brought to unit length first, so that the distances it starts
from are the cosine similarities which kNN and the losses work with.

A map is a figure, not a measurement. What none of them can show:

- how far apart two clusters are: t-SNE and UMAP keep neighbours, not distances
- how wide or dense a cluster is: both even densities out
- a meaning of the axes, or of up and down; another seed turns, mirrors or reorders the image
- that there are no clusters: in noise a low perplexity finds some

So read its colours (do neighbours share a class?), and let `neighbour_share` and `trustworthiness` check.
"""

import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.measures import Vectors, as_classes, unit_rows
from clutils.settings import one_of, within

SEEDS = 2**32 - 1  # the largest that scikit-learn takes
THREADED = 1000  # points from which on a second thread makes t-SNE faster


def tsne(z: Vectors, perplexity: float | None = None, seed: int = 0, init: str = "pca") -> np.ndarray:
    """t-SNE (van der Maaten & Hinton 2008), Barnes-Hut by scikit-learn: z (N, D) -> (N, 2) float32.

    - perplexity: how many neighbours a point tries to keep, about; below N. None = 30, or a third of the
      other points where that is less
    - init: "pca" starts from the principal components, which keeps something of the large-scale layout (Kobak
      & Linderman 2021) and leaves little to the seed; "random" starts anywhere, so that the seed shows
    - the same seed gives the same map, bit for bit; rows of one direction all lie at (0, 0)

    Raises ValueError on a perplexity that is not between 1 and N.
    """
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    z = _rows(z, "tsne")
    if perplexity is None:
        perplexity = max(1.0, min(30.0, (len(z) - 1) / 3))
    within("tsne", "perplexity", perplexity, 1, len(z), open_above=True)
    one_of("tsne", "init", init, ("pca", "random"))
    within("tsne", "seed", seed, 0, SEEDS, whole=True)
    if np.ptp(z, axis=0).max() < 1e-6:  # all in one place, where scikit-learn ends the process
        return np.zeros((len(z), 2), np.float32)
    z = np.pad(z, ((0, 0), (0, int(z.shape[1] == 1))))  # it wants two features
    # scikit-learn adds up one sum by thread, in the order they finish: two of them commute, more do not
    # and never more than torch was given: threads beyond the cores wait for each other, busily; so do two of
    # few points
    threads = min(2, torch.get_num_threads()) if len(z) > THREADED else 1
    with threadpool_limits(limits=threads):
        return TSNE(perplexity=perplexity, init=init, random_state=seed).fit_transform(z)


def umap(z: Vectors, neighbours: int = 15, min_distance: float = 0.1, seed: int = 0) -> np.ndarray:
    """UMAP (McInnes, Healy & Melville 2018), by umap-learn: z (N, D) -> (N, 2) float32.

    - neighbours: how many of them a point tries to keep; below N
    - min_distance: how tightly points may be packed on the page, from 0 to 1
    - starts from the principal components; one thread, so that the same seed gives the same map

    The first call in a process takes some ten seconds more. Raises ValueError on settings out of range.
    """
    z = _rows(z, "umap")
    within("umap", "neighbours", neighbours, 2, len(z) - 1, whole=True)
    within("umap", "min_distance", min_distance, 0, 1)
    within("umap", "seed", seed, 0, SEEDS, whole=True)
    # umap-learn says at its first import that it found no Tensorflow, which nothing here needs
    warnings.filterwarnings("ignore", message="Tensorflow not installed", category=ImportWarning)
    from umap import UMAP

    start = pca(z)
    start = 10 * start / max(np.abs(start).max(), np.finfo(np.float32).tiny)  # the size that it expects
    threads = torch.get_num_threads()
    try:
        return UMAP(
            n_neighbors=neighbours, min_dist=min_distance, init=start, random_state=seed, n_jobs=1
        ).fit_transform(z)
    finally:
        torch.set_num_threads(threads)  # numba leaves its own number, which torch's OpenMP then takes


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


def neg_tsne(
    z: Vectors,
    spectrum: float = 0.5,
    neighbours: int = 15,
    negatives: int = 5,
    epochs: int = 150,
    seed: int = 0,
) -> np.ndarray:
    r"""Neg-t-SNE, a map by negative sampling between t-SNE and UMAP: z (N, D) -> (N, 2) float32.

    Each pair ij of the kNN graph is told from drawn pairs ik by a sigmoid of its own, `negative_sampling`:

    $$-\log\frac{q_{ij}}{q_{ij} + c} - \sum_{k=1}^m \log\Bigl(1 - \frac{q_{ik}}{q_{ik} + c}\Bigr), \qquad
      q_{ij} = \frac{1}{1 + \|y_i - y_j\|^2}, \qquad c = \frac{m \bar Z}{N^2}$$

    with a normalisation constant Z̄ of one's choice, where t-SNE has the sum of all q. The larger Z̄, the
    stronger the attraction.

    - spectrum: 1 = UMAP's c = 1, Z̄ = N²/m; 0 = Z̄ is the map's own sum of q, t-SNE's, estimated from what is
      drawn, any point but i itself; Z̄ goes from the one to the other in equal ratios, and on for numbers
      below 0 or above 1
    - neighbours: of the kNN graph, made symmetric; negatives: m, drawn for each of its pairs in each epoch
    - epochs: times through the graph, all pairs at once, by Adam from the principal components
    - seed: of what is drawn. The same seed gives the same map

    Damrich et al. 2023, "From t-SNE to UMAP with contrastive learning" (arXiv 2206.01816); the constants as
    in the authors' library (contrastive-ne, readme and cne.py). It has Z̄ = 100 N at 0, the order of t-SNE's
    sum on tens of thousands of points; on a few hundred t-SNE's own is some ten times smaller.

    Raises ValueError on settings outside their range.
    """
    z = _rows(z, "neg_tsne")
    within("neg_tsne", "neighbours", neighbours, 1, len(z) - 1, whole=True)
    within("neg_tsne", "negatives", negatives, 1, 10**4, whole=True)
    within("neg_tsne", "spectrum", spectrum, -1, 2)
    within("neg_tsne", "epochs", epochs, 1, whole=True)
    within("neg_tsne", "seed", seed, 0, SEEDS, whole=True)
    start = torch.from_numpy(pca(z))
    y = (start / start[:, 0].std().clamp(min=torch.finfo(torch.float32).tiny)).requires_grad_()
    draw, (i, j) = torch.Generator().manual_seed(seed), neighbour_pairs(z, neighbours)
    optimiser, own = torch.optim.Adam([y], lr=0.5), None
    for epoch in range(epochs):
        optimiser.param_groups[0]["lr"] = 0.5 * (1 - epoch / epochs)
        k = torch.randint(1, len(z), (len(i), negatives), generator=draw)
        k = (i[:, None] + k) % len(z)  # no point draws itself: its q is 1, and Z leaves it out
        _, y.grad, found = _slope(y.detach(), i, j, k, own, spectrum)
        own = found if own is None else 0.9 * own + 0.1 * found
        optimiser.step()
    return y.detach().numpy()


def neighbour_pairs(z: Vectors, neighbours: int) -> Tensor:
    """Pairs of the symmetric kNN graph of the unit rows, in both directions: z (N, D) -> (2, E) int64."""
    z = torch.from_numpy(_rows(z, "neighbour_pairs"))
    nearest = (z @ z.T).fill_diagonal_(-torch.inf).topk(neighbours, dim=1).indices
    joined = torch.zeros(len(z), len(z), dtype=torch.bool).scatter_(1, nearest, True)
    return (joined | joined.T).nonzero().T


def negative_sampling(positions: Tensor, pairs: Tensor, drawn: Tensor, c: float) -> Tensor:
    """Neg-t-SNE's loss, a scalar, summed over the pairs: see `neg_tsne`.

    positions: (N, 2); pairs: (2, E); drawn: (E, m), the k of each pair; c = m Z̄/N²
    """
    i, j = pairs
    log_c = torch.as_tensor(c, dtype=positions.dtype).log()
    near = (positions[i] - positions[j]).square().sum(dim=1).log1p()  # -log q
    far = (positions[i][:, None] - positions[drawn]).square().sum(dim=2).log1p()
    return F.softplus(log_c + near).sum() + F.softplus(-log_c - far).sum()


def _slope(
    y: Tensor, i: Tensor, j: Tensor, k: Tensor, own: Tensor | None, spectrum: float
) -> tuple[Tensor, Tensor, Tensor]:
    """c, the gradient of `negative_sampling` (N, 2), and the mean q of the drawn pairs, a map's own Z̄/N²."""
    near, far = y[i] - y[j], y[i][:, None] - y[k]
    q, q_drawn = (1 / (1 + apart.square().sum(dim=-1, keepdim=True)) for apart in (near, far))
    found = q_drawn.mean()
    own, m = found if own is None else own, k.shape[1]
    c = (m * own) ** (1 - spectrum)  # at 1: UMAP's
    pull, push = 2 * near * q * c / (q + c), 2 * far * q_drawn * q_drawn / (q_drawn + c)
    slope = torch.zeros_like(y).index_add_(0, i, pull - push.sum(dim=1)).index_add_(0, j, -pull)
    return c, slope.index_add_(0, k.flatten(), push.flatten(0, 1)), found


def trustworthiness(z: Vectors, positions: Vectors, k: int = 10) -> float:
    """How far neighbours in the map are neighbours in truth, in [0, 1]; near 0.5 is chance.

    z: (N, D); positions: (N, 2), the map; k neighbours, fewer than N / 2. Every false neighbour costs by its
    true rank. Venna & Kaski 2001, by scikit-learn; memory for N x N distances.
    """
    from sklearn.manifold import trustworthiness

    z, positions = _both(z, positions, k, "trustworthiness")
    return float(trustworthiness(z, positions, n_neighbors=k))


def neighbours_kept(z: Vectors, positions: Vectors, k: int = 10) -> Tensor:
    """Share of each point's k true neighbours that are among its k nearest in the map: (N,), in [0, 1].

    Their mean is the kNN recall of the map. Arguments as of `trustworthiness`.
    """
    from sklearn.neighbors import kneighbors_graph

    there, shown = (kneighbors_graph(x, k).toarray() > 0 for x in _both(z, positions, k, "neighbours_kept"))
    return torch.from_numpy((there & shown).sum(axis=1) / k)


def _both(z: Vectors, positions: Vectors, k: int, who: str) -> tuple[np.ndarray, np.ndarray]:
    z, positions = _rows(z, who), _positions(positions, who)
    if len(z) != len(positions):
        raise ValueError(f"{who}: z has {len(z)} rows but the map has {len(positions)}")
    within(who, "k", k, 1, (len(z) - 1) // 2, whole=True)  # fewer than half of the rows
    return z, positions


def neighbour_share(positions: Vectors, labels: Vectors, k: int = 10) -> float:
    """Share of a point's k nearest in the map that has its class; mean over all points, in [0, 1].

    positions: (N, 2), the map; labels: (N,); points without one (below 0) are left out, as neighbours, too. A
    map of pure confetti over C classes of one size has 1/C.
    """
    at = torch.from_numpy(_positions(positions, "neighbour_share"))
    labels = as_classes(labels, "neighbour_share", "labels", at)
    within("neighbour_share", "k", k, 1, int((labels >= 0).sum()) - 1, whole=True)
    return share_of_class(at, labels, k)


def share_of_class(at: Tensor, labels: Tensor, k: int, metric: str = "euclidean") -> float:
    """`neighbour_share` in any number of dimensions, and by another metric of scikit-learn's, as "cosine".

    at: (N, D); labels: (N,). Where fewer than k others have a label, all of them; NaN where none has.
    """
    from sklearn.neighbors import NearestNeighbors

    labels = as_classes(labels, "share_of_class", "labels", at)
    if not at.isfinite().all():
        raise ValueError(f"share_of_class: {tuple(at.shape)} must be finite numbers")
    points, labels = at[labels >= 0].double().cpu().numpy(), labels[labels >= 0].cpu()
    if len(points) < 2:
        return math.nan
    finder = NearestNeighbors(n_neighbors=min(k, len(points) - 1), metric=metric).fit(points)
    nearest = finder.kneighbors(return_distance=False)  # no point its own
    return (labels[nearest] == labels[:, None]).double().mean().item()


def _rows(z: Vectors, who: str) -> np.ndarray:
    return unit_rows(z, who, "z").float().cpu().numpy()


def _positions(positions: Vectors, who: str) -> np.ndarray:
    positions = torch.as_tensor(positions)
    if positions.ndim != 2 or positions.shape[1] != 2 or not positions.isfinite().all():
        raise ValueError(f"{who}: positions is {tuple(positions.shape)}, but a map is (N, 2) finite numbers")
    return positions.double().cpu().numpy()
