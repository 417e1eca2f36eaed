"""Feeding and stem, decided by what batch normalisations remember of training."""

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from clutils import data
from clutils.report import preprocessing
from clutils.report.prepared import Prepared
from tests.checkpoints.files import reopened


def settled(
    padding: int,
    maxpool: bool,
    mean: float,
    std: float,
    seen: torch.Tensor,
    batch: int = 64,
    momentum: float | None = None,
) -> dict:
    """A ResNet-18 whose first batch normalisations know these images, the rest being random."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torchvision.models.resnet18()
        net.conv1 = nn.Conv2d(3, 64, 3, 1, padding, bias=False)
    pool = net.maxpool if maxpool else nn.Identity()
    stem = nn.Sequential(net.conv1, net.bn1, net.relu, pool, net.layer1[0])
    for module in stem.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = momentum  # None: the mean of all batches
    with torch.no_grad():
        for some in ((seen - mean) / std).split(batch):
            stem(some)
    return net.state_dict()


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    return data.load("scenes", limit=256).images.float() / 255


@pytest.mark.parametrize(("padding", "maxpool"), [(1, False), (2, False), (1, True)])
def test_padding_and_max_pool_are_decided_by_pictures_of_its_kind(padding, maxpool, images, tmp_path):
    state = settled(padding, maxpool, 0.0, 1.0, images[:192])
    opened = reopened({f"encoder.{name}": value for name, value in state.items()}, tmp_path)
    assert opened.backbone.assumed == ("maxpool", "padding")
    decided = preprocessing.with_decided_stem(opened, images[192:])
    assert [decided.backbone.how[name] for name in ("padding", "maxpool")] == [padding, maxpool]
    assert decided.backbone.assumed == () and not any("do not tell" in note for note in decided.notes)
    assert f"padding of its stem is {padding}, by what" in decided.notes[-2]


def test_the_usual_normalisation_that_fits_is_chosen_and_with_it_the_max_pool(images, tmp_path):
    opened = reopened(settled(1, True, 0.5, 0.5, images[:192]), tmp_path)
    chosen, said = preprocessing.best_normalisation(opened, images[192:])
    assert chosen == ((0.5,), (0.5,)) and said.startswith("normalisation half was chosen: 0.0")
    assert "too close to choose" not in said
    assert preprocessing.with_decided_stem(opened, images[192:]).backbone.how["maxpool"]


def test_other_pictures_decide_nothing_and_the_assumption_is_said(images, tmp_path):
    opened = reopened(settled(2, False, 0.0, 1.0, images[:192]), tmp_path)
    noise = torch.rand(64, 3, 32, 32, generator=torch.Generator().manual_seed(0)) / 10
    undecided = preprocessing.with_decided_stem(opened, noise)
    assert "padding" in undecided.backbone.assumed and undecided.backbone.how["padding"] == 1
    assert any("pad by 1: weights do not tell" in note for note in undecided.notes)
    chosen, said = preprocessing.best_normalisation(opened, noise)
    assert chosen in preprocessing.NORMALISATIONS.values() and said.endswith("; the nearest is used")
    nearest = next(name for name, way in preprocessing.NORMALISATIONS.items() if way == chosen)
    assert said.startswith(f"no usual normalisation fits (nats: {nearest} ")


def test_weights_far_too_large_decide_nothing(images, tmp_path):
    state = settled(1, True, 0.0, 1.0, images[:192])
    opened = reopened(
        {k: v.sign() * 1e38 if v.is_floating_point() else v for k, v in state.items()}, tmp_path
    )
    chosen, said = preprocessing.best_normalisation(opened, images[192:])
    assert chosen is None and "is not finite" in said


def test_a_fresh_network_remembers_nothing(tmp_path):
    opened = reopened(torchvision.models.resnet18().state_dict(), tmp_path)
    seen = torch.rand(8, 3, 32, 32)
    assert preprocessing.with_decided_stem(opened, seen).backbone.assumed == ("maxpool",)
    chosen, said = preprocessing.best_normalisation(opened, seen)
    assert chosen is None and "it has never seen an image" in said


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("batches", [3, 12])
def test_after_few_batches_the_start_is_taken_out_and_the_right_normalisation_fits(
    batches, counted, images, tmp_path
):
    """Another one fitted, or none did, and what was fed so was called collapsed."""
    state = settled(1, True, 0.5, 0.5, images[: 16 * batches], 16, 0.1)
    if not counted:
        state = {name: value for name, value in state.items() if not name.endswith("batches_tracked")}
    opened = reopened(state, tmp_path)
    chosen, said = preprocessing.best_normalisation(opened, images[192:])
    assert chosen == ((0.5,), (0.5,)) and said.startswith("normalisation half was chosen: 0.0"), said
    found = preprocessing.first_layer(Prepared(opened.encoder, 3, None, *chosen), images[192:], {})
    assert found["batches_seen"] == batches and found["input_gap"] < 0.05


def test_statistics_of_all_batches_have_no_start_whatever_their_count(images, tmp_path):
    """Averaged weights: momentum None, so that few batches settle them."""
    opened = reopened(settled(1, True, 0.5, 0.5, images[:192]), tmp_path)
    found = preprocessing.first_layer(Prepared(opened.encoder, 3, None, (0.5,), (0.5,)), images[192:], {})
    assert found["batches_seen"] == 3 and found["input_gap"] < 0.05


@pytest.mark.parametrize("side", [8, 32, 96])
def test_statistics_are_those_of_many_images_at_any_size(side):
    """Of images of 96 pixels those of four were taken, the size of a batch that is quick."""
    images = torch.rand(64, 3, side, side, generator=torch.Generator().manual_seed(0))
    images[4:] *= torch.linspace(0, 1, 60)[:, None, None, None]
    layer = nn.BatchNorm2d(3)
    mean, var = preprocessing.met(Prepared(nn.Sequential(layer, nn.Flatten()), 3, None), layer, images)
    count = 64 if side == 8 else preprocessing.MET
    torch.testing.assert_close(mean, images[:count].double().mean(dim=(0, 2, 3)), rtol=1e-5, atol=1e-6)
    assert var.shape == (3,)
