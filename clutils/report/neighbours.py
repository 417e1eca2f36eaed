"""Nearest-neighbour votes: confusion of classes, votes within the gallery, the best renaming of classes."""

import torch
from torch import Tensor, nn

from clutils import measures

PROBE_DIRECTIONS = 128  # principal directions of raw pixels that a probe is given: of all, it takes minutes


def predicted(z: Tensor, y: Tensor, judged: Tensor, k: int) -> Tensor:
    """The class that wins the vote of each row's k nearest, as `measures.knn_accuracy` counts: (M,)."""
    z, judged = nn.functional.normalize(z, dim=1), nn.functional.normalize(judged, dim=1)
    return torch.cat([measures.knn_vote(rows @ z.T, y, k) for rows in judged.split(1024)])


def left_out(z: Tensor, y: Tensor, k: int, judged: Tensor) -> dict[str, float]:
    """Each gallery picture asked of all others: whether labels and pictures belong together at all.

    z: (N, D); y: (N,), more than judged pictures, so that a small lead over chance shows; judged: (M,), the
    labels of the judged. Beside it the same accuracy with each class weighing as it does there, and the
    standard error of that: a gallery in which few classes have most pictures is better at these.
    """
    z = nn.functional.normalize(z, dim=1)
    votes = measures.knn_vote((z @ z.T).fill_diagonal_(-2), y, min(k, len(z) - 1))
    right = (votes == y).double()
    classes = int(max(y.max(), judged.max())) + 1
    of = y.bincount(minlength=classes).double()
    share = judged.bincount(minlength=classes).double() / len(judged)
    correct = torch.zeros(classes, dtype=torch.float64).index_add_(0, y, right)
    likely = (correct + 1) / (of + 2)  # of few pictures no accuracy is certain
    return {
        "knn_gallery": right.mean().item(),
        "chance_gallery": (y.bincount().max() / len(y)).item(),
        "asked_gallery": len(y),
        "knn_gallery_alike": (share * correct / of.clamp(min=1)).sum().item(),
        "gallery_error": (share**2 * likely * (1 - likely) / of.clamp(min=1)).sum().sqrt().item(),
    }


def copies(images: Tensor, others: Tensor) -> float:
    """The share of pictures that are among the others, to the bit."""
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


def relabelled(y: Tensor, predicted: Tensor, classes: int) -> float:
    """The accuracy under the best one-to-one renaming of the classes: high where names were mixed up."""
    from scipy.optimize import linear_sum_assignment

    counts = confusion(y, predicted, classes).numpy()
    rows, columns = linear_sum_assignment(-counts)
    return float(counts[rows, columns].sum() / len(y))


def exchanged(y: Tensor, predicted: Tensor) -> float:
    """How surely two classes stand in each other's place: the largest of all pairs, in standard errors, or 0.

    Of the pictures of both that get one of the two names, those that get the other's less those that get
    their own, over the root of their number: normal with deviation 1 where a name is as good as the other.
    """
    table = confusion(y, predicted)
    own = table.diagonal()[:, None].expand_as(table)
    both = (table > own) & (table > own).T  # each is given the other's name more often than its own
    lead, of = table - own, table + own
    sure = (lead + lead.T) / (of + of.T).clamp(min=1).sqrt()
    return float(sure.where(both, 0.0).max())


def confusion(y: Tensor, predicted: Tensor, classes: int = 0) -> Tensor:
    """How many of each class are taken for each: (C, C), a row a class of y, for at least so many classes."""
    count = max(classes, int(max(y.max(), predicted.max())) + 1)
    return (y * count + predicted).bincount(minlength=count * count).view(count, count).float()
