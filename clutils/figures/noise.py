"""Learned noise beside the images it is added to: scale, one sample, mean."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

from clutils.figures import describe, new, style

COLOURS = ("red", "green", "blue")
CHANNELS = ("mean", "highest", *COLOURS, "colour")
# below 0 blue and darker, above 0 yellow and lighter: the sign can be read without colour
AROUND_0 = LinearSegmentedColormap.from_list(
    "around 0", ["#06214A", "#2F6DB0", "#989898", "#E8AE3C", "#FFF3B8"]
)
GAP = 1 / 16  # between two images of a row, in widths of one


def noise(
    pictures: Tensor,
    scale: Tensor,
    sample: Tensor,
    mean: Tensor | None = None,
    channels: str = "mean",
) -> Figure:
    """Images, the scale of their noise, a sample, and image + noise: the paper's figures 1, 4 and 5.

    - pictures: (N, C, H, W), uint8 or float in [0, 1], a column each; scale, sample, mean: likewise, in
      units of the image (1 = black to white). The scale is a standard deviation; mean None = no row of it
    - channels: what a map shows of the C channels: "mean", "highest" (of the mean: furthest from 0), "red",
      "green", "blue", or "colour": all three as one colour, each image's largest value = 1

    Raises ValueError on shapes that differ and on channels there are not.
    """
    pictures, scale, sample = (given.detach().cpu() for given in (pictures, scale, sample))
    mean = None if mean is None else mean.detach().cpu()
    pictures = pictures.float() / (255 if pictures.dtype == torch.uint8 else 1)
    _check_noise(pictures, {"scale": scale, "sample": sample, "mean": mean}, channels)
    shown: list[tuple[str, Tensor, dict[str, Any]]] = [("image", pictures, {})]
    what = {"mean": "mean of channels", "highest": "highest channel"}.get(channels, f"{channels} channel")
    if channels == "colour":
        each = scale / scale.amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-12)
        shown.append(("scale, as colour;\neach one's\nmaximum = 1", each, {}))
    else:
        values = of_channels(scale, channels)
        low, high = float(values.min()), float(values.max())
        low = low if high - low > 1e-3 * high else 0.0  # the same everywhere: no pattern to make up
        shown.append((f"scale,\n{what}", values, {"cmap": "viridis", "vmin": low, "vmax": high}))
    if mean is not None and channels == "colour":
        each = mean / (2 * mean.abs().amax(dim=(1, 2, 3), keepdim=True).clamp(min=1e-12))
        shown.append(("mean, as colour;\neach one's largest\n= full, grey = 0", each + 0.5, {}))
    elif mean is not None:
        values = of_channels(mean, channels)
        most = max(float(values.abs().max()), 1e-6)
        shown.append((f"mean,\n{what}", values, {"cmap": AROUND_0, "vmin": -most, "vmax": most}))
    shown.append(("a sample,\nmid grey = 0", sample + 0.5, {}))
    shown.append(("image\n+ noise", pictures + sample, {}))
    figure = strips(shown)
    low, high = (float(f(of_channels(scale, "mean"))) for f in (torch.amin, torch.amax))
    about = ""
    if mean is not None:
        about = f", and the mean from {float(mean.min()):.2g} to {float(mean.max()):.2g}"
    return describe(
        figure,
        f"{len(pictures)} images, below each the scale of its learned noise ({what}), a sample of "
        f"the noise and the image with it. The scale, mean of the channels, goes from {low:.2g} to "
        f"{high:.2g}, where 1 is from black to white{about}.",
    )


def of_channels(values: Tensor, channels: str) -> Tensor:
    """(N, C, H, W) -> (N, H, W): what a map shows of the channels; all of CHANNELS but "colour"."""
    if channels == "mean":
        return values.mean(dim=1)
    if channels == "highest":
        return values.gather(1, values.abs().argmax(dim=1, keepdim=True))[:, 0]
    return values[:, COLOURS.index(channels)]


def _check_noise(pictures: Tensor, parts: Mapping[str, Tensor | None], channels: str) -> None:
    for name, part in parts.items():
        if part is not None and part.shape != pictures.shape:
            raise ValueError(
                f"noise: {name} is {tuple(part.shape)}, but the images are {tuple(pictures.shape)}"
            )
    if channels not in CHANNELS:
        raise ValueError(f"noise: channels is {channels!r}; there are {', '.join(CHANNELS)}")
    if channels not in CHANNELS[:2] and pictures.shape[1] != 3:
        raise ValueError(
            f"noise: channels is {channels!r}, but images {tuple(pictures.shape)} have {pictures.shape[1]}"
        )


def strips(rows: Sequence[tuple[str, Tensor, dict[str, Any]]]) -> Figure:
    """Rows of images (N, C, H, W) or maps (N, H, W), with a colour bar beside each row that has a scale.

    - rows: name, values, and what `imshow` is to know of a map's colours (empty of an image)
    """
    n, (height, width) = len(rows[0][1]), rows[0][1].shape[-2:]
    gap = max(1, round(GAP * width))
    wide = min(1.25, 7.6 / n)  # of an image; all lengths are inches
    across, tall = wide * (n + (n - 1) * gap / width), wide * height / width
    left, right, above, between = 1.55, 1.35, 0.1, 0.1
    total = left + across + right, above + len(rows) * (tall + between)
    figure, axes = new(*total, len(rows), squeeze=False)
    figure.set_layout_engine("none")  # every row as wide as the others, with a colour bar or without
    for k, (ax, (name, values, look)) in enumerate(zip(axes[:, 0], rows, strict=True)):
        bottom = total[1] - above - (k + 1) * tall - k * between

        def place(x: float, width: float, bottom: float = bottom) -> tuple[float, float, float, float]:
            return x / total[0], bottom / total[1], width / total[0], tall / total[1]

        ax.set_position(place(left, across))
        image = ax.imshow(_strip(values), interpolation="nearest", aspect="auto", **look)
        ax.set_ylabel(name, rotation=0, ha="right", va="center", labelpad=8, fontsize=10)
        style.bare(ax)
        if look:
            bar = figure.colorbar(image, cax=figure.add_axes(place(left + across + 0.1, 0.11)))
            bar.outline.set_visible(False)
            what = "μ" if "mean," in name else "standard\ndeviation of ε"
            bar.set_label(f"{what},\n1 = black to white", fontsize=9)
            bar.ax.locator_params(nbins=4)
            bar.ax.tick_params(labelsize=9)
    return figure


def _strip(values: Tensor) -> np.ndarray:
    """(N, H, W) or (N, C, H, W) -> side by side, (H, W') with NaN in the gaps or (H, W', 3) with white."""
    values = values.float()
    empty = math.nan
    if values.ndim == 4:
        values, empty = values.expand(-1, 3, -1, -1).clamp(0, 1).permute(0, 2, 3, 1), 1.0
    gap = values[0][:, : max(1, round(GAP * values.shape[2]))]
    parts = [part for one in values for part in (one, torch.full_like(gap, empty))]
    return torch.cat(parts[:-1], dim=1).numpy()
