"""CIFAR-10, CIFAR-100, STL-10 and Fashion-MNIST: where they come from and how their files are laid out.

Addresses, checksums and folders are torchvision's, so a directory that torchvision filled is used as it is.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from clutils.data.downloads import Archive, Member, ensure
from clutils.data.sets import ImageSet


@dataclass(frozen=True)
class Published:
    """A published set: its archives, the files each split needs, its pictures' side and how to read them."""

    title: str
    side: int
    folder: str
    archives: tuple[Archive, ...]
    splits: dict[str, tuple[str, ...]]  # split -> paths of the members it is read from
    read: Callable[[Path, tuple[str, ...]], tuple[Tensor, Tensor, tuple[str, ...]]]


class OnDisk(NamedTuple):
    """What lies in the data directory of one published set."""

    name: str
    path: Path
    bytes: int  # unpacked files, archives and halves of downloads together
    complete: bool  # whether every split loads without a network


def load(name: str, split: str, limit: int | None, root: Path, download: bool) -> ImageSet:
    """One split of a published set; what is missing is downloaded first, unless `download` is False."""
    published = SETS[name]
    paths = published.splits[split]
    ensure(name, published.archives, set(paths), root, download)
    images, labels, class_names = published.read(root, paths)
    total = len(images)
    images, labels = images[:limit], labels[:limit]
    count = f"{len(images):,} of {total:,}" if len(images) < total else f"all {total:,}"
    side = published.side
    return ImageSet(
        images=images,
        labels=labels,
        class_names=class_names,
        masks=None,
        source=f"{published.title}, {count} pictures of its {split} split, {side}x{side} (real)",
    )


def on_disk(root: Path) -> list[OnDisk]:
    """The published sets of which anything lies below `root`."""
    found = []
    for name, published in SETS.items():
        paths = [root / a.path for a in published.archives]
        paths += [root / m.path for a in published.archives for m in a.members]
        paths += [p.with_name(p.name + ".part") for p in paths]
        size = sum(p.stat().st_size for p in paths if p.is_file())
        if size:
            complete = all(
                archive.there(root) or all(m.whole(root) for m in archive.members)
                for archive in published.archives
            )
            found.append(OnDisk(name, root / published.folder, size, complete))
    return found


def _read_cifar(root: Path, paths: tuple[str, ...]) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Python pickles; `data` is (N, 3072), all red, all green, all blue, row by row."""
    # `ensure` has just compared each file's MD5 with the published one, so these pickles are the known ones
    *batches, meta = (pickle.loads((root / path).read_bytes(), encoding="latin1") for path in paths)
    pixels = np.concatenate([batch["data"] for batch in batches]).reshape(-1, 3, 32, 32)
    key = "labels" if "labels" in batches[0] else "fine_labels"
    labels = np.concatenate([batch[key] for batch in batches]).astype(np.int64)
    names = meta["label_names"] if key == "labels" else meta["fine_label_names"]
    return torch.from_numpy(pixels), torch.from_numpy(labels), tuple(names)


def _read_stl10(root: Path, paths: tuple[str, ...]) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Bytes, (N, 3, 96 columns, 96 rows): each channel is stored column by column. Labels 1..10.

    The pictures stay on the disk, as a private memory map: pages are read when looked at, and
    writing to the tensor changes a copy in memory, never the file.
    """
    stored = np.memmap(root / paths[0], np.uint8, mode="c").reshape(-1, 3, 96, 96)
    images = torch.from_numpy(stored).transpose(2, 3)
    if len(paths) == 1:  # the unlabelled split
        return images, torch.full((len(images),), -1), _STL10_NAMES
    labels = np.fromfile(root / paths[1], np.uint8).astype(np.int64) - 1
    return images, torch.from_numpy(labels), _STL10_NAMES


def _read_idx(root: Path, paths: tuple[str, ...]) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """MNIST's own format: a header of 16 bytes before the pictures, of 8 before the labels."""
    pixels = np.fromfile(root / paths[0], np.uint8, offset=16).reshape(-1, 1, 28, 28)
    labels = np.fromfile(root / paths[1], np.uint8, offset=8).astype(np.int64)
    return torch.from_numpy(pixels), torch.from_numpy(labels), _FASHION_NAMES


_STL10_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
_FASHION_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


def _cifar(title: str, archive: str, size: int, md5: str, folder: str, files: dict[str, str]) -> Published:
    """`files`: name -> MD5; the last is the table of class names, the one before it the test batch."""
    members = tuple(Member(f"{folder}/{name}", md5=check) for name, check in files.items())
    *train, test, meta = (member.path for member in members)
    url = f"https://www.cs.toronto.edu/~kriz/{archive}"
    return Published(
        title=title,
        side=32,
        folder=folder,
        archives=(Archive(url, archive, size, md5, members),),
        splits={"train": (*train, meta), "test": (test, meta)},
        read=_read_cifar,
    )


_CIFAR10 = _cifar(
    "CIFAR-10",
    "cifar-10-python.tar.gz",
    170_498_071,
    "c58f30108f718f92721af3b95e74349a",
    "cifar-10-batches-py",
    {
        "data_batch_1": "c99cafc152244af753f735de768cd75f",
        "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
        "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
        "data_batch_4": "634d18415352ddfa80567beed471001a",
        "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
        "test_batch": "40351d587109b95175f43aff81a1287e",
        "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    },
)

_CIFAR100 = _cifar(
    "CIFAR-100",
    "cifar-100-python.tar.gz",
    169_001_437,
    "eb9058c3a382ffc7106e4002c42a8d85",
    "cifar-100-python",
    {
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
)

_STL10 = Published(
    title="STL-10",
    side=96,
    folder="stl10_binary",
    archives=(
        Archive(
            "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
            "stl10_binary.tar.gz",
            2_640_397_119,
            "91f7769df0f17e558f3565bffb0c7dfb",
            (
                Member("stl10_binary/train_X.bin", 5_000 * 27_648, "918c2871b30a85fa023e0c44e0bee87f"),
                Member("stl10_binary/train_y.bin", 5_000, "5a34089d4802c674881badbb80307741"),
                Member("stl10_binary/test_X.bin", 8_000 * 27_648, "7f263ba9f9e0b06b93213547f721ac82"),
                Member("stl10_binary/test_y.bin", 8_000, "36f9794fa4beb8a2c72628de14fa638e"),
                Member("stl10_binary/unlabeled_X.bin", 100_000 * 27_648, "5242ba1fed5e4be9e1e742405eb56ca4"),
            ),
        ),
    ),
    splits={
        "train": ("stl10_binary/train_X.bin", "stl10_binary/train_y.bin"),
        "test": ("stl10_binary/test_X.bin", "stl10_binary/test_y.bin"),
        "unlabeled": ("stl10_binary/unlabeled_X.bin",),
    },
    read=_read_stl10,
)


def _fashion(name: str, size: int, md5: str, unpacked: int) -> Archive:
    path = f"FashionMNIST/raw/{name}"
    url = f"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/{name}.gz"
    return Archive(url, f"{path}.gz", size, md5, (Member(path, unpacked),))


_FASHION = Published(
    title="Fashion-MNIST",
    side=28,
    folder="FashionMNIST",
    archives=(
        _fashion("train-images-idx3-ubyte", 26_421_880, "8d4fb7e6c68d591d4c3dfef9ec88bf0d", 47_040_016),
        _fashion("train-labels-idx1-ubyte", 29_515, "25c81989df183df01b3e8a0aad5dffbe", 60_008),
        _fashion("t10k-images-idx3-ubyte", 4_422_102, "bef4ecab320f06d8554ea6380940ec79", 7_840_016),
        _fashion("t10k-labels-idx1-ubyte", 5_148, "bb300cfdad3c16e7a12a480ee83cd310", 10_008),
    ),
    splits={
        "train": ("FashionMNIST/raw/train-images-idx3-ubyte", "FashionMNIST/raw/train-labels-idx1-ubyte"),
        "test": ("FashionMNIST/raw/t10k-images-idx3-ubyte", "FashionMNIST/raw/t10k-labels-idx1-ubyte"),
    },
    read=_read_idx,
)

SETS = {"cifar10": _CIFAR10, "cifar100": _CIFAR100, "stl10": _STL10, "fashion-mnist": _FASHION}
