"""Digits: the 1,797 handwritten 8x8 images inside scikit-learn, nothing to download."""

from functools import cache

import numpy as np
import torch

from clutils.data.sets import ImageSet, VectorSet

COUNTS = {"train": 1352, "test": 445}
CLASS_NAMES = tuple("0123456789")


def images(split: str = "train", limit: int | None = None) -> ImageSet:
    """8x8 images, (N, 1, 8, 8), scikit-learn's 0..16 stretched to 0..255 (0 = paper, 255 = ink).

    The split is fixed: of every class, each fourth image in scikit-learn's order is a test image.
    The same 13 people wrote both parts, so the test asks for new digits by known hands.
    """
    found = vectors(split, limit)
    stretched = (255 * found.vectors).round().to(torch.uint8).reshape(-1, 1, 8, 8)
    return ImageSet(stretched, found.labels, CLASS_NAMES, None, found.source)


def vectors(split: str = "train", limit: int | None = None) -> VectorSet:
    """The same digits, the same split, as 64 numbers from 0 to 1: (N, 64) float32."""
    values, labels = _all()
    is_test = np.zeros(len(labels), bool)
    for digit in range(10):
        is_test[np.flatnonzero(labels == digit)[3::4]] = True
    wanted = np.flatnonzero(is_test == (split == "test"))[:limit]
    return VectorSet(
        vectors=torch.from_numpy((values[wanted] / 16).astype(np.float32)),
        labels=torch.from_numpy(labels[wanted].astype(np.int64)),
        class_names=CLASS_NAMES,
        source=f"{len(wanted):,} of scikit-learn's 1,797 handwritten digits, 8x8 (real; split {split})",
    )


@cache
def _all() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's file, read once: (1797, 64) values and (1797,) labels, not to be changed."""
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)
