"""The learned noise as drawn: the numbers it was given, one bar for all, every channel as named."""

import numpy as np
import pytest
import torch

from clutils import figures
from tests.course.drawn import inside


def drawn(n=3, channels=3, size=8, seed=0):
    """Images, scale, sample and mean, (n, channels, size, size) each."""
    g = torch.Generator().manual_seed(seed)
    pictures = torch.randint(0, 256, (n, channels, size, size), generator=g, dtype=torch.uint8)
    scale, sample, mean = (torch.rand(n, channels, size, size, generator=g) for _ in range(3))
    return pictures, 0.3 * scale + 0.05, sample - 0.5, mean - 0.5


def columns_of(image, n):
    """An image's row of n images, without the gaps."""
    array = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), np.nan)
    gap = (array.shape[1] - n * 8) // (n - 1)
    return np.stack([array[:, k * (8 + gap) : k * (8 + gap) + 8] for k in range(n)])


def test_noise_shows_the_numbers_it_was_given():
    pictures, scale, sample, mean = drawn()
    figure = figures.noise.noise(pictures, scale, sample, mean)
    images = [
        columns_of(ax.images[0], 3) for ax in figure.axes if ax.images and ax.get_ylabel()[:1] in "isma"
    ]
    rows = [pictures / 255, scale.mean(1), mean.mean(1), (0.5 + sample).clamp(0, 1)]
    rows.append((pictures / 255 + sample).clamp(0, 1))
    rows = [row.permute(0, 2, 3, 1) if row.ndim == 4 else row for row in rows]
    assert len(images) == 5
    for image, row in zip(images, rows, strict=True):
        np.testing.assert_allclose(image, row.numpy(), atol=1e-6)


def test_noise_has_one_colour_bar_for_all_scales_and_a_diverging_one_around_0_for_the_mean():
    pictures, scale, sample, mean = drawn()
    figure = figures.noise.noise(pictures, scale, sample, mean)
    maps = [ax.images[0] for ax in figure.axes if ax.images and ax.images[0].colorbar]
    assert len(maps) == 2
    assert maps[0].get_clim() == pytest.approx((float(scale.mean(1).min()), float(scale.mean(1).max())))
    low, high = maps[1].get_clim()
    assert low == -high == pytest.approx(-float(mean.mean(1).abs().max()))
    assert "standard\ndeviation of ε,\n1 = black to white" in maps[0].colorbar.ax.get_ylabel()
    plain = figures.noise.noise(pictures, scale, sample)
    assert sum(bool(ax.images and ax.images[0].colorbar) for ax in plain.axes) == 1


def test_a_scale_that_is_the_same_everywhere_shows_no_pattern():
    pictures, scale, sample, _ = drawn()
    flat = torch.full_like(scale, 0.2) + 1e-7 * scale  # rounding is no pattern
    image = figures.noise.noise(pictures, flat, sample).axes[1].images[0]
    assert image.get_clim() == pytest.approx((0, 0.2), abs=1e-5)


def test_each_channel_handling_is_what_its_name_says():
    values = torch.tensor([[[[1.0]], [[-5.0]], [[3.0]]]])
    names = [name for name in figures.noise.CHANNELS if name != "colour"]
    shown = {name: float(figures.noise.of_channels(values, name)) for name in names}
    expected = {"mean": -1 / 3, "highest": -5, "red": 1, "green": -5, "blue": 3}
    assert shown == pytest.approx(expected)


def test_as_colour_each_pictures_own_maximum_is_full_and_it_says_so():
    pictures, scale, sample, mean = drawn()
    figure = figures.noise.noise(pictures, scale, sample, mean, channels="colour")
    shown = columns_of(figure.axes[1].images[0], 3)
    np.testing.assert_allclose(shown.max(axis=(1, 2, 3)), 1)
    ratio = (scale / scale.amax((1, 2, 3), keepdim=True)).permute(0, 2, 3, 1)
    np.testing.assert_allclose(shown, ratio.numpy(), atol=1e-6)
    assert "maximum = 1" in figure.axes[1].get_ylabel()


@pytest.mark.parametrize("n, options", [(1, {}), (2, {"channels": "colour"}), (12, {})])
def test_no_label_of_the_maps_is_cut(n, options):
    pictures, scale, sample, mean = drawn(n)
    figure = figures.noise.noise(pictures, scale, sample, mean, **options)
    assert inside(figure)
    assert f"{n} images" in figures.alt(figure)


def test_grey_pictures_have_maps_too():
    pictures, scale, sample, _ = drawn(2, channels=1)
    figure = figures.noise.noise(pictures, scale, sample)
    np.testing.assert_allclose(columns_of(figure.axes[1].images[0], 2), scale[:, 0].numpy(), atol=1e-6)


GREY = dict(zip(("pictures", "scale", "sample"), drawn(channels=1), strict=False))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"scale": torch.zeros(2, 3, 8, 8)}, r"noise: scale is \(2, 3, 8, 8\), but the images are \(3, 3,"),
        ({"channels": "alpha"}, "noise: channels is 'alpha'; there are mean, highest, red"),
        (GREY | {"channels": "red"}, r"channels is 'red', but images \(3, 1, 8, 8\) have 1"),
    ],
)
def test_bad_maps_are_quoted(change, message):
    given = dict(zip(("pictures", "scale", "sample"), drawn(), strict=False))
    with pytest.raises(ValueError, match=message):
        figures.noise.noise(**given | change)


def test_the_mean_gets_lighter_all_the_way_from_below_0_to_above():
    luma = figures.noise.AROUND_0(np.linspace(0, 1, 101))[:, :3] @ np.array([0.299, 0.587, 0.114])
    assert (np.diff(luma) > 0).all()
