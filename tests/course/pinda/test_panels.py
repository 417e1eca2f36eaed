"""Panels of notebooks 09 and 10: the numbers they show and say are those of the loss and of the maps."""

import math
import re

import numpy as np
import pytest
import torch

from clutils import anatomy
from clutils.course import pinda as lesson
from clutils.course.pinda import detectors
from clutils.course.pinda import panels as pinda
from clutils.training.noise_maps import NoiseMaps


def numbers(panel):
    """The sentence under the image, its minus signs as a computer writes them."""
    return re.sub(r"<[^>]*>", " ", panel.readout.value).replace("−", "-")


def some_maps(n=3, steps=(0, 5, 30), channels=3, size=8, learned_mean=True):
    g = torch.Generator().manual_seed(2)
    shape = len(steps), n, channels, size, size
    pictures = torch.randint(0, 256, shape[1:], generator=g, dtype=torch.uint8)
    scale = 0.1 + 0.2 * torch.rand(shape, generator=g)
    mean = 0.3 * (torch.rand(shape, generator=g) - 0.5) * learned_mean
    return NoiseMaps(list(steps), pictures, scale, mean)


def some_masks(n=3, size=8):
    masks = torch.zeros(n, size, size, dtype=torch.bool)
    for k in range(n):
        masks[k, 1 : 3 + k, 2:6] = True
    return masks


# ---- the auxiliary Gaussian ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "s, K, negative, t", [(0.6, 255, 0.0, 0.3), (0.9, 4, -0.5, 1.0), (-1.0, 1, 1.0, 0.5)]
)
def test_gamma_is_the_positives_share_of_the_softmax_and_the_entropies_agree(s, K, negative, t):
    panel = lesson.auxiliary_gaussian()
    panel.set(positive=s, count=K, similarity=negative, temperature=t)
    share = math.exp(s / t) / (math.exp(s / t) + K * math.exp(negative / t))
    entropy = 0.5 * math.log(2 * math.pi * math.e) - 0.5 * math.log(share)
    assert f"ℓ = -log p⁺ = {-math.log(share):.3f}" in numbers(panel)
    assert f"γ = {share:.3g}" in numbers(panel)
    assert numbers(panel).count(f"{entropy:.4f}") == 2, "the Gaussian's own entropy, and that from the loss"
    left, right = panel.live.figure.axes
    assert [bar.get_width() for bar in left.patches] == pytest.approx([share, 1 - share])
    (curve,) = [line for line in right.lines if line.get_label() == "N(0, 1/γ)"]
    x, y = (np.asarray(v) for v in curve.get_data())
    np.testing.assert_allclose(y, np.exp(-(x**2) * share / 2) * math.sqrt(share / (2 * math.pi)), rtol=1e-9)


def test_the_band_reaches_one_standard_deviation_to_either_side_and_up_to_the_curve():
    panel = lesson.auxiliary_gaussian(positive=0.8, count=16, temperature=0.5)
    s = torch.tensor([[0.8]], dtype=torch.float64)
    W = anatomy.gradient_scale(s[:, 0], torch.zeros(1, 16, dtype=torch.float64), 0.5)
    deviation = float((1 - W) ** -0.5)
    (band,) = panel.live.figure.axes[1].patches
    corners = band.get_xy()
    assert corners[:, 0].max() == pytest.approx(deviation)
    assert corners[:, 0].min() == pytest.approx(-deviation)
    assert corners[:, 1].max() == pytest.approx(1 / (deviation * math.sqrt(2 * math.pi)))
    assert corners[:, 1].min() == 0


def test_a_gaussian_wider_than_the_picture_is_said_to_be():
    panel = lesson.auxiliary_gaussian()
    panel.set(positive=-1.0, temperature=0.05)
    assert "wider than the image" in numbers(panel)
    panel.set(positive=1.0)
    assert "wider than the image" not in numbers(panel)


def test_what_stands_still_is_not_drawn_again_and_the_bell_that_stands_still_stays_on_top():
    panel = lesson.auxiliary_gaussian()
    panel.set(positive=0.5)
    backgrounds = panel.live.backgrounds
    for temperature in (0.1, 0.5, 2.0):
        panel.set(temperature=temperature)
    assert panel.live.backgrounds == backgrounds
    dashed = next(line for line in panel.live.figure.axes[1].lines if line.get_linestyle() == "--")
    assert dashed.get_animated(), "else the band is painted over it"


# ---- the maps ------------------------------------------------------------------------------------------


def shown(panel):
    """The four images as they stand, float (H, W, 3) in [0, 1]."""
    return [np.asarray(ax.images[0].get_array())[..., :3] / 255 for ax in panel.live.figure.axes]


def test_the_pictures_are_those_of_the_maps_with_one_noise_for_all_settings():
    maps = some_maps()
    panel = lesson.noise_maps(maps, generator=torch.Generator().manual_seed(7))
    drawn = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(7))
    for step, picture, strength in ((0, 1, 1.0), (2, 3, 1.0), (2, 3, 2.5), (1, 2, 0.0)):
        panel.set(step=step, picture=picture, strength=strength)
        x = maps.pictures[picture - 1] / 255
        epsilon = maps.mean[step, picture - 1] + strength * maps.scale[step, picture - 1] * drawn
        image, _, sample, noisy = shown(panel)
        for found, expected in ((image, x), (sample, 0.5 + epsilon), (noisy, x + epsilon)):
            np.testing.assert_allclose(found, expected.clamp(0, 1).permute(1, 2, 0).numpy(), atol=0.6 / 255)
        rms = math.sqrt(float((epsilon**2).mean()))
        said = numbers(panel)
        assert f"After step {maps.steps[step]} the noise of image {picture} has an rms of {rms:.3g}" in said
        assert ("times the learned scale" in said) == (strength != 1.0)


@pytest.mark.parametrize("channels", ["mean", "highest", "green"])
def test_the_scale_is_stretched_over_the_run_or_over_its_own_step(channels):
    maps = some_maps()
    panel = lesson.noise_maps(maps)
    per_channel = maps.scale[:, 1]
    values = {"mean": per_channel.mean(1), "highest": per_channel.amax(1), "green": per_channel[:, 1]}[
        channels
    ]
    for colours, among in (("run", values), ("step", values[2])):
        panel.set(step=2, picture=2, channels=channels, colours=colours)
        low, high = float(among.min()), float(among.max())
        note = " ".join(text.get_text() for text in panel.live.figure.axes[1].texts)
        assert f"after step 30\ndark {low:.3g}, bright {high:.3g}" in note
        luma = shown(panel)[1] @ np.array([0.299, 0.587, 0.114])  # viridis gets lighter all the way
        order = values[2].flatten().argsort().numpy()
        assert (np.diff(luma.ravel()[order]) > -0.01).all()
        assert luma.max() - luma.min() == pytest.approx(0.7, abs=0.05) or colours == "run"


def test_as_colour_the_channels_of_the_scale_are_the_channels_of_the_picture():
    maps = some_maps()
    panel = lesson.noise_maps(maps)
    panel.set(step=1, picture=3, channels="colour")
    expected = maps.scale[1, 2] / maps.scale[:, 2].max()
    np.testing.assert_allclose(shown(panel)[1], expected.permute(1, 2, 0).numpy(), atol=0.6 / 255)


def test_a_scale_without_a_pattern_shows_none():
    maps = some_maps()
    maps.scale = torch.full_like(maps.scale, 0.2) + 1e-6 * maps.scale
    panel = lesson.noise_maps(maps)
    assert np.ptp(shown(panel)[1], axis=(0, 1)).max() == 0


@pytest.mark.parametrize(
    "inside, outside, words",
    [
        (0.1, 0.3, "more noise on the background than on the object"),
        (0.3, 0.1, "more noise on the object than on the background"),
        (0.2, 0.2, "about as much noise on the object as on the background"),
    ],
)
def test_the_sentence_says_on_which_side_of_the_outline_the_noise_is(inside, outside, words):
    maps, masks = some_maps(), some_masks()
    there = masks[None, :, None].expand_as(maps.scale)
    maps.scale = torch.where(there, inside, outside).to(maps.scale)
    panel = lesson.noise_maps(maps, masks)
    found = float(detectors.auroc(maps.scale[0].mean(1), masks)[0])
    assert f"an AUROC of {found:.2f}: {words}" in numbers(panel)


def test_the_auroc_is_that_of_the_step_the_picture_and_the_channel():
    maps, masks = some_maps(), some_masks()
    panel = lesson.noise_maps(maps, masks)
    for step, picture in ((0, 1), (2, 3)):
        panel.set(step=step, picture=picture, channels="red")
        found = float(detectors.auroc(maps.scale[step, :, 0], masks)[picture - 1])
        assert f"an AUROC of {found:.2f}" in numbers(panel)
    assert "AUROC" not in numbers(lesson.noise_maps(maps))


def test_the_outline_is_every_side_between_the_mask_and_the_rest():
    mask = torch.tensor([[0, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]], dtype=torch.bool)
    x, y = pinda.outline(mask)
    sides = set()
    for k in range(0, len(x), 3):
        assert math.isnan(x[k + 2])
        sides.add(frozenset([(x[k], y[k]), (x[k + 1], y[k + 1])]))
    expected = set()
    for row in range(3):
        for column in range(4):
            if column < 3 and mask[row, column] != mask[row, column + 1]:
                corner = column + 0.5
                expected.add(frozenset([(corner, row - 0.5), (corner, row + 0.5)]))
            if row < 2 and mask[row, column] != mask[row + 1, column]:
                corner = row + 0.5
                expected.add(frozenset([(column - 0.5, corner), (column + 0.5, corner)]))
    assert sides == expected and len(x) == 3 * len(expected)


def test_moving_on_leaves_the_background_alone():
    panel = lesson.noise_maps(some_maps(), some_masks())
    panel.set(step=1, picture=2)
    backgrounds = panel.live.backgrounds
    panel.set(step=2, picture=3, strength=2.0)
    panel.set(channels="colour", colours="step")
    assert panel.live.backgrounds == backgrounds


def test_one_grey_picture_is_enough():
    panel = lesson.noise_maps(some_maps(n=1, channels=1))
    assert panel.inputs["picture"].max == 1
    assert [name for name, _ in panel.inputs["channels"].options] == ["mean"]


@pytest.mark.parametrize(
    "maps, masks, message",
    [
        (some_maps(steps=(3,)), None, r"noise_maps: maps of the steps \[3\]; at least two"),
        (some_maps(), some_masks(2), r"auroc: maps are \(3, 8, 8\), but masks are \(2, 8, 8\)"),
        (some_maps(), torch.zeros(3, 8, 8, dtype=torch.bool), "the mask of image 0 is empty"),
    ],
)
def test_maps_and_masks_that_do_not_fit_are_refused_before_any_slider(maps, masks, message):
    with pytest.raises(ValueError, match=message):
        lesson.noise_maps(maps, masks)
