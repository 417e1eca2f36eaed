"""Each step of a view: torchvision's functions are the independent answer, image by image."""

import numpy as np
import pytest
import torch
import torchvision.transforms.v2.functional as TF
from PIL import Image

from clutils.views import Augmentation, batched
from tests.views.inputs import one_by_one, parameters, pictures, random_boxes, seeded


@pytest.mark.parametrize(
    ("height", "width", "size", "tolerance"),
    [(32, 32, 32, 1e-6), (20, 31, 40, 1e-6), (96, 96, 32, 1e-6), (75, 50, 7, 1e-6), (300, 200, 96, 1e-5)],
)
def test_crop_differs_from_torchvisions_resized_crop(height, width, size, tolerance):
    """The first two only enlarge, the last three shrink (antialiased) nearly every box."""
    images, boxes = pictures(24, height, width), random_boxes(24, height, width)
    expected = one_by_one(
        lambda image, box: TF.resized_crop(image, *box.tolist(), [size, size], antialias=True), images, boxes
    )
    assert (batched.crop(images, boxes, size) - expected).abs().max() <= tolerance
    ours = Augmentation(size=size).apply(images, parameters(images, boxes=boxes))
    assert (ours - expected).abs().max() <= tolerance


def test_crop_of_uint8_differs_from_pillow_by_more_than_its_rounding():
    array = np.random.default_rng(0).integers(0, 256, (12, 48, 40, 3), dtype=np.uint8)
    boxes = random_boxes(12, 48, 40)
    images = torch.from_numpy(array).permute(0, 3, 1, 2)
    for image, box, ours in zip(array, boxes.tolist(), batched.crop(images, boxes, 32), strict=True):
        pillow = TF.pil_to_tensor(TF.resized_crop(Image.fromarray(image), *box, [32, 32]))
        assert (255 * ours - pillow).abs().max() <= 1.01  # rounded to 8 bits after the rows and the columns


def test_mirrored_crop_is_not_the_mirror_image():
    images, boxes = pictures(20, 17, 23), random_boxes(20, 17, 23)
    flipped = torch.rand(20, generator=seeded(1)) < 0.5
    separately = one_by_one(
        lambda x, f: TF.horizontal_flip(x) if f else x, batched.crop(images, boxes, 16), flipped
    )
    assert (batched.crop(images, boxes, 16, flipped) - separately).abs().max() <= 1e-6


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("ours", "theirs", "low", "high", "tolerance"),
    [
        (batched.adjust_brightness, TF.adjust_brightness, 0, 2.5, 1e-6),
        (batched.adjust_contrast, TF.adjust_contrast, 0, 2.5, 1e-6),
        (batched.adjust_saturation, TF.adjust_saturation, 0, 2.5, 1e-6),
        (batched.adjust_hue, TF.adjust_hue, -0.5, 0.5, 1e-5),
    ],
)
def test_adjustment_alone_or_within_a_view_differs_from_torchvisions(
    ours, theirs, low, high, tolerance, channels
):
    images, factors = pictures(40, 13, 13, channels), torch.tensor(batched.NEUTRAL).repeat(40, 1)
    amount = factors[:, batched.ADJUSTMENTS.index(ours.__name__.removeprefix("adjust_"))]
    assert (ours(images, amount) - images).abs().max() <= tolerance  # nothing to change
    amount[:] = torch.linspace(low, high, 40)[torch.randperm(40, generator=seeded())]
    expected = one_by_one(lambda x, a: theirs(x, a.item()), images, amount)
    assert (ours(images, amount) - expected).abs().max() <= tolerance
    view = Augmentation(size=13).apply(images, parameters(images, factors=factors))
    assert (view - expected).abs().max() <= tolerance


def test_view_with_nothing_to_change_changes():
    images = pictures(40, 13, 13)
    assert torch.equal(Augmentation(size=13).apply(images, parameters(images)), images)
    bytes_ = (255 * images).byte()
    view = Augmentation(size=13).apply(bytes_, parameters(bytes_))
    assert (view - bytes_.float() / 255).abs().max() <= 1e-6


def test_grayscale_differs_from_torchvisions():
    images = pictures(10, 8, 8)
    assert (batched.to_grayscale(images) - TF.rgb_to_grayscale(images, 3)).abs().max() <= 1e-6
    assert torch.equal(batched.to_grayscale(images[:, :1]), images[:, :1])


@pytest.mark.parametrize(("height", "width", "kernel"), [(16, 21, 3), (32, 32, 9), (5, 12, 9), (3, 3, 1)])
def test_blur_differs_from_torchvisions(height, width, kernel):
    images, sigma = pictures(12, height, width), torch.linspace(0.1, 2, 12)
    expected = one_by_one(lambda x, s: TF.gaussian_blur(x, [kernel] * 2, [s.item()] * 2), images, sigma)
    assert (batched.blur(images, sigma, kernel) - expected).abs().max() <= 1e-6


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 4), (2, 3)])
def test_blur_wider_than_the_image_loses_or_adds_light(height, width):
    flat = torch.full((2, 3, height, width), 0.7)
    assert (batched.blur(flat, torch.tensor([0.5, 5.0]), 9) - flat).abs().max() <= 1e-6
