"""Pairs of a batch: who is compared with whom, decided here once, for every loss.

A loss of the InfoNCE family is a function of an anchor's similarities to its positives and to its
negatives. This module turns embeddings into those two tables; what is done with them is the paper's idea
and stands in the paper's own file in `clutils.losses`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

COMPARISONS = ("both views", "other view", "one way")  # whom `two_views` compares

CHUNK = 2**18  # numbers of gathered keys at a time
SHORTEST = 1e-30  # below this length a vector has no direction that float32 could hold
USUAL = (1e-15, 1e15)  # lengths whose squares float32 holds


@dataclass(frozen=True)
class Pairs:
    """Cosine similarities of A anchors, a row each.

    - positives: (A, P), to the images that should be near
    - negatives: (A, K), to those that should be far
    - positive_mask, negative_mask: bool, same shapes, True = counts; None = all count
    """

    positives: Tensor
    negatives: Tensor
    positive_mask: Tensor | None = None
    negative_mask: Tensor | None = None

    def with_further(self, negatives: Tensor) -> "Pairs":
        """The same pairs, and further negatives of each anchor: (A, k)."""
        return replace(self, negatives=torch.cat([self.negatives, negatives], dim=1))


def as_pairs(positives: Any, negatives: Any = None, *masks: Tensor | None) -> Pairs:
    """Pairs as they are, or of tables and masks that were given one by one; ValueError where both came."""
    if not isinstance(positives, Pairs):
        return Pairs(positives, negatives, *masks)
    if any(given is not None for given in (negatives, *masks)):
        raise ValueError("positives is a Pairs, which has its negatives and masks: give it alone")
    return positives


def normalise(z: Tensor, name: str = "z", who: str = "similarities", check: bool = True) -> Tensor:
    """Rows of z (N, D) on the unit sphere, in float32 (float64 stays float64).

    Half precision is widened first: a squared length overflows float16 from entries of 256 on. Where a row is
    so tiny or huge that its squared length would under- or overflow, each is divided by its largest entry
    first; the direction, and with it the gradient, is unchanged by that.

    Raises ValueError on a row that is zero or not finite (not with check=False: on a GPU the check waits).
    """
    return normalise_views([z], [name], who, check)[0]


def normalise_views(
    views: Sequence[Tensor], names: Sequence[str], who: str = "similarities", check: bool = True
) -> list[Tensor]:
    """`normalise` of several views, with one check of all of them."""
    views = [widen(view) for view in views]
    if check and not torch.compiler.is_compiling():
        lengths = [torch.linalg.vector_norm(view, dim=-1, keepdim=True) for view in views]
        if usual([length.detach() for length in lengths]):
            return [view / length for view, length in zip(views, lengths, strict=True)]
    if check:
        check_rows(views, names, who)
    views = [view / view.detach().abs().amax(dim=-1, keepdim=True) for view in views]
    return [view / torch.linalg.vector_norm(view, dim=-1, keepdim=True) for view in views]


def usual(lengths: list[Tensor], most: float = USUAL[1]) -> bool:
    """True where all these lengths (not in float16) are sound, and at most `most`; a GPU waits once."""
    lengths = [torch.cat(lengths)] if lengths[0].is_cuda else lengths
    try:  # NaN is not equal to itself
        return all([torch.equal(length.clamp(USUAL[0], most), length) for length in lengths])
    except RuntimeError as error:
        if not (meta := lengths[0].is_meta) and not torch._C._are_functorch_transforms_active():
            raise
        where = "on the meta device" if meta else "under torch.vmap"
        left_out = "a loss with check_inputs=False leaves the checks out"
        raise ValueError(f"no values can be checked {where}: {left_out}") from error


def holds(condition: Tensor, otherwise: str) -> bool:
    """True where a 0-d condition is true, where Python may ask for it: on a GPU that waits.

    While `torch.compile` traces it is True, and the compiled code raises RuntimeError, with the words of
    `otherwise`, where it is not.
    """
    if torch.compiler.is_compiling():
        torch._assert_async(condition, otherwise)
        return True
    return bool(condition)


def check_rows(views: Sequence[Tensor], names: Sequence[str], who: str, most: float = math.inf) -> None:
    """Raise ValueError on the first row (N, D) that is zero, not finite, or has an entry above `most`.

    Of views of these names, widened.
    """
    if not torch.compiler.is_compiling():  # lengths are quicker to look at than the largest entries
        lengths = [torch.linalg.vector_norm(z.detach(), dim=1) for z in views]
        if usual(lengths, min(most, USUAL[1])):
            return
    for z, name in zip(views, names, strict=True):
        largest = z.detach().abs().amax(dim=1)
        sound = torch.isfinite(largest) & (largest > SHORTEST) & (largest <= most)
        if holds(sound.all(), f"{who}: {name} has a row that is zero, too large, or not finite"):
            continue
        row = int((~sound).nonzero()[0])
        entry = float(largest[row])
        if SHORTEST < entry < math.inf:
            what = (
                f"has an entry of {entry:.3g}, but where vectors are not normalised {most:,.0f} is the most"
            )
        else:
            zero = entry <= SHORTEST
            what = "is a zero vector, which has no direction" if zero else "holds NaN or infinity"
        raise ValueError(f"{who}: {name} {tuple(z.shape)}: row {row} {what}")


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
    if check and not holds(moves.all(), f"{who}: a feature of {name} is constant over the batch"):
        column = int((~moves)[0].nonzero()[0])
        raise ValueError(f"{who}: feature {column} of {name} {tuple(z.shape)} is constant over the batch")
    return F.normalize(centred / torch.where(moves, spread, 1.0), dim=0) * moves


def widen(x: Tensor) -> Tensor:
    """x in float32, float64 as it is: the precision every similarity and loss is computed in."""
    return x if x.dtype == torch.float64 else x.float()


def two_views(z1: Tensor, z2: Tensor, comparison: str = "both views", **further: Any) -> Pairs:
    """Two views of a batch, unit vectors (B, D) each: image i's positive is its own other view.

    - comparison="both views": 2B anchors, each against the 2B - 2 views of other images (SimCLR)
    - comparison="other view": 2B anchors, each against the B - 1 other images in the opposite view (CLIP)
    - comparison="one way": of those the B of view 1 alone (N-pair)

    Anchors are those of view 1, then those of view 2. Negatives are the other images in order, each in view 1
    and in view 2: `owners` says whose a column is. `Batch` says what changes who is compared: labels,
    extra_views or a queue.
    """
    return Batch(z1, z2, **further).pairs(comparison)


@dataclass(frozen=True)
class Batch:
    """Unit vectors of a batch, and what else says who is compared with whom.

    - first, second: (B, D) each, the two views of all images, or queries and their keys
    - labels: (B,): positives share the anchor's label, its own other view among them; both tables are
      (2B, 2B) and masked, since rows are ragged (Khosla et al. 2020, the sets P(i) and A(i)). An image
      without a label (below 0) has its own other view as its one positive, and is a negative of all others
    - extra_views: (B, M, D), the positives of both anchor views, of which the other is then neither positive
      nor negative (AttentionNCE, as its authors' code has it)
    - queue: (K, D): only queries are anchors, and the queue alone gives the negatives; it gets no gradient
      (He et al. 2020, eq. 1)
    - drawn: (anchors, k) each, what a loss drew for these anchors
    - start, stop: the images whose views are the anchors, of all B by default. A large batch is computed some
      images at a time (`losses.base.Loss.mean_over_anchors`): b of them in what follows
    """

    first: Tensor
    second: Tensor
    labels: Tensor | None = None
    extra_views: Tensor | None = None
    queue: Tensor | None = None
    drawn: tuple[Tensor, ...] = ()
    start: int = 0
    stop: int | None = None

    @property
    def anchors(self) -> tuple[Tensor, Tensor]:
        """View 1 and view 2 of the images whose anchors are asked for: (b, D) each."""
        if self.start == 0 and self.stop is None:
            return self.first, self.second
        return self.first[self.start : self.stop], self.second[self.start : self.stop]

    @property
    def own_views(self) -> Tensor:
        """Similarity of each image's two views, (B,)."""
        return (self.first * self.second).sum(dim=1)

    @property
    def own(self) -> Tensor:
        """Number of each anchor's image, (2b,)."""
        images = torch.arange(len(self.first), device=self.first.device)
        return images[self.start : self.stop].repeat(2)

    def some(self, start: int, stop: int) -> "Batch":
        """The same batch, with the images from `start` up to `stop` as anchors."""
        images, part = len(self.first), slice(start, stop)
        drawn = [d.unflatten(0, (-1, images))[:, part].flatten(0, 1) for d in self.drawn]
        return replace(self, drawn=tuple(drawn), start=start, stop=stop)

    def pairs(self, comparison: str = "both views") -> Pairs:
        """Who is compared with whom: see `two_views`."""
        if comparison not in COMPARISONS:
            raise ValueError(
                f"two_views: comparison is {comparison!r}, but must be one of {', '.join(COMPARISONS)}"
            )
        if self.labels is not None:
            return self.by_label(self.labels)
        z1, z2 = self.anchors
        positives = (z1 * z2).sum(dim=1, keepdim=True)
        if self.queue is not None:
            return Pairs(positives, z1 @ self.queue.detach().T)
        if comparison == "one way":
            return Pairs(positives, without_own(z1 @ self.second.T, len(z1), start=self.start))
        if comparison == "other view":
            there = z1 @ self.second.T
            back = there.T if self.stop is None else z2 @ self.first.T
            table = torch.cat([there, back])
            return Pairs(positives.repeat(2, 1), without_own(table, len(z1), start=self.start))
        keys = torch.stack([self.first, self.second], dim=1).flatten(0, 1)  # image by image
        table = torch.cat([z1, z2]) @ keys.T  # (2b, 2B)
        if self.extra_views is None:
            positives = positives.repeat(2, 1)
        else:
            further = self.extra_views[self.start : self.stop]
            positives = torch.cat([(further @ z[:, :, None])[:, :, 0] for z in (z1, z2)])
        return Pairs(positives, without_own(table, len(z1), views=2, start=self.start))

    def by_label(self, labels: Tensor) -> Pairs:
        """All views as candidates of all anchors, and two masks: (2b, 2B) each."""
        y = own_classes(labels).repeat(2)
        own = self.own
        itself = own + torch.arange(2, device=y.device).repeat_interleave(len(own) // 2) * len(labels)
        s = torch.cat(self.anchors) @ torch.cat([self.first, self.second]).T
        same = y[itself, None] == y
        return Pairs(s, s, same.scatter(1, itself[:, None], False), ~same)

    def among_negatives(self, i: Tensor, j: Tensor) -> Tensor:
        """Similarity of the anchors' negatives to one another, of columns i, j (A, k) -> (A, k)."""
        if self.queue is not None:
            return among(self.queue.detach(), i, j)
        keys, own = torch.cat([self.first, self.second]), self.own
        return among(keys, *(owners(columns, len(self.first), own) for columns in (i, j)))


def without_own(table: Tensor, images: int, views: int = 1, start: int = 0) -> Tensor:
    """A table's similarities to other images: (A, views B) -> (A, views (B - 1)).

    - a row an anchor: some images, from number `start` on, once or again for their second view
    - a column a key: all B images, in one view or in two views side by side
    """
    before, behind = views * start, views * (start + images)
    of_these = table[:, before:behind].unflatten(0, (-1, images)).flatten(1)  # (A / images, views images²)
    # read row by row, the own entries of two images that follow one another have views·images others between
    between = of_these[:, views:].unflatten(1, (images - 1, views * (images + 1)))[:, :, :-views]
    others = between.reshape(len(table), views * (images - 1))
    if images * views == table.shape[1]:
        return others
    return torch.cat([table[:, :before], others, table[:, behind:]], dim=1)


def among(keys: Tensor, i: Tensor, j: Tensor) -> Tensor:
    """Similarity of rows i to rows j of some keys: (N, D), (A, k), (A, k) -> (A, k)."""
    if len(keys) ** 2 <= i.numel() * keys.shape[1]:
        return (keys @ keys.T)[i, j]
    # k vectors for each of all anchors at once would not fit beside a large queue
    anchors = max(1, CHUNK // max(1, i.shape[1] * keys.shape[1]))
    parts = zip(i.split(anchors), j.split(anchors), strict=True)
    return torch.cat([(F.embedding(a, keys) * F.embedding(b, keys)).sum(dim=-1) for a, b in parts])


def count(batch: int, comparison: str = "both views", queue: int | None = None) -> int:
    """K, how many negatives an anchor has: of `two_views` of so many images, or the keys of a queue."""
    if queue is not None:
        return queue
    return 2 * batch - 2 if comparison == "both views" else batch - 1


def owners(columns: Tensor, batch: int, own: Tensor | None = None) -> Tensor:
    """Row index, in cat([z1, z2]), of the view behind each negative column of `two_views`.

    columns: (A, k), a row an anchor -> same shape; own: (A,), the anchors' images, None = of all 2B.
    """
    if own is None:
        own = torch.arange(batch, device=columns.device).repeat(2)
    image, view = columns >> 1, columns & 1  # quicker than // and % of whole numbers
    return view * batch + image + (image >= own[:, None])


def own_classes(labels: Tensor) -> Tensor:
    """Labels (B,) in which each image without one (below 0) is a class of its own: int64, -1, -2, ...

    Raises ValueError where they are no tensor of whole numbers.
    """
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.is_complex():
        what = labels.dtype if isinstance(labels, Tensor) else f"of type {type(labels).__name__}"
        raise ValueError(f"labels are {what}, but must be a tensor of whole numbers, a class each")
    return torch.where(labels < 0, -1 - torch.arange(len(labels), device=labels.device), labels.long())


def false_negatives(labels: Tensor) -> Tensor:
    """Mask of `two_views`' negatives of the anchor's own class: labels (B,) -> bool (2B, 2B - 2).

    An image without a label (below 0) has none.
    """
    batch, labels = len(labels), own_classes(labels)
    columns = torch.arange(2 * batch - 2, device=labels.device).expand(2 * batch, -1)
    y = labels.repeat(2)
    return y[owners(columns, batch)] == y[:, None]
