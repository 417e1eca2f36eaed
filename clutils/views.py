"""Views: random augmentations of a whole batch at once, each image with its own draw, on the batch's device.

`Augmentation` is SimCLR's chain (Chen et al. 2020, appendix A): a random resized crop, a flip, colour jitter,
grayscale, blur. It draws (`draw`) and applies (`apply`) separately, so that a figure can show what was drawn:

    augment = Augmentation(size=32)
    view = augment(images, generator)                       # (N, C, H, W) uint8 -> (N, C, 32, 32) float32

    drawn = augment.draw(len(images), 96, 96, generator)    # boxes, flips, factors: one row an image
    view = augment.apply(images, drawn)

What each step does to a picture is a plain function below, with one parameter an image. With equal
parameters each gives what torchvision's function gives for a single float image; `tests/test_views.py` holds
the two side by side. Nothing here carries gradients.

A GPU runs these functions. On a CPU `Augmentation` leaves the crop and the colours to `compiled_views`: the
same steps in the same order, compiled by numba, several times as fast; they differ by no more than rounding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import torch
from torch import Tensor

ADJUSTMENTS = ("brightness", "contrast", "saturation", "hue")  # the columns of `Parameters.factors`
NEUTRAL = (1.0, 1.0, 1.0, 0.0)  # the factors that change nothing
LUMA = (0.2989, 0.587, 0.114)  # the shares of red, green and blue in a pixel's gray (ITU-R BT.601)


@dataclass
class Parameters:
    """What was drawn for a batch of N images; all tensors on the CPU.

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


@dataclass
class Augmentation:
    """SimCLR's random view of every image of a batch.

    Every setting is a plain attribute that may be changed between two calls. The random numbers that a call
    takes don't depend on the settings: with the same seed a slider changes *these* crops and colours smoothly
    instead of drawing new ones.

    - `size`: height and width of the view in pixels.
    - `crop_scale`: the crop's area as a share of the image's, drawn uniformly; (1, 1) keeps the whole image.
    - `flip`: probability of a left-right mirror.
    - `jitter`: how far brightness, contrast and saturation may go from 1, and hue from 0 (in turns, at
      most 0.5); 0 leaves that adjustment out.
    - `jitter_prob`: probability that an image is jittered at all.
    - `grayscale`, `blur`: probabilities. The blur's kernel is a tenth of the view wide, at least 3 pixels.
    - `crop_ratio`: the crop's width / height, drawn log-uniformly. `blur_sigma`: its range in pixels.
    - `check_inputs`: look for values outside [0, 1] in float images (a GPU must wait for the answer).

    The four adjustments of the jitter come in a random order that is drawn once a call; all else is drawn for
    each image. (torchvision draws an order for each; the batch formulas took 1.4 times as long with that.)
    One-channel images have no colour: brightness and contrast apply, the others do nothing.
    """

    size: int = 32
    crop_scale: tuple[float, float] = (0.2, 1.0)
    flip: float = 0.5
    jitter: tuple[float, float, float, float] = (0.4, 0.4, 0.4, 0.1)
    jitter_prob: float = 0.8
    grayscale: float = 0.2
    blur: float = 0.0
    crop_ratio: tuple[float, float] = (3 / 4, 4 / 3)
    blur_sigma: tuple[float, float] = (0.1, 2.0)
    check_inputs: bool = True

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A new view of each image: float32 in [0, 1], (N, C, size, size), on the images' device.

        images: uint8, or float in [0, 1], (N, C, H, W) with 1 or 3 channels. `generator` may live on any
        device; without one torch's global CPU generator is used. Raises ValueError for a wrong shape, type,
        range or setting.
        """
        _check_images("Augmentation", images)
        return self.apply(images, self.draw(len(images), *images.shape[2:], generator))

    def draw(self, n: int, height: int, width: int, generator: torch.Generator | None = None) -> Parameters:
        """The random part alone: parameters for n images of height x width pixels."""
        self._check_settings()
        device = "cpu" if generator is None else generator.device
        order = torch.randperm(4, generator=generator, device=device).cpu()
        u = torch.rand(n, 31, generator=generator, device=device).cpu().double()
        box, flip, jitter, factor, gray, blur, sigma = u.split((22, 1, 1, 4, 1, 1, 1), dim=1)

        neutral = torch.tensor(NEUTRAL, dtype=torch.float64)
        reach = torch.tensor(self.jitter, dtype=torch.float64)
        lowest = torch.maximum(neutral - reach, torch.tensor([0.0, 0.0, 0.0, -0.5]))
        factors = lowest + factor * (neutral + reach - lowest)
        low, high = self.blur_sigma
        return Parameters(
            boxes=_random_boxes(box, height, width, self.crop_scale, self.crop_ratio),
            flipped=flip[:, 0] < self.flip,
            factors=torch.where(jitter < self.jitter_prob, factors, neutral).float(),
            order=order,
            grayscaled=gray[:, 0] < self.grayscale,
            sigma=torch.where(blur < self.blur, low + sigma * (high - low), 0.0)[:, 0].float(),
        )

    @torch.no_grad()
    def apply(self, images: Tensor, parameters: Parameters) -> Tensor:
        """The view of each image that `parameters` describe: float32, (N, C, size, size)."""
        self._check_settings()
        _check_images("Augmentation", images)
        if len(parameters.boxes) != len(images):
            raise ValueError(
                f"Augmentation: {len(images)} images but parameters for {len(parameters.boxes)}; "
                "draw as many as there are images"
            )
        _check_boxes(images, parameters.boxes)
        for name, *rest in (("flipped",), ("factors", 4), ("grayscaled",), ("sigma",)):
            _per_image("Augmentation", name, getattr(parameters, name), len(images), *rest)
        if self.check_inputs:
            _check_range(images)
        compiled = _compiled_views() if images.device.type == "cpu" else None
        crop_and_colour = compiled.crop_and_colour if compiled else _crop_and_colour
        view = crop_and_colour(images, parameters, int(self.size))
        kernel = max(3, self.size // 10) | 1  # odd
        return _change(view, parameters.sigma > 0, lambda x, sigma: blur(x, sigma, kernel), parameters.sigma)

    def _check_settings(self) -> None:
        def demand(fine: bool, name: str, text: str) -> None:
            if not fine:
                raise ValueError(f"Augmentation: {name} is {getattr(self, name)!r}, should be {text}")

        def rising(pair: tuple[float, float], limit: float) -> bool:
            return len(pair) == 2 and 0 < pair[0] <= pair[1] <= limit < math.inf

        demand(self.size == int(self.size) >= 1, "size", "a whole number of pixels, 1 or more")
        demand(rising(self.crop_scale, 1), "crop_scale", "(smallest, largest) share of the area, in (0, 1]")
        demand(rising(self.crop_ratio, 1e6), "crop_ratio", "(smallest, largest) width / height, above 0")
        demand(rising(self.blur_sigma, 1e6), "blur_sigma", "(smallest, largest) pixels, above 0")
        for name in ("flip", "jitter_prob", "grayscale", "blur"):
            demand(0 <= getattr(self, name) <= 1, name, "a probability, 0 to 1")
        demand(
            len(self.jitter) == 4 and all(0 <= x < math.inf for x in self.jitter) and self.jitter[3] <= 0.5,
            "jitter",
            "(brightness, contrast, saturation, hue), none below 0, hue at most 0.5",
        )


@dataclass
class Identity:
    """No augmentation: what comes in, as float32; uint8 pictures in [0, 1]. For vectors, and for PiNDA alone
    (its algorithm 2: the identity where nothing else is given)."""

    def __call__(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """(N, ...) -> (N, ...) float32."""
        return images.float() / 255 if images.dtype == torch.uint8 else images.float()


_WHOLE = {"crop_scale": (1.0, 1.0), "flip": 0.0}
_COLOURS_KEPT = {"jitter": (0.0, 0.0, 0.0, 0.0), "grayscale": 0.0}
PRESETS = {
    "simclr": {},  # natural pictures: scenes, CIFAR, STL-10
    "digits": {"flip": 0.0, "jitter": (0.4, 0.4, 0.0, 0.0), "grayscale": 0.0},  # a mirrored 2 is no digit
    "crop": _COLOURS_KEPT,
    "colour": _WHOLE,
    "none": {**_WHOLE, **_COLOURS_KEPT},
}


def preset(name: str, size: int = 32) -> Augmentation:
    """A named choice of settings: 'simclr', 'digits', 'crop' (crop and flip alone), 'colour' (jitter and
    grayscale alone) or 'none' (the whole image at the right size)."""
    if name not in PRESETS:
        raise ValueError(f"preset: {name!r} is not one of {', '.join(PRESETS)}")
    return Augmentation(size=size, **PRESETS[name])


@torch.no_grad()
def crop(images: Tensor, boxes: Tensor, size: int, flipped: Tensor | None = None) -> Tensor:
    """Cut each image's box out and resize it to size x size: bilinear, antialiased when shrinking.

    images: uint8 or float (N, C, H, W); boxes: (N, 4) whole numbers, top, left, height, width; flipped:
    (N,) bool, which to mirror on the way. Returns float32 (N, C, size, size).

    Equal to torchvision's `resized_crop(..., antialias=True)` on float images, to 1e-6 when enlarging and to
    1e-5 when shrinking. A resize is linear and separable, so one matrix for the rows and one for the columns
    of each image do it, with torchvision's triangle filter in them and zeros beside the box: no pixel outside
    is ever seen.
    """
    _check_images("crop", images)
    _check_boxes(images, boxes)
    n, _, height, width = images.shape
    top, left, tall, wide = boxes.unbind(1)
    if flipped is not None:
        flipped = _per_image("crop", "flipped", flipped, n).to(images.device)
    rows = _triangle_weights(top.to(images.device), tall.to(images.device), size, height)
    columns = _triangle_weights(left.to(images.device), wide.to(images.device), size, width, flipped)
    if images.dtype == torch.uint8:
        rows /= 255  # cheaper than dividing every pixel
    return _separable(images, rows, columns).clamp_(0, 1)


@torch.no_grad()
def flip(images: Tensor, flipped: Tensor) -> Tensor:
    """Mirror left to right where `flipped` (N,) is true."""
    flipped = _per_image("flip", "flipped", flipped, len(images)).to(images.device)
    return torch.where(flipped[:, None, None, None], images.flip(-1), images)


@torch.no_grad()
def adjust_brightness(images: Tensor, factor: Tensor) -> Tensor:
    """factor (N,) times the image, clamped to [0, 1]: 0 is black, 1 the image itself."""
    return (images * _column("adjust_brightness", "factor", factor, images)).clamp_(0, 1)


@torch.no_grad()
def adjust_contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards (< 1) the image's mean gray, clamped to [0, 1]."""
    factor = _column("adjust_contrast", "factor", factor, images)
    mean = _gray(images.mean(dim=(2, 3), keepdim=True))
    return (images * factor).add_(mean * (1 - factor)).clamp_(0, 1)


@torch.no_grad()
def adjust_saturation(images: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards (< 1) each pixel's own gray, clamped to [0, 1]. One channel: kept."""
    factor = _column("adjust_saturation", "factor", factor, images)
    if images.shape[1] == 1:
        return images.clone()
    return (images * factor).add_(_gray(images).mul_(1 - factor)).clamp_(0, 1)


@torch.no_grad()
def adjust_hue(images: Tensor, shift: Tensor) -> Tensor:
    """Turn each image's hue by `shift` (N,) turns of the colour wheel, with HSV's saturation and value kept.
    One channel: kept. Equal to torchvision's float `adjust_hue` to 1e-5.

    A pixel's highest and lowest value stay what they are; the hue says where between them each channel lies.
    The hue's distance from red is one product here, because telling apart 'red is highest', 'green is
    highest', 'blue is highest' with `torch.where` takes twice as long.
    """
    shift = _column("adjust_hue", "shift", shift, images)[:, 0]
    if images.shape[1] == 1:
        return images.clone()
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


@torch.no_grad()
def to_grayscale(images: Tensor) -> Tensor:
    """Each pixel's gray, in as many channels as came in."""
    _check_images("to_grayscale", images, floating=True)
    return _gray(images).expand_as(images).contiguous()


@torch.no_grad()
def blur(images: Tensor, sigma: Tensor, kernel: int) -> Tensor:
    """Gaussian blur: sigma (N,) pixels, a kernel of an odd number of pixels, borders reflected.

    Equal to torchvision's `gaussian_blur` to 1e-6; a kernel wider than the image is reflected repeatedly.
    """
    sigma = _column("blur", "sigma", sigma, images).flatten(1).float().clamp_min(1e-6)  # 0: sharp
    if kernel != int(kernel) or kernel < 1 or kernel % 2 == 0:
        raise ValueError(f"blur: kernel is {kernel}, should be an odd number of pixels")
    offset = torch.arange(kernel, device=images.device) - kernel // 2
    weights = torch.softmax(-0.5 * (offset / sigma) ** 2, dim=1)  # (N, kernel)
    rows, columns = (_reflected(weights, offset, length) for length in images.shape[2:])
    return _separable(images, rows, columns).clamp_(0, 1)


@functools.cache
def _compiled_views() -> ModuleType | None:
    """The module, loaded when first used; None where numba is missing or told not to compile."""
    try:
        from numba import config

        from clutils import compiled_views
    except ImportError:
        return None
    return None if config.DISABLE_JIT else compiled_views


def _crop_and_colour(images: Tensor, parameters: Parameters, size: int) -> Tensor:
    """Crop, flip, colour jitter and grayscale by the functions above."""
    view = crop(images, parameters.boxes, size, parameters.flipped)
    adjustments = (adjust_brightness, adjust_contrast, adjust_saturation, adjust_hue)
    active = parameters.factors != torch.tensor(NEUTRAL)

    def jitter(x: Tensor, factors: Tensor) -> Tensor:
        for which in parameters.order.tolist():
            if active[:, which].any():
                x = adjustments[which](x, factors[:, which])
        return x

    view = _change(view, active.any(dim=1), jitter, parameters.factors)
    return _change(view, parameters.grayscaled, to_grayscale)


def _random_boxes(
    u: Tensor, height: int, width: int, scale: tuple[float, float], ratio: tuple[float, float]
) -> Tensor:
    """Boxes as torchvision's RandomResizedCrop.get_params draws them, from uniform numbers u (N, 22): the
    first of ten tries that fits into the image, and if none does the largest central one of allowed ratio."""
    if scale[0] == 1:  # the whole image, even where its own ratio is not an allowed one
        return torch.tensor([0, 0, height, width]).repeat(len(u), 1)
    area = height * width * (scale[0] + u[:, :10] * (scale[1] - scale[0]))
    low, high = math.log(ratio[0]), math.log(ratio[1])
    aspect = (low + u[:, 10:20] * (high - low)).exp()
    wide, tall = (area * aspect).sqrt().round(), (area / aspect).sqrt().round()
    fits = (wide > 0) & (wide <= width) & (tall > 0) & (tall <= height)
    first = fits.byte().argmax(dim=1, keepdim=True)
    wide, tall = wide.gather(1, first)[:, 0], tall.gather(1, first)[:, 0]
    top, left = (u[:, 20] * (height - tall + 1)).floor(), (u[:, 21] * (width - wide + 1)).floor()
    boxes = torch.stack((top, left, tall, wide), dim=1).long()

    rows = min(height, max(1, round(width / ratio[0])))
    columns = min(width, max(1, round(height * ratio[1])))
    central = torch.tensor([(height - rows) // 2, (width - columns) // 2, rows, columns])
    return torch.where(fits.any(dim=1, keepdim=True), boxes, central)


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
        return torch.stack(
            [rows @ c for c in channel], dim=1
        )  # half the time of one product with copied rows


def _gray(images: Tensor) -> Tensor:
    """(N, C, H, W) -> (N, 1, H, W), a new tensor."""
    if images.shape[1] == 1:
        return images.clone()
    red, green, blue = images.split(1, dim=1)
    return (red * LUMA[0]).add_(green, alpha=LUMA[1]).add_(blue, alpha=LUMA[2])


def _change(images: Tensor, chosen: Tensor, change: Callable[..., Tensor], *parameters: Tensor) -> Tensor:
    """`change` the chosen images only, each with its own parameters. May write into `images`."""
    index = chosen.nonzero()[:, 0]
    if len(index) == 0:
        return images
    index_there = index.to(images.device)
    changed = change(images.index_select(0, index_there), *(p[index] for p in parameters))
    return images.index_copy_(0, index_there, changed)


def _column(function: str, name: str, value: Tensor, images: Tensor) -> Tensor:
    """One number an image, checked: (N,) -> (N, 1, 1, 1), of the images' type and on their device."""
    _check_images(function, images, floating=True)
    return _per_image(function, name, value, len(images)).to(images)[:, None, None, None]


def _per_image(function: str, name: str, value: Tensor, n: int, *rest: int) -> Tensor:
    if not isinstance(value, Tensor) or value.shape != (n, *rest):
        came = tuple(value.shape) if isinstance(value, Tensor) else repr(value)
        raise ValueError(f"{function}: {name} is {came}, should be a tensor {(n, *rest)}, one row an image")
    return value


def _check_images(function: str, images: Tensor, floating: bool = False) -> None:
    if not isinstance(images, Tensor) or images.ndim != 4:
        came = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
        raise ValueError(f"{function}: images are {came}, should be a tensor (N, C, H, W)")
    if images.shape[1] not in (1, 3) or 0 in images.shape[2:]:
        raise ValueError(
            f"{function}: images are {tuple(images.shape)}, should be (N, C, H, W) of at least one pixel, "
            "with C = 1 (gray) or 3 (RGB)"
        )
    if floating and images.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{function}: images are {images.dtype}, should be float32 in [0, 1] (see `crop`)")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"{function}: images are {images.dtype}, should be uint8, or float in [0, 1]")


def _check_boxes(images: Tensor, boxes: Tensor) -> None:
    height, width = images.shape[2:]
    top, left, tall, wide = _per_image("crop", "boxes", boxes, len(images), 4).unbind(1)
    outside = (top < 0) | (left < 0) | (tall < 1) | (wide < 1) | (top + tall > height) | (left + wide > width)
    if outside.any():
        box = boxes[outside.nonzero()[0, 0]].tolist()
        raise ValueError(f"crop: box {box} (top, left, height, width) leaves the {height} x {width} image")


def _check_range(images: Tensor) -> None:
    if images.dtype == torch.uint8 or images.numel() == 0:
        return
    low, high = (x.item() for x in images.aminmax())
    if not (low >= 0 and high <= 1):  # NaN is neither
        raise ValueError(f"Augmentation: float images go from {low:g} to {high:g}, should lie in [0, 1]")
