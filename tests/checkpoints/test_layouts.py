"""Each library's layout opens, made by code that is not ours; a part of an encoder does not."""

import argparse
import copy
import functools
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision
from torch import nn

from clutils import checkpoints, data, encoders, training
from clutils.checkpoints import layouts
from tests.checkpoints.files import conv_state, prefixed, reopened, resnet18, same, seeded

PICTURES = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def under(prefix: str, padding: int = 0) -> dict[str, torch.Tensor]:
    return prefixed(prefix, resnet18(padding).state_dict(), "fc.")


def linear(name: str, wide: int = 8, features: int = 512) -> dict[str, torch.Tensor]:
    return {f"{name}.weight": torch.ones(wide, features), f"{name}.bias": torch.zeros(wide)}


def mlp(name: str) -> dict[str, torch.Tensor]:
    """A head of two layers with a ReLU between."""
    return linear(f"{name}.0") | linear(f"{name}.2", features=8)


def normalisation(name: str, wide: int = 8) -> dict[str, torch.Tensor]:
    own = nn.BatchNorm1d(wide).state_dict()
    return {f"{name}.{part}": value for part, value in own.items()}


# ---- this project's runs -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run() -> training.Run:
    run = training.Run(data=data.load("digits", limit=64), encoder="conv16", steps=2, batch_size=32)
    run.step()
    return run


def test_a_run_gives_back_its_encoder_to_the_bit_and_its_head_and_temperature(run, tmp_path):
    run.save(tmp_path / "run.pt")
    opened = checkpoints.open(tmp_path / "run.pt")
    images = run.images[:8]
    assert torch.equal(encoders.embed(opened.encoder, images), run.embed(images))
    features = run.embed(images)
    assert torch.allclose(opened.head(features), run.project(images), atol=1e-5)
    assert (opened.origin, opened.arch, opened.temperature) == ("a run of this package", "conv16", 0.2)
    assert opened.channels == 1 and opened.missing == [] and opened.unexpected == []
    assert opened.dropped == {}  # encoder and head are used, and there is nothing else


def test_a_run_whose_method_wraps_another_opens_too(run, tmp_path):
    method = {f"base.{name}": value for name, value in run.method.state_dict().items()}
    state = {"format": training.checkpoint.FORMAT, "configuration": run.configuration, "method": method}
    opened = reopened(state, tmp_path)
    assert opened.origin == "a run of this package" and opened.head is not None
    assert opened.dropped == {}


@pytest.mark.parametrize("method", ["moco", "byol", "simsiam", "pinda"])
def test_runs_of_other_methods_open(method, tmp_path):
    run = training.Run(method, data=data.load("digits", limit=64), steps=2, batch_size=32)
    run.step()
    run.save(tmp_path / "run.pt")
    opened = checkpoints.open(tmp_path / "run.pt")
    assert opened.origin == "a run of this package"
    assert not {"head.", "method.", "base."} & opened.dropped.keys()  # all of them are used
    named = {"byol": "BYOL", "simsiam": "SimSiam"}.get(method, "")
    assert opened.untempered == named and (f"{named} has no τ" in str(opened)) == bool(named)
    assert torch.equal(encoders.embed(opened.encoder, run.images[:8]), run.embed(run.images[:8]))


# ---- everyone else's ---------------------------------------------------------------------------------------


def numbered(net: nn.Module, skipped: tuple[type, ...] = (nn.Linear,)) -> nn.Sequential:
    return nn.Sequential(*(child for child in net.children() if not isinstance(child, skipped)))


def flat(net: nn.Module) -> nn.Module:
    return nn.Sequential(net, nn.Flatten())


def without_classifier(padding: int = 0) -> nn.Module:
    net = copy.deepcopy(resnet18(padding))
    net.fc = nn.Identity()
    return net


def clip_trunk(encoder: str, head: str) -> dict:
    return under(f"{encoder}.") | linear(f"{head}_projection") | {"logit_scale": torch.tensor(2.66)}


def moco(head: str) -> dict:
    both = under("module.encoder_q.") | under("module.encoder_k.") | {"module.queue": torch.ones(8, 16)}
    make = {"linear": linear, "mlp": mlp}[head]
    return {"epoch": 3, "arch": "resnet18", "state_dict": both | make("module.encoder_q.fc"), "optimizer": {}}


def supcontrast() -> dict:
    state = {k.replace("downsample", "shortcut"): v for k, v in under("encoder.", 1).items()}
    options = argparse.Namespace(temp=0.07, model="resnet18", best=np.float64(0.5))
    return {"opt": options, "model": state | mlp("head"), "epoch": 2}


def solo(prefix: str) -> dict:
    lightning = {"pytorch-lightning_version": "1.6.0", "hyper_parameters": {"temperature": 0.2}}
    return {"state_dict": under(prefix, 2) | linear("classifier") | mlp("projector"), **lightning}


def hcl(larger: bool) -> tuple[object, nn.Module]:
    """Its STL-10 variant keeps the max-pool, which moves every number by one."""
    net = seeded(torchvision.models.resnet18)
    net.conv1 = resnet18(1).conv1
    f = numbered(net, (nn.Linear,) if larger else (nn.Linear, nn.MaxPool2d))
    state = {f"module.f.{name}": value for name, value in f.state_dict().items()}
    state |= {"module.g.0.weight": torch.ones(8, 512)} | normalisation("module.g.1")
    return state | linear("module.g.3", features=8), flat(f)


def mocos_demo() -> tuple[object, nn.Module]:
    f = numbered(resnet18(1), (nn.Linear, nn.MaxPool2d, nn.Identity))
    state = {f"encoder_q.net.{name}": value for name, value in f.state_dict().items()}
    return {"state_dict": state | linear("encoder_q.net.9", 128)}, flat(f)


def pytorch_byol() -> tuple[object, nn.Module]:
    f = numbered(resnet18())
    online = {f"encoder.{name}": value for name, value in f.state_dict().items()}
    online |= mlp("projetion.net")
    return {"online_network_state_dict": online, "target_network_state_dict": dict(online)}, flat(f)


def simsiam() -> dict[str, torch.Tensor]:
    state = under("module.encoder.") | {"module.encoder.fc.0.weight": torch.ones(8, 512)}
    state |= {"module.encoder.fc.3.weight": torch.ones(8, 8)} | linear("module.predictor.0", features=8)
    return state | normalisation("module.encoder.fc.1") | normalisation("module.encoder.fc.4")


class Lightly(nn.Module):
    """By lightly's own heads and Lightning's own layout, around a ResNet."""

    def __init__(self, backbone: nn.Module) -> None:
        from lightly.models.modules import SimCLRProjectionHead

        super().__init__()
        self.backbone = backbone
        self.projection_head = SimCLRProjectionHead(512, 16, 8)


def lightly_benchmark() -> tuple[dict, nn.Module]:
    """Around torchvision's ResNet."""
    model = seeded(lambda: Lightly(without_classifier()))
    state = model.state_dict() | linear("online_classifier")
    return {"pytorch-lightning_version": "2.4", "state_dict": state}, model.backbone


def lightly_example() -> tuple[object, nn.Module]:
    """All by lightly's own code: the ResNet for CIFAR of its examples, its children numbered."""
    from lightly.models import ResNetGenerator

    children = list(ResNetGenerator("resnet-18").children())[:-1]
    model = seeded(lambda: Lightly(nn.Sequential(*children, nn.AdaptiveAvgPool2d(1))))
    return {"pytorch-lightning_version": "2.4", "state_dict": model.state_dict()}, flat(model.backbone)


def dino() -> dict:
    state = under("module.backbone.") | linear("module.head.mlp.0")
    return {"student": {name: value + 1 for name, value in state.items()}, "teacher": state, "epoch": 4}


HCL = "HCL, debiased, AttentionNCE or leftthomas's SimCLR"
LAYOUTS = [  # origin, whether there is a head, and the file, of torchvision's ResNet or with the original
    ("torchvision's or timm's names", False, lambda: resnet18().state_dict()),
    ("MoCo v1", True, lambda: moco("linear")),
    ("MoCo v2", True, lambda: moco("mlp")),
    ("MoCo, fc taken as its head", True, lambda: under("module.encoder_q.") | linear("module.encoder_q.fc")),
    (
        "MoCo v3",
        False,
        lambda: {"state_dict": under("module.base_encoder.") | under("module.momentum_encoder.")},
    ),
    ("MoCo (its demo on CIFAR-10)", False, mocos_demo),
    ("SimSiam", True, lambda: {"epoch": 1, "state_dict": simsiam()}),
    ("SimCLR (sthalles)", True, lambda: {"state_dict": under("backbone.") | mlp("backbone.fc")}),
    ("SupContrast", True, lambda: (supcontrast(), without_classifier(1))),
    (HCL, True, lambda: hcl(larger=False)),
    (HCL, True, lambda: hcl(larger=True)),
    (
        "BYOL (byol-pytorch)",
        False,
        lambda: under("online_encoder.net.") | under("target_encoder.net.") | under("net."),
    ),
    ("BYOL (PyTorch-BYOL)", True, pytorch_byol),
    (
        "Barlow Twins",
        True,
        lambda: {"model": under("module.backbone.") | normalisation("bn") | linear("module.projector.0")},
    ),
    ("DINO", False, dino),
    ("solo-learn, in a Lightning file", True, lambda: (solo("backbone."), without_classifier(2))),
    ("solo-learn, older, in a Lightning file", True, lambda: (solo("encoder."), without_classifier(2))),
    ("lightly, in a Lightning file", True, lightly_benchmark),
    ("lightly, in a Lightning file", True, lightly_example),
    ("SwAV", True, lambda: under("") | mlp("projection_head") | {"prototypes.weight": torch.ones(4, 8)}),
    *(
        ("names of many (CLIP)", True, functools.partial(clip_trunk, *names))
        for names in (("image_encoder", "image"), ("visual", "visual"), ("vision_model", "visual"))
    ),
    ("no layout that is known: under 'trunk.'", False, lambda: {"weights": under("trunk.")}),
]


@pytest.mark.parametrize(("origin", "has_head", "make"), LAYOUTS)
def test_each_layout_is_recognised_and_its_encoder_computes_what_the_original_does(
    origin, has_head, make, tmp_path
):
    made = make()
    state, original = made if isinstance(made, tuple) else (made, without_classifier())
    opened = reopened(state, tmp_path)
    assert (opened.origin, opened.arch) == (origin, "resnet18")
    assert opened.missing == [] and (opened.head is not None) == has_head
    assert same(opened.encoder, original)
    with torch.no_grad():
        assert not has_head or opened.head(opened.encoder(PICTURES)).shape == (4, 8)


def test_each_row_of_the_table_of_layouts_is_tried(tmp_path):
    assert reopened(conv_state(), tmp_path).origin == "an encoder of this package"
    needs_timm = "open_clip's names, an image tower of timm's"
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("*.py"))
    assert {row.origin for row in layouts.LAYOUTS if f'"{row.origin}' not in tests} <= {needs_timm}


def test_what_is_left_out_is_named_and_settings_are_found(tmp_path):
    opened = reopened(moco("mlp"), tmp_path)
    assert opened.head is not None and opened.unexpected == []  # the head is used, so it is not left out
    assert opened.dropped["encoder_k."] > 100 and opened.dropped["queue"] == 1
    assert opened.temperature is None
    assert reopened(supcontrast(), tmp_path).temperature == 0.07
    assert reopened(solo("backbone."), tmp_path).temperature == 0.2


def small_vit(width: int = 192, heads: int = 3) -> nn.Module:
    net = torchvision.models.VisionTransformer(32, 16, 12, heads, width, 4 * width, num_classes=3)
    nn.init.normal_(net.heads.head.weight)
    return net


TIMM = {  # a name's part in torchvision's transformer -> in timm 1.0's, by hand
    "encoder.layers.encoder_layer_": "blocks.",
    ".ln_1.": ".norm1.",
    ".ln_2.": ".norm2.",
    ".self_attention.in_proj_": ".attn.qkv.",
    ".self_attention.out_proj.": ".attn.proj.",
    ".mlp.0.": ".mlp.fc1.",
    ".mlp.3.": ".mlp.fc2.",
    "class_token": "cls_token",
    "encoder.pos_embedding": "pos_embed",
    "conv_proj.": "patch_embed.proj.",
    "encoder.ln.": "norm.",
    "heads.head.": "head.",
}


def as_timm_names_it(name: str) -> str:
    return functools.reduce(lambda said, pair: said.replace(*pair), TIMM.items(), name)


@pytest.mark.parametrize("names", ["torchvision", "timm", "MoCo v3"])
def test_vision_transformers_open_in_both_namings(names, tmp_path):
    wide, heads = (384, 12) if names == "MoCo v3" else (192, 3)
    net = seeded(lambda: small_vit(wide, heads))
    state = net.state_dict()
    if names != "torchvision":
        state = {as_timm_names_it(name): value for name, value in state.items()}
    if names == "MoCo v3":
        both = prefixed("module.base_encoder.", state, "head.")
        state = {"state_dict": both | prefixed("module.momentum_encoder.", state, "head.")}
    opened = reopened(state, tmp_path)
    net.heads = nn.Identity()
    assert same(opened.encoder, net)
    assert (opened.arch, opened.side) == ("vit_s_16" if wide == 384 else "vit_t_16", 32)
    assert opened.origin == {"torchvision": "torchvision's names", "timm": "timm's names"}.get(names, names)


def test_a_module_of_ones_own_is_taken_as_it_is():
    net = encoders.build("conv16")
    opened = checkpoints.open(net)
    assert opened.encoder is net and opened.origin == "a module handed over in Python"


# ---- a part is no encoder ----------------------------------------------------------------------------------


WHOLE = {  # what is done to a ResNet-18 -> what is said of it
    r"2-2-2-0 in its layers.*report\.check\(module, data\)": lambda s: prefixed("", s, "layer4."),
    r"1 of 12\d weights of resnet18 are missing: layer3.0.bn2.running_var": lambda s: prefixed(
        "", s, "layer3.0.bn2.running_var"
    ),
    "weights that resnet18 does not have: layer1.0.se": lambda s: s | {"layer1.0.se.weight": torch.ones(3)},
    r"layer4.1.bn2.weight is \(7,\), but \(512,\)": lambda s: s | {"layer4.1.bn2.weight": torch.ones(7)},
    r"a network that is known here.*2 tensors begin with a\. \(1\), b \(1\)": lambda s: {
        "a.weight": torch.ones(3, 3),
        "b": torch.ones(1),
    },
}


@pytest.mark.parametrize("said", WHOLE)
def test_below_a_whole_backbone_it_stops_and_says_what_it_saw(said, tmp_path):
    with pytest.raises(ValueError, match=said):
        reopened(WHOLE[said](resnet18().state_dict()), tmp_path)


def test_an_arch_that_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="arch is 'resnet50', but the weights are those of conv16"):
        reopened(conv_state(), tmp_path, "resnet50")


def test_what_shapes_do_not_tell_can_be_told(tmp_path):
    guessed, stated = (
        reopened(resnet18(2).state_dict(), tmp_path, arch) for arch in (None, "resnet18-padding2")
    )
    features = guessed.encoder(PICTURES), without_classifier(2)(PICTURES)
    assert same(stated.encoder, without_classifier(2)) and not torch.allclose(*features, rtol=1e-3, atol=1e-4)
    assert any("weights do not tell (--arch resnet18-padding2)" in note for note in guessed.notes)
    assert not any("padding" in note for note in stated.notes)


FOREIGN = [  # the commonest names there are, which must not be taken for one library's habits
    (
        "SimSiam (PatrickHua)",
        "backbone.",
        lambda: linear("projector.layer1.0") | linear("predictor.layer1.0"),
    ),
    ("names of many (solo-learn, VICReg)", "backbone.", lambda: linear("projector.0")),
    ("names of many (Spijkervet's SimCLR)", "encoder.", lambda: linear("projector.0")),
    ("no layout that is known: under 'encoder.'", "encoder.", lambda: linear("classifier")),
    ("lightly (DINO)", "teacher_backbone.", lambda: under("student_backbone.", 1)),
    ("no layout that is known: under 'encoder_q.'", "module.encoder_q.", dict),
    ("SupContrast", "encoder.module.", lambda: mlp("head")),
]


@pytest.mark.parametrize(("origin", "begin", "beside"), FOREIGN)
def test_names_that_many_share_open_with_the_usual_padding_and_say_so(origin, begin, beside, tmp_path):
    opened = reopened(under(begin, 1) | beside(), tmp_path)
    assert opened.origin == origin and any("pad by 1: weights do not tell" in note for note in opened.notes)
    assert same(opened.encoder, without_classifier(1))
    assert opened.untempered == ("SimSiam" if "SimSiam" in origin else "")  # a row of many names no method
    for method, named in {"barlow_twins": "Barlow Twins", "supcon": ""}.items():
        opened.settings = {"method": method}
        assert opened.untempered == named


def test_settings_count_also_where_another_key_has_the_same_mapping(tmp_path):
    """Pickle keeps that two keys have one mapping; the walk had met it elsewhere, and took nothing of it."""
    own = {"temperature": 0.23, "method": "byol"}
    opened = reopened({"callbacks": own, "state_dict": under("", 1), "config": own}, tmp_path)
    assert opened.temperature == 0.23 and opened.untempered == "BYOL"


def test_a_head_that_is_named_is_the_one_among_the_names_and_no_average_of_an_outer_key(tmp_path):
    average = {name.removeprefix("proj."): value for name, value in mlp("proj").items()}
    average = average | {"2.weight": torch.ones(5, 8), "2.bias": torch.zeros(5)}
    state = {
        "model": under("net.", 1) | mlp("proj"),
        "proj": {"ema": average, "opt": {"exp_avg": torch.ones(3)}},
    }
    reopened(state, tmp_path)
    head = checkpoints.open(tmp_path / "file.pt", head="proj").head
    assert head(torch.ones(2, 512)).shape == (2, 8)
