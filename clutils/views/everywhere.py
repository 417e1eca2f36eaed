"""Augmentation on a GPU in few operations: each step is computed for every image of the batch.

The formulas of `batched`, and the same views to rounding. There a step is done to those images alone
that were drawn for it; a GPU would have to synchronise to know which. So here all parameters are copied
once, in one table, and an image that a step shall leave as it is gets the neutral parameter.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clutils.views.batched import (
    NEUTRAL,
    Parameters,
    adjust_brightness,
    adjust_contrast,
    adjust_saturation,
    blur,
    crop,
    to_grayscale,
)


@dataclass
class Packed:
    """Parameters of N views on their way to a device.

    - numbers: (N, 15) float32 there: top, left, height, width, flipped, the four factors, grayscaled, sigma,
      and which adjustment comes first to last
    - order: the adjustments that at least one view needs, in their order: columns of `Parameters.factors`
    - grayscales, blurs: whether any view needs that
    """

    numbers: Tensor
    order: tuple[int, ...]
    grayscales: bool
    blurs: bool


def packed(parameters: Parameters, device: torch.device) -> Packed:
    """The parameters (on the CPU) in one copy that nothing waits for."""
    columns = (
        parameters.boxes.float(),
        parameters.flipped[:, None].float(),
        parameters.factors,
        parameters.grayscaled[:, None].float(),
        parameters.sigma[:, None],
        parameters.order.float().expand(len(parameters.boxes), -1),
    )
    numbers = torch.cat(columns, dim=1)
    if device.type == "cuda":
        numbers = numbers.pin_memory()
    active = (parameters.factors != torch.tensor(NEUTRAL)).any(dim=0).tolist()
    return Packed(
        numbers.to(device, non_blocking=True),
        tuple(which for which in parameters.order.tolist() if active[which]),
        bool(parameters.grayscaled.any()),
        bool((parameters.sigma > 0).any()),
    )


def view(images: Tensor, drawn: Packed, size: int, kernel: int) -> Tensor:
    """Crop, flip, jitter, grayscale, blur: (N, C, H, W), uint8 or float in [0, 1] -> (N, C, size, size).

    - kernel: of the blur, pixels
    """
    view = _cropped(images, drawn.numbers, size)
    for which in drawn.order:
        view = ADJUSTMENTS[which](view, drawn.numbers[:, 5 + which])
    return _finished(view, drawn.numbers, drawn.grayscales, kernel if drawn.blurs else None)


@functools.cache
def compiled() -> Callable[[Tensor, Packed, int, int], Tensor]:
    """`view` as one function of torch.compile's, whatever the order of the adjustments.

    It adjusts in all four ways at each of the four places and takes the one that belongs there: more
    arithmetic, but fused into few kernels, and one function is compiled once.
    """
    whole = torch.compile(_whole)
    return lambda images, drawn, size, kernel: whole(images, drawn.numbers, size, kernel, drawn.blurs)


def _whole(images: Tensor, numbers: Tensor, size: int, kernel: int, blurs: bool) -> Tensor:
    view = _cropped(images, numbers, size)
    for place in range(4):
        which, before = numbers[:, 11 + place, None, None, None], view
        for number, adjusted in enumerate(ADJUSTMENTS):
            view = torch.where(which == number, adjusted(before, numbers[:, 5 + number]), view)
    return _finished(view, numbers, grayscales=True, kernel=kernel if blurs else None)


def _cropped(images: Tensor, numbers: Tensor, size: int) -> Tensor:
    return crop(images, numbers[:, :4], size, numbers[:, 4] > 0)


def _finished(view: Tensor, numbers: Tensor, grayscales: bool, kernel: int | None) -> Tensor:
    """Grayscale and blur (kernel: pixels), the last two steps."""
    gray, sigma = numbers[:, 9], numbers[:, 10]
    if grayscales:
        view = torch.where(gray[:, None, None, None] > 0, to_grayscale(view), view)
    if kernel is not None:
        view = torch.where(sigma[:, None, None, None] > 0, blur(view, sigma, kernel), view)
    return view


def _hue(view: Tensor, shift: Tensor) -> Tensor:
    """A pixel's hue from its highest channel, turned; each channel's height by how far from it it lies."""
    if view.shape[1] == 1:
        return view
    shift = shift[:, None, None, None]
    high, channel = view.max(dim=1, keepdim=True)
    spread = high - view.amin(dim=1, keepdim=True)
    ahead = view.roll(-1, dims=1) - view.roll(-2, dims=1)  # green - blue, blue - red, red - green
    hue = torch.add(shift, channel, alpha=1 / 3)
    hue = hue.addcdiv_(ahead.gather(1, channel), spread.clamp_min(1e-30), value=1 / 6)
    apart = hue - torch.arange(3, device=view.device)[:, None, None] / 3  # red, green, blue
    apart = apart.sub_(apart.round()).abs_().clamp_(1 / 6, 1 / 3)  # high up to 1/6 turn, low from 1/3 on
    turned = torch.addcmul(high + spread, apart, spread, value=-6).clamp_(0, 1)
    return torch.where(shift != 0, turned, view)


ADJUSTMENTS = (adjust_brightness, adjust_contrast, adjust_saturation, _hue)
