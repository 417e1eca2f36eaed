"""What `load` gives: pictures or vectors, with labels and a sentence that says what they really are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor


class Unavailable(FileNotFoundError):
    """The data is not on this machine and could not be fetched; the message says what to do."""


@dataclass(eq=False, repr=False)
class ImageSet:
    """Pictures held as one tensor.

    - `images`: uint8, (N, C, H, W), 0..255
    - `labels`: int64, (N,), indices into `class_names`; -1 where a picture has no label
    - `class_names`: one name a class
    - `masks`: bool, (N, H, W), True on the object, or None where nobody drew them
    - `source`: one sentence that says what these pictures really are, for titles and reports
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
        """The pictures at `indices` (integers in any order, a boolean tensor (N,), or a slice).

        A slice stays a view of the same memory; anything else copies.
        """
        at = indices if isinstance(indices, slice) else torch.as_tensor(indices)
        if isinstance(at, Tensor):
            at = _check_indices(at, len(self))
        masks = None if self.masks is None else self.masks[at]
        images = self.images[at]
        source = f"{len(images):,} of: {self.source}" if len(images) < len(self) else self.source
        return replace(self, images=images, labels=self.labels[at], masks=masks, source=source)

    def classes(self, names: Iterable[str]) -> ImageSet:
        """Only the pictures of these classes, relabelled 0, 1, ... in the order of `names`."""
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
            source=f"{len(kept):,} pictures of the classes {', '.join(names)}, out of: {self.source}",
        )

    def resized(self, size: int) -> ImageSet:
        """The whole picture scaled to size x size (antialiased; masks: at least half object)."""
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
        at = indices if isinstance(indices, slice) else torch.as_tensor(indices)
        if isinstance(at, Tensor):
            at = _check_indices(at, len(self))
        found = self.vectors[at]
        source = f"{len(found):,} of: {self.source}" if len(found) < len(self) else self.source
        return replace(self, vectors=found, labels=self.labels[at], source=source)

    def __repr__(self) -> str:
        n, dimensions = self.vectors.shape
        return f"VectorSet({n:,} x {dimensions}, {len(self.class_names)} classes; {self.source})"


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of an error message: '; did you mean ...? Known: ...'."""
    known = list(known)
    lower = {k.rsplit(":", 1)[-1].lower(): k for k in known} | {k.lower(): k for k in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    guess = f"; did you mean {lower[close[0]]!r}?" if close else ";"
    return f"{guess} Known: {', '.join(known) or 'none'}"


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
