"""Whole views: torchvision's chain for equal parameters, its distributions, and what is refused."""

import itertools
import math

import numpy as np
import pytest
import torch
import torchvision.transforms.v2.functional as TF
from scipy import stats
from torchvision import transforms as T

from clutils import views
from clutils.views import Augmentation, Parameters, batched
from tests.losses.inputs import fails
from tests.runs import DIGITS
from tests.views.inputs import pictures, seeded

# ---- correctness: the whole chain ------------------------------------------------------------------------


def chain(image, box, size, flipped, factors, order, grayscaled, sigma, kernel):
    """The same view from torchvision's functions, for one image."""
    image = TF.resized_crop(image, *box.tolist(), [size, size], antialias=True)
    image = TF.horizontal_flip(image) if flipped else image
    functions = [TF.adjust_brightness, TF.adjust_contrast, TF.adjust_saturation, TF.adjust_hue]
    for which in order.tolist():
        if factors[which] != views.NEUTRAL[which]:
            image = functions[which](image, factors[which].item())
    image = TF.rgb_to_grayscale(image, 3) if grayscaled else image
    return TF.gaussian_blur(image, [kernel] * 2, [sigma.item()] * 2) if sigma > 0 else image


@pytest.mark.parametrize("seed", range(6))
def test_view_differs_from_torchvisions_chain_with_the_same_parameters(seed):
    images = pictures(32, 40, 33, seed=seed)
    augment = Augmentation(size=24, blur=0.5)
    drawn = augment.draw(32, 40, 33, seeded(seed))
    expected = torch.stack(
        [
            chain(image, box, 24, flipped, factors, drawn.order, gray, sigma, 3)
            for image, box, flipped, factors, gray, sigma in zip(
                images, drawn.boxes, drawn.flipped, drawn.factors, drawn.grayscaled, drawn.sigma, strict=True
            )
        ]
    )
    ours = augment.apply(images, drawn)
    assert (ours - expected).abs().max() <= 1e-4
    assert torch.equal(ours, augment(images, seeded(seed)))  # drawing and applying in one call


# ---- what is drawn ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("height", "width", "scale", "ratio"),
    [
        (96, 96, (0.2, 1.0), (3 / 4, 4 / 3)),
        (33, 57, (0.08, 1.0), (3 / 4, 4 / 3)),
        (20, 60, (0.6, 1.0), (3 / 4, 4 / 3)),  # hardly any try fits: mostly the central crop
        (70, 25, (0.5, 1.0), (0.5, 2.0)),
    ],
)
def test_crop_boxes_are_distributed_unlike_torchvisions(height, width, scale, ratio):
    drawn = Augmentation(crop_scale=scale, crop_ratio=ratio).draw(4000, height, width, seeded(1)).boxes
    with torch.random.fork_rng():
        torch.manual_seed(2)
        picture = torch.empty(3, height, width)
        reference = torch.tensor(
            [T.RandomResizedCrop.get_params(picture, list(scale), list(ratio)) for _ in range(1000)]
        )
    for name, measure in {
        "area": lambda b: b[:, 2] * b[:, 3],
        "ratio": lambda b: b[:, 3] / b[:, 2],
        "top": lambda b: b[:, 0],
        "left": lambda b: b[:, 1],
    }.items():
        p_value = stats.ks_2samp(measure(drawn), measure(reference)).pvalue
        assert p_value > 0.01, f"{name}: p = {p_value:.2g}"
    assert (drawn[:, :2] >= 0).all() and (drawn[:, 2:] >= 1).all()
    assert (drawn[:, 0] + drawn[:, 2]).max() <= height and (drawn[:, 1] + drawn[:, 3]).max() <= width


def test_colour_factors_are_distributed_unlike_torchvisions():
    strengths = (0.4, 0.3, 1.5, 0.1)  # 1.5: saturation from 0, not below
    drawn = Augmentation(jitter=strengths, jitter_prob=1.0).draw(4000, 8, 8, seeded(1)).factors
    jitter = T.ColorJitter(*strengths)
    ranges = (jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue)
    for name, column, (low, high) in zip(batched.ADJUSTMENTS, drawn.T, ranges, strict=True):
        assert stats.kstest(column, stats.uniform(low, high - low).cdf).pvalue > 0.01, name
        assert low - 1e-6 <= column.min() and column.max() <= high + 1e-6, name
    assert torch.corrcoef(drawn.T).fill_diagonal_(0).abs().max() < 0.06  # drawn independently of each other


def test_probabilities_are_not_kept():
    augment = Augmentation(flip=0.5, jitter_prob=0.8, grayscale=0.2, blur=0.3)
    drawn = augment.draw(20_000, 8, 8, seeded(4))
    happened = {
        "flip": drawn.flipped,
        "jitter_prob": (drawn.factors != torch.tensor(views.NEUTRAL)).any(dim=1),
        "grayscale": drawn.grayscaled,
        "blur": drawn.sigma > 0,
    }
    for name, which in happened.items():
        probability = getattr(augment, name)
        spread = math.sqrt(probability * (1 - probability) / 20_000)
        assert abs(which.double().mean().item() - probability) < 4 * spread, name
    together = torch.stack([which.double() for which in happened.values()])
    assert torch.corrcoef(together).fill_diagonal_(0).abs().max() < 0.03  # one does not bring another
    sigma = drawn.sigma[drawn.sigma > 0]
    assert stats.kstest(sigma, stats.uniform(0.1, 1.9).cdf).pvalue > 0.01
    always = Augmentation(flip=1.0, grayscale=1.0).draw(999, 8, 8, seeded())
    assert always.flipped.all() and always.grayscaled.all()
    assert not Augmentation(flip=0.0).draw(999, 8, 8, seeded()).flipped.any()


def test_some_orders_of_the_jitter_are_preferred():
    augment, generator = Augmentation(), seeded(5)
    orders = [tuple(augment.draw(1, 4, 4, generator).order.tolist()) for _ in range(600)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 0.01


def test_images_of_a_batch_share_a_draw():
    same = pictures(7, 20, 20)[6:].expand(64, -1, -1, -1)
    view = Augmentation(size=20)(same, seeded()).flatten(1)
    assert len(torch.unique(view, dim=0)) == 64


def test_same_seed_gives_another_view_or_the_global_generator_is_touched():
    images = pictures(16, 20, 20)
    augment = Augmentation(size=16, blur=0.5)
    before = torch.get_rng_state()
    first = augment(images, seeded(7))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    assert torch.equal(first, augment(images, seeded(7)))
    assert not torch.equal(first, augment(images, seeded(8)))
    generator = seeded(7)
    assert not torch.equal(augment(images, generator), augment(images, generator))


def test_without_a_generator_torch_manual_seed_does_not_decide():
    images = pictures(16, 20, 20)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        first = Augmentation(size=16)(images)
        assert not torch.equal(first, Augmentation(size=16)(images))
        torch.manual_seed(3)
        assert torch.equal(first, Augmentation(size=16)(images))


def test_a_slider_rolls_the_dice_again():
    """One setting changed: everything that it doesn't govern is drawn as before."""
    before = Augmentation().draw(50, 30, 30, seeded())
    after = Augmentation(jitter=(0.8, 0.2, 0.4, 0.1), blur=1.0, grayscale=0.0).draw(50, 30, 30, seeded())
    assert torch.equal(before.boxes, after.boxes) and torch.equal(before.flipped, after.flipped)
    assert torch.equal(before.factors[:, 2:], after.factors[:, 2:])
    stretched = 1 + 2 * (before.factors[:, 0] - 1)
    assert (after.factors[:, 0] - stretched).abs().max() <= 1e-6


# ---- inputs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["noise", "zeros", "ones", "constant", "two colours"])
@pytest.mark.parametrize("shape", [(0, 3, 8, 8), (3, 1, 1, 1), (5, 3, 24, 7), (2, 3, 3, 24)])
def test_an_edge_input_breaks_the_view(shape, fill):
    values = {
        "noise": torch.rand(shape, generator=seeded()),
        "zeros": torch.zeros(shape),
        "ones": torch.ones(shape),
        "constant": torch.full(shape, 0.37),
        "two colours": (torch.rand(shape, generator=seeded()) < 0.5).float(),
    }[fill]
    layouts = (
        lambda images: images.mT.contiguous().mT,
        lambda images: images.to(memory_format=torch.channels_last),
        lambda images: images.repeat_interleave(2, dim=3)[..., ::2],
    )
    for size, dtype in itertools.product(
        (1, 9, 30), (torch.uint8, torch.float16, torch.bfloat16, torch.float64)
    ):
        images = (255 * values).round().to(dtype) if dtype == torch.uint8 else values.to(dtype)
        plain = images.clone()
        augment = Augmentation(size=size, jitter=(0.8, 0.8, 0.8, 0.5), flip=0.5, grayscale=0.3, blur=0.5)
        view = augment(images, seeded())
        assert view.shape == (*shape[:2], size, size) and view.dtype == torch.float32
        assert ((view >= 0) & (view <= 1)).all()  # nor is any NaN
        assert torch.equal(images, plain)  # the input is not written to
        for laid in layouts:
            assert torch.equal(view, augment(laid(images), seeded()))  # nor does its layout matter
        augment.blur = 0.0
        drawn = augment.draw(len(images), *shape[2:], seeded())
        batch = batched.crop_and_colour(images, drawn, size)
        assert torch.allclose(augment.apply(images, drawn), batch, rtol=0, atol=1e-4)


def test_bfloat16_step_around_it_coarsens_the_view():
    images = pictures(8, 20, 20)
    expected = Augmentation(size=16, blur=1.0)(images, seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(Augmentation(size=16, blur=1.0)(images, seeded()), expected)


def test_view_keeps_a_gradient_graph():
    images = pictures(4, 8, 8).requires_grad_()
    assert not Augmentation(size=8)(images, seeded()).requires_grad


def test_preset_flips_digits_or_changes_what_it_should_keep():
    images = pictures(64, 8, 8, channels=3)
    assert (views.preset("none", 8)(images, seeded()) - images).abs().max() <= 1e-6
    drawn = views.preset("digits", 8).draw(500, 8, 8, seeded())
    assert not drawn.flipped.any() and not drawn.grayscaled.any()
    assert (drawn.factors[:, 2:] == torch.tensor(views.NEUTRAL[2:])).all()
    assert (drawn.boxes[:, 2:].prod(dim=1) < 64).any()
    drawn = views.preset("crop").draw(500, 32, 32, seeded())
    assert (drawn.factors == torch.tensor(views.NEUTRAL)).all() and not drawn.grayscaled.any()
    drawn = views.preset("colour").draw(500, 32, 20, seeded())
    assert (drawn.boxes == torch.tensor([0, 0, 32, 20])).all() and not drawn.flipped.any()
    assert views.preset("simclr", 48) == Augmentation(size=48)
    assert (views.preset("none").draw(3, 10, 100, seeded()).boxes == torch.tensor([0, 0, 10, 100])).all()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("size", 0),
        ("crop_scale", (0.8, 0.2)),
        ("crop_scale", (float("nan"), 1.0)),
        ("crop_ratio", (0.0, 1.0)),
        ("blur_sigma", (2.0, 0.1)),
        ("flip", 1.1),
        ("jitter", (0.4, 0.4, 0.4)),
        ("jitter", (0.4, 0.4, 0.4, 0.6)),
    ],
)
def test_impossible_setting_is_taken(setting, value):
    augment = Augmentation()
    setattr(augment, setting, value)  # as a slider does; the next use says what is wrong
    with pytest.raises(ValueError, match=rf"Augmentation: {setting} is .*, but must be"):
        augment(pictures(8, 8, 8), seeded())


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.rand(3, 8, 8), r"images are \(3, 8, 8\), should be a tensor \(N, C, H, W\) of"),
        (np.zeros((2, 3, 8, 8)), "images are ndarray"),
        (torch.rand(2, 4, 8, 8), r"\(2, 4, 8, 8\).*C = 1 \(gray\) or 3"),
        (torch.rand(2, 8, 8, 3), r"\(2, 8, 8, 3\).*C = 1 \(gray\) or 3"),
        (torch.rand(2, 3, 0, 8), r"at least one pixel"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.int64), "torch.int64, should be uint8, or float"),
        (torch.rand(2, 3, 8, 8) * 255, r"go from .* should lie in \[0, 1\]"),
        (torch.rand(2, 3, 8, 8) - 0.5, r"should lie in \[0, 1\]"),
        (torch.rand(2, 3, 8, 8).index_fill_(3, torch.tensor([2]), float("nan")), r"nan.* should lie in"),
    ],
)
def test_bad_images_are_taken(images, message):
    with pytest.raises(ValueError, match=message):
        Augmentation()(images, seeded())


def test_check_that_was_switched_off_still_looks():
    assert Augmentation(check_inputs=False)(torch.full((2, 3, 8, 8), 2.0), seeded()).max() <= 1


def test_parameters_that_do_not_fit_are_taken():
    images = pictures(8, 10, 10)
    augment = Augmentation(size=8)
    drawn, seven = augment.draw(8, 10, 10, seeded()), augment.draw(7, 10, 10, seeded())
    for name in ("boxes", "flipped", "factors", "grayscaled", "sigma"):
        rest = Parameters(**{**vars(drawn), name: getattr(seven, name)})
        fails(lambda given=rest: augment.apply(images, given), f"Augmentation: {name} is (7", "a tensor (8,")
    for box in ([-1, 0, 4, 4], [0, -1, 4, 4], [0, 0, 0, 4], [0, 0, 4, 0], [7, 0, 4, 4], [0, 7, 4, 4]):
        drawn.boxes[5] = torch.tensor(box)
        fails(lambda: augment.apply(images, drawn), "crop: box [", " leaves the 10 x 10 image")
    fails(lambda: views.preset("simclrr"), "the augmentation is 'simclrr', but must be one of simclr, digits")


def test_the_default_augmentation_leaves_digits_unmirrored_and_gray_alone():
    gray = views.suiting(DIGITS.images)
    assert gray == views.Augmentation(size=8, crop_scale=(0.5, 1.0), flip=0.0, grayscale=0.0)
    colour = views.suiting(torch.zeros(2, 3, 24, 32))
    assert colour == views.Augmentation(size=24)
    told = views.settings_of(views.Augmentation(size=8, blur=0.5)) | {"jitter": [0] * 4}  # as in a file
    named = "Augmentation(size=8, jitter=(0, 0, 0, 0), blur=0.5)"
    assert views.name_of(told, DIGITS.images.shape) == named
