"""Sets of `load`, `ImageSet`, `VectorSet`, `GraphSet`, `SentenceSet`: samples, labels, their source."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.data.kinds import kind_called, said, width
from clutils.files import printable
from clutils.settings import did_you_mean

WORDS = ("label", "test", "decimal", "text", "length", "nodes", "most")  # that may stand behind a path
MIXED = 128  # first rows, of which half the classes or fewer mean that rows are sorted by class
WORD_RULE = 2  # of finding words in a text: see `sentences.words`


class Unavailable(FileNotFoundError):
    """The data is not on this machine and could not be fetched; the message says what to do.

    `.reason` says in a few words why a download failed, "" where none was tried.
    """

    reason = ""


class SampleSet:
    """Base of every set: samples, rows of one tensor, with labels, names of classes and a source."""

    _parts: ClassVar[tuple[str, ...]]  # what has a row a sample, the samples first
    _kind: ClassVar[str]
    labels: Tensor
    class_names: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def inputs(self) -> Tensor:
        """Input of an encoder: the samples, one tensor. Every set has it."""
        return getattr(self, self._parts[0])

    def subset(self, indices: Tensor | Sequence[int] | slice) -> Self:
        """The samples at `indices` (integers in any order, a boolean tensor (N,), or a slice).

        A slice stays a view of the same memory; anything else copies.
        """
        at, parts = _places(indices, len(self), said(self._kind)), dict[str, Any]()
        for part in self._parts:
            if (value := getattr(self, part)) is not None and len(value) == len(self):
                parts[part] = _at(value, at)
        return self._fewer(len(parts["labels"]), **parts)

    def mixed(self) -> Self:
        """The samples in an order that mixes the classes, where they are sorted by class; else as they are.

        Numbers of the first rows are then of all classes: sorted rows gave kNN 21 % for 33 %.
        """
        classes, code = self.labels.unique(return_inverse=True)
        if 2 * len(self.labels[:MIXED].unique()) > min(len(classes), MIXED):
            return self
        by_class = code.argsort(stable=True)
        sizes = code.bincount()
        place = torch.arange(len(code)) - (sizes.cumsum(0) - sizes)[code[by_class]]  # within its class
        return self.subset(by_class[place.argsort(stable=True)])

    def _fewer(self, few: int, **taken: Any) -> Self:
        source = f"{few:,} of {self.source}" if few < len(self) else self.source
        return replace(cast(Any, self), **taken, source=source)

    def __post_init__(self) -> None:
        """Raises ValueError unless the samples are of their kind, and every one has a label (-1: none)."""
        self.class_names, self.source = tuple(map(printable, self.class_names)), printable(self.source)
        name, part, inputs, kind = type(self).__name__, self._parts[0], self.inputs, kind_called(self._kind)
        for called, given in ((part, inputs), ("labels", self.labels)):
            if not isinstance(given, Tensor):
                what = f"of type {type(given).__name__}"
                raise ValueError(
                    f"{name}: {called} are {what}, but must be a tensor: torch.as_tensor({called})"
                )
        if inputs.ndim == 4 and inputs.shape[1] > 4 and inputs.shape[3] in (1, 3):
            shape = tuple(inputs.shape)
            raise ValueError(f"{name}: {part} {shape} end with their channels: {part}.permute(0, 3, 1, 2)")
        if inputs.dtype != kind.dtype or inputs.ndim != kind.ndim or width(inputs) < 1:
            needed = f"{str(kind.dtype).removeprefix('torch.')} {kind.shape}"
            raise ValueError(f"{name}: {part} are {inputs.dtype} {tuple(inputs.shape)}; {needed} is needed")
        n, labels, count = len(self), self.labels, len(self.class_names)
        if labels.dtype != torch.int64 or tuple(labels.shape) != (n,):
            what = f"{labels.dtype} {tuple(labels.shape)}"
            raise ValueError(f"{name}: labels are {what}; int64 ({n},) is needed")
        if n and labels.min() < -1:
            self.labels = labels = labels.clamp(min=-1)
        if n and labels.max() >= count:
            raise ValueError(
                f"{name}: labels go from {int(labels.min())} to {int(labels.max())}, "
                f"but there are {count} class names (and below 0 is no label)"
            )

    def __repr__(self) -> str:
        shape = " x ".join(f"{size:,}" for size in self.inputs.shape)
        masks = ", with masks" if getattr(self, "masks", None) is not None else ""
        return f"{type(self).__name__}({shape}, {len(self.class_names)} classes{masks}; {self.source})"


@dataclass(eq=False, repr=False)
class ImageSet(SampleSet):
    """Images held as one tensor.

    - `images`: uint8, (N, C, H, W), 0..255
    - `labels`: int64, (N,), indices into `class_names`; -1 where an image has no label
    - `class_names`: one name a class
    - `masks`: bool, (N, H, W), True on the object, or None where nobody drew them
    - `source`: one sentence that says what these images really are, for titles and reports
    - `files`: of a folder, the name of each image's file from the folder of the classes; else empty
    """

    images: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    masks: Tensor | None
    source: str
    files: tuple[str, ...] = ()
    _parts, _kind = ("images", "labels", "masks", "files"), "pictures"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.files and len(self.files) != len(self):
            raise ValueError(f"ImageSet: there are {len(self)} images, but {len(self.files)} names of files")
        n, _, height, width = self.images.shape
        if self.masks is not None and (
            self.masks.dtype != torch.bool or tuple(self.masks.shape) != (n, height, width)
        ):
            raise ValueError(
                f"ImageSet: masks are {self.masks.dtype} {tuple(self.masks.shape)}; "
                f"bool {(n, height, width)} is needed, as the images are {tuple(self.images.shape)}"
            )

    def classes(self, names: Iterable[str]) -> ImageSet:
        """Only the images of these classes, relabelled 0, 1, ... in the order of `names`."""
        names = [names] if isinstance(names, str) else list(names)
        if not names or len(set(names)) < len(names):
            raise ValueError(f"classes: {names} must be one or more different class names")
        for name in names:
            if name not in self.class_names:
                raise ValueError(
                    f"classes: no class {name!r}{did_you_mean(name, self.class_names, listed=True)}"
                )
        new_label = torch.full((len(self.class_names) + 1,), -1)  # the last entry serves the label -1
        for new, name in enumerate(names):
            new_label[self.class_names.index(name)] = new
        labels = new_label[self.labels]
        kept = self.subset(labels >= 0)
        return replace(
            kept,
            labels=labels[labels >= 0],
            class_names=tuple(names),
            source=f"{len(kept):,} images of the classes {', '.join(names)}, out of {self.source}",
        )

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
            masks = torch.cat([_scaled(m[:, None], size)[:, 0] >= 0.5 for m in self.masks.split(512)])
        source = f"{self.source}, scaled from {width}x{height} to {size}x{size}"
        return replace(self, images=images, masks=masks, source=source)


@dataclass(eq=False, repr=False)
class VectorSet(SampleSet):
    """Plain vectors: `vectors` float32 (N, D), `labels` int64 (N,), `class_names`, `source`.

    Of a table also `columns`, D titles, and `groups`, D numbers, equal where columns were one category; both
    are empty where nobody knows, or every column stands for itself.
    """

    vectors: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    source: str
    columns: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    _parts, _kind = ("vectors", "labels"), "vectors"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("columns", "groups"):
            given = tuple(getattr(self, name))
            setattr(self, name, given)
            if given and len(given) != self.vectors.shape[1]:
                raise ValueError(
                    f"VectorSet: {name} are {len(given)}, but vectors are {tuple(self.vectors.shape)}"
                )


@dataclass(eq=False, repr=False)
class GraphSet(SampleSet):
    """Graphs, or the nodes of one: `graphs` float32 (N, V, 1 + F + V) as `graphs.packed` makes it, `labels`
    int64, one a graph or one a node, `class_names`, `source`.

    A set of nodes is one graph whose nodes have the labels; those marked -1, neighbours of others, have none.
    """

    graphs: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    source: str
    _parts, _kind = ("graphs", "labels"), "graphs"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_edges(self.graphs, "GraphSet")

    @property
    def of_nodes(self) -> bool:
        """True where nodes are the samples: of one graph, with more than one label."""
        return len(self.graphs) == 1 and len(self.labels) != 1

    def __len__(self) -> int:
        """How many samples: graphs, or nodes."""
        return int((self.graphs[0, :, 0] > 0).sum()) if self.of_nodes else len(self.graphs)

    def subset(self, indices: Tensor | Sequence[int] | slice) -> GraphSet:
        """The graphs at `indices`, as `ImageSet.subset`; of nodes those, in the order that they have.

        The other nodes of a network stay, marked -1 in the first column, for the neighbours' sake.
        """
        if not self.of_nodes:
            return super().subset(indices)
        chosen = torch.zeros(len(self), dtype=torch.bool)
        chosen[_places(indices, len(self), "nodes")] = True
        graphs, asked = self.graphs.clone(), self.graphs[0, :, 0] > 0
        graphs[0, asked, 0] = torch.where(chosen, 1.0, -1.0)
        return self._fewer(int(chosen.sum()), graphs=graphs, labels=self.labels[chosen])


@dataclass(eq=False, repr=False)
class SentenceSet(SampleSet):
    """Sentences: `tokens` int64 (N, L), a word's number each, 0 = padding; `labels` int64 (N,), -1 = none;
    `class_names`; `texts`, the sentences themselves; `source`; `rule`, by which words were found."""

    tokens: Tensor
    labels: Tensor
    class_names: tuple[str, ...]
    texts: tuple[str, ...]
    source: str
    rule: int = WORD_RULE
    _parts, _kind = ("tokens", "labels", "texts"), "sentences"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.texts = tuple(self.texts)
        if len(self.texts) != len(self.tokens):
            raise ValueError(f"SentenceSet: {len(self.texts)} texts for {len(self.tokens)} rows of tokens")


def check_edges(graphs: Tensor, who: str) -> None:
    """Raise ValueError where an adjacency of graphs (N, V, 1 + F + V) is directed, or has loops."""
    adjacency = graphs[..., -graphs.shape[1] :]
    loops = adjacency.diagonal(dim1=1, dim2=2) != 0
    one_way = (adjacency - adjacency.transpose(1, 2)).abs() > 1e-6 * adjacency.abs().amax()
    without = "A.fill_diagonal_(0) of the adjacency A takes them out, or networkx.selfloop_edges finds them"
    both = "torch.maximum(A, A.T) of the adjacency A makes edges go both ways, or graph.to_undirected()"
    for found, what in (
        (loops, f"has loops at {{}} nodes; {without}"),
        (one_way, f"is directed: {{}} entries differ from their mirror; {both}"),
    ):
        if found.any():
            at = int(found.flatten(1).any(dim=1).nonzero()[0])
            name = f"graph {at} of {len(graphs):,}" if len(graphs) > 1 else "the graph"
            raise ValueError(f"{who}: {name} {what.format(int(found[at].sum()))}")


def shortlist(names: Sequence[str], most: int = 5) -> str:
    """Names for a sentence: all of a few, of many the first and the last."""
    few = names if len(names) <= most else (*names[: most - 2], "...", names[-1])
    return ", ".join(few)


def _at(part: Any, at: Tensor | slice) -> Any:
    """The rows at these places, of a tensor or of a tuple."""
    if isinstance(part, Tensor):
        return part[at]
    return tuple(part[row] for row in torch.arange(len(part))[at].tolist())


def _scaled(images: Tensor, size: int) -> Tensor:
    return F.interpolate(
        images.float(), size=(size, size), mode="bilinear", align_corners=False, antialias=True
    )


def _places(indices: Tensor | Sequence[int] | slice, n: int, what: str = "samples") -> Tensor | slice:
    if isinstance(indices, slice):
        return indices
    at = torch.as_tensor(indices)
    if at.dim() != 1 or (len(at) and at.is_floating_point()):
        needed = "one row of integers or booleans is needed"
        raise ValueError(f"subset: indices are {at.dtype} {tuple(at.shape)}; {needed}")
    if at.dtype == torch.bool:
        if len(at) != n:
            raise ValueError(f"subset: {len(at)} booleans for {n} {what}")
        return at
    at = at.long()  # of a small unsigned type -n would be another number
    if len(at) and (at.min() < -n or at.max() >= n):
        raise ValueError(f"subset: indices from {int(at.min())} to {int(at.max())} for {n} {what}")
    return at


def asked(name: str, known: Sequence[str] = WORDS) -> tuple[str, dict[str, str]]:
    """Arguments behind a path, as in 'FILE?label=2&length=64': the path, and each word's value.

    Raises ValueError, listing them, for a word that is not `known`.
    """
    path, mark, behind = name.rpartition("?")
    if not mark or not re.match(r"[a-z]+=", behind):
        return name, {}
    found = dict(part.partition("=")[::2] for part in behind.split("&"))
    for word in found:
        if word not in known:
            raise ValueError(f"{name}: there is no {word!r} behind a path, but {', '.join(known)}")
    return path, found


def whole_number(name: str, word: str, value: str | int) -> int:
    """A number behind a path. Raises ValueError, quoting it, for anything else."""
    if not str(value).isdecimal() or int(value) < 1:
        raise ValueError(f"{name}: {word} is {value!r}, but must be a whole number from 1 on")
    return int(value)


def own_file(
    kind: str, path: str, split: str = "train", known: Sequence[str] = ()
) -> tuple[str, Path, dict[str, str]]:
    """The reader's file of the data 'KIND:PATH', all of it 'train', as in 'sentences:file:PATH?length=64'.

    Gives the name without what stands behind the path, the file, and that (see `asked`). Raises
    `Unavailable` where there is no such file, ValueError for another split.
    """
    path, wanted = asked(path, known) if known else (path, {})
    name, file = f"{kind}:{path}", Path(path).expanduser()
    if not path:
        raise Unavailable(f"{name} names no file; {name}PATH does")
    if not file.is_file():
        what = "a folder" if file.is_dir() else "no file"
        raise Unavailable(f"{name}: {file.absolute()} is {what} (relative paths start in {Path.cwd()})")
    if split != "train":
        raise ValueError(f"{name} has no split {split!r}, only 'train': all that is in it")
    return name, file, wanted


def text_of(name: str, file: Path) -> str:
    """A text file in UTF-8, lines ending in \\n. Raises ValueError that says how to save another one."""
    read = file.read_bytes()
    mend = "save it as 'CSV UTF-8' or as text in UTF-8"
    if read.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise ValueError(f"{name} is a workbook or an archive, not text: {mend}")
    if read.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in read[:1000]:
        raise ValueError(f"{name} is UTF-16, as Excel's 'Unicode Text', not UTF-8: {mend}")
    try:
        return io.TextIOWrapper(io.BytesIO(read), "utf-8-sig").read()
    except UnicodeDecodeError as error:
        guess = "perhaps Windows-1252, as Excel's 'CSV' is"
        raise ValueError(f"{name} is no text in UTF-8, {guess} ({error}): {mend}") from error
