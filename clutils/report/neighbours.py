"""Pictures and their nearest neighbours: who is taken for whom, and by how much labels may be mistaken."""

from __future__ import annotations

import torch
from torch import Tensor, nn

PROBE_DIRECTIONS = 128  # principal directions of raw pixels that a probe is given: of all, it takes minutes


def predicted(z: Tensor, y: Tensor, judged: Tensor, k: int) -> Tensor:
    """The class that wins the vote of each row's k nearest, as `measures.knn_accuracy` counts: (M,)."""
    z, judged = nn.functional.normalize(z, dim=1), nn.functional.normalize(judged, dim=1)
    votes = []
    for rows in judged.split(1024):
        similarity, nearest = (rows @ z.T).topk(k, dim=1)
        weight = ((similarity - similarity[:, :1]) / 0.1).exp()
        table = torch.zeros(len(rows), int(y.max()) + 1).scatter_add_(1, y[nearest], weight)
        votes.append(table.argmax(dim=1))
    return torch.cat(votes)


def left_out(z: Tensor, y: Tensor, k: int) -> dict[str, float]:
    """Each gallery picture asked of all others: whether labels and pictures belong together at all.

    z: (N, D); y: (N,). There are more of these than judged pictures, so chance is told from a small lead.
    """
    z = nn.functional.normalize(z, dim=1)
    similarity = (z @ z.T).fill_diagonal_(-2)
    similarity, nearest = similarity.topk(min(k, len(z) - 1), dim=1)
    weight = ((similarity - similarity[:, :1]) / 0.1).exp()
    votes = torch.zeros(len(z), int(y.max()) + 1).scatter_add_(1, y[nearest], weight)
    return {
        "knn_gallery": (votes.argmax(dim=1) == y).double().mean().item(),
        "chance_gallery": (y.bincount().max() / len(y)).item(),
        "asked_gallery": len(y),
    }


def principal(told: Tensor, judged: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (N, D) and (M, D) in the first principal directions of the former: at most PROBE_DIRECTIONS."""
    mean = told.mean(dim=0)
    told, judged = told - mean, judged - mean
    if told.shape[1] <= PROBE_DIRECTIONS:
        return told, judged
    values, vectors = torch.linalg.eigh((told @ told.T).double())  # (N, N): there are more pixels than rows
    kept = values > 1e-9 * values.max().clamp(min=1e-12)
    values, vectors = values[kept][-PROBE_DIRECTIONS:], vectors[:, kept][:, -PROBE_DIRECTIONS:]
    axes = told.T @ (vectors / values.sqrt()).float()  # (D, directions)
    return told @ axes, judged @ axes


def relabelled(y: Tensor, predicted: Tensor, classes: int) -> float:
    """The accuracy under the best one-to-one renaming of the classes: high where names were mixed up."""
    from scipy.optimize import linear_sum_assignment

    count = max(classes, int(max(y.max(), predicted.max())) + 1)
    table = torch.zeros(count * count).index_add_(0, y * count + predicted, torch.ones(len(y)))
    table = table.view(count, count).numpy()
    rows, columns = linear_sum_assignment(-table)
    return float(table[rows, columns].sum() / len(y))
