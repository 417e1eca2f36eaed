"""Views on a CPU: the crop and the colours of `views.batched`, compiled, one image after the other.

`batched.py` says what each step is, as a formula over a whole batch: easy to read, and quick on a GPU. A CPU
spends most of such a step on memory, which some sixty passes over the batch fetch and put back. Here the
loops are turned inside out: an image goes through all the steps while it lies in the processor's cache, and
the crop multiplies by those weights alone that aren't 0.

numba turns the functions into machine code when they are first called (some seconds) and keeps it in
`__pycache__` for the next time. They are loops over single numbers, because that is what its compiler turns
into vector instructions. `tests/views` holds them to the batch formulas, and both to torchvision.

In what follows an `image` is (C, H, W), uint8 or float32, and a `view` is (C, size, size) float32 or, for the
colours, (C, pixels) of the same memory, which they change where it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import torch
from numba import njit
from torch import Tensor

from clutils.views.batched import Parameters

# A plain 0.5 is float64 to numba, and would make a pixel's arithmetic that too, at half the speed.
ZERO, ONE, TWO, THREE, FOUR, FIVE, SIX = (np.float32(number) for number in range(7))
LUMA = (np.float32(0.2989), np.float32(0.587), np.float32(0.114))  # as in `batched`

# "numpy": x / 0 is inf as in torch. A check for each pixel would forbid the vector instructions.
SETTINGS = {"nogil": True, "error_model": "numpy"}
VALUES_A_THREAD = 100_000  # of the views: fewer are done before another thread has started


def crop_and_colour(images: Tensor, parameters: Parameters, size: int) -> Tensor:
    """Crop, flip, colour jitter and grayscale: (N, C, H, W) on the CPU -> float32 (N, C, size, size).

    images and parameters as in `views.Augmentation.apply`, which has checked them: nothing here looks
    whether a box leaves its image. The batch is shared out to as many threads as torch has. They live for
    this call alone, so that it may come from any thread and after a fork; an image's view is the same,
    however many there are.
    """
    n, channels = images.shape[:2]
    views = torch.empty(n, channels, size, size)
    white = np.float32(255 if images.dtype == torch.uint8 else 1)
    one_each = (  # of the types that `fill` is compiled for
        images if images.dtype == torch.uint8 else images.float(),
        parameters.boxes.long(),
        parameters.flipped.bool(),
        parameters.factors.float(),
        parameters.grayscaled.bool(),
        views,
    )
    arrays = [tensor.detach().contiguous().numpy() for tensor in one_each]
    order = parameters.order.long().numpy()
    threads = max(1, min(torch.get_num_threads(), views.numel() // VALUES_A_THREAD))
    ends = [n * part // threads for part in range(threads + 1)]
    parts = [[a[begin:end] for a in arrays] for begin, end in pairwise(ends)]
    with ThreadPoolExecutor(threads) as pool:
        others = [pool.submit(fill, *part, order, white) for part in parts[1:]]
        fill(*parts[0], order, white)  # this thread's share; alone, it starts no other
        for other in others:
            other.result()  # raises what went wrong there
    return views


def compiled(function: Callable, **settings: object) -> Callable:
    try:
        return njit(function, cache=True, **SETTINGS, **settings)
    except RuntimeError:  # no folder that numba may write to: compiled anew in each process
        return njit(function, **SETTINGS, **settings)


def summing(function: Callable) -> Callable:
    """Compiled, with leave to add up in an order that suits vector instructions (always the same one)."""
    return compiled(function, fastmath={"reassoc"})


@compiled
def clamp(x):
    return min(max(x, ZERO), ONE)


@compiled
def gray(red, green, blue):
    return red * LUMA[0] + green * LUMA[1] + blue * LUMA[2]


@compiled
def triangle_weights(length, size):
    """A stretch of `length` pixels resized to `size`: the first old pixel that each new one is made of, and
    the weights of that one and the next few, (few, size). As `views._triangle_weights`, without the zeros."""
    scale = np.float32(length) / np.float32(size)
    half_width = max(scale, ONE)
    few = min(math.ceil(2 * half_width), length)
    first = np.empty(size, np.uintp)
    weights = np.empty((few, size), np.float32)
    for new in range(size):
        centre = np.float32(new + 0.5) * scale  # rounded as torch does
        start = min(max(math.floor(centre - half_width + 0.5), 0), length - few)
        total = 0.0
        for t in range(few):
            total += max(half_width - abs(start + t + 0.5 - centre), 0.0)
        first[new] = start
        for t in range(few):
            weights[t, new] = max(half_width - abs(start + t + 0.5 - centre), 0.0) / total
    return first, weights


@compiled
def crop(image, top, left, tall, wide, mirrored, white, view):
    """Fill the view with the image's box: rows first, then columns. white: the value that counts as 1."""
    size = view.shape[2]
    rows, row_weights = triangle_weights(tall, size)
    columns, column_weights = triangle_weights(wide, size)
    if mirrored:
        columns, column_weights = columns[::-1].copy(), column_weights[:, ::-1].copy()
    row_weights /= white
    line = np.empty(wide, np.float32)
    for channel in range(len(view)):
        for i in range(size):
            line[:] = ZERO
            for t in range(len(row_weights)):
                old, weight = image[channel, top + rows[i] + t, left : left + wide], row_weights[t, i]
                for x in range(wide):
                    line[x] += weight * np.float32(old[x])
            new = view[channel, i]
            new[:] = ZERO
            for t in range(len(column_weights)):
                shifted, weights = line[t:], column_weights[t]
                for j in range(size):
                    new[j] += weights[j] * shifted[columns[j]]
            for j in range(size):
                new[j] = clamp(new[j])


@compiled
def adjust_brightness(view, factor):
    for channel in range(len(view)):
        values = view[channel]
        for p in range(len(values)):
            values[p] = clamp(values[p] * factor)


@summing
def mean_gray(view):
    total = np.float64(0)
    for channel in range(len(view)):
        values, sum_of_channel = view[channel], 0.0
        for p in range(len(values)):
            sum_of_channel += values[p]
        total += sum_of_channel * (LUMA[channel] if len(view) == 3 else ONE)
    return np.float32(total / view[0].size)


@compiled
def adjust_contrast(view, factor):
    towards = mean_gray(view) * (ONE - factor)
    for channel in range(len(view)):
        values = view[channel]
        for p in range(len(values)):
            values[p] = clamp(values[p] * factor + towards)


@compiled
def adjust_saturation(view, factor):
    red, green, blue = view[0], view[1], view[2]
    for p in range(len(red)):
        towards = gray(red[p], green[p], blue[p]) * (ONE - factor)
        red[p] = clamp(red[p] * factor + towards)
        green[p] = clamp(green[p] * factor + towards)
        blue[p] = clamp(blue[p] * factor + towards)


@compiled
def channel_at(sixths, high, spread):
    """A channel, from how far the hue lies behind the point where the channel begins to fall, in sixths of a
    turn: falling for one sixth, lowest for two, rising for one, highest for two."""
    sixths -= SIX * np.floor(sixths / SIX)
    return high - spread * clamp(min(sixths, FOUR - sixths))


@compiled
def adjust_hue(view, shift):
    """The textbook's way through HSV: the hue from the highest channel, and each channel from the new hue."""
    red, green, blue = view[0], view[1], view[2]
    for p in range(len(red)):
        r, g, b = red[p], green[p], blue[p]
        high = max(r, g, b)
        spread = high - min(r, g, b)
        per_spread = ONE / (spread if spread > ZERO else ONE)  # gray: any hue will do
        if r == high:
            sixths = (g - b) * per_spread
        elif g == high:
            sixths = TWO + (b - r) * per_spread
        else:
            sixths = FOUR + (r - g) * per_spread
        sixths += SIX * shift
        red[p] = clamp(channel_at(sixths - ONE, high, spread))
        green[p] = clamp(channel_at(sixths - THREE, high, spread))
        blue[p] = clamp(channel_at(sixths - FIVE, high, spread))


@compiled
def to_grayscale(view):
    red, green, blue = view[0], view[1], view[2]
    for p in range(len(red)):
        red[p] = green[p] = blue[p] = gray(red[p], green[p], blue[p])


@compiled
def fill(images, boxes, flipped, factors, grayscaled, views, order, white):
    """Fill `views` (N, C, size, size) from as many images; white: the image's value that counts as 1."""
    coloured = images.shape[1] == 3
    for n in range(len(images)):
        top, left, tall, wide = boxes[n]
        crop(images[n], top, left, tall, wide, flipped[n], white, views[n])
        view = views[n].reshape(views.shape[1], -1)  # (C, pixels)
        brightness, contrast, saturation, hue = factors[n]
        for which in order:
            if which == 0 and brightness != ONE:
                adjust_brightness(view, brightness)
            elif which == 1 and contrast != ONE:
                adjust_contrast(view, contrast)
            elif which == 2 and saturation != ONE and coloured:
                adjust_saturation(view, saturation)
            elif which == 3 and hue != ZERO and coloured:
                adjust_hue(view, hue)
        if grayscaled[n] and coloured:
            to_grayscale(view)
