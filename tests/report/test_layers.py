"""Layer by layer: the same numbers as by hand through the first layers, and no hook is left behind."""

import math

import pytest
import torch
import torchvision
from torch import nn

from clutils import data, encoders, measures, report
from clutils.report import layers
from clutils.report.prepared import pooled
from tests.report.ailing import nameless

WHOLE = data.load("digits", limit=160)
GALLERY, JUDGED = WHOLE.subset(slice(0, 110)), WHOLE.subset(slice(110, 160))


def hooks(module: nn.Module) -> int:
    return sum(len(part._forward_hooks) for part in module.modules())


@pytest.fixture(scope="module")
def net() -> nn.Module:
    torch.manual_seed(0)
    return encoders.build("conv16", channels=1).eval()


@pytest.fixture(scope="module")
def whole(net):
    return report.check(net, (GALLERY, JUDGED), map_names=())


@torch.no_grad()
def by_hand(net, images: torch.Tensor) -> list[torch.Tensor]:
    """What each of the four layers gives, written out: convolution, halved to 2x2 at least, normalised."""
    x, found = images.float() / 255, []
    for k in range(4):
        x = net.convolutions[k](x)
        if k < 2:  # 8x8, 4x4, 2x2
            x = nn.functional.max_pool2d(x, 2)
        x = net.normalisations[k](x)
        found.append(x.mean(dim=(2, 3)))
        x = x.relu()
    return [*found, x.mean(dim=(2, 3))]


def test_each_layer_has_the_numbers_of_its_features_by_hand(net, whole):
    found = whole.examination.layers
    assert [layer.name for layer in found] == [*(f"normalisations.{k}" for k in range(4)), layers.OUTPUT]
    assert [layer.width for layer in found] == [16, 32, 64, 128, 128]
    y, lent = JUDGED.labels, GALLERY.labels
    k = measures.neighbours_for(lent, y)
    for layer, z, gallery_z in zip(
        found, by_hand(net, JUDGED.images), by_hand(net, GALLERY.images), strict=True
    ):
        assert layer.effective_rank == pytest.approx(measures.effective_rank(z), rel=1e-6)
        assert layer.knn == pytest.approx(measures.knn_accuracy(gallery_z, lent, z, y, k=k), abs=1e-6)
        assert layer.probe == pytest.approx(measures.linear_probe(gallery_z, lent, z, y), abs=1e-6)


def test_the_page_has_a_table_a_picture_and_a_caution_and_no_hook_stays(net, whole):
    text = whole.html()
    assert text.count("Layer by layer") == 1 and "normalisations.3" in text and "layer by layer" in text
    assert '"layers": [' in whole.json() and hooks(net) == 0


def test_without_labels_only_the_ranks_are_known(net):
    found = report.check(net, (nameless(GALLERY), nameless(JUDGED)), map_names=())
    assert all(math.isnan(layer.knn) and layer.effective_rank > 1 for layer in found.examination.layers)
    assert "NaN" not in found.json()


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("resnet18", "layer1.0", "layer4.1"),
        ("resnet50", "layer1.0", "layer4.2"),
        ("vit_b_32", "encoder.layers.encoder_layer_0", "encoder.layers.encoder_layer_11"),
        ("convnext_tiny", "features.0", "features.7.2"),
        ("mobilenet_v2", "features.0", "features.18"),
        ("vgg11", "features.0", "classifier.6"),
    ],
)
def test_the_blocks_of_known_networks_are_found(name, first, last):
    with torch.device("meta"):
        network = torchvision.models.get_model(name)
    found = layers.blocks(network)
    assert (found[0], found[-1]) == (first, last) and 2 < len(found) <= layers.MOST


def test_an_encoder_that_is_one_layer_has_no_such_part():
    only = nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 64, 8)
    )  # without convolutions it is shown three channels
    found = report.check(only, (GALLERY, JUDGED), map_names=())
    assert found.examination.layers == [] and "Layer by layer" not in found.html()


def test_a_module_that_is_called_twice_or_never_is_left_out(net):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.never = (nn.Linear(64, 64) for _ in range(3))
            self.c = nn.Linear(64, 8)

        def forward(self, images):
            return self.c(self.b(self.b(self.a(images.flatten(1)))))

    images = torch.rand(6, 1, 8, 8)
    twice = Twice()
    with layers.reading(twice, 6) as caught, torch.no_grad():
        for part in images.split(2):
            twice(part)
    found = layers.measure(caught, torch.zeros(6, dtype=torch.int64), None)
    assert [layer.name for layer in found] == ["a", "c"] and hooks(twice) == 0
    with torch.no_grad():
        output = twice(images)
    again = layers.measure(caught, torch.zeros(6, dtype=torch.int64), None, output)
    assert again == found  # the last layer is the output: it is told once


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 5, 3, 3), (2, 3)), ((2, 3, 3, 5), (1, 2)), ((2, 7, 5), (1,)), ((2, 5), ())]
)
def test_space_is_averaged_wherever_it_stands(shape, axes):
    made = torch.rand(shape)
    assert torch.allclose(pooled(made), made.mean(dim=axes) if axes else made)
