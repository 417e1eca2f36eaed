"""A map's score against other people's, the cheap maps against loops, and every input without an answer."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage
from sklearn.metrics import roc_auc_score

from clutils import data
from clutils.course.pinda import detectors


def _maps_and_masks(n: int = 6, levels: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    maps = torch.randn(n, 5, 7, generator=generator, dtype=torch.float64)
    if levels:
        maps = (maps * levels).round()  # many ties
    return maps, torch.rand(n, 5, 7, generator=generator) < torch.linspace(0.1, 0.9, n)[:, None, None]


@pytest.mark.parametrize("levels", [0, 1, 3])
def test_auroc_is_scikit_learns_ties_included(levels: int) -> None:
    maps, masks = _maps_and_masks(levels=levels)
    found = detectors.auroc(maps, masks)
    assert found.dtype == torch.float64 and found.shape == (6,)
    for score, values, mask in zip(found.tolist(), maps, masks, strict=True):
        assert score == pytest.approx(roc_auc_score(mask.flatten(), values.flatten()), abs=1e-12)


def test_auroc_does_not_merge_values_that_only_float32_would_call_equal() -> None:
    maps = torch.tensor([[[1.0, 1.0 + 1e-12]]], dtype=torch.float64)
    assert detectors.auroc(maps, torch.tensor([[[False, True]]])).item() == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda maps, masks: masks[2].fill_(False), "mask of image 2 is empty, as 1 of 6"),
        (lambda maps, masks: masks[4:].fill_(True), "mask of image 4 is full, as 2 of 6"),
        (lambda maps, masks: maps[3, 0, 0].fill_(torch.nan), "map of image 3 holds NaN"),
    ],
)
def test_auroc_names_the_image_that_has_none(change, message: str) -> None:
    maps, masks = _maps_and_masks()
    change(maps, masks)
    with pytest.raises(ValueError, match=message):
        detectors.auroc(maps, masks)


def test_auroc_refuses_shapes_that_do_not_belong_together() -> None:
    maps, masks = _maps_and_masks()
    with pytest.raises(ValueError, match=r"maps are \(6, 5, 6\), but masks are \(6, 5, 7\)"):
        detectors.auroc(maps[..., :6], masks)
    with pytest.raises(ValueError, match=r"masks are torch\.float32"):
        detectors.auroc(maps, masks.float())


@pytest.fixture(scope="module")
def pictures() -> torch.Tensor:
    return torch.randint(0, 256, (4, 3, 9, 12), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


def test_flat_patches_are_ties_and_not_the_noise_of_rounding() -> None:
    flat = torch.full((1, 3, 12, 12), 77, dtype=torch.uint8)
    flat[..., 9:] = 201
    for found in (detectors.edge_magnitude(flat), detectors.local_variance(flat, 3)):
        assert (found[..., :8] == 0).all() and (found[..., 8:10] > 0).all() and (found[..., 10:] == 0).all()


def test_eight_bits_and_floats_of_any_precision_give_one_map(pictures: torch.Tensor) -> None:
    for function in (detectors.edge_magnitude, lambda images: detectors.local_variance(images, 3)):
        torch.testing.assert_close(function(pictures.double() / 255), function(pictures), atol=1e-12, rtol=0)
        single = function(pictures.float() / 255)
        assert single.dtype == torch.float64
        torch.testing.assert_close(single, function(pictures), atol=1e-6, rtol=0)
        one = pictures[:, :1]  # the three shares of the grey sum to 0.9999
        torch.testing.assert_close(function(one.expand(-1, 3, -1, -1)), function(one), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("n", [2, 3, 50])
def test_shuffling_gives_every_map_to_another_picture(n: int) -> None:
    maps = torch.arange(n).float()[:, None, None].expand(n, 2, 3)
    owners = detectors.shuffled(maps, torch.Generator().manual_seed(1))[:, 0, 0].long()
    assert sorted(owners.tolist()) == list(range(n)) and (owners != torch.arange(n)).all()
    again = detectors.shuffled(maps, torch.Generator().manual_seed(1))[:, 0, 0].long()
    assert torch.equal(owners, again)
    if n == 50:
        other = detectors.shuffled(maps, torch.Generator().manual_seed(2))[:, 0, 0].long()
        assert not torch.equal(owners, other)


def test_the_band_holds_the_pixels_near_the_other_side_and_no_more() -> None:
    masks = data.load("scenes", limit=3).masks
    for width in (1, 3):
        band = detectors.boundary_band(masks, width)
        assert band.dtype == torch.bool and band.any(2).any(1).all()
        for n in range(3):
            inside = masks[n].numpy()
            to_outside = ndimage.distance_transform_cdt(inside, metric="chessboard")
            to_inside = ndimage.distance_transform_cdt(~inside, metric="chessboard")
            expected = np.where(inside, to_outside, to_inside) <= width
            assert np.array_equal(band[n].numpy(), expected)


def test_the_band_does_not_follow_the_border_of_the_picture() -> None:
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    mask[..., :4] = True  # touches three borders
    band = detectors.boundary_band(mask, 1)
    assert band[0, :, 3:5].all() and band.sum() == 16


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: detectors.edge_magnitude(torch.zeros(3, 4, 4)), r"images are \(3, 4, 4\)"),
        (lambda: detectors.edge_magnitude(torch.zeros(1, 2, 4, 4)), "1 or 3"),
        (lambda: detectors.edge_magnitude(torch.zeros(1, 3, 4, 4, dtype=torch.int64)), "torch.int64; uint8"),
        (lambda: detectors.local_variance(torch.full((2, 1, 4, 4), math.nan), 3), "image 0 holds NaN"),
        (lambda: detectors.local_variance(torch.zeros(1, 3, 4, 4), 4), "width is 4; an odd"),
        (lambda: detectors.shuffled(torch.zeros(1, 4, 4)), "at least two"),
        (lambda: detectors.boundary_band(torch.zeros(2, 4, 4, dtype=torch.bool), 1), "image 0 is empty"),
        (lambda: detectors.boundary_band(torch.ones(2, 4, 4, dtype=torch.bool), 1), "image 0 is full"),
        (lambda: detectors.boundary_band(torch.eye(4).bool()[None], 0), "width is 0"),
    ],
)
def test_what_has_no_answer_says_what_came_in(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
