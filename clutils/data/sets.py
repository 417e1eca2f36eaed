"""What `load` gives, `ImageSet`, `VectorSet`, `GraphSet`, `SentenceSet`: samples, labels, their source."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


class Unavailable(FileNotFoundError):
    """The data is not on this machine and could not be fetched; the message says what to do."""


@dataclass(eq=False, repr=False)
class ImageSet:
    """Images held as one tensor.

    - `images`: uint8, (N, C, H, W), 0..255
    - `labels`: int64, (N,), indices into `class_names`; -1 where an image has no label
    - `class_names`: one name a class
    - `masks`: bool, (N, H, W), True on the object, or None where nobody drew them
    - `source`: one sentence that says what these images really are, for titles and reports
    """

    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    masks: Tensor | None
    source: str

    def __post_init__(self) -> None:
        self.class_names = tuple(self.class_names)
        if self.images.dtype != torch.uint8 or self.images.dim() != 4:
            raise ValueError(
                f"ImageSet: images are {self.images.dtype} {tuple(self.images.shape)}; "
                "uint8 (N, C, H, W) is needed"
            )
        n, _, height, width = self.images.shape
        _check_labels("ImageSet", self.labels, n, self.class_names)
        if self.masks is not None and (
            self.masks.dtype != torch.bool or tuple(self.masks.shape) != (n, height, width)
        ):
            raise ValueError(
                f"ImageSet: masks are {self.masks.dtype} {tuple(self.masks.shape)}; "
                f"bool {(n, height, width)} is needed, as the images are {tuple(self.images.shape)}"
            )

    def __len__(self) -> int:
        return self.images.shape[0]

    def __repr__(self) -> str:
        n, channels, height, width = self.images.shape
        classes = f"{len(self.class_names)} classes" if self.class_names else "no classes"
        masks = ", with masks" if self.masks is not None else ""
        return f"ImageSet({n:,} x {channels} x {height} x {width}, {classes}{masks}; {self.source})"

    @property
    def inputs(self) -> Tensor:
        """What an encoder takes: the images. Every set has it."""
        return self.images

    def subset(self, indices: Tensor | Sequence[int] | slice) -> ImageSet:
        """The images at `indices` (integers in any order, a boolean tensor (N,), or a slice).

        A slice stays a view of the same memory; anything else copies.
        """
        return _taken(self, indices, "images", "labels", "masks")

    def classes(self, names: Iterable[str]) -> ImageSet:
        """Only the images of these classes, relabelled 0, 1, ... in the order of `names`."""
        names = [names] if isinstance(names, str) else list(names)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"classes: {names} must be one or more different class names")
        for name in names:
            if name not in self.class_names:
                raise ValueError(f"classes: no class {name!r}{nearest(name, self.class_names)}")
        new_label = torch.full((len(self.class_names) + 1,), -1)  # the last entry serves the label -1
        for new, name in enumerate(names):
            new_label[self.class_names.index(name)] = new
        labels = new_label[self.labels]
        kept = self.subset(labels >= 0)
        return replace(
            kept,
            labels=labels[labels >= 0],
            class_names=tuple(names),
            source=f"{len(kept):,} pictures of the classes {', '.join(names)}, out of {self.source}",
        )

    def long_tailed(self, ratio: float = 100.0, seed: int = 0) -> ImageSet:
        """Fewer images of each class than of the one before: the largest has `ratio` times the smallest.

        Class c of C, in an order drawn from the seed, keeps the first n ratio^{-c/(C - 1)} of its images,
        rounded, at least one; n: how many the smallest class has now. Images without a label are left out.
        The exponential profile of Cui et al. 2019 (arXiv 1901.05555), as CIFAR-LT has it (from memory).
        Raises ValueError for a ratio below 1, or fewer than two classes with images.
        """
        if not 1 <= ratio < float("inf"):
            raise ValueError(f"long_tailed: ratio is {ratio}, but must be a number from 1 on")
        found, sizes = self.labels[self.labels >= 0].unique(return_counts=True)
        if len(found) < 2:
            raise ValueError(
                f"long_tailed: {self.source} has {len(found)} classes, but must have two or more"
            )
        order = torch.randperm(len(found), generator=torch.Generator().manual_seed(seed))
        kept = []
        for place, c in enumerate(found[order]):
            count = max(1, round(int(sizes.min()) * ratio ** (-place / (len(found) - 1))))
            kept.append((self.labels == c).nonzero().flatten()[:count])
        few = self.subset(torch.cat(kept).sort().values)
        few.source = f"{len(few):,} pictures with a long tail, {ratio:g} to 1, out of {self.source}"
        return few

    def resized(self, size: int) -> ImageSet:
        """The whole image scaled to size x size (antialiased; masks: at least half object)."""
        if tuple(self.images.shape[-2:]) == (size, size):
            return self
        height, width = self.images.shape[-2:]
        images = torch.empty(len(self), self.images.shape[1], size, size, dtype=torch.uint8)
        for start in range(0, len(self), 512):  # in pieces: a memory map of gigabytes stays one
            images[start : start + 512] = _scaled(self.images[start : start + 512], size).round_()
        masks = None
        if self.masks is not None:
            pieces = [_scaled(m[:, None], size)[:, 0] >= 0.5 for m in self.masks.split(512)]
            masks = torch.cat(pieces) if pieces else self.masks.new_empty(0, size, size)
        source = f"{self.source}, scaled from {width}x{height} to {size}x{size}"
        return replace(self, images=images, masks=masks, source=source)


@dataclass(eq=False, repr=False)
class VectorSet:
    """Plain vectors: `vectors` float32 (N, D), `labels` int64 (N,), `class_names`, `source`."""

    vectors: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        self.class_names = tuple(self.class_names)
        if self.vectors.dtype != torch.float32 or self.vectors.dim() != 2:
            raise ValueError(
                f"VectorSet: vectors are {self.vectors.dtype} {tuple(self.vectors.shape)}; "
                "float32 (N, D) is needed"
            )
        _check_labels("VectorSet", self.labels, len(self.vectors), self.class_names)

    def __len__(self) -> int:
        return self.vectors.shape[0]

    @property
    def inputs(self) -> Tensor:
        """What an encoder takes: the vectors. Every set has it."""
        return self.vectors

    def subset(self, indices: Tensor | Sequence[int] | slice) -> VectorSet:
        """The vectors at `indices`, as `ImageSet.subset`."""
        return _taken(self, indices, "vectors", "labels")

    def __repr__(self) -> str:
        n, dimensions = self.vectors.shape
        return f"VectorSet({n:,} x {dimensions}, {len(self.class_names)} classes; {self.source})"


@dataclass(eq=False, repr=False)
class GraphSet:
    """Graphs, or the nodes of one: `graphs` float32 (N, V, 1 + F + V) as `graphs.packed` makes it, `labels`
    int64, one a graph or one a node, `class_names`, `source`.

    A set of nodes is one graph whose nodes have the labels; those marked -1, neighbours of others, have none.
    """

    graphs: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        self.class_names = tuple(self.class_names)
        shape = tuple(self.graphs.shape)
        if self.graphs.dtype != torch.float32 or len(shape) != 3 or shape[2] < shape[1] + 2:
            raise ValueError(
                f"GraphSet: graphs are {self.graphs.dtype} {shape}; float32 (N, V, 1 + F + V) is needed"
            )
        _check_labels("GraphSet", self.labels, len(self), self.class_names)

    @property
    def of_nodes(self) -> bool:
        """Whether nodes are the samples: of one graph, with more than one label."""
        return len(self.graphs) == 1 and len(self.labels) != 1

    def __len__(self) -> int:
        """How many samples: graphs, or nodes."""
        return int((self.graphs[0, :, 0] > 0).sum()) if self.of_nodes else len(self.graphs)

    @property
    def inputs(self) -> Tensor:
        """What an encoder takes: the graphs. Every set has it."""
        return self.graphs

    def subset(self, indices: Tensor | Sequence[int] | slice) -> GraphSet:
        """The graphs at `indices`, as `ImageSet.subset`; of nodes those, in the order that they have.

        The other nodes of a network stay, marked -1 in the first column, for the neighbours' sake.
        """
        if not self.of_nodes:
            return _taken(self, indices, "graphs", "labels")
        at = indices if isinstance(indices, slice) else _check_indices(torch.as_tensor(indices), len(self))
        chosen = torch.zeros(len(self), dtype=torch.bool)
        chosen[at] = True
        graphs, asked = self.graphs.clone(), self.graphs[0, :, 0] > 0
        graphs[0, asked, 0] = torch.where(chosen, 1.0, -1.0)
        few = int(chosen.sum())
        source = f"{few:,} of {self.source}" if few < len(self) else self.source
        return replace(self, graphs=graphs, labels=self.labels[chosen], source=source)

    def __repr__(self) -> str:
        what = "nodes" if self.of_nodes else "graphs"
        places = self.graphs.shape[1]
        return (
            f"GraphSet({len(self):,} {what}, at most {places} nodes a graph, "
            f"{len(self.class_names)} classes; {self.source})"
        )


@dataclass(eq=False, repr=False)
class SentenceSet:
    """Sentences: `tokens` int64 (N, L), a word's number each, 0 = padding; `labels` int64 (N,), -1 = none;
    `class_names`; `texts`, the sentences themselves; `source`."""

    tokens: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    texts: tuple[str, ...]
    source: str

    def __post_init__(self) -> None:
        self.class_names, self.texts = tuple(self.class_names), tuple(self.texts)
        if self.tokens.dtype != torch.int64 or self.tokens.dim() != 2:
            raise ValueError(
                f"SentenceSet: tokens are {self.tokens.dtype} {tuple(self.tokens.shape)}; "
                "int64 (N, L) is needed"
            )
        if len(self.texts) != len(self.tokens):
            raise ValueError(f"SentenceSet: {len(self.texts)} texts for {len(self.tokens)} rows of tokens")
        _check_labels("SentenceSet", self.labels, len(self.tokens), self.class_names)

    def __len__(self) -> int:
        return self.tokens.shape[0]

    @property
    def inputs(self) -> Tensor:
        """What an encoder takes: the tokens. Every set has it."""
        return self.tokens

    def subset(self, indices: Tensor | Sequence[int] | slice) -> SentenceSet:
        """The sentences at `indices`, as `ImageSet.subset`."""
        rows = torch.arange(len(self))[indices if isinstance(indices, slice) else torch.as_tensor(indices)]
        texts = tuple(self.texts[row] for row in rows.tolist())
        source = f"{len(rows):,} of {self.source}" if len(rows) < len(self) else self.source
        return SentenceSet(self.tokens[rows], self.labels[rows], self.class_names, texts, source)

    def __repr__(self) -> str:
        n, length = self.tokens.shape
        return f"SentenceSet({n:,} x {length} words, {len(self.class_names)} classes; {self.source})"


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: '; did you mean ...? Known: ...'."""
    known = list(known)
    lower = {k.rsplit(":", 1)[-1].lower(): k for k in known} | {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    guess = f"; did you mean {lower[close[0]]!r}?" if close else ";"
    return f"{guess} Known: {', '.join(known) or 'none'}"


def _taken(whole: Any, indices: Tensor | Sequence[int] | slice, *parts: str) -> Any:
    """The rows at `indices` of these parts, those that it has."""
    at = indices if isinstance(indices, slice) else _check_indices(torch.as_tensor(indices), len(whole))
    taken = {part: value[at] for part in parts if (value := getattr(whole, part)) is not None}
    few = len(taken["labels"])
    source = f"{few:,} of {whole.source}" if few < len(whole) else whole.source
    return replace(whole, **taken, source=source)


def _scaled(images: Tensor, size: int) -> Tensor:
    return F.interpolate(
        images.float(), size=(size, size), mode="bilinear", align_corners=False, antialias=True
    )


def _check_labels(what: str, labels: Tensor, n: int, class_names: tuple[str, ...]) -> None:
    if labels.dtype != torch.int64 or tuple(labels.shape) != (n,):
        raise ValueError(f"{what}: labels are {labels.dtype} {tuple(labels.shape)}; int64 ({n},) is needed")
    if n and (labels.min() < -1 or labels.max() >= len(class_names)):
        raise ValueError(
            f"{what}: labels go from {int(labels.min())} to {int(labels.max())}, "
            f"but there are {len(class_names)} class names (and -1 for no label)"
        )


def _check_indices(at: Tensor, n: int) -> Tensor:
    if at.dim() != 1:
        raise ValueError(f"subset: indices have shape {tuple(at.shape)}; one row of them is needed")
    if at.dtype == torch.bool:
        if len(at) != n:
            raise ValueError(f"subset: {len(at)} booleans for {n} pictures")
        return at
    if len(at) == 0:
        return at.long()
    if at.is_floating_point():
        raise ValueError(f"subset: indices are {at.dtype}; integers or booleans are needed")
    at = at.long()  # of a small unsigned type -n would be another number
    if at.min() < -n or at.max() >= n:
        raise ValueError(f"subset: indices from {int(at.min())} to {int(at.max())} for {n} pictures")
    return at.long()
