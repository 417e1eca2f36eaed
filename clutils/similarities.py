"""Pairs of a batch: who is compared with whom, decided here once, for every loss.

A loss of the InfoNCE family is a function of an anchor's similarities to its positives and to its
negatives. This module turns embeddings into those two tables; what is done with them is the paper's idea
and stands in the paper's own file in `clutils.losses`.
"""

from dataclasses import dataclass
from typing import Any, Self

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
    - once: whether the gradient is taken once, so that what is kept for it may be overwritten then
    """

    positives: Tensor
    negatives: Tensor
    positive_mask: Tensor | None = None
    negative_mask: Tensor | None = None
    once: bool = False


def normalise(z: Tensor, name: str = "z", who: str = "similarities", check: bool = True) -> Tensor:
    """Rows of z (N, D) on the unit sphere, in float32 (float64 stays float64).

    Half precision is widened first: a squared length overflows float16 from entries of 256 on.
    Each row is divided by its largest entry before its length is taken, so that neither tiny nor huge
    rows under- or overflow; the direction, and with it the gradient, is unchanged by that.

    Raises ValueError on a row that is zero or not finite (not with check=False: on a GPU the check waits).
    """
    z = widen(z)
    largest = z.detach().abs().amax(dim=1, keepdim=True)
    if check and not bool((sound := torch.isfinite(largest) & (largest > SHORTEST)).all()):
        row = int((~sound).flatten().nonzero()[0])
        zero = largest[row] <= SHORTEST
        what = "is a zero vector, which has no direction" if zero else "holds NaN or infinity"
        raise ValueError(f"{who}: {name} {tuple(z.shape)}: row {row} {what}")
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


def widen(x: Tensor) -> Tensor:
    """x in float32, float64 as it is: the precision every similarity and loss is computed in."""
    return x if x.dtype == torch.float64 else x.float()


@dataclass(frozen=True)
class Everyone:
    """What the anchors of a batch are compared with, unit vectors: made once, also where blocks follow.

    - rest: (2, B - 1, D), both views of all pictures but the last
    - ends: (2, 2, D), both views of the first picture and of the last
    - z: (2B, D), all of them, those of view 1 first
    """

    rest: Tensor
    ends: Tensor
    z: Tensor


@dataclass(frozen=True)
class Batch:
    """Unit vectors of a batch, or of a block of its pictures: those whose anchors are asked for.

    - z1, z2: (b, D), the block's two views, or queries and their keys
    - pictures: (b,), their rows in the batch
    - everyone: of the whole batch
    - labels: (B,), of the whole batch; extra_views: (b, M, D); queue: (K, D); None where there are none
    - drawn: (anchors, k) each, what a loss drew for these anchors
    """

    z1: Tensor
    z2: Tensor
    pictures: Tensor
    everyone: Everyone
    labels: Tensor | None = None
    extra_views: Tensor | None = None
    queue: Tensor | None = None
    drawn: tuple[Tensor, ...] = ()

    @classmethod
    def whole(cls, z1: Tensor, z2: Tensor, **further: Any) -> Self:
        if further.get("labels") is not None:
            further["labels"] = own_classes(further["labels"])
        views = torch.stack([z1, z2])
        everyone = Everyone(views[:, :-1], views[:, :: len(z1) - 1], views.flatten(0, 1))
        return cls(z1, z2, torch.arange(len(z1), device=z1.device), everyone, **further)

    @property
    def anchors(self) -> Tensor:
        """(A, D): the queries, or both views of the block's pictures, those of view 1 first."""
        return self.z1 if self.queue is not None else torch.cat([self.z1, self.z2])

    @property
    def own(self) -> Tensor:
        """(A,): each anchor's picture."""
        return self.pictures if self.queue is not None else self.pictures.repeat(2)

    def pairs(self, against: str = "both views") -> Pairs:
        rest, ends, z = self.everyone.rest, self.everyone.ends, self.everyone.z
        if self.labels is not None:
            y, s = self.labels.repeat(2), self.anchors @ z.T
            same = y[self.own][:, None] == y[None, :]
            view = torch.arange(2, device=z.device).repeat_interleave(len(self.pictures))
            itself = self.own + view * len(self.labels)
            return Pairs(s, s, same.scatter(1, itself[:, None], False), ~same)
        if self.extra_views is not None:
            views = [(self.extra_views @ z[:, :, None])[:, :, 0] for z in (self.z1, self.z2)]
            return Pairs(torch.cat(views), to_others(self.anchors, self.own, rest, ends))
        positives = (self.z1 * self.z2).sum(dim=1)[:, None]
        if self.queue is not None:
            return Pairs(positives, self.z1 @ self.queue.detach().T)
        if against not in ("other view", "one way"):
            return Pairs(positives.repeat(2, 1), to_others(self.anchors, self.own, rest, ends))
        of_1 = to_others(self.z1, self.pictures, rest[1:], ends[1:])
        if against == "one way":
            return Pairs(positives, of_1)
        of_2 = to_others(self.z2, self.pictures, rest[:1], ends[:1])
        return Pairs(positives.repeat(2, 1), torch.cat([of_1, of_2]))

    def among_negatives(self, i: Tensor, j: Tensor) -> Tensor:
        """Similarity of the anchors' negatives to one another, of columns i, j (A, k) -> (A, k)."""
        if self.queue is None:
            keys = self.everyone.z
            i, j = (owners(columns, len(keys) // 2, self.own) for columns in (i, j))
            if len(keys) ** 2 <= i.numel() * keys.shape[1]:
                return (keys @ keys.T)[i, j]
        else:
            keys = self.queue.detach()
        # k vectors for each of all anchors at once would not fit beside a large queue; on a CPU, one anchor
        # at a time stays in its cache
        anchors = 1 if keys.device.type == "cpu" else max(1, CHUNK // (i.shape[1] * keys.shape[1]))
        parts = zip(i.split(anchors), j.split(anchors), strict=True)
        return torch.cat([(keys[a] * keys[b]).sum(dim=-1) for a, b in parts])


def two_views(z1: Tensor, z2: Tensor, against: str = "both views", **further: Tensor) -> Pairs:
    """Two views of a batch, unit vectors (B, D) each: picture i's positive is its own other view.

    - against="both views": 2B anchors, each against the 2B - 2 views of other pictures (SimCLR)
    - against="other view": 2B anchors, each against the B - 1 other pictures in the opposite view (CLIP)
    - against="one way": of those the B of view 1 alone (N-pair)

    Columns of negatives: all pictures but the last in view 1, then in view 2. An anchor's own picture is no
    negative of it: the last picture stands in its place. `owners` says whose a column is.

    One of these changes who is compared, as an argument of a loss does:

    - extra_views (B, M, D): the positives of both anchor views, of which the other is then neither positive
      nor negative (AttentionNCE, as its authors' code has it)
    - labels (B,): positives share the anchor's label, its own other view among them; both tables are
      (2B, 2B) and masked, since rows are ragged (Khosla et al. 2020, the sets P(i) and A(i)). An image
      without a label (below 0) has its own other view as its one positive, and is a negative of all others
    - queue (K, D), unit vectors: z1 are queries and the anchors, z2 their keys; the queue alone gives the
      negatives, and gets no gradient (He et al. 2020, eq. 1)
    """
    return Batch.whole(z1, z2, **further).pairs(against)


def count(batch: int, against: str = "both views", queue: int | None = None) -> int:
    """K, how many negatives an anchor has: of `two_views` of so many pictures, or the keys of a queue."""
    if queue is not None:
        return queue
    return 2 * batch - 2 if against == "both views" else batch - 1


def to_others(anchors: Tensor, own: Tensor, rest: Tensor, ends: Tensor) -> Tensor:
    """Similarities to every picture but each anchor's own, in whose place the last one stands.

    anchors (A, D), own (A,): their pictures; rest (V, B - 1, D), ends (V, 2, D): as in `Everyone`, of V views
    -> (A, V (B - 1)).
    """
    last = rest.shape[1]
    # the last picture's own anchors need nobody to stand in: theirs keep the first, where they had it
    stand_in = torch.where((own == last)[:, None], anchors @ ends[:, 0].T, anchors @ ends[:, 1].T)
    places = (own % last)[:, None] + last * torch.arange(len(rest), device=own.device)
    return _Table.apply(anchors, rest.flatten(0, 1), stand_in, places)


class _Table(torch.autograd.Function):
    """anchors (A, D), others (K, D) -> their similarities (A, K), with stand_in (A, V) in places (A, V).

    Its gradient takes the replaced entries out of the products, and not out of a copy of the table.
    """

    @staticmethod
    def forward(ctx: Any, anchors: Tensor, others: Tensor, stand_in: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(anchors, others, places)
        return (anchors @ others.T).scatter_(1, places, stand_in)

    @staticmethod
    def backward(ctx: Any, slopes: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        anchors, others, places = ctx.saved_tensors
        replaced = slopes.gather(1, places)
        of_anchors, of_others = slopes @ others, slopes.T @ anchors
        for place, slope in zip(places.unbind(1), replaced.split(1, dim=1), strict=True):
            of_anchors = of_anchors - slope * others[place]
            of_others.index_add_(0, place, slope * anchors, alpha=-1)
        return of_anchors, of_others, replaced, None


def owners(columns: Tensor, batch: int, own: Tensor | None = None) -> Tensor:
    """Whose similarity stands in a column of the negatives of `two_views`: rows of cat([z1, z2]).

    columns: (A, k), a row an anchor -> same shape; own: (A,), the anchors' pictures, None = of all 2B.
    """
    if own is None:
        own = torch.arange(batch, device=columns.device).repeat(2)
    view, picture = columns // (batch - 1), columns % (batch - 1)
    return view * batch + torch.where(picture == own[:, None], batch - 1, picture)


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
