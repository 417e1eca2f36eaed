"""Captions of generated scenes: what an image shows, read from its pixels and its mask, as a sentence."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from clutils.data import ImageSet
from clutils.data.scenes import SHAPES

FACTS = ("texture", "shape", "colour", "ground", "place")
COLOURS = ("grey", "red", "yellow", "green", "cyan", "blue", "purple")
PLACES = ("upper left", "upper right", "lower left", "lower right")
GREY = 0.12  # largest minus smallest channel, below which a colour is called grey
TEMPLATES = (  # pieces in their order; one whose fact is not said is left out
    ("a {colour} {shape}", "with {texture}", "on {ground}", "at the {place}"),
    ("at the {place}:", "{texture} on", "a {colour} {shape}", "before {ground}"),
    ("{shape}", "of {colour} colour", "against {ground}", "its texture: {texture}", "place: {place}"),
)


def facts(scenes: ImageSet) -> pd.DataFrame:
    """Texture, shape, colour, ground and place of each scene: a row an image, a word or two a column.

    The texture is the image's label. The others are read from the image: the shape from the share of its
    bounding box that the mask fills, the place from the mask's centre, and the two colours are names of the
    mean colour inside and outside the mask. Raises ValueError on images without masks or labels.
    """
    if scenes.masks is None or bool((scenes.labels < 0).any()):
        raise ValueError(f"facts: needs scenes with masks and labels, but got {scenes.source}")
    inside = scenes.masks.float()
    pixels, area, side = scenes.images.float() / 255, inside.sum(dim=(1, 2)), inside.shape[1]
    at = torch.arange(side) + 0.5
    right = (inside * at).sum(dim=(1, 2)) / area > side / 2
    low = (inside * at[:, None]).sum(dim=(1, 2)) / area > side / 2
    filled = area / (inside.amax(dim=1).sum(dim=1) * inside.amax(dim=2).sum(dim=1))
    shape = torch.where(filled > 0.9, 1, torch.where(filled < 0.65, 2, 0))  # 1, π/4 and 1/2 where exact
    object_colour = (pixels * inside[:, None]).sum(dim=(2, 3)) / area[:, None]
    outside = 1 - inside
    ground = (pixels * outside[:, None]).sum(dim=(2, 3)) / outside.sum(dim=(1, 2))[:, None]
    numbers = (scenes.labels, shape, _hue(object_colour), _hue(ground), 2 * low.long() + right.long())
    names = (scenes.class_names, SHAPES, COLOURS, COLOURS, PLACES)
    columns = zip(FACTS, numbers, names, strict=True)
    return pd.DataFrame({fact: np.array(name)[number.numpy()] for fact, number, name in columns})


def captions(
    of: pd.DataFrame,
    keep: Sequence[str] = FACTS,
    left_out: float = 0.0,
    seed: int = 0,
    templates: Sequence[Sequence[str]] = TEMPLATES,
) -> list[str]:
    """One caption a row of `facts`, each by a template drawn at random.

    - keep: facts that captions may say; left_out: probability with which each of them is left out. A shape
      that is not said is a 'thing'
    - seed: of the draws. Row i's caption does not depend on the rows after it

    Raises ValueError on a fact that is none.
    """
    if unknown := sorted(set(keep) - set(FACTS)):
        raise ValueError(f"captions: keep names {unknown[0]!r}, but the facts are {', '.join(FACTS)}")
    draw, written = np.random.default_rng(seed), []
    for row in of[list(FACTS)].to_dict("records"):
        template = templates[int(draw.integers(len(templates)))]
        spoken = draw.random(len(FACTS)) >= left_out
        said = {fact: row[fact] for fact, so in zip(FACTS, spoken, strict=True) if so and fact in keep}
        pieces = [
            piece.format(**{"colour": "", "shape": "thing"} | said)
            for piece in template
            if "{shape}" in piece or any(f"{{{fact}}}" in piece for fact in said)
        ]
        written.append(" ".join(" ".join(pieces).split()))
    return written


def _hue(colour: Tensor) -> Tensor:
    """Number in `COLOURS` of each mean colour (N, 3): grey, or the nearest of six hues."""
    red, green, blue = colour.T
    (high, which), low = colour.max(dim=1), colour.amin(dim=1)
    spread = (high - low).clamp(min=1e-6)
    sixths = torch.stack([(green - blue) / spread % 6, (blue - red) / spread + 2, (red - green) / spread + 4])
    hue = sixths.gather(0, which[None])[0]
    return torch.where(high - low < GREY, 0, (hue.round() % 6).long() + 1)
