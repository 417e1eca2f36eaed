"""Generated scenes: one textured object on a background, with its exact mask; the class is the texture.

Lengths are in units of 1/32 of the image's side, so that a scene is the same scene at every size.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch

from clutils.data.sets import ImageSet

COUNTS = {"train": 8000, "test": 2000}  # without a limit; with one there are as many as you ask for
SHAPES = ("disc", "square", "diamond")
SIDE = 32.0  # units along an image's side
SIZES = (16, 512)
LUMA = np.array([0.299, 0.587, 0.114])  # the shares of red, green and blue in a grey

KEPT_SIZE = 32  # up to here chunks are kept for the next call
CHUNK = 100  # images drawn from one seed: ten of each class, in random order
HALF_EXTENT = np.array([1.0, np.sqrt(np.pi) / 2, np.sqrt(np.pi / 2)])  # for equal areas, in radii


def make(count: int, size: int = 32, seed: int = 0, split: str = "train") -> ImageSet:
    """`count` scenes of size x size, by `in_chunks`. The first n are the same whatever `count` is."""
    return in_chunks("scenes", "scenes", _draw, count, size, seed, split)


def in_chunks(
    name: str,
    what: str,
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]],
    count: int,
    size: int,
    seed: int,
    split: str,
    stream: tuple[int, ...] = (),
) -> ImageSet:
    """`count` images, 100 to a call of `draw(rng, size)`, which gives images, masks and labels.

    Every 100 have a generator of their own, made from (seed, split, number of the hundred, *stream).

    Raises ValueError, beginning with `name`, for a size out of range.
    """
    if not SIZES[0] <= size <= SIZES[1]:
        raise ValueError(f"{name}: size {size}; {SIZES[0]} to {SIZES[1]} is needed")
    images = np.empty((count, 3, size, size), np.uint8)
    masks = np.empty((count, size, size), bool)
    labels = np.empty(count, np.int64)
    drawn = _drawn if size <= KEPT_SIZE else _drawn.__wrapped__
    for chunk, start in enumerate(range(0, count, CHUNK)):
        part = slice(start, min(start + CHUNK, count))
        values = drawn(draw, size, (seed, list(COUNTS).index(split), chunk, *stream))
        images[part], masks[part], labels[part] = (each[: part.stop - part.start] for each in values)
    return ImageSet(
        images=torch.from_numpy(images),
        labels=torch.from_numpy(labels),
        class_names=CLASS_NAMES,
        masks=torch.from_numpy(masks),
        source=f"{count:,} generated {what}, {size}x{size} (no photographs; seed {seed}, split {split})",
    )


@lru_cache(maxsize=128)  # both splits and some more: a notebook, and each start in the lab, loads them again
def _drawn(
    draw: Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]],
    size: int,
    seeds: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One chunk by the generator of these seeds; kept (some 50 MB in all), so not to be changed."""
    return draw(np.random.default_rng(seeds), size)


def _draw(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One chunk: images uint8 (100, 3, size, size), masks bool (100, size, size), labels (100,)."""
    n = CHUNK
    labels = rng.permutation(np.arange(n) % len(CLASS_NAMES))
    shape = rng.integers(len(SHAPES), size=n)
    radius = rng.uniform(10.0, 12.7, n)
    reach = radius * HALF_EXTENT[shape]
    centre = reach + rng.uniform(size=(2, n)) * (SIDE - 2 * reach)  # the whole object is in the image
    first, second, ground = _colours(rng, n)
    background = _background(rng, ground, size)

    dx, dy = offsets(size, centre)
    inside = within(shape, reach, dx, dy)

    mixture = mixtures(rng, labels, dx, dy)[:, None]
    surface = mixture * first + (1 - mixture) * second
    images = np.where(inside[:, None], surface, background)
    return np.rint(images * 255).astype(np.uint8), inside, labels


def offsets(size: int, middle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """dx (n, 1, size) and dy (n, size, 1), in units, of the pixel centres from `middle` (2, n)."""
    at = ((np.arange(size) + 0.5) * SIDE / size).astype(np.float32)
    dx, dy = (at - m[:, None].astype(np.float32) for m in middle)
    return dx[:, None, :], dy[:, :, None]


def mixtures(rng: np.random.Generator, labels: np.ndarray, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """Each image's texture all over it, (n, size, size): 1 where the first colour is, 0 where the second.

    dx (n, 1, size), dy (n, size, 1): offsets in units from the texture's centre.
    """
    mixture = np.empty((len(labels), dy.shape[1], dx.shape[2]), np.float32)
    for label, texture in enumerate(_TEXTURES.values()):
        of_class = labels == label
        mixture[of_class] = texture(rng, dx[of_class], dy[of_class])
    return mixture


def within(shape: np.ndarray, reach: np.ndarray, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    """True where each pixel's centre lies in the object, bool (n, size, size)."""
    reach, shape = reach[:, None, None], shape[:, None, None]
    square = np.maximum(abs(dx), abs(dy))
    return np.choose(shape, [np.hypot(dx, dy), square, abs(dx) + abs(dy)]) < reach


def _colours(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two object colours and the background's, (3, n, 3, 1, 1) in [0, 1].

    The object's two differ in brightness, so that a texture survives the loss of colour;
    the background differs from both in some channel.
    """
    tries = rng.uniform(0.05, 0.95, (32, 3, n, 3))
    grey = tries @ LUMA
    first, second, ground = (tries[:, i] for i in range(3))
    good = abs(grey[:, 0] - grey[:, 1]) > 0.25
    for colour in (first, second):
        good &= abs(colour - ground).max(-1) > 0.25
    pick = good.argmax(0)  # the first good one
    chosen = tries[pick, :, np.arange(n)].astype(np.float32)  # (n, 3 colours, 3 channels)
    return chosen.transpose(1, 0, 2)[..., None, None]


def _background(rng: np.random.Generator, ground: np.ndarray, size: int) -> np.ndarray:
    """A plain colour, or (every second time, at random) one that drifts softly; (n, 3 , size, size)."""
    n = ground.shape[0]
    soft = rng.integers(2, size=(n, 1, 1, 1))
    drift = _smooth(rng.uniform(-0.15, 0.15, (n, 3, 4, 4)).astype(np.float32), size)
    return np.clip(ground + soft * drift, 0, 1)


def _smooth(lattice: np.ndarray, size: int) -> np.ndarray:
    """Interpolate (..., k, k) values, spread evenly over the image, to (..., size, size)."""
    k = lattice.shape[-1]
    at = (np.arange(size) + 0.5) / size * (k - 1)
    low = np.minimum(at.astype(int), k - 2)
    part = at - low
    part = part * part * (3 - 2 * part)  # no creases at the lattice's lines
    weights = np.zeros((size, k), np.float32)
    weights[np.arange(size), low] = 1 - part
    weights[np.arange(size), low + 1] = part
    return weights @ lattice @ weights.T


# Textures: offsets from the object's centre (m, 1, size) and (m, size, 1) -> mixture (m, size, size).


def _between(rng: np.random.Generator, like: np.ndarray, low: float, high: float) -> np.ndarray:
    return rng.uniform(low, high, (len(like), 1, 1)).astype(np.float32)


def _wave(rng: np.random.Generator, along: np.ndarray, low: float, high: float) -> np.ndarray:
    """Stripes across `along`, of a random period in units and a random phase, in [0, 1]."""
    period, phase = _between(rng, along, low, high), _between(rng, along, 0, 2 * np.pi)
    return np.clip(0.5 + 0.8 * np.sin(2 * np.pi / period * along + phase), 0, 1)


def _diagonal(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    sign = rng.choice(np.array([-1, 1], np.float32), (len(dx), 1, 1))
    return _wave(rng, (dx + sign * dy) * np.float32(np.sqrt(0.5)), 3.6, 4.8)


def _wide(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    angle = _between(rng, dx, 0, np.pi)
    return _wave(rng, np.cos(angle) * dx + np.sin(angle) * dy, 10.0, 13.0)


def _checker(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    side = _between(rng, dx, 3.4, 4.6)
    column = np.floor(dx / side + _between(rng, dx, 0, 2))
    row = np.floor(dy / side + _between(rng, dx, 0, 2))
    return (column + row) % 2


def _dots(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    pitch = _between(rng, dx, 4.5, 6.0)
    x = (dx / pitch + _between(rng, dx, 0, 1)) % 1 - 0.5
    y = (dy / pitch + _between(rng, dx, 0, 1)) % 1 - 0.5
    return np.clip((0.36 - np.hypot(x, y)) * 8, 0, 1)


def _fine_noise(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    size = dx.shape[-1]
    cells = rng.uniform(size=(len(dx), int(SIDE), int(SIDE))).astype(np.float32)  # a cell a unit
    at = ((np.arange(size) + 0.5) * SIDE / size).astype(int)
    return cells[:, at[:, None], at]


def _rings(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    off_x, off_y = _between(rng, dx, -1.5, 1.5), _between(rng, dx, -1.5, 1.5)
    return _wave(rng, np.hypot(dx - off_x, dy - off_y), 3.4, 5.0)


def _soft_blobs(rng: np.random.Generator, dx: np.ndarray, dy: np.ndarray) -> np.ndarray:
    height = _smooth(rng.normal(size=(len(dx), 9, 9)).astype(np.float32), dx.shape[-1])
    return np.clip(0.5 + 1.2 * height, 0, 1)


_TEXTURES: dict[str, Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]] = {
    "vertical stripes": lambda rng, dx, dy: _wave(rng, dx, 3.0, 4.2),
    "horizontal stripes": lambda rng, dx, dy: _wave(rng, dy, 3.0, 4.2),
    "diagonal stripes": _diagonal,
    "wide stripes": _wide,
    "checker": _checker,
    "dots": _dots,
    "fine noise": _fine_noise,
    "rings": _rings,
    "soft blobs": _soft_blobs,
    "plain": lambda rng, dx, dy: np.ones((len(dx), dy.shape[1], dx.shape[2]), np.float32),
}
CLASS_NAMES = tuple(_TEXTURES)
