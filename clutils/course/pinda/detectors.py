"""Detection of an object by a map of pixels: the score, its uncertainty, and the cheap maps to compare with.

A map holds one number a pixel, (N, H, W); the higher, the more the pixel is taken for the object. A learned
model's map says something only where it beats what needs no learning: the strength of edges, the variance
around a pixel, the distance from the image's middle, and the map of another image.

Images are uint8 (N, C, H, W), or float in [0, 1]; masks bool (N, H, W), True on the object. Everything is
computed in float64, without gradient. SciPy is imported where it is used: notebook 09 needs none of it.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from clutils.views.batched import LUMA

_ROUNDING = 1e-12  # a variance below is the rounding of a flat patch: the least step of 8 bits leaves 1e-8


@torch.no_grad()
def auroc(maps: Tensor, masks: Tensor) -> Tensor:
    """Share for each image of (object, background) pairs of pixels that its map puts in the right order.

    maps (N, H, W), masks bool (N, H, W) -> float64 (N,). A pair of equal values counts half, so that a flat
    map gets 0.5. It is the area under the ROC curve: Mann & Whitney's U over the number of pairs.

    Raises ValueError, naming the image, where a mask is empty or full or a map holds NaN.
    """
    _check_masks("auroc", masks)
    if maps.shape != masks.shape:
        raise ValueError(f"auroc: maps are {tuple(maps.shape)}, but masks are {tuple(masks.shape)}")
    values, inside = maps.flatten(1).double().cpu(), masks.flatten(1).cpu()
    if (unknown := values.isnan().any(1)).any():
        raise ValueError(f"auroc: the map of image {_first(unknown)} holds NaN; every pixel needs a value")
    from scipy import stats

    ranks = torch.from_numpy(stats.rankdata(values, axis=1))  # ties share the mean
    positives = inside.sum(1).double()
    pairs = positives * (inside.shape[1] - positives)
    return ((ranks * inside).sum(1) - positives * (positives + 1) / 2) / pairs


@torch.no_grad()
def edge_magnitude(images: Tensor) -> Tensor:
    """Steepness of each pixel's grey: the length of Sobel's gradient, float64 (N, H, W).

    In grey values (0 to 1) over 8 pixels, as Sobel's 3x3 kernels stand; the border's pixels are repeated.
    """
    from scipy import ndimage

    each = _grey("edge_magnitude", images).cpu().numpy()
    slopes = [[ndimage.sobel(grey, axis, mode="nearest") for axis in (0, 1)] for grey in each]
    return torch.from_numpy(np.hypot(*np.stack(slopes, axis=1)))


@torch.no_grad()
def local_variance(images: Tensor, width: int) -> Tensor:
    """Variance of the grey in the width x width pixels around each pixel, float64 (N, H, W).

    `width` is odd and at least 3. At the border only the pixels inside the image count.
    """
    if not isinstance(width, int) or width < 3 or width % 2 == 0:
        raise ValueError(f"local_variance: width is {width!r}; an odd number of at least 3 is needed")
    grey = _grey("local_variance", images)[:, None]
    grey = grey - grey.mean((2, 3), keepdim=True)  # a difference of squares loses digits, far from 0

    def around(values: Tensor) -> Tensor:
        return F.avg_pool2d(values, width, stride=1, padding=width // 2, count_include_pad=False)

    variance = (around(grey.square()) - around(grey).square())[:, 0]
    return variance.where(variance > _ROUNDING, torch.zeros_like(variance))


def centre_prior(n: int, height: int, width: int) -> Tensor:
    """Centre map, n times: minus each pixel's distance in pixels from the image's middle, (N, H, W).

    What a photographer's habit alone is worth as a detector.
    """
    down, right = (torch.arange(side, dtype=torch.float64) - (side - 1) / 2 for side in (height, width))
    return -torch.hypot(down[:, None], right).expand(n, height, width)


def shuffled(maps: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Maps exchanged: each image gets another's, never its own: (N, ...), N >= 2.

    What remains of a score is owed to where objects lie in general, and nothing to the image. The images
    hand their maps on in one random circle.
    """
    if len(maps) < 2:
        raise ValueError(f"shuffled: maps are {tuple(maps.shape)}; at least two are needed to exchange them")
    device = "cpu" if generator is None else generator.device
    circle = torch.randperm(len(maps), generator=generator, device=device).to(maps.device)
    exchanged = torch.empty_like(maps)
    exchanged[circle] = maps[circle.roll(1)]
    return exchanged


@torch.no_grad()
def boundary_band(masks: Tensor, width: int) -> Tensor:
    """Pixels within `width` pixels of the object's outline, on either side: bool (N, H, W).

    A pixel is in where the square of 2 width + 1 pixels around it holds object and background. The image's
    border is no outline.

    Raises ValueError, naming the image, where a mask is empty or full: it has no outline.
    """
    _check_masks("boundary_band", masks)
    if not isinstance(width, int) or width < 1:
        raise ValueError(f"boundary_band: width is {width!r}; a whole number of at least 1 is needed")

    def reached_from(pixels: Tensor) -> Tensor:
        return F.max_pool2d(pixels[:, None].float(), 2 * width + 1, stride=1, padding=width)[:, 0] > 0

    return reached_from(masks) & reached_from(~masks)


def _grey(who: str, images: Tensor) -> Tensor:
    """(N, C, H, W) -> float64 (N, H, W); 8 bits become 0 to 1."""
    if images.dim() != 4 or images.shape[1] not in (1, 3) or min(images.shape[2:]) < 1:
        raise ValueError(f"{who}: images are {tuple(images.shape)}; (N, 1 or 3, H, W) is needed")
    if images.dtype != torch.uint8 and not images.is_floating_point():
        raise ValueError(f"{who}: images are {images.dtype}; uint8, or float in [0, 1], is needed")
    scale = 255 if images.dtype == torch.uint8 else 1
    values = images.double()
    if not values.isfinite().all():
        bad = ~values.isfinite().flatten(1).all(1)
        raise ValueError(f"{who}: image {_first(bad)} holds NaN or infinity")
    if images.shape[1] == 1:
        return values[:, 0] / scale
    return sum(share * values[:, channel] for channel, share in enumerate(LUMA)) / scale


def _check_masks(who: str, masks: Tensor) -> None:
    if masks.dtype != torch.bool or masks.dim() != 3:
        raise ValueError(f"{who}: masks are {masks.dtype} {tuple(masks.shape)}; bool (N, H, W) is needed")
    flat = masks.flatten(1)
    for name, wrong in {"empty": ~flat.any(1), "full": flat.all(1)}.items():
        if wrong.any():
            raise ValueError(
                f"{who}: the mask of image {_first(wrong)} is {name}, as {int(wrong.sum())} of {len(masks)}; "
                "object and background are needed in each"
            )


def _first(wrong: Tensor) -> int:
    return int(wrong.nonzero()[0, 0])
