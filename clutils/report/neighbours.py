"""Nearest-neighbour votes; copies; principal directions of pixels."""

import torch
from torch import Tensor, nn

from clutils import measures

PROBE_DIRECTIONS = 128  # principal directions of raw pixels that a probe is given: of all, it takes minutes


def predicted(z: Tensor, y: Tensor, judged: Tensor, k: int) -> Tensor:
    """The class that wins the vote of each row's k nearest, as `measures.knn_accuracy` counts: (M,)."""
    z, judged = nn.functional.normalize(z, dim=1), nn.functional.normalize(judged, dim=1)
    return torch.cat([measures.knn_vote(rows @ z.T, y, k) for rows in judged.split(1024)])


def copies(images: Tensor, others: Tensor) -> float:
    """The share of images that are among the others, to the bit."""
    known = {one.numpy().tobytes() for one in others}
    return sum(one.numpy().tobytes() in known for one in images) / len(images)


def principal(gallery: Tensor, judged: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, D) and (M, D) in the first principal directions of the former: at most PROBE_DIRECTIONS."""
    mean = gallery.mean(dim=0)
    gallery, judged = gallery - mean, judged - mean
    if gallery.shape[1] <= PROBE_DIRECTIONS:
        return gallery, judged
    gram = (gallery @ gallery.T).double()  # (N, N): there are more pixels than rows
    values, vectors = torch.linalg.eigh(gram)
    kept = values > 1e-9 * values.max().clamp(min=1e-12)
    values, vectors = values[kept][-PROBE_DIRECTIONS:], vectors[:, kept][:, -PROBE_DIRECTIONS:]
    axes = gallery.T @ (vectors / values.sqrt()).float()  # (D, directions)
    return gallery @ axes, judged @ axes
