"""Views under sliders: the same crops and colours, milder or stronger."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from clutils import views
from clutils.course.panels import Panel, panel, slider
from clutils.figures import pictures

DRAWS = 2000  # for the mean under the picture


def view_strength(images: Tensor) -> Panel:
    """Two views of some pictures, with sliders over the smallest crop, the colour jitter and the seed.

    - images: (n, C, H, W), a column each

    The random numbers are the same at every setting: a slider changes these crops and colours, and draws no
    new ones; the seed does. The sentence below says how much two crops have in common on average.
    """
    height, width = images.shape[-2:]
    base = views.Augmentation(size=min(height, width))  # SimCLR's
    shown = pictures.Views(images)

    def update(smallest: float, colour: float, seed: int) -> str:
        *light, hue = (colour * most for most in base.jitter)
        chosen = replace(base, crop_scale=(smallest, 1.0), jitter=(*light, min(hue, 0.5)))
        generator = torch.Generator().manual_seed(seed)
        drawn = [chosen.draw(len(images), height, width, generator) for _ in range(2)]
        shown.update(drawn, [chosen.apply(images, parameters) for parameters in drawn])
        shared = pictures.overlap(*(chosen.draw(DRAWS, height, width, generator) for _ in range(2)))
        return (
            f"Crops of {smallest:.0%} to 100% of the area: of all that two of them show, {shared.mean():.0%} "
            f"is in both, on average over {DRAWS:,} draws; {(shared == 0).float().mean():.1%} share nothing."
        )

    return panel(
        shown.figure,
        update,
        smallest=slider("smallest crop", 0.05, 1.0, base.crop_scale[0], 0.05),
        colour=slider("colour jitter, 1 = SimCLR", 0.0, 2.0, 1.0, 0.1),
        seed=slider("seed", 0, 20, 0),
    )
