"""Networks by name, CIFAR's ResNets and wider ones open with the features of the network that was saved."""

import sys

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn

from clutils import checkpoints
from clutils.checkpoints import named
from tests.checkpoints.files import installed_timm, prefixed, reopened, same, seeded

IMAGES = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def by_hand(state: dict[str, torch.Tensor], images: torch.Tensor, blocks: int) -> torch.Tensor:
    """He et al.'s CIFAR network by plain functions, as its authors' followers lay it out."""

    def normalised(x: torch.Tensor, name: str) -> torch.Tensor:
        parts = (state[f"{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias"))
        return F.batch_norm(x, *parts)

    x = F.relu(normalised(F.conv2d(images, state["conv1.weight"], padding=1), "bn1"))
    for layer in (1, 2, 3):
        for block in range(blocks):
            at, stride = f"layer{layer}.{block}", 2 if layer > 1 and block == 0 else 1
            y = F.conv2d(x, state[f"{at}.conv1.weight"], stride=stride, padding=1)
            y = F.conv2d(F.relu(normalised(y, f"{at}.bn1")), state[f"{at}.conv2.weight"], padding=1)
            y = normalised(y, f"{at}.bn2")
            if f"{at}.shortcut.0.weight" in state:
                x = F.conv2d(x, state[f"{at}.shortcut.0.weight"], stride=2)
                x = normalised(x, f"{at}.shortcut.1")
            elif stride == 2:
                zeros = torch.zeros_like(x[:, : x.shape[1] // 2, ::2, ::2])
                x = torch.cat([zeros, x[:, :, ::2, ::2], zeros], dim=1)
            x = F.relu(x + y)
    return F.adaptive_avg_pool2d(x, 1).flatten(1)


@pytest.mark.parametrize(("blocks", "convolved"), [(3, False), (3, True), (9, False)])
def test_a_resnet_for_cifar_opens_with_its_features(blocks, convolved, tmp_path):
    net = seeded(lambda: named.cifar_resnet(blocks, convolved=convolved))
    state = {k.replace("downsample", "shortcut"): v for k, v in net.state_dict().items()}
    head = {"linear.weight": torch.ones(10, 64), "linear.bias": torch.zeros(10)}
    opened = reopened({"state_dict": {f"module.{k}": v for k, v in (state | head).items()}}, tmp_path)
    assert opened.arch == f"resnet{6 * blocks + 2}" and opened.unexpected == list(head)
    expected = by_hand({k: v.double() for k, v in state.items()}, IMAGES, blocks)
    with torch.no_grad():
        torch.testing.assert_close(opened.encoder.double()(IMAGES), expected, rtol=1e-6, atol=1e-9)
    assert any("pad channels on both sides" in note for note in opened.notes) != convolved


LARGE = [pytest.param(name, marks=pytest.mark.sweep) for name in ("convnext_tiny", "maxvit_t")]
OF_TORCHVISION = [  # the network, its last layer, the name that it needs, and what it opens as
    pytest.param("wide_resnet50_2", "fc", None, "wide_resnet50_2", marks=pytest.mark.sweep),
    ("resnext50_32x4d", "fc", None, "resnext50_32x4d"),
    ("mobilenet_v3_small", "classifier.3", None, "torchvision:mobilenet_v3_small"),
    ("efficientnet_b0", "classifier.1", None, "torchvision:efficientnet_b0"),
    pytest.param("convnext_tiny", "classifier.2", None, "torchvision:convnext_tiny", marks=pytest.mark.sweep),
    ("resnet34", "fc", "resnet34", "resnet34"),
    ("resnet50", "fc", None, "resnet50"),
    *(
        (name, last, f"torchvision:{name}", f"torchvision:{name}")
        for name, last in (
            ("regnet_y_400mf", "fc"),
            ("mnasnet0_5", "classifier.1"),
            ("shufflenet_v2_x0_5", "fc"),
        )
    ),
]


@pytest.mark.parametrize(("name", "last", "asked", "arch"), OF_TORCHVISION)
def test_a_network_that_its_shapes_or_its_name_tell_has_its_features(name, last, asked, arch, tmp_path):
    net = seeded(torchvision.models.get_model_builder(name))
    state = {"state_dict": prefixed("module.backbone.", net.state_dict())}
    opened = reopened(state, tmp_path, asked)
    net.set_submodule(last, nn.Identity())
    assert same(opened.encoder, net) and opened.arch == arch
    assert opened.unexpected == [f"backbone.{last}.weight", f"backbone.{last}.bias"]
    assert ("by all of its weights" in "".join(opened.notes)) == (asked is None and ":" in arch)
    if ":" in arch:
        assert opened.origin == "torchvision's names under 'backbone.'"
        with pytest.raises(ValueError, match=r"does not hold torchvision:resnet18: .*report\.check"):
            reopened(state, tmp_path, "torchvision:resnet18")
    if ":" in (asked or ""):
        with pytest.raises(ValueError, match=r"report\.check\(module, data\)"):
            reopened(state, tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        lambda state: state | {"features.1.block.0.0.weight": torch.ones(16, 1, 5, 5)},
        lambda state: {k: v for k, v in state.items() if k != "features.0.0.weight"},
        lambda state: state | {"features.13.0.weight": torch.ones(3, 576, 1, 1)},
    ],
    ids=["another shape", "one is missing", "a layer more"],
)
def test_a_network_that_only_looks_like_one_is_refused(other, tmp_path):
    net = torchvision.models.mobilenet_v3_small()
    with pytest.raises(ValueError, match=r"holds no encoder: .*report\.check"):
        reopened(other(net.state_dict()), tmp_path)


def test_the_smaller_of_two_is_not_taken_for_the_larger(tmp_path):
    for name in ("convnext_small", "convnext_tiny"):  # the small one has all names and shapes of the tiny one
        with torch.device("meta"):
            wanted = torchvision.models.get_model(name).state_dict()
        assert named.by_shapes(wanted) == f"torchvision:{name}"


@pytest.mark.parametrize("name", ["resnet18d", "efficientnet_b0", "convnext_tiny"])
def test_timms_networks_are_told_by_all_shapes_where_it_is_installed(name, tmp_path):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    net = seeded(lambda: timm.create_model(name, num_classes=0))
    opened = reopened(net.state_dict(), tmp_path)
    assert same(opened.encoder, net)
    assert opened.arch == f"timm:{name}" and "may compute otherwise" in opened.notes[-1]


def test_timms_signs_are_named_where_it_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "timm", None)
    torch.save({"conv1.0.weight": torch.ones(32, 3, 3, 3), "bn1.weight": torch.ones(64)}, tmp_path / "a.pt")
    with pytest.raises(ValueError, match=r"--arch timm:NAME says which .*it looks like timm:resnet18d"):
        checkpoints.open(tmp_path / "a.pt")


def test_a_network_of_timm_opens_by_its_name_where_timm_is_installed(monkeypatch, tmp_path):
    make = lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())  # noqa: E731
    installed_timm(monkeypatch, "tiny", make)
    net = seeded(make)
    state = net.state_dict() | {"head.weight": torch.ones(2, 4)}
    for arch in ("timm:tiny", "timm:tiny.some_data"):
        assert same(reopened(state, tmp_path, arch).encoder, net)
    with pytest.raises(ValueError, match="timm has no such network; did you mean 'tiny'"):
        checkpoints.demand_arch("timm:tiney")


NO_ARCH = {  # what is said -> archs
    "by name there are torchvision:NAME and timm:NAME": (
        *("hf_hub:a/b", "timm:hf_hub:a/b", "timm:hf-hub:a", "timm:local-dir:/tmp", "timm:../a"),
        *("torchvision:", "x:y"),
    ),
    "timm is not installed: pip install timm": ("timm:resnet18d",),
    "torchvision has no such network; did you mean 'convnext_tiny'": ("torchvision:convnext_tny",),
    "arch is 'resnet', which is not known; did you mean 'resnet": ("resnet",),
    "option 'flat'; there are maxpool, nomaxpool, padding1, padding2": ("conv16-flat",),
}


@pytest.mark.parametrize(("said", "arch"), [(said, arch) for said in NO_ARCH for arch in NO_ARCH[said]])
def test_a_name_of_no_network_or_with_a_scheme_of_its_own_is_refused(said, arch, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ValueError, match=said):
        checkpoints.demand_arch(arch)


@pytest.mark.parametrize("name", ["mobilenet_v3_small", "alexnet", *LARGE])
def test_a_file_without_its_classifier_opens_by_the_features_before_it(name, tmp_path):
    """Their classifiers have hidden layers or a normalisation, which then are not in the file."""
    net = seeded(lambda: torchvision.models.get_model(name, weights=None))
    bare = {k: v for k, v in net.state_dict().items() if not k.startswith("classifier.")}
    opened = reopened(bare, tmp_path, f"torchvision:{name}")
    seen: list[torch.Tensor] = []
    net.classifier.register_forward_pre_hook(lambda module, given: seen.append(given[0]))
    images = torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        net(images)
        pooled = seen[0].mean(dim=(2, 3)) if name == "maxvit_t" else seen[0].flatten(1)
        assert torch.allclose(opened.encoder(images), pooled, atol=1e-4)
        assert opened.backbone.build().eval()(images).shape == pooled.shape  # fresh weights, to compare with
    assert any("nothing of its classifier" in note for note in opened.notes)
