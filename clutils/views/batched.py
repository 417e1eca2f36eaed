"""Augmentations over a whole batch, a formula each, with one parameter an image; on any device.

With equal parameters each gives what torchvision's function gives for a single float image;
`tests/views` holds the two side by side. What comes in is as `check` has it:
uint8 for the crop, float in [0, 1] for what follows it, parameters with a row an image.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

ADJUSTMENTS = ("brightness", "contrast", "saturation", "hue")  # the columns of `Parameters.factors`
NEUTRAL = (1.0, 1.0, 1.0, 0.0)  # the factors that change nothing
LUMA = (0.2989, 0.587, 0.114)  # the shares of red, green and blue in a pixel's gray (ITU-R BT.601)


@dataclass
class Parameters:
    """Random parameters of a batch of N images; all tensors on the CPU.

    boxes       (N, 4) int64: top, left, height, width of the crop in pixels
    flipped     (N,) bool: mirrored left to right
    factors     (N, 4) float32: brightness, contrast, saturation (1: unchanged), hue (in turns, 0: unchanged)
    order       (4,) int64: which of these four columns is adjusted first, second, third, last
    grayscaled  (N,) bool: without colour
    sigma       (N,) float32: standard deviation of the blur in pixels of the view, 0: sharp
    """

    boxes: Tensor
    flipped: Tensor
    factors: Tensor
    order: Tensor
    grayscaled: Tensor
    sigma: Tensor


def crop(images: Tensor, boxes: Tensor, size: int, flipped: Tensor | None = None) -> Tensor:
    """Cut each image's box out, mirror it where flipped (N,), and resize it to size x size, antialiased.

    images: uint8 or float (N, C, H, W) -> float32 (N, C, size, size); boxes: as in `Parameters`.

    Equal to torchvision's `resized_crop(..., antialias=True)` on float images, to 1e-6 when enlarging and to
    1e-5 when shrinking. A resize is linear and separable: a matrix for the rows and one for the columns of
    each image, with torchvision's triangle filter in them and zeros beside the box.
    """
    height, width = images.shape[2:]
    top, left, tall, wide = boxes.unbind(1)
    rows = _triangle_weights(top, tall, size, height)
    columns = _triangle_weights(left, wide, size, width, flipped)
    if images.dtype == torch.uint8:
        rows /= 255  # cheaper than dividing every pixel
    return _separable(images, rows, columns).clamp_(0, 1)


def adjust_brightness(images: Tensor, factor: Tensor) -> Tensor:
    """factor (N,) times the image, clamped to [0, 1]: 0 is black, 1 the image itself."""
    return (images * _column(factor, images)).clamp_(0, 1)


def adjust_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards (< 1) the image's mean gray, clamped to [0, 1]."""
    factor = _column(factor, images)
    mean = _gray(images.mean(dim=(2, 3), keepdim=True))
    return (images * factor).add_(mean * (1 - factor)).clamp_(0, 1)


def adjust_saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards (< 1) each pixel's own gray, clamped to [0, 1]. One channel: kept."""
    if images.shape[1] == 1:
        return images.clone()
    factor = _column(factor, images)
    return (images * factor).add_(_gray(images).mul_(1 - factor)).clamp_(0, 1)


def adjust_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn each image's hue by `shift` (N,) turns of the colour wheel, with HSV's saturation and value kept.
    One channel: kept. Equal to torchvision's float `adjust_hue` to 1e-5.

    The hue's distance from red is one product here, because distinguishing 'red is highest', 'green is
    highest', 'blue is highest' with `torch.where` takes twice as long.
    """
    if images.shape[1] == 1:
        return images.clone()
    shift = _column(shift, images)[:, 0]
    red, green, blue = images.unbind(1)
    high, low = torch.maximum(red, green), torch.minimum(red, green)
    high, low = torch.maximum(high, blue, out=high), torch.minimum(low, blue, out=low)
    spread = high - low
    per_spread = spread.clamp_min(1e-30).reciprocal_()  # gray: a spread of 0 cancels whatever hue comes out

    # With r = (red - low) / spread and a = |green - blue| / spread the distance from red, in turns, is
    # 1/4 + (1/2 - a/3)(1/2 - r): a/6 where red is highest (r = 1), (3 - a)/6 where it is lowest (r = 0) and
    # (2 - r)/6 between (a = 1). It counts as positive on green's side.
    from_red = torch.sub(red, low, out=low).mul_(per_spread).neg_().add_(0.5)
    side = green - blue
    hue = per_spread.mul_(side).abs_().mul_(-1 / 3).add_(0.5).mul_(from_red).add_(0.25)
    hue.mul_(side.mul_(1e38).add_(1).clamp_(-1, 1)).add_(shift)  # the sign of green - blue, + where equal
    hue.sub_(torch.round(hue, out=side))  # back to [-1/2, 1/2]

    # A channel is at `high` up to 1/6 turn from its own hue (0, 1/3, -1/3), and at `low` from 1/3 turn on.
    # For green and blue the distance is taken from the opposite hue (-1/6, 1/6), where nothing wraps around.
    spread.mul_(6)
    turned = torch.empty_like(images, memory_format=torch.contiguous_format)
    base = torch.add(high, spread, alpha=1 / 6, out=side)
    distance = torch.abs(hue, out=from_red).clamp_(1 / 6, 1 / 3)
    torch.addcmul(base, distance, spread, value=-1, out=turned[:, 0])
    base = torch.sub(high, spread, alpha=1 / 3, out=side)
    for channel, opposite in ((1, -1 / 6), (2, 1 / 6)):
        distance = torch.sub(hue, opposite, out=from_red).abs_().clamp_(1 / 6, 1 / 3)
        torch.addcmul(base, distance, spread, out=turned[:, channel])
    return turned.clamp_(0, 1)


def to_grayscale(images: Tensor) -> Tensor:
    """Each pixel's gray, in as many channels as came in."""
    return _gray(images).expand_as(images).contiguous()


def blur(images: Tensor, sigma: Tensor, kernel: int) -> Tensor:
    """Gaussian blur: sigma (N,) pixels, a kernel of an odd number of pixels, borders reflected.

    Equal to torchvision's `gaussian_blur` to 1e-6; a kernel wider than the image is reflected repeatedly.
    """
    sigma = _column(sigma, images).flatten(1).float().clamp_min(1e-6)  # 0: sharp
    offset = torch.arange(kernel, device=images.device) - kernel // 2
    weights = torch.softmax(-0.5 * (offset / sigma) ** 2, dim=1)  # (N, kernel)
    rows, columns = (_reflected(weights, offset, length) for length in images.shape[2:])
    return _separable(images, rows, columns).clamp_(0, 1)


def crop_and_colour(images: Tensor, parameters: Parameters, size: int) -> Tensor:
    """Crop, flip, colour jitter and grayscale by the functions above."""
    view = crop(images, parameters.boxes, size, parameters.flipped)
    adjustments = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)
    active = parameters.factors != torch.tensor(NEUTRAL)

    def jitter(x: Tensor, factors: Tensor) -> Tensor:
        for which in parameters.order.tolist():
            if active[:, which].any():
                x = adjustments[which](x, factors[:, which])
        return x

    view = change(view, active.any(dim=1), jitter, parameters.factors)
    return change(view, parameters.grayscaled, to_grayscale)


def _triangle_weights(
    start: Tensor, length: Tensor, size: int, pixels: int, mirrored: Tensor | None = None
) -> Tensor:
    """(N, size, pixels): what each old pixel adds to each new one when the stretch of `length` pixels from
    `start` on is resized to `size`. A triangle around the new pixel's centre, whose half-width is one pixel,
    old or new, whichever is larger."""
    scale = length.float() / size
    at = torch.arange(pixels, dtype=torch.float32, device=start.device) - start[:, None] + 0.5
    if mirrored is not None:
        at = torch.where(mirrored[:, None], length[:, None] - at, at)
    at = at.masked_fill((at < 0) | (at > length[:, None]), math.inf)  # outside: too far away to count
    centre = (torch.arange(size, dtype=torch.float32, device=start.device) + 0.5) * scale[:, None]
    half_width = scale.clamp_min(1)[:, None]
    # upside down, min(distance - 1, 0): one pass less over the largest tensors here; the sum turns it round
    weights = ((at / half_width)[:, None] - (centre / half_width)[:, :, None]).abs_().sub_(1).clamp_(max=0)
    return weights.div_(weights.sum(dim=2, keepdim=True))


def _reflected(weights: Tensor, offset: Tensor, length: int) -> Tensor:
    """(N, length, length): the matrix that passes `weights` (N, kernel) over a row with reflected ends."""
    at = torch.arange(length, device=weights.device)[:, None] + offset
    at = at.remainder(max(1, 2 * length - 2))
    at = torch.minimum(at, (2 * length - 2 - at).abs())  # (length, kernel): the pixel each weight falls on
    matrix = weights.new_zeros(len(weights), length, length)
    return matrix.scatter_add_(2, at.expand(len(weights), -1, -1), weights[:, None].expand(-1, length, -1))


def _separable(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """rows @ image @ columnsᵀ for every channel of every image, in float32."""
    n, channels, height, width = images.shape
    images = images.to(torch.float32, memory_format=torch.contiguous_format).contiguous()
    with torch.autocast(images.device.type, enabled=False):  # float32 within a bfloat16 step too
        across = images.view(n, channels * height, width) @ columns.mT
        channel = across.view(n, channels, height, columns.shape[1]).unbind(1)
        # half the time of one product with copied rows
        return torch.stack([rows @ c for c in channel], dim=1)


def _gray(images: Tensor) -> Tensor:
    """(N, C, H, W) -> (N, 1, H, W), a new tensor."""
    if images.shape[1] == 1:
        return images.clone()
    red, green, blue = images.split(1, dim=1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def change(images: Tensor, chosen: Tensor, change: Callable[..., Tensor], *parameters: Tensor) -> Tensor:
    """`change` the chosen images only, each with its own parameters. May write into `images`."""
    index = chosen.nonzero()[:, 0]
    if len(index) == 0:
        return images
    index_there = index.to(images.device)
    changed = change(images.index_select(0, index_there), *(p[index] for p in parameters))
    return images.index_copy_(0, index_there, changed)


def _column(value: Tensor, images: Tensor) -> Tensor:
    """One number an image: (N,) -> (N, 1, 1, 1), of the images' type and on their device."""
    return value.to(images)[:, None, None, None]


def check(images: Tensor, parameters: Parameters) -> None:
    """Raise ValueError, quoting it, on what does not fit these images: a row an image, boxes within them."""
    check_images(images)
    for name, *rest in (("boxes", 4), ("flipped",), ("factors", 4), ("grayscaled",), ("sigma",)):
        came, shape = tuple(getattr(getattr(parameters, name), "shape", ())), (len(images), *rest)
        if came != shape:
            raise ValueError(f"Augmentation: {name} is {came}, should be a tensor {shape}, one row an image")
    height, width = images.shape[2:]
    top, left, tall, wide = parameters.boxes.unbind(1)
    outside = (top < 0) | (left < 0) | (tall < 1) | (wide < 1) | (top + tall > height) | (left + wide > width)
    if outside.any():
        box = parameters.boxes[outside.nonzero()[0, 0]].tolist()
        raise ValueError(f"crop: box {box} (top, left, height, width) leaves the {height} x {width} image")


def check_images(images: Tensor) -> None:
    if (
        not isinstance(images, Tensor)
        or images.ndim != 4
        or images.shape[1] not in (1, 3)
        or 0 in images.shape[2:]
    ):
        came = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(
            f"Augmentation: images are {came}, should be a tensor (N, C, H, W) of at least one pixel, with "
            "C = 1 (gray) or 3 (RGB)"
        )
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"Augmentation: images are {images.dtype}, should be uint8, or float in [0, 1]")


def check_range(images: Tensor) -> None:
    if images.dtype == torch.uint8 or images.numel() == 0:
        return
    low, high = (x.item() for x in images.aminmax())
    if not (low >= 0 and high <= 1):  # NaN is neither
        raise ValueError(f"Augmentation: float images go from {low:g} to {high:g}, should lie in [0, 1]")
