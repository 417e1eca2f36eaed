"""Augmentation on a GPU in few operations: each step is computed for every image of the batch.

The same steps as in `batched`, and the same views to rounding. There a step is done to those images alone
that were drawn for it; a GPU would have to synchronise to know which. So here all parameters are copied
once, in one table, and an image that a step shall leave as it is gets the neutral parameter.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from clutils.views.batched import LUMA, NEUTRAL, Parameters, blur


@dataclass
class Packed:
    """Parameters of N views on their way to a device.

    - numbers: (N, 16) float32 there: top, left, height, width, 0, flipped, the four factors, grayscaled,
      sigma, and which adjustment comes first to last
    - order: the adjustments that at least one view needs, in their order: columns of `Parameters.factors`
    - grayscales, blurs: whether any view needs that
    """

    numbers: Tensor
    order: tuple[int, ...]
    grayscales: bool
    blurs: bool


def packed(parameters: Parameters, device: torch.device) -> Packed:
    """The parameters (on the CPU) in one copy that nothing waits for."""
    flipped = parameters.flipped[:, None].float()
    columns = (
        parameters.boxes.float(),
        torch.zeros_like(flipped),  # rows are never mirrored
        flipped,
        parameters.factors,
        parameters.grayscaled[:, None].float(),
        parameters.sigma[:, None],
        parameters.order.float().expand(len(flipped), -1),
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
    one = drawn.numbers[:, :, None, None]
    view = _cropped(images, one, size)
    for which in drawn.order:
        view = ADJUSTMENTS[which](view, one[:, 6 + which, None])
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
    one = numbers[:, :, None, None]
    view = _cropped(images, one, size)
    for place in range(4):
        which, before = one[:, 12 + place, None], view
        for number, adjusted in enumerate(ADJUSTMENTS):
            view = torch.where(which == number, adjusted(before, one[:, 6 + number, None]), view)
    return _finished(view, numbers, grayscales=True, kernel=kernel if blurs else None)


def _finished(view: Tensor, numbers: Tensor, grayscales: bool, kernel: int | None) -> Tensor:
    """Grayscale and blur (kernel: pixels), the last two steps."""
    one = numbers[:, :, None, None]
    if grayscales and view.shape[1] == 3:
        view = torch.where(one[:, 10, None] > 0, _gray(view), view)
    if kernel is not None:
        view = torch.where(one[:, 11, None] > 0, blur(view, numbers[:, 11], kernel), view)
    return view


def _cropped(images: Tensor, one: Tensor, size: int) -> Tensor:
    """`batched.crop`, the weights of rows and columns made together."""
    n, channels, height, width = images.shape
    start, length, mirrored = one[:, :2, 0], one[:, 2:4, 0], one[:, 4:6, 0]  # (N, 2, 1): of rows, of columns
    scale = length / size
    at = _middles(max(height, width), images.device) - start
    other = length - at  # from the box's other end
    outside = at * other < 0
    at = torch.where(mirrored > 0, other, at).masked_fill_(outside, math.inf)
    half_width = scale.clamp_min(1)[..., None]
    middle = (_middles(size, images.device) * scale)[..., None]
    weights = (at[:, :, None] - middle).div_(half_width).abs_().sub_(1).clamp_(max=0)
    total = weights.sum(dim=3, keepdim=True)
    if images.dtype == torch.uint8:  # what rows, and columns, are divided by where white is 255
        total = total * _table((255.0, 1.0), images.device)
    weights /= total
    rows, columns = weights[:, 0, :, :height], weights[:, 1, :, :width]
    with torch.autocast(images.device.type, enabled=False):  # float32 within a half-precision step too
        of_rows = images.transpose(1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        down = rows @ of_rows.reshape(n, height, channels * width)
        view = down.view(n, size * channels, width) @ columns.mT
    return view.view(n, size, channels, size).transpose(1, 2).clamp_(0, 1)


def _brightness(view: Tensor, factor: Tensor) -> Tensor:
    return (view * factor).clamp_(0, 1)


def _contrast(view: Tensor, factor: Tensor) -> Tensor:
    mean = _gray(view.mean(dim=(2, 3), keepdim=True))
    return torch.lerp(mean, view, factor).clamp_(0, 1)


def _saturation(view: Tensor, factor: Tensor) -> Tensor:
    return view if view.shape[1] == 1 else torch.lerp(_gray(view), view, factor).clamp_(0, 1)


def _hue(view: Tensor, shift: Tensor) -> Tensor:
    """A pixel's hue from its highest channel, turned; each channel's height by how far from it it lies."""
    if view.shape[1] == 1:
        return view
    high, channel = view.max(dim=1, keepdim=True)
    spread = high - view.amin(dim=1, keepdim=True)
    ahead = view.roll(-1, dims=1) - view.roll(-2, dims=1)  # green - blue, blue - red, red - green
    hue = torch.add(shift, channel, alpha=1 / 3)
    hue = hue.addcdiv_(ahead.gather(1, channel), spread.clamp_min(1e-30), value=1 / 6)
    apart = hue - _table((0.0, 1 / 3, 2 / 3), view.device)
    apart = apart.sub_(apart.round()).abs_().clamp_(1 / 6, 1 / 3)  # high up to 1/6 turn, low from 1/3 on
    turned = torch.addcmul(high + spread, apart, spread, value=-6).clamp_(0, 1)
    return torch.where(shift != 0, turned, view)


ADJUSTMENTS = (_brightness, _contrast, _saturation, _hue)


def _gray(view: Tensor) -> Tensor:
    """(N, C, H, W) -> (N, 1, H, W)."""
    return view if view.shape[1] == 1 else (view * _table(LUMA, view.device)).sum(dim=1, keepdim=True)


# ---- small tables, made once on each device ----------------------------------------------------------------


def _middles(pixels: int, device: torch.device) -> Tensor:
    return _once(lambda: torch.arange(pixels, dtype=torch.float32, device=device) + 0.5, device, pixels)


def _table(values: tuple[float, ...], device: torch.device) -> Tensor:
    """(len(values), 1, 1)."""
    return _once(lambda: torch.tensor(values, device=device)[:, None, None], device, values)


_made: dict[tuple[object, ...], Tensor] = {}


def _once(make: Callable[[], Tensor], *key: object) -> Tensor:
    if torch.compiler.is_compiling():  # a constant there
        return make()
    if key not in _made:
        _made[key] = make()
    return _made[key]
