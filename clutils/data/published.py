"""CIFAR-10, CIFAR-100 and Fashion-MNIST as torchvision reads and downloads them, and STL-10.

STL-10 is read here: torchvision would hold its 2.7 GB of unlabelled images in memory, and unpack them all.
Addresses, checksums and folders are torchvision's, so a directory that torchvision filled is used as it is.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from clutils.data.downloads import SWITCHED_OFF, explained, human, resumed, unpack
from clutils.data.sets import ImageSet

STL10_COUNTS = {"train": 5_000, "test": 8_000, "unlabeled": 100_000}
STL10_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
PIXELS = 3 * 96 * 96


@dataclass(frozen=True)
class Published:
    """A published set: torchvision's class, the side of its images, its download's bytes, its splits."""

    title: str
    torchvision: str
    side: int
    size: int
    splits: tuple[str, ...] = ("train", "test")

    @property
    def theirs(self) -> Any:
        """torchvision's class, which knows addresses, checksums and files."""
        import torchvision

        return getattr(torchvision.datasets, self.torchvision)

    @property
    def folder(self) -> str:
        """Where the unpacked files lie, below the data directory."""
        return getattr(self.theirs, "base_folder", f"{self.torchvision}/raw")

    def archives(self) -> list[tuple[str, str, str]]:
        """(address, path below the data directory, MD5) of each file to download."""
        theirs = self.theirs
        if hasattr(theirs, "resources"):
            return [
                (theirs.mirrors[0] + file, f"{self.folder}/{file}", md5) for file, md5 in theirs.resources
            ]
        return [(theirs.url, theirs.filename, theirs.tgz_md5)]

    def whole(self, root: Path) -> dict[Path, bool]:
        """Each unpacked file that the splits are read from, and whether it is there, complete."""
        from torchvision.datasets.utils import check_integrity

        folder, theirs = root / self.folder, self.theirs
        if self.torchvision == "STL10":
            return {
                root / path: _size(root / path) == size for path, size in _stl10_files(*self.splits).items()
            }
        if hasattr(theirs, "resources"):
            paths = [folder / file.removesuffix(".gz") for file, _ in theirs.resources]
            return {path: _is_whole_idx(path) for path in paths}
        files = [*theirs.train_list, *theirs.test_list, (theirs.meta["filename"], theirs.meta["md5"])]
        return {folder / file: check_integrity(folder / file, md5) for file, md5 in files}


class OnDisk(NamedTuple):
    """Files of one published set in the data directory."""

    name: str
    path: Path
    bytes: int  # unpacked files, archives and halves of downloads together
    complete: bool  # whether every split loads without a network


SETS = {
    "cifar10": Published("CIFAR-10", "CIFAR10", 32, 170_498_071),
    "cifar100": Published("CIFAR-100", "CIFAR100", 32, 169_001_437),
    "stl10": Published("STL-10", "STL10", 96, 2_640_397_119, tuple(STL10_COUNTS)),
    "fashion-mnist": Published("Fashion-MNIST", "FashionMNIST", 28, 30_878_645),
}


def load(name: str, split: str, limit: int | None, root: Path, download: bool) -> ImageSet:
    """One split of a published set; what is missing is downloaded first, unless `download` is False.

    Raises `Unavailable`, in one line that says what happened and what to do.
    """
    published = SETS[name]
    archives = published.archives()
    url, path, _ = archives[0]
    files = ", ".join(Path(path).name for _, path, _ in archives)
    where = f"{human(published.size)}, from {url if len(archives) == 1 else url.rpartition('/')[0]}"
    by_hand = f"put {files} ({where}) into {(root / path).parent} by hand"
    with explained(name, root, f"{by_hand}; or load images of your own as 'folder:PATH'"):
        read = _stl10 if name == "stl10" else _torchvisions
        images, labels, class_names = read(published, split, root, download)
    total = len(images)
    images, labels = images[:limit], labels[:limit]
    count = f"{len(images):,} of {total:,}" if len(images) < total else f"all {total:,}"
    side = published.side
    return ImageSet(
        images=images,
        labels=labels,
        class_names=class_names,
        masks=None,
        source=f"{published.title}, {count} images of its {split} split, {side}x{side} (real)",
    )


def on_disk(root: Path) -> list[OnDisk]:
    """The published sets of which anything lies below `root`."""
    found = []
    for name, published in SETS.items():
        archives = [root / path for _, path, _ in published.archives()]
        unpacked = published.whole(root)
        paths = [*archives, *unpacked]
        size = sum(max(_size(path), 0) for path in (*paths, *(Path(f"{path}.part") for path in paths)))
        if size:
            packed = sum(_size(path) for path in archives) == published.size
            found.append(OnDisk(name, root / published.folder, size, packed or all(unpacked.values())))
    return found


def _torchvisions(
    published: Published, split: str, root: Path, download: bool
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    from torchvision.datasets.utils import check_integrity, download_and_extract_archive

    if not all(published.whole(root).values()):
        for url, path, md5 in published.archives():
            if not download and not check_integrity(root / path, md5):
                raise ValueError(SWITCHED_OFF)
            download_and_extract_archive(url, (root / path).parent, filename=Path(path).name, md5=md5)
    found = published.theirs(root, train=split == "train")
    images = torch.as_tensor(found.data)
    images = images[:, None] if images.dim() == 3 else images.permute(0, 3, 1, 2)
    return images, torch.as_tensor(found.targets), tuple(found.classes)


def _stl10(
    published: Published, split: str, root: Path, download: bool
) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Bytes, (N, 3, 96 columns, 96 rows): each channel is stored column by column. Labels 1..10.

    The images stay on the disk, as a private memory map: pages are read when looked at, and
    writing to the tensor changes a copy in memory, never the file.
    """
    from torchvision.datasets.utils import check_integrity

    files = _stl10_files(split)
    missing = {path: size for path, size in files.items() if _size(root / path) != size}
    if missing:
        ((url, path, md5),) = published.archives()
        archive = root / path
        if not check_integrity(archive, md5):
            if not download:
                raise ValueError(SWITCHED_OFF)
            resumed(url, archive)
            if not check_integrity(archive, md5):
                archive.unlink()
                raise ValueError(f"what {url} sent is not the file; perhaps a login page of your network?")
        unpack(archive, missing, root)
    pixels, *labels = (root / path for path in files)
    stored = np.memmap(pixels, np.uint8, mode="c").reshape(-1, 3, 96, 96)
    images = torch.from_numpy(stored).transpose(2, 3)
    if not labels:
        return images, torch.full((len(images),), -1), STL10_NAMES
    return images, torch.from_numpy(np.fromfile(labels[0], np.uint8).astype(np.int64) - 1), STL10_NAMES


def _stl10_files(*splits: str) -> dict[str, int]:
    """Path below the data directory -> its bytes, of images and, except for the unlabelled, of labels."""
    files = {}
    for split in splits:
        files[f"stl10_binary/{split}_X.bin"] = STL10_COUNTS[split] * PIXELS
        if split != "unlabeled":
            files[f"stl10_binary/{split}_y.bin"] = STL10_COUNTS[split]
    return files


def _is_whole_idx(path: Path) -> bool:
    """True where a file of MNIST's format is as long as its header says; the fourth byte: its dimensions."""
    if _size(path) < 8:
        return False
    with open(path, "rb") as file:
        dimensions = file.read(4)[3]
        shape = np.frombuffer(file.read(4 * dimensions), ">i4").tolist()
    return _size(path) == 4 + 4 * dimensions + math.prod(shape)


def _size(path: Path) -> int:
    """Its bytes; -1 where there is no such file."""
    return path.stat().st_size if path.is_file() else -1
