"""Hard scenes: the object lies on a background as textured as itself, so that edges alone don't find it.

As in `scenes` there is one object with its exact mask, the class is its texture, and lengths are in units of
1/32 of the image's side. What differs:

- the background has a texture of its own, drawn independently of the class, out of the same ones with the
  same periods and a contrast as strong (never 'plain': a background without edges would give the object away)
- the two colours of either surface are as far from one grey, the same on both; in most images the surfaces
  share one palette, except for a tinge
- objects are smaller, and lie anywhere in the image, more often near its border than in its middle
"""

import numpy as np

from clutils.data import scenes
from clutils.data.sets import ImageSet

RADIUS = (4.8, 8.2)  # of a disc of the object's area, in units
NEAR, FAR = (0.04, 0.10), (0.20, 0.30)  # distance of the two mean colours, of the channel that differs most

_STREAM = (1,)  # apart from the random streams of `scenes`
_PLAIN = scenes.CLASS_NAMES.index("plain")


def make(count: int, size: int = 32, seed: int = 0, split: str = "train") -> ImageSet:
    """`count` hard scenes, as `scenes.make` gives the others."""
    return scenes.in_chunks("scenes-hard", "hard scenes", _draw, count, size, seed, split, _STREAM)


def _draw(rng: np.random.Generator, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One chunk: images uint8 (100, 3, size, size), masks bool (100, size, size), labels (100,)."""
    n = scenes.CHUNK
    labels = rng.permutation(np.arange(n) % len(scenes.CLASS_NAMES))
    behind = rng.integers(_PLAIN, size=n)  # every texture but 'plain', which is the last
    shape = rng.integers(len(scenes.SHAPES), size=n)
    reach = rng.uniform(*RADIUS, n) * scenes.HALF_EXTENT[shape]
    # mostly near 0 or 1, against a border: spread evenly, whole objects would cover the middle far too often
    place = rng.beta(0.2, 0.2, (2, n))
    centre = reach + place * (scenes.SIDE - 2 * reach)  # the whole object is in the image
    origin = rng.uniform(0, scenes.SIDE, (2, n))  # the background's own, not the object's
    near = (rng.uniform(size=n) < 2 / 3) & (labels != behind)  # of one texture, only colour separates them
    colours = _colours(rng, near)

    inside = scenes.within(shape, reach, *scenes.offsets(size, centre))
    surfaces = []
    for textures, middle, (first, second) in zip((labels, behind), (centre, origin), colours, strict=True):
        mixture = scenes.mixtures(rng, textures, *scenes.offsets(size, middle))[:, None]
        surfaces.append(mixture * first + (1 - mixture) * second)
    images = np.where(inside[:, None], *surfaces)
    return np.rint(images * 255).astype(np.uint8), inside, labels


def _colours(rng: np.random.Generator, near: np.ndarray) -> np.ndarray:
    """The object's two colours and the background's two, (2 surfaces, 2, n, 3, 1, 1) in [0, 1].

    The two of a surface differ in brightness, on both surfaces alike (up to a fifth). The surfaces differ in
    hue alone; where `near`, by little, and from dark to light the hue of both changes the same way.
    """
    n = len(near)
    distance = np.where(near, rng.uniform(*NEAR, n), rng.uniform(*FAR, n))
    hue = _of_no_brightness(rng, n) * distance[:, None]
    grey = rng.uniform(0.42, 0.58, (n, 1))
    tint = _of_no_brightness(rng, n) * rng.uniform(0, 0.15, (n, 1))
    means = np.stack([grey + tint + hue / 2, grey + tint - hue / 2])  # (2, n, 3)

    step = rng.uniform(0.15, 0.24, n) * rng.uniform(0.9, 1.1, (2, n)) * rng.choice([-1, 1], (2, n))
    turn = np.stack([_of_no_brightness(rng, n) * rng.uniform(0, 0.12, (n, 1)) for _ in range(2)])
    turn[1] = np.where(near[:, None], turn[0] * np.sign(step[0] * step[1])[:, None], turn[1])  # one palette
    half = step[..., None] + turn
    colours = np.stack([means + half, means - half], axis=1)  # (2, 2, n, 3)
    return np.clip(colours, 0, 1).astype(np.float32)[..., None, None]


def _of_no_brightness(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random directions of colour that leave the grey as it is, (n, 3); the largest channel is 1 or -1."""
    direction = rng.normal(size=(n, 3))
    direction -= (direction @ scenes.LUMA)[:, None]
    return direction / abs(direction).max(1, keepdims=True)
