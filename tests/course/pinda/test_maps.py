"""What the maps of the learned noise show: measured against masks."""

import pytest
import torch
from torch import nn

from clutils import data, measures
from clutils.course.pinda import detectors, maps

SCENES = data.load("scenes", limit=60)


class Left(nn.Module):
    """Sees the left half of the first channel, a weighted sum of it, and nothing else."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(5, 8, 4))

    def forward(self, x):
        return torch.einsum("nhw,fhw->nf", x[:, 0, :, :4], self.weight) + torch.arange(5.0)


def test_indifference_is_minus_the_log_of_the_squared_jacobian_of_the_direction():
    encoder, x = Left(), torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    found = maps.indifference(encoder, x)
    assert (found[:, :, 4:].min() > found[:, :, :4].max()).item()  # blind on the right
    jacobian = torch.autograd.functional.jacobian(
        lambda picture: nn.functional.normalize(encoder(picture[None]), dim=1)[0], x[0].float() / 255
    )
    exact = jacobian.pow(2).sum(dim=(0, 1))[:, :4]  # over features and channels
    many = torch.stack([(-maps.indifference(encoder, x[:1], seed=s)[0]).exp() for s in range(200)])
    torch.testing.assert_close(many.mean(dim=0)[:, :4], exact, rtol=0.15, atol=0)


def test_the_measure_is_the_mean_auroc_per_picture_of_object_and_outline_with_its_interval():
    masks = SCENES.masks[:20]
    band = detectors.boundary_band(masks, 2)
    draw = torch.Generator().manual_seed(0)
    found = {
        "mask": masks.double(),
        "rest": -masks.double(),
        "band": band.double(),
        "noise": torch.rand(masks.shape, generator=draw),
    }
    table = maps.measure(found, masks).set_index("map")
    assert table.loc["mask", "object"] == 1 and table.loc["rest", "object"] == 0
    assert table.loc["band", "outline"] == 1
    assert table.loc["noise", "object"] == pytest.approx(0.5, abs=0.02)
    expected = detectors.auroc(found["noise"], band)
    assert table.loc["noise", "outline"] == pytest.approx(expected.mean().item())
    low, high = measures.bootstrap(expected)
    assert (table.loc["noise", "outline_low"], table.loc["noise", "outline_high"]) == (low, high)
    assert low < expected.mean() < high


def test_the_baselines_find_an_easy_object_and_hard_scenes_leave_them_near_chance():
    for name, near_chance in (("scenes", False), ("scenes-hard", True)):
        pictures = data.load(name, "test", limit=100)
        table = maps.measure(maps.detector_maps(pictures), pictures.masks)
        assert list(table["map"]) == ["edge magnitude", "local variance", "centre prior"]
        assert table["object"].sub(0.5).abs().lt(0.15).all() == near_chance


@pytest.mark.parametrize("first", [0, 1])
def test_the_images_of_the_recorded_maps_are_found_by_their_classes(first, monkeypatch):
    labels, numbers = torch.tensor([2, 0, 1, 1]), [first + 2, first + 0]
    kept = data.ImageSet(
        torch.arange(4).view(4, 1, 1, 1).byte(), labels, ("car", "cat", "dog"), None, "STL-10"
    )
    monkeypatch.setattr(maps.data, "load", lambda *asked, **settings: kept)
    assert maps.stl10_images(["cat", "dog"], numbers).flatten().tolist() == [2, 0]
    assert maps.stl10_images(["car", "dog"], numbers) is None


def test_without_stl10_there_are_no_images_and_nothing_is_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    assert maps.stl10_images(["cat"], [5]) is None and not list(tmp_path.iterdir())
