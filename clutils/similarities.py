"""Pairs of a batch: who is compared with whom, decided here once, for every loss.

A loss of the InfoNCE family is a function of an anchor's similarities to its positives and to its
negatives. This module turns embeddings into those two tables; what is done with them is the paper's idea
and stands in the paper's own file in `clutils.losses`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 2**24  # numbers of gathered keys at a time
SHORTEST = 1e-30  # below this length a vector has no direction that float32 could hold
USUAL = (1e-15, 1e15)  # lengths whose squares float32 holds


@dataclass(frozen=True)
class Pairs:
    """Cosine similarities of A anchors, a row each.

    - positives: (A, P), to the images that should be near
    - negatives: (A, K), to those that should be far
    - positive_mask, negative_mask: bool, same shapes, True = counts; None = all count
    - once: whether the gradient is taken once, so that what is kept for it may be overwritten then
    """

    positives: Tensor
    negatives: Tensor
    positive_mask: Tensor | None = None
    negative_mask: Tensor | None = None
    once: bool = False


def normalise(
    z: Tensor, name: str | Sequence[str] = "z", who: str = "similarities", check: bool = True
) -> Tensor:
    """Rows of z (N, D) on the unit sphere, in float32 (float64 stays float64).

    Half precision is widened first: a squared length overflows float16 from entries of 256 on. Where a row is
    so tiny or huge that its squared length would under- or overflow, each is divided by its largest entry
    first; the direction, and with it the gradient, is unchanged by that.

    Also z (N, V, D) of as many names. Raises ValueError on a row that is zero or not finite (not with
    check=False: on a GPU the check waits).
    """
    z = widen(z)
    length = torch.linalg.vector_norm(z, dim=-1, keepdim=True)
    if check:
        if usual(length):
            return z / length
        check_rows(z, name, who)
    z = z / z.detach().abs().amax(dim=-1, keepdim=True)
    return z / torch.linalg.vector_norm(z, dim=-1, keepdim=True)


def usual(length: Tensor, most: float = USUAL[1]) -> bool:
    """Whether all vectors of these lengths are sound, and below `most`; a GPU waits once."""
    shortest, longest = torch.stack(length.detach().aminmax()).tolist()  # NaN where there is one
    return bool(USUAL[0] < shortest and longest < most)


def check_rows(z: Tensor, name: str | Sequence[str], who: str, most: float = math.inf) -> None:
    """Raise ValueError on the first row of z that is zero, not finite, or has an entry above `most`.

    z and name are as in `normalise`.
    """
    if usual(torch.linalg.vector_norm(z.detach(), dim=-1), min(most, USUAL[1])):
        return  # quicker than to look for the largest entries
    largest = z.detach().abs().amax(dim=-1)
    low, high = torch.stack(largest.aminmax()).tolist()
    if low > SHORTEST and high <= most and high < math.inf:
        return
    sound = torch.isfinite(largest) & (largest > SHORTEST) & (largest <= most)
    row, *view = (~sound).nonzero()[0].tolist()
    entry = float(largest[(row, *view)])
    if SHORTEST < entry < math.inf:
        what = f"has an entry of {entry:.3g}, but where vectors are not normalised {most:,.0f} is the most"
    else:
        zero = entry <= SHORTEST
        what = "is a zero vector, which has no direction" if zero else "holds NaN or infinity"
    name = name if isinstance(name, str) else name[view[0]]
    raise ValueError(f"{who}: {name} {(len(z), z.shape[-1])}: row {row} {what}")


def standardise(
    z: Tensor, name: str | Sequence[str] = "z", who: str = "similarities", check: bool = True
) -> Tensor:
    """Columns of z (N, D) centred and of unit length over the batch, in float32 (float64 stays float64).

    The product of two such tables is the matrix of Pearson's correlations. A column that is constant, up to
    rounding, correlates with nothing: ValueError (with check=False it becomes a column of zeros). Also
    z (N, V, D) of as many names.
    """
    z = widen(z)
    z = z / z.detach().abs().amax(dim=0, keepdim=True).clamp(min=SHORTEST)
    centred = z - z.mean(dim=0, keepdim=True)
    spread = centred.detach().abs().amax(dim=0, keepdim=True)
    moves = spread > 8 * torch.finfo(z.dtype).eps  # of a largest entry of 1: less is rounding of the mean
    if check and not bool(moves.all()):
        *view, column = (~moves)[0].nonzero()[0].tolist()
        name = name if isinstance(name, str) else name[view[0]]
        shape = len(z), z.shape[-1]
        raise ValueError(f"{who}: feature {column} of {name} {shape} is constant over the batch")
    return F.normalize(centred / torch.where(moves, spread, 1.0), dim=0) * moves


def widen(x: Tensor) -> Tensor:
    """x in float32, float64 as it is: the precision every similarity and loss is computed in."""
    return x if x.dtype == torch.float64 else x.float()


def two_views(z1: Tensor, z2: Tensor, against: str = "both views", **further: Any) -> Pairs:
    """Two views of a batch, unit vectors (B, D) each: image i's positive is its own other view.

    - against="both views": 2B anchors, each against the 2B - 2 views of other images (SimCLR)
    - against="other view": 2B anchors, each against the B - 1 other images in the opposite view (CLIP)
    - against="one way": of those the B of view 1 alone (N-pair)

    Anchors are those of view 1, then those of view 2. Negatives are the other images in order, each in view 1
    and in view 2: `owners` says whose a column is. `Batch` says what changes who is compared: labels,
    extra_views or a queue.
    """
    return Batch(torch.stack([z1, z2], dim=1), **further).pairs(against)


@dataclass(frozen=True)
class Batch:
    """Unit vectors of a batch, and what else says who is compared with whom.

    - views: (B, 2, D), the two views of each image, or a query and its key
    - labels: (B,): positives share the anchor's label, its own other view among them; both tables are
      (2B, 2B) and masked, since rows are ragged (Khosla et al. 2020, the sets P(i) and A(i)). An image
      without a label (below 0) has its own other view as its one positive, and is a negative of all others
    - extra_views: (B, M, D), the positives of both anchor views, of which the other is then neither positive
      nor negative (AttentionNCE, as its authors' code has it)
    - queue: (K, D): only queries are anchors, and the queue alone gives the negatives; it gets no gradient
      (He et al. 2020, eq. 1)
    - drawn: (anchors, k) each, what a loss drew for these anchors

    In a block (`losses.blockwise`) `views` are of the images whose anchors are asked for, from number `start`
    on, and `keys` are those of the whole batch.
    """

    views: Tensor
    labels: Tensor | None = None
    extra_views: Tensor | None = None
    queue: Tensor | None = None
    drawn: tuple[Tensor, ...] = ()
    start = 0

    @property
    def keys(self) -> Tensor:
        """(B, 2, D): what anchors are compared with."""
        return self.views

    @property
    def own_views(self) -> Tensor:
        """(B,): the similarity of an image's two views."""
        first, second = self.views.unbind(dim=1)
        return (first * second).sum(dim=1)

    @property
    def anchors(self) -> Tensor:
        """(2b, D): view 1 of these images, then view 2."""
        return self.views.transpose(0, 1).flatten(0, 1)

    @property
    def own(self) -> Tensor:
        """(2b,): the number of each anchor's image."""
        images = torch.arange(self.start, self.start + len(self.views), device=self.views.device)
        return images.repeat(2)

    def pairs(self, against: str = "both views") -> Pairs:
        """Who is compared with whom: see `two_views`."""
        if self.labels is not None:
            return self.by_label(self.labels)
        first, second = self.views.unbind(dim=1)
        positives = (first * second).sum(dim=1, keepdim=True)
        if self.queue is not None:
            return Pairs(positives, first @ self.queue.detach().T)
        if against == "one way":
            return Pairs(positives, self.one_way(first, second))
        if against == "other view":
            return Pairs(positives.repeat(2, 1), self.crossed(first, second))
        negatives = self.to_others(self.anchors, self.keys)
        if self.extra_views is None:
            return Pairs(positives.repeat(2, 1), negatives)
        further = [(self.extra_views @ z[:, :, None])[:, :, 0] for z in (first, second)]
        return Pairs(torch.cat(further), negatives)

    def by_label(self, labels: Tensor) -> Pairs:
        """All views as candidates of all anchors, and two masks: (2b, 2B) each."""
        everyone, y = self.keys.transpose(0, 1).flatten(0, 1), own_classes(labels).repeat(2)
        view = torch.arange(2, device=y.device).repeat_interleave(len(self.views))
        itself = self.own + view * len(labels)
        s, same = self.anchors @ everyone.T, y[itself, None] == y
        return Pairs(s, s, same.scatter(1, itself[:, None], False), ~same)

    def to_others(self, anchors: Tensor, keys: Tensor) -> Tensor:
        """Similarities of anchors to the keys of all other images: (A, D), (B, V, D) -> (A, (B - 1) V).

        The anchors are of one view of these images, or of one after the other. The keys keep their order.
        """
        table = anchors @ keys.flatten(0, 1).T
        return without_own(table, keys.shape[1])

    def one_way(self, first: Tensor, second: Tensor) -> Tensor:
        """Similarities of view 1 to view 2 of all other images: (B, B - 1)."""
        return without_own(first @ second.T, 1)

    def crossed(self, first: Tensor, second: Tensor) -> Tensor:
        """Similarities of view 1 to view 2 of all other images, then of view 2 to view 1: (2B, B - 1)."""
        table = first @ second.T
        table = torch.cat([table, table.T])  # one table of the two is held while the third is made
        return without_own(table, 1)

    def among_negatives(self, i: Tensor, j: Tensor) -> Tensor:
        """Similarity of the anchors' negatives to one another, of columns i, j (A, k) -> (A, k)."""
        if self.queue is None:
            keys, own = self.keys.flatten(0, 1), 2 * self.own[:, None]
            i, j = (columns + 2 * (columns >= own) for columns in (i, j))
            if len(keys) ** 2 <= i.numel() * keys.shape[1]:
                return (keys @ keys.T)[i, j]
        else:
            keys = self.queue.detach()
        # k vectors for each of all anchors at once would not fit beside a large queue; on a CPU, one anchor
        # at a time stays in its cache
        anchors = 1 if keys.device.type == "cpu" else max(1, CHUNK // (i.shape[1] * keys.shape[1]))
        parts = zip(i.split(anchors), j.split(anchors), strict=True)
        return torch.cat([(keys[a] * keys[b]).sum(dim=-1) for a, b in parts])


def without_own(table: Tensor, views: int) -> Tensor:
    """A table (A, B V) of B images, V columns each, without an anchor's own image: (A, (B - 1) V).

    The anchors are of one view of the images, or of one after the other.
    """
    return between_own(table, views).reshape(len(table), -1)


def between_own(table: Tensor, views: int) -> Tensor:
    """The entries that `without_own` leaves, as a view of a contiguous table: (A / B, B - 1, B V).

    Read on from row to row: an image's own V entries, B V of the others, the next image's own V, and so on.
    """
    columns, images = table.shape[1], table.shape[1] // views
    shape = len(table) // images, images - 1, columns
    steps = images * columns, columns + views, 1
    return table.as_strided(shape, steps, table.storage_offset() + views)


def count(batch: int, against: str = "both views", queue: int | None = None) -> int:
    """K, how many negatives an anchor has: of `two_views` of so many images, or the keys of a queue."""
    if queue is not None:
        return queue
    return 2 * batch - 2 if against == "both views" else batch - 1


def owners(columns: Tensor, batch: int, own: Tensor | None = None) -> Tensor:
    """Whose similarity stands in a column of the negatives of `two_views`: rows of cat([z1, z2]).

    columns: (A, k), a row an anchor -> same shape; own: (A,), the anchors' images, None = of all 2B.
    """
    if own is None:
        own = torch.arange(batch, device=columns.device).repeat(2)
    image, view = columns // 2, columns % 2
    return view * batch + image + (image >= own[:, None])


def own_classes(labels: Tensor) -> Tensor:
    """Labels (B,) in which each image without one (below 0) is a class of its own: int64, -1, -2, ..."""
    return torch.where(labels < 0, -1 - torch.arange(len(labels), device=labels.device), labels.long())


def false_negatives(labels: Tensor) -> Tensor:
    """Which negatives of `two_views` are of the anchor's own class: labels (B,) -> bool (2B, 2B - 2).

    An image without a label (below 0) has none.
    """
    batch, labels = len(labels), own_classes(labels)
    columns = torch.arange(2 * batch - 2, device=labels.device).expand(2 * batch, -1)
    y = labels.repeat(2)
    return y[owners(columns, batch)] == y[:, None]
