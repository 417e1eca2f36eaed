"""Who is compared with whom: decided here once, for every loss.

A loss of the InfoNCE family is a function of an anchor's similarities to its positives and to its
negatives. This module turns embeddings into those two tables; what is done with them is the paper's idea
and stands in the paper's own file in `clutils.losses`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 2**24  # numbers of gathered keys at a time
SHORTEST = 1e-30  # below this length a vector has no direction that float32 could hold


@dataclass(frozen=True)
class Pairs:
    """Cosine similarities of A anchors, a row each.

    - positives: (A, P), to the pictures that should be near
    - negatives: (A, K), to those that should be far
    - positive_mask, negative_mask: bool, same shapes, True = counts; None = all count
    """

    positives: Tensor
    negatives: Tensor
    positive_mask: Tensor | None = None
    negative_mask: Tensor | None = None


def normalise(z: Tensor, name: str = "z", who: str = "similarities", check: bool = True) -> Tensor:
    """Rows of z (N, D) on the unit sphere, in float32 (float64 stays float64).

    Half precision is widened first: a squared length overflows float16 from entries of 256 on.
    Each row is divided by its largest entry before its length is taken, so that neither tiny nor huge
    rows under- or overflow; the direction, and with it the gradient, is unchanged by that.

    Raises ValueError on a row that is zero or not finite (not with check=False: on a GPU the check waits).
    """
    z = widen(z)
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    if check:
        sound = torch.isfinite(largest) & (largest > SHORTEST)
        if not bool(sound.all()):
            row = int((~sound).flatten().nonzero()[0])
            value = float(largest[row])
            what = (
                f"row {row} holds NaN or infinity" if value != value or value == float("inf")
                else f"row {row} is a zero vector, which has no direction"
            )  # fmt: skip
            raise ValueError(f"{who}: {name} {tuple(z.shape)}: {what}")
    return F.normalize(z / largest, dim=1)


def standardise(z: Tensor, name: str = "z", who: str = "similarities", check: bool = True) -> Tensor:
    """Columns of z (N, D) centred and of unit length over the batch, in float32 (float64 stays float64).

    The product of two such tables is the matrix of Pearson's correlations. A column that is constant, up to
    rounding, correlates with nothing: ValueError (with check=False it becomes a column of zeros).
    """
    z = widen(z)
    z = z / z.detach().abs().amax(dim=0, keepdim=True).clamp(min=SHORTEST)
    centred = z - z.mean(dim=0, keepdim=True)
    spread = centred.detach().abs().amax(dim=0, keepdim=True)
    moves = spread > 8 * torch.finfo(z.dtype).eps  # of a largest entry of 1: less is rounding of the mean
    if check and not bool(moves.all()):
        column = int((~moves).flatten().nonzero()[0])
        raise ValueError(f"{who}: feature {column} of {name} {tuple(z.shape)} is constant over the batch")
    return F.normalize(centred / torch.where(moves, spread, 1.0), dim=0) * moves


def one_device(who: str, **given: object) -> None:
    """Raise ValueError, naming each, where these tensors do not lie on one device."""
    places = {name: value.device for name, value in given.items() if isinstance(value, Tensor)}
    if len(set(places.values())) > 1:
        said = ", ".join(f"{name} on {place}" for name, place in places.items())
        raise ValueError(
            f"{who}: {said}, but they must be on one device: `.to(device)` or `.cpu()` moves one"
        )


def widen(x: Tensor) -> Tensor:
    """x in float32, float64 as it is: the precision every similarity and loss is computed in."""
    return x if x.dtype == torch.float64 else x.float()


def two_views(z1: Tensor, z2: Tensor, against: str = "both views") -> Pairs:
    """Two views of a batch, unit vectors (B, D) each: picture i's positive is its own other view.

    - against="both views": 2B anchors, each against the 2B - 2 views of other pictures (SimCLR)
    - against="other view": 2B anchors, each against the B - 1 other pictures in the opposite view (CLIP)
    """
    batch = len(z1)
    cross = z1 @ z2.T
    positives = cross.diagonal().repeat(2)[:, None]
    crossed = torch.cat([off_diagonal(cross), off_diagonal(cross.T)])  # (2B, B - 1)
    if against == "other view":
        return Pairs(positives, crossed)
    within = torch.cat([off_diagonal(z1 @ z1.T), off_diagonal(z2 @ z2.T)])
    return Pairs(positives, torch.cat([within, crossed], dim=1).view(2 * batch, 2 * batch - 2))


def several_views(z1: Tensor, z2: Tensor, views: Tensor) -> Pairs:
    """Two anchor views (B, D) each and M further views (B, M, D) that are the positives of both.

    The other anchor view is neither positive nor negative; the negatives are the 2B - 2 anchor views of other
    pictures. AttentionNCE, as its authors' code has it.
    """
    positives = torch.cat([(views @ z[:, :, None])[:, :, 0] for z in (z1, z2)])  # (2B, M)
    return Pairs(positives, two_views(z1, z2).negatives)


def labelled_views(z1: Tensor, z2: Tensor, labels: Tensor) -> Pairs:
    """Two views of a labelled batch: positives share the anchor's label, its own other view among them.

    z1, z2: unit vectors (B, D); labels: (B,). 2B anchors; both tables are (2B, 2B) and masked, since rows
    are ragged. Khosla et al. 2020, the sets P(i) and A(i).
    """
    z, y = torch.cat([z1, z2]), labels.repeat(2)
    similarities = z @ z.T
    same = y[:, None] == y[None, :]
    itself = torch.eye(len(z), dtype=torch.bool, device=z.device)
    return Pairs(similarities, similarities, same & ~itself, ~same)


def with_queue(q: Tensor, k: Tensor, queue: Tensor) -> Pairs:
    """Queries against their keys and a queue: q, k (B, D), queue (K, D), all unit vectors.

    Only q is an anchor; the queue alone gives the negatives and gets no gradient (He et al. 2020, eq. 1).
    """
    return Pairs((q * k).sum(dim=1, keepdim=True), q @ queue.detach().T)


def owners(columns: Tensor, batch: int) -> Tensor:
    """Whose similarity stands in a column of the negatives of `two_views`: rows of cat([z1, z2]).

    columns: (2B, k), a row an anchor -> same shape.
    """
    anchor = torch.arange(2 * batch, device=columns.device)[:, None]
    picture = columns % (batch - 1)
    picture = picture + (picture >= anchor % batch)  # its own picture is left out
    other_view = columns >= batch - 1  # the anchor's own view comes first
    return picture + batch * ((anchor >= batch) ^ other_view)


def classmates(labels: Tensor) -> Tensor:
    """Which negatives of `two_views` are of the anchor's own class: labels (B,) -> bool (2B, 2B - 2)."""
    batch = len(labels)
    columns = torch.arange(2 * batch - 2, device=labels.device).expand(2 * batch, -1)
    y = labels.repeat(2)
    return y[owners(columns, batch)] == y[:, None]


def among_negatives(z1: Tensor, z2: Tensor, queue: Tensor | None, i: Tensor, j: Tensor) -> Tensor:
    """Similarity of an anchor's negatives to one another: columns i, j (A, k) of its negatives -> (A, k)."""
    if queue is None:
        z = torch.cat([z1, z2])
        return (z @ z.T)[owners(i, len(z1)), owners(j, len(z1))]
    keys = queue.detach()
    # k vectors for each of all anchors at once would not fit beside a large queue; on a CPU, one anchor at a
    # time stays in its cache
    anchors = 1 if keys.device.type == "cpu" else max(1, CHUNK // (i.shape[1] * keys.shape[1]))
    parts = zip(i.split(anchors), j.split(anchors), strict=True)
    return torch.cat([(keys[a] * keys[b]).sum(dim=-1) for a, b in parts])


def off_diagonal(square: Tensor) -> Tensor:
    """(N, N) without its diagonal, as (N, N - 1), each row in order."""
    size = len(square)
    return square.flatten()[1:].view(size - 1, size + 1)[:, :-1].reshape(size, size - 1)
