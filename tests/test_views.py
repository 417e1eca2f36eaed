"""Views: torchvision's functions are the independent answer, image by image, for equal parameters."""

import colorsys
import math
import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
import torch
import torchvision.transforms.v2.functional as TF
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import stats
from torchvision import transforms as T

from clutils import compiled_views, views
from clutils.views import Augmentation, Parameters


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(n: int, height: int, width: int, channels: int = 3, seed: int = 0) -> torch.Tensor:
    """Float noise; in front what breaks colour formulas: gray, black, white, primaries, equal channels."""
    images = torch.rand(n, channels, height, width, generator=seeded(seed))
    special = [
        torch.full_like(images[0], 0.3),
        torch.zeros_like(images[0]),
        torch.ones_like(images[0]),
        (images[0] > 0.5).float(),
        (images[0] * 3).round() / 3,
        images[0] * 1e-6,
    ]
    images[: len(special)] = torch.stack(special)[:n]
    return images


def random_boxes(n: int, height: int, width: int, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    tall, wide = rng.integers(1, height + 1, n), rng.integers(1, width + 1, n)
    top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
    return torch.from_numpy(np.stack([top, left, tall, wide], axis=1))


def one_by_one(function, images, *parameters) -> torch.Tensor:
    return torch.stack([function(image, *p) for image, *p in zip(images, *parameters, strict=True)])


@pytest.fixture(params=["compiled", "batch formulas"])
def way(request, monkeypatch) -> str:
    """Both ways to a view on a CPU: without the first `Augmentation` takes the second, as on a GPU."""
    if request.param == "batch formulas":
        monkeypatch.setattr(views, "_compiled_views", lambda: None)
    return request.param


def parameters(images: torch.Tensor, **drawn: torch.Tensor) -> Parameters:
    """Parameters that change nothing, but for those that are given."""
    n, _, height, width = images.shape
    unchanged = {
        "boxes": torch.tensor([0, 0, height, width]).repeat(n, 1),
        "flipped": torch.zeros(n, dtype=torch.bool),
        "factors": torch.tensor(views.NEUTRAL).repeat(n, 1),
        "order": torch.arange(4),
        "grayscaled": torch.zeros(n, dtype=torch.bool),
        "sigma": torch.zeros(n),
    }
    return Parameters(**unchanged | drawn)


# ---- correctness: each step ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("height", "width", "size", "tolerance"),
    [(32, 32, 32, 1e-6), (20, 31, 40, 1e-6), (96, 96, 32, 1e-6), (75, 50, 7, 1e-6), (300, 200, 96, 1e-5)],
)
def test_crop_differs_from_torchvisions_resized_crop(height, width, size, tolerance, way):
    """The first two only enlarge, the last three shrink (antialiased) nearly every box."""
    images, boxes = pictures(24, height, width), random_boxes(24, height, width)
    expected = one_by_one(
        lambda image, box: TF.resized_crop(image, *box.tolist(), [size, size], antialias=True), images, boxes
    )
    assert (views.crop(images, boxes, size) - expected).abs().max() <= tolerance
    ours = Augmentation(size=size).apply(images, parameters(images, boxes=boxes))
    assert (ours - expected).abs().max() <= tolerance


def test_enlarging_crop_differs_from_plain_bilinear_of_the_box_alone():
    images, boxes = pictures(24, 32, 32), random_boxes(24, 32, 32)
    for image, box, ours in zip(images, boxes.tolist(), views.crop(images, boxes, 32), strict=True):
        top, left, tall, wide = box
        inside = image[None, :, top : top + tall, left : left + wide]
        plain = torch.nn.functional.interpolate(inside, (32, 32), mode="bilinear", align_corners=False)
        assert (ours - plain[0]).abs().max() <= 1e-6


@pytest.mark.parametrize("size", [6, 40])
def test_crop_sees_pixels_outside_its_box(size, way):
    images, boxes = pictures(16, 30, 24), random_boxes(16, 30, 24)
    elsewhere = torch.rand(images.shape, generator=seeded(9))
    for image, other, (top, left, tall, wide) in zip(images, elsewhere, boxes.tolist(), strict=True):
        other[:, top : top + tall, left : left + wide] = image[:, top : top + tall, left : left + wide]
    assert torch.equal(views.crop(images, boxes, size), views.crop(elsewhere, boxes, size))
    ours, others = (Augmentation(size=size).apply(x, parameters(x, boxes=boxes)) for x in (images, elsewhere))
    assert torch.equal(ours, others)


def test_crop_of_uint8_differs_from_pillow_by_more_than_its_rounding():
    array = np.random.default_rng(0).integers(0, 256, (12, 48, 40, 3), dtype=np.uint8)
    boxes = random_boxes(12, 48, 40)
    images = torch.from_numpy(array).permute(0, 3, 1, 2)
    for image, box, ours in zip(array, boxes.tolist(), views.crop(images, boxes, 32), strict=True):
        pillow = TF.pil_to_tensor(TF.resized_crop(Image.fromarray(image), *box, [32, 32]))
        assert (255 * ours - pillow).abs().max() <= 1.01  # rounded to 8 bits after the rows and the columns


def test_flip_or_mirrored_crop_is_not_the_mirror_image():
    images, boxes = pictures(20, 17, 23), random_boxes(20, 17, 23)
    flipped = torch.rand(20, generator=seeded(1)) < 0.5
    expected = one_by_one(lambda x, f: TF.horizontal_flip(x) if f else x, images, flipped)
    assert torch.equal(views.flip(images, flipped), expected)
    separately = views.flip(views.crop(images, boxes, 16), flipped)
    assert (views.crop(images, boxes, 16, flipped) - separately).abs().max() <= 1e-6


ADJUSTMENTS = pytest.mark.parametrize(
    ("ours", "theirs", "low", "high", "tolerance"),
    [
        (views.adjust_brightness, TF.adjust_brightness, 0, 2.5, 1e-6),
        (views.adjust_contrast, TF.adjust_contrast, 0, 2.5, 1e-6),
        (views.adjust_saturation, TF.adjust_saturation, 0, 2.5, 1e-6),
        (views.adjust_hue, TF.adjust_hue, -0.5, 0.5, 1e-5),
    ],
)


@pytest.mark.parametrize("channels", [1, 3])
@ADJUSTMENTS
def test_adjustment_differs_from_torchvisions(ours, theirs, low, high, tolerance, channels):
    images = pictures(40, 13, 9, channels)
    amount = torch.linspace(low, high, 40)[torch.randperm(40, generator=seeded())]
    expected = one_by_one(lambda x, a: theirs(x, a.item()), images, amount)
    assert (ours(images, amount) - expected).abs().max() <= tolerance
    amount[:] = (low + high) / 2 if low < 0 else 1  # nothing to change
    assert (ours(images, amount) - images).abs().max() <= tolerance


@pytest.mark.parametrize("channels", [1, 3])
@ADJUSTMENTS
def test_adjustment_within_a_view_differs_from_torchvisions(
    ours, theirs, low, high, tolerance, channels, way
):
    images = pictures(40, 13, 13, channels)
    factors = torch.tensor(views.NEUTRAL).repeat(40, 1)
    which = views.ADJUSTMENTS.index(ours.__name__.removeprefix("adjust_"))
    factors[:, which] = torch.linspace(low, high, 40)[torch.randperm(40, generator=seeded())]
    expected = one_by_one(lambda x, a: theirs(x, a.item()), images, factors[:, which])
    view = Augmentation(size=13).apply(images, parameters(images, factors=factors))
    assert (view - expected).abs().max() <= tolerance


def test_view_with_nothing_to_change_changes(way):
    images = pictures(40, 13, 13)
    assert torch.equal(Augmentation(size=13).apply(images, parameters(images)), images)
    bytes_ = (255 * images).byte()
    view = Augmentation(size=13).apply(bytes_, parameters(bytes_))
    assert (view - bytes_.float() / 255).abs().max() <= 1e-6


def test_hue_differs_from_the_standard_librarys_hsv():
    images, shift = pictures(12, 4, 4), torch.linspace(-0.5, 0.5, 12)
    for image, turn, ours in zip(images, shift.tolist(), views.adjust_hue(images, shift), strict=True):
        for pixel, result in zip(image.flatten(1).T.tolist(), ours.flatten(1).T.tolist(), strict=True):
            hue, saturation, value = colorsys.rgb_to_hsv(*pixel)
            assert result == pytest.approx(colorsys.hsv_to_rgb((hue + turn) % 1, saturation, value), abs=1e-5)


def test_grayscale_differs_from_torchvisions():
    images = pictures(10, 8, 8)
    assert (views.to_grayscale(images) - TF.rgb_to_grayscale(images, 3)).abs().max() <= 1e-6
    assert torch.equal(views.to_grayscale(images[:, :1]), images[:, :1])


@pytest.mark.parametrize(("height", "width", "kernel"), [(16, 21, 3), (32, 32, 9), (5, 12, 9), (3, 3, 1)])
def test_blur_differs_from_torchvisions(height, width, kernel):
    images, sigma = pictures(12, height, width), torch.linspace(0.1, 2, 12)
    expected = one_by_one(lambda x, s: TF.gaussian_blur(x, [kernel] * 2, [s.item()] * 2), images, sigma)
    assert (views.blur(images, sigma, kernel) - expected).abs().max() <= 1e-6


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 4), (2, 3)])
def test_blur_wider_than_the_image_loses_or_adds_light(height, width):
    flat = torch.full((2, 3, height, width), 0.7)
    assert (views.blur(flat, torch.tensor([0.5, 5.0]), 9) - flat).abs().max() <= 1e-6


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
def test_view_differs_from_torchvisions_chain_with_the_same_parameters(seed, way):
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


@pytest.mark.parametrize(("hue", "mean", "most"), [(0.0, 3, 8), (0.1, 5, 24)])
def test_view_is_far_from_the_one_that_pillow_makes(hue, mean, most):
    """A smooth picture, in 255ths. Pillow cuts off to 8 bits after every step, which the next ones enlarge by
    up to 1.4: 1 + 1.4 + 1.4² + 1.4³ at most; its hue comes in 256ths of a turn, 6 more, enlarged as much."""
    ramp = np.linspace(0, 1, 48)
    array = np.stack([np.outer(ramp, ramp), np.outer(ramp, 1 - ramp), np.outer(1 - ramp, ramp**2)], axis=-1)
    array = (255 * array).round().astype(np.uint8)
    augment = Augmentation(size=32, jitter=(0.4, 0.4, 0.4, hue))
    drawn = augment.draw(24, 48, 48, seeded(3))
    ours = augment.apply(torch.from_numpy(array).permute(2, 0, 1).repeat(24, 1, 1, 1), drawn)
    for i in range(24):
        rest = (drawn.flipped[i], drawn.factors[i], drawn.order, drawn.grayscaled[i], drawn.sigma[i], 3)
        theirs = TF.pil_to_tensor(chain(Image.fromarray(array), drawn.boxes[i], 32, *rest))
        difference = (255 * ours[i] - theirs).abs()
        assert difference.mean() <= mean and difference.max() <= most


def test_one_channel_image_gets_colour_or_loses_its_contrast_jitter(way):
    images = pictures(16, 12, 12, channels=1)
    augment = Augmentation(size=12, jitter_prob=1.0, grayscale=1.0)
    drawn = augment.draw(16, 12, 12, seeded())
    view = augment.apply(images, drawn)
    expected = views.crop(images, drawn.boxes, 12, drawn.flipped)
    for which in drawn.order.tolist():
        if which < 2:
            adjust = (views.adjust_brightness, views.adjust_contrast)[which]
            expected = adjust(expected, drawn.factors[:, which])
    assert (view - expected).abs().max() <= 1e-6
    assert view.shape == (16, 1, 12, 12)


def test_gray_picture_turns_nan_or_coloured(way):
    flat = torch.full((8, 3, 10, 10), 0.5)
    view = Augmentation(size=10, jitter=(0, 0, 0.9, 0.5), jitter_prob=1.0, grayscale=0.0)(flat, seeded())
    assert (view - flat).abs().max() <= 1e-4  # torchvision's shares of red, green and blue add up to 0.9999
    assert (view - view[:, :1]).abs().max() <= 1e-6


# ---- correctness: the two ways to a view on a CPU ---------------------------------------------------------


@pytest.mark.parametrize("first", range(4))
def test_compiled_view_differs_from_the_batch_formulas(first):
    """In every order of the jitter, in bytes and floats, larger and smaller, and more than training does."""
    strong = Augmentation(size=24, jitter=(0.9, 0.9, 0.9, 0.5), jitter_prob=0.9, grayscale=0.1)
    for seed, order in enumerate(order for order in permutations(range(4)) if order[0] == first):
        for images in (pictures(16, 40, 33), (255 * pictures(16, 17, 60, seed=1)).byte()):
            drawn = strong.draw(16, *images.shape[2:], seeded(seed))
            drawn.order = torch.tensor(order)
            batch = views._crop_and_colour(images, drawn, 24)
            assert (compiled_views.crop_and_colour(images, drawn, 24) - batch).abs().max() <= 1e-4


def test_compiled_way_is_not_taken_or_loaded_where_it_cannot_run(monkeypatch):
    assert views._compiled_views() is compiled_views
    images = pictures(16, 20, 20)
    compiled = Augmentation(size=16)(images, seeded())
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "numba", None)  # as if it weren't installed
        assert views._compiled_views.__wrapped__() is None
    with monkeypatch.context() as interpreted:
        interpreted.setattr("numba.config.DISABLE_JIT", 1)  # loops over pixels in plain Python: minutes
        assert views._compiled_views.__wrapped__() is None
    monkeypatch.setattr(views, "_compiled_views", lambda: None)
    batch = Augmentation(size=16)(images, seeded())
    assert not torch.equal(batch, compiled)  # the other way, indeed
    assert (batch - compiled).abs().max() <= 1e-4


def test_a_folder_that_numba_cannot_write_to_stops_it():
    """numba keeps nothing of a function that stands in no file, and refuses when told to."""
    names = {}
    exec("def double(x):\n    return 2 * x", names)
    assert compiled_views.compiled(names["double"])(1.5) == 3.0


def test_number_of_threads_or_the_rest_of_the_batch_changes_a_view():
    images = (255 * pictures(67, 64, 64)).byte()  # 67: no two threads get the same number of images
    augment = Augmentation(size=64, blur=0.5)
    assert images.numel() > 8 * compiled_views.VALUES_A_THREAD
    drawn = augment.draw(67, 64, 64, seeded())
    torch.set_num_threads(1)
    expected = augment.apply(images, drawn)
    for threads in (2, 3, 8):
        torch.set_num_threads(threads)
        assert torch.equal(augment.apply(images, drawn), expected)
    rows = {name: value[40:41] for name, value in vars(drawn).items() if name != "order"}
    alone = augment.apply(images[40:41], Parameters(order=drawn.order, **rows))
    assert torch.equal(alone[0], expected[40])


def test_views_of_several_threads_at_once_mix():
    """A training in the background and a slider's callback."""
    images = (255 * pictures(48, 64, 64)).byte()
    augment = Augmentation(size=64)
    expected = [augment(images, seeded(seed)) for seed in range(12)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda seed: augment(images, seeded(seed)), range(12)))
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


class SeededViews(torch.utils.data.Dataset):
    """Item i: the views of all images, drawn with seed i."""

    def __init__(self, images: torch.Tensor) -> None:
        self.images = images

    def __len__(self) -> int:
        return 6

    def __getitem__(self, seed: int) -> torch.Tensor:
        return Augmentation(size=64)(self.images, seeded(seed))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of threads that a fork leaves behind
def test_view_of_a_forked_worker_hangs_or_differs():
    batches = SeededViews((255 * pictures(48, 64, 64)).byte())
    expected = [batches[seed] for seed in range(6)]  # this process has used its threads before it forks
    loader = torch.utils.data.DataLoader(
        batches, batch_size=None, num_workers=2, multiprocessing_context="fork", timeout=60
    )
    found = list(loader)
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


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
    for name, column, (low, high) in zip(views.ADJUSTMENTS, drawn.T, ranges, strict=True):
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(0, 5),
    channels=st.sampled_from([1, 3]),
    height=st.integers(1, 24),
    width=st.integers(1, 24),
    size=st.integers(1, 30),
    fill=st.sampled_from(["noise", "zeros", "ones", "constant", "two colours"]),
    dtype=st.sampled_from([torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64]),
    layout=st.sampled_from(["contiguous", "transposed", "channels last", "every other"]),
    seed=st.integers(0, 1000),
)
def test_an_edge_input_breaks_the_view(n, channels, height, width, size, fill, dtype, layout, seed):
    shape = (n, channels, height, width)
    images = {
        "noise": torch.rand(shape, generator=seeded(seed)),
        "zeros": torch.zeros(shape),
        "ones": torch.ones(shape),
        "constant": torch.full(shape, 0.37),
        "two colours": (torch.rand(shape, generator=seeded(seed)) < 0.5).float(),
    }[fill]
    images = (255 * images).round().to(dtype) if dtype == torch.uint8 else images.to(dtype)
    plain = images.clone()
    if layout == "transposed":
        images = images.mT.contiguous().mT
    elif layout == "channels last":
        images = images.to(memory_format=torch.channels_last)
    elif layout == "every other":
        images = images.repeat_interleave(2, dim=3)[..., ::2]
    augment = Augmentation(size=size, jitter=(0.8, 0.8, 0.8, 0.5), flip=0.5, grayscale=0.3, blur=0.5)
    view = augment(images, seeded(seed))
    assert view.shape == (n, channels, size, size) and view.dtype == torch.float32
    assert torch.isfinite(view).all()
    assert ((view >= 0) & (view <= 1)).all()
    assert torch.equal(images, plain)  # the input is not written to
    assert torch.equal(view, augment(plain, seeded(seed)))  # nor does its layout matter
    augment.blur = 0.0
    drawn = augment.draw(n, height, width, seeded(seed))
    batch = views._crop_and_colour(images, drawn, size)
    assert torch.allclose(augment.apply(images, drawn), batch, rtol=0, atol=1e-4)


def test_bfloat16_step_around_it_coarsens_the_view():
    images = pictures(8, 20, 20)
    expected = Augmentation(size=16, blur=1.0)(images, seeded())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(Augmentation(size=16, blur=1.0)(images, seeded()), expected)


def test_view_of_a_memory_map_differs_from_the_view_of_its_copy(tmp_path):
    """STL-10's files hold columns first: a transposed view of a read-only file."""
    array = np.random.default_rng(0).integers(0, 256, (6, 3, 12, 12), dtype=np.uint8)
    array.tofile(tmp_path / "images.bin")
    on_disk = np.memmap(tmp_path / "images.bin", dtype=np.uint8, mode="c", shape=array.shape)
    mapped = torch.from_numpy(on_disk).mT
    augment = Augmentation(size=12)
    assert torch.equal(augment(mapped, seeded()), augment(torch.from_numpy(array).mT.contiguous(), seeded()))


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
        ("size", 7.5),
        ("crop_scale", (0.0, 1.0)),
        ("crop_scale", (0.8, 0.2)),
        ("crop_scale", (0.5, 1.2)),
        ("crop_scale", (float("nan"), 1.0)),
        ("crop_ratio", (0.0, 1.0)),
        ("blur_sigma", (2.0, 0.1)),
        ("flip", 1.1),
        ("flip", float("nan")),
        ("jitter_prob", -0.1),
        ("grayscale", 2),
        ("blur", -1),
        ("jitter", (0.4, 0.4, 0.4)),
        ("jitter", (0.4, -0.4, 0.4, 0.1)),
        ("jitter", (0.4, 0.4, 0.4, 0.6)),
        ("jitter", (0.4, 0.4, float("nan"), 0.1)),
    ],
)
def test_impossible_setting_is_taken(setting, value):
    augment = Augmentation()
    setattr(augment, setting, value)  # as a slider does; the next use says what is wrong
    with pytest.raises(ValueError, match=rf"Augmentation: {setting} is .*, should be"):
        augment(pictures(8, 8, 8), seeded())


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.rand(3, 8, 8), r"images are \(3, 8, 8\), should be a tensor \(N, C, H, W\)"),
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
    with pytest.raises(ValueError, match="8 images but parameters for 7"):
        augment.apply(images, augment.draw(7, 10, 10, seeded()))
    with pytest.raises(ValueError, match=r"crop: box \[0, 0, 40, 40\].* leaves the 10 x 10 image"):
        views.crop(images, torch.tensor([[0, 0, 40, 40]]).repeat(8, 1), 8)
    drawn = augment.draw(8, 10, 10, seeded())
    for name in ("flipped", "factors", "grayscaled", "sigma"):
        rest = {**vars(drawn), name: getattr(drawn, name)[:7]}
        with pytest.raises(ValueError, match=rf"Augmentation: {name} is \(7.*, should be a tensor \(8,"):
            augment.apply(images, Parameters(**rest))
    for box in ([-1, 0, 4, 4], [0, -1, 4, 4], [0, 0, 0, 4], [0, 0, 4, 0], [7, 0, 4, 4], [0, 7, 4, 4]):
        drawn.boxes[5] = torch.tensor(box)
        with pytest.raises(ValueError, match=r"crop: box \[.* leaves the 10 x 10 image"):
            augment.apply(images, drawn)
    with pytest.raises(ValueError, match=r"crop: boxes is \(8, 2\), should be a tensor \(8, 4\)"):
        views.crop(images, torch.zeros(8, 2), 8)
    with pytest.raises(ValueError, match=r"adjust_contrast: factor is \(3,\), should be a tensor \(8,\)"):
        views.adjust_contrast(images, torch.ones(3))
    with pytest.raises(ValueError, match=r"adjust_hue: shift is 0.2, should be a tensor \(8,\)"):
        views.adjust_hue(images, 0.2)
    with pytest.raises(ValueError, match=r"adjust_hue: images are torch\.uint8, should be float32"):
        views.adjust_hue((images * 255).byte(), torch.ones(8))
    with pytest.raises(ValueError, match="blur: kernel is 4, should be an odd number"):
        views.blur(images, torch.ones(8), 4)
    with pytest.raises(ValueError, match="'simclrr' is not one of simclr, digits"):
        views.preset("simclrr")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("generator_on", ["cpu", "cuda"])
def test_view_on_the_gpu_is_another_one(generator_on):
    images = pictures(16, 20, 20)
    augment = Augmentation(size=16, blur=0.5)
    view = augment(images.cuda(), torch.Generator(generator_on).manual_seed(0))
    drawn = augment.draw(16, 20, 20, torch.Generator(generator_on).manual_seed(0))
    assert view.is_cuda
    assert (view.cpu() - augment.apply(images, drawn)).abs().max() <= 1e-4
