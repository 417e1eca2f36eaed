"""Each library's layout opens, made by code that is not ours; a part of an encoder does not."""

import argparse
import functools
import io

import numpy as np
import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn

from clutils import checkpoints, data, encoders, training
from tests.checkpoints.files import conv_state, saved, seeded

PICTURES = torch.rand(4, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def small_stem(net: nn.Module, padding: int = 1) -> nn.Module:
    net.conv1 = nn.Conv2d(3, 64, 3, 1, padding, bias=False)
    net.maxpool = nn.Identity()
    return net


@functools.cache
def resnet18() -> nn.Module:
    return seeded(torchvision.models.resnet18)


def prefixed(state: dict[str, torch.Tensor], prefix: str, drop: str = "fc.") -> dict[str, torch.Tensor]:
    return {prefix + name: value for name, value in state.items() if not name.startswith(drop)}


def linear(name: str, wide: int = 8, features: int = 512) -> dict[str, torch.Tensor]:
    return {f"{name}.weight": torch.ones(wide, features), f"{name}.bias": torch.zeros(wide)}


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
    state = torch.load(io.BytesIO(saved(run_state(run))), weights_only=True)
    state["method"] = {f"base.{name}": value for name, value in state["method"].items()}
    torch.save(state, tmp_path / "wrapped.pt")
    opened = checkpoints.open(tmp_path / "wrapped.pt")
    assert opened.origin == "a run of this package" and opened.head is not None
    assert opened.dropped == {}


def test_a_run_of_pinda_gives_its_encoder_and_the_noise_that_it_learned(tmp_path):
    run = training.Run("pinda", data=data.load("digits", limit=64), steps=2, batch_size=32)
    run.step()
    run.save(tmp_path / "pinda.pt")
    opened = checkpoints.open(tmp_path / "pinda.pt")
    assert torch.equal(encoders.embed(opened.encoder, run.images[:8]), run.embed(run.images[:8]))
    assert "noise." not in opened.dropped and "method." not in opened.dropped  # both are used
    pictures = run.images[:4].float() / 255
    with torch.no_grad():
        scale, expected = opened.generator(pictures).scale, run.method.noise.eval()(pictures).scale
    assert torch.allclose(scale, expected, rtol=1e-5)
    state = torch.load(tmp_path / "pinda.pt", weights_only=True)
    state["configuration"]["method_settings"]["network"] = "mlp"
    torch.save(state, tmp_path / "other.pt")
    opened = checkpoints.open(tmp_path / "other.pt")
    assert opened.generator is None and "can't be rebuilt" in opened.notes[-1]


@pytest.mark.parametrize("method", ["moco", "byol", "simsiam"])
def test_runs_of_other_methods_open(method, tmp_path):
    run = training.Run(method, data=data.load("digits", limit=64), steps=2, batch_size=32)
    run.step()
    run.save(tmp_path / "run.pt")
    opened = checkpoints.open(tmp_path / "run.pt")
    assert opened.origin == "a run of this package" and "head." not in opened.dropped
    named = {"byol": "BYOL", "simsiam": "SimSiam", "moco": ""}[method]
    assert opened.untempered == named and (f"{named} has no τ" in str(opened)) == bool(named)
    assert torch.equal(encoders.embed(opened.encoder, run.images[:8]), run.embed(run.images[:8]))


def run_state(run: training.Run) -> dict:
    return {
        "format": training.checkpoint.FORMAT,
        "configuration": run.configuration,
        "method": run.method.state_dict(),
    }


# ---- everyone else's ---------------------------------------------------------------------------------------


def numbered(net: nn.Module, skipped: tuple[type, ...] = (nn.Linear,)) -> nn.Sequential:
    return nn.Sequential(*(child for child in net.children() if not isinstance(child, skipped)))


def flat(net: nn.Module) -> nn.Module:
    return nn.Sequential(net, nn.Flatten())


def without_classifier(net: nn.Module) -> nn.Module:
    import copy

    net = copy.deepcopy(net)
    net.fc = nn.Identity()
    return net


def torchvision_made() -> tuple[object, nn.Module]:
    return resnet18().state_dict(), without_classifier(resnet18())


def moco(second: bool) -> tuple[object, nn.Module]:
    state = resnet18().state_dict()
    head = linear("module.encoder_q.fc.0" if second else "module.encoder_q.fc")
    if second:
        head |= linear("module.encoder_q.fc.2", features=8)
    both = prefixed(state, "module.encoder_q.") | head | prefixed(state, "module.encoder_k.")
    both["module.queue"] = torch.ones(8, 16)
    return {"epoch": 3, "arch": "resnet18", "state_dict": both, "optimizer": {}}, without_classifier(
        resnet18()
    )


def moco_v3() -> tuple[object, nn.Module]:
    state = resnet18().state_dict()
    both = prefixed(state, "module.base_encoder.") | prefixed(state, "module.momentum_encoder.")
    return {"state_dict": both | linear("module.predictor.0")}, without_classifier(resnet18())


def simsiam() -> tuple[object, nn.Module]:
    state = prefixed(resnet18().state_dict(), "module.encoder.")
    state |= {"module.encoder.fc.0.weight": torch.ones(8, 512)} | normalisation("module.encoder.fc.1")
    state |= {"module.encoder.fc.3.weight": torch.ones(8, 8)} | normalisation("module.encoder.fc.4")
    state |= linear("module.predictor.0", features=8)
    return {"epoch": 1, "state_dict": state}, without_classifier(resnet18())


def simclr() -> tuple[object, nn.Module]:
    state = prefixed(resnet18().state_dict(), "backbone.")
    state |= linear("backbone.fc.0") | linear("backbone.fc.2", features=8)
    return {"epoch": 1, "arch": "resnet18", "state_dict": state}, without_classifier(resnet18())


def supcontrast() -> tuple[object, nn.Module]:
    net = seeded(lambda: small_stem(torchvision.models.resnet18()))
    state = {
        k.replace("downsample", "shortcut"): v for k, v in prefixed(net.state_dict(), "encoder.").items()
    }
    options = argparse.Namespace(temp=0.07, model="resnet18", best=np.float64(0.5))
    state |= linear("head.0") | linear("head.2", features=8)
    return {"opt": options, "model": state, "epoch": 2}, without_classifier(net)


def hcl() -> tuple[object, nn.Module]:
    net = seeded(lambda: small_stem(torchvision.models.resnet18()))
    f = numbered(net, (nn.Linear, nn.MaxPool2d, nn.Identity))
    state = {f"module.f.{name}": value for name, value in f.state_dict().items()}
    state |= {"module.g.0.weight": torch.ones(8, 512)} | normalisation("module.g.1")
    return state | linear("module.g.3", features=8), flat(f)


def hcl_of_larger_pictures() -> tuple[object, nn.Module]:
    """Its STL-10 variant keeps the max-pool, which moves every number by one."""
    net = seeded(torchvision.models.resnet18)
    net.conv1 = seeded(lambda: nn.Conv2d(3, 64, 3, 1, 1, bias=False))
    f = numbered(net)
    return {f"f.{name}": v for name, v in f.state_dict().items()} | linear("g.0"), flat(f)


def byol_pytorch() -> tuple[object, nn.Module]:
    state = resnet18().state_dict()
    both = prefixed(state, "online_encoder.net.", "-") | prefixed(state, "target_encoder.net.", "-")
    return both | prefixed(state, "net.", "-"), without_classifier(resnet18())


def pytorch_byol() -> tuple[object, nn.Module]:
    f = numbered(resnet18())
    online = {f"encoder.{name}": value for name, value in f.state_dict().items()}
    online |= linear("projetion.net.0") | normalisation("projetion.net.1") | linear("projetion.net.3", 8, 8)
    return {"online_network_state_dict": online, "target_network_state_dict": dict(online)}, flat(f)


def barlow_twins() -> tuple[object, nn.Module]:
    state = prefixed(resnet18().state_dict(), "module.backbone.") | normalisation("module.bn")
    return {"epoch": 1, "model": state | linear("module.projector.0")}, without_classifier(resnet18())


def solo(prefix: str) -> tuple[object, nn.Module]:
    net = seeded(lambda: small_stem(torchvision.models.resnet18(), padding=2))
    state = prefixed(net.state_dict(), prefix) | linear("classifier") | linear("projector.0")
    state |= linear("projector.2", features=8)
    lightning = {"pytorch-lightning_version": "1.6.0", "hyper_parameters": {"temperature": 0.2}}
    return {"state_dict": state, **lightning}, without_classifier(net)


def lightly_benchmark() -> tuple[object, nn.Module]:
    """By lightly's own heads and Lightning's own layout, around torchvision's ResNet."""
    from lightly.models.modules import SimCLRProjectionHead

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = without_classifier(resnet18())
            self.projection_head = SimCLRProjectionHead(512, 16, 8)
            self.online_classifier = nn.Linear(512, 10)

    model = seeded(Model)
    return {"pytorch-lightning_version": "2.4", "state_dict": model.state_dict()}, model.backbone


def lightly_example() -> tuple[object, nn.Module]:
    """All by lightly's own code: the ResNet for CIFAR of its examples, its children numbered."""
    from lightly.models import ResNetGenerator
    from lightly.models.modules import SimCLRProjectionHead

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            resnet = ResNetGenerator("resnet-18")
            self.backbone = nn.Sequential(*list(resnet.children())[:-1], nn.AdaptiveAvgPool2d(1))
            self.projection_head = SimCLRProjectionHead(512, 16, 8)

    model = seeded(Model)
    return {"pytorch-lightning_version": "2.4", "state_dict": model.state_dict()}, flat(model.backbone)


def dino() -> tuple[object, nn.Module]:
    state = prefixed(resnet18().state_dict(), "module.backbone.") | linear("module.head.mlp.0")
    other = {name: value + 1 for name, value in state.items()}
    return {"student": other, "teacher": state, "epoch": 4}, without_classifier(resnet18())


def nobodys() -> tuple[object, nn.Module]:
    return {"weights": prefixed(resnet18().state_dict(), "trunk.")}, without_classifier(resnet18())


LAYOUTS = {
    "torchvision": (torchvision_made, "torchvision's or timm's names", False),
    "MoCo v1": (lambda: moco(False), "MoCo v1", True),
    "MoCo v2": (lambda: moco(True), "MoCo v2", True),
    "MoCo v3": (moco_v3, "MoCo v3", False),
    "SimSiam": (simsiam, "SimSiam", True),
    "SimCLR": (simclr, "SimCLR (sthalles)", True),
    "SupContrast": (supcontrast, "SupContrast", True),
    "HCL": (hcl, "HCL, debiased, AttentionNCE or leftthomas's SimCLR", True),
    "HCL, larger": (hcl_of_larger_pictures, "HCL, debiased, AttentionNCE or leftthomas's SimCLR", True),
    "byol-pytorch": (byol_pytorch, "BYOL (byol-pytorch)", False),
    "PyTorch-BYOL": (pytorch_byol, "BYOL (PyTorch-BYOL)", True),
    "Barlow Twins": (barlow_twins, "Barlow Twins", True),
    "DINO": (dino, "DINO", False),
    "solo-learn": (lambda: solo("backbone."), "solo-learn, in a Lightning file", True),
    "older solo-learn": (lambda: solo("encoder."), "solo-learn, older, in a Lightning file", True),
    "lightly's benchmarks": (lightly_benchmark, "lightly, in a Lightning file", True),
    "lightly's examples": (lightly_example, "lightly, in a Lightning file", True),
    "nobody's": (nobodys, "no layout that is known: under 'trunk.'", False),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_each_layout_is_recognised_and_its_encoder_computes_what_the_original_does(name, tmp_path):
    make, origin, has_head = LAYOUTS[name]
    state, original = make()
    torch.save(state, tmp_path / "file.pth")
    opened = checkpoints.open(tmp_path / "file.pth")
    assert (opened.origin, opened.arch) == (origin, "resnet18")
    assert opened.missing == []
    with torch.no_grad():
        expected, features = original(PICTURES), opened.encoder(PICTURES)
        assert torch.allclose(features, expected, rtol=1e-3, atol=1e-4)
        assert (opened.head is not None) == has_head
        if has_head:
            assert opened.head(features).shape == (4, 8)


def test_what_is_left_out_is_named_and_settings_are_found(tmp_path):
    torch.save(moco(True)[0], tmp_path / "moco.pth")
    opened = checkpoints.open(tmp_path / "moco.pth")
    assert opened.head is not None and opened.unexpected == []  # the head is used, so it is not left out
    assert opened.dropped["encoder_k."] > 100 and opened.dropped["queue"] == 1
    assert opened.temperature is None
    torch.save(supcontrast()[0], tmp_path / "supcon.pth")
    assert checkpoints.open(tmp_path / "supcon.pth").temperature == 0.07
    torch.save(solo("backbone.")[0], tmp_path / "solo.ckpt")
    assert checkpoints.open(tmp_path / "solo.ckpt").temperature == 0.2


def test_the_head_is_the_originals_own(tmp_path):
    from lightly.models.modules import SimCLRProjectionHead

    head = seeded(lambda: SimCLRProjectionHead(512, 16, 8))
    state = lightly_benchmark()[0]
    state["state_dict"] |= {f"projection_head.{name}": value for name, value in head.state_dict().items()}
    torch.save(state, tmp_path / "file.ckpt")
    z = torch.rand(5, 512, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(checkpoints.open(tmp_path / "file.ckpt").head(z), head(z), atol=1e-5)


@pytest.mark.parametrize("name", ["resnet34", "resnet50"])
def test_deeper_resnets_are_told_apart_by_shape(name, tmp_path):
    net = seeded(lambda: torchvision.models.get_model(name))
    torch.save(net.state_dict(), tmp_path / "file.pth", _use_new_zipfile_serialization=False)
    opened = checkpoints.open(tmp_path / "file.pth", arch=name)
    assert (opened.arch, opened.kind) == (name, "torch before 1.6")
    with torch.no_grad():
        assert torch.allclose(
            opened.encoder(PICTURES), without_classifier(net)(PICTURES), rtol=1e-3, atol=1e-4
        )


def small_vit(width: int = 192, heads: int = 3) -> nn.Module:
    net = torchvision.models.VisionTransformer(32, 16, 12, heads, width, 4 * width, num_classes=3)
    nn.init.normal_(net.heads.head.weight)
    return net


def as_timm_names_it(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """By hand, a name at a time: timm 1.0's VisionTransformer."""
    named = {
        "class_token": "cls_token",
        "encoder.pos_embedding": "pos_embed",
        "conv_proj.weight": "patch_embed.proj.weight",
        "conv_proj.bias": "patch_embed.proj.bias",
        "encoder.ln.weight": "norm.weight",
        "encoder.ln.bias": "norm.bias",
        "heads.head.weight": "head.weight",
        "heads.head.bias": "head.bias",
    }
    for n in range(12):
        ours, theirs = f"encoder.layers.encoder_layer_{n}.", f"blocks.{n}."
        for part in ("weight", "bias"):
            named |= {
                f"{ours}ln_1.{part}": f"{theirs}norm1.{part}",
                f"{ours}ln_2.{part}": f"{theirs}norm2.{part}",
                f"{ours}self_attention.in_proj_{part}": f"{theirs}attn.qkv.{part}",
                f"{ours}self_attention.out_proj.{part}": f"{theirs}attn.proj.{part}",
                f"{ours}mlp.0.{part}": f"{theirs}mlp.fc1.{part}",
                f"{ours}mlp.3.{part}": f"{theirs}mlp.fc2.{part}",
            }
    return {named[name]: value for name, value in state.items()}


@pytest.mark.parametrize("names", ["torchvision", "timm", "MoCo v3"])
def test_vision_transformers_open_in_both_namings(names, tmp_path):
    wide, heads = (384, 12) if names == "MoCo v3" else (192, 3)
    net = seeded(lambda: small_vit(wide, heads))
    state = net.state_dict()
    if names != "torchvision":
        state = as_timm_names_it(state)
    if names == "MoCo v3":
        both = prefixed(state, "module.base_encoder.", "head.")
        state = {"state_dict": both | prefixed(state, "module.momentum_encoder.", "head.")}
    torch.save(state, tmp_path / "vit.pth")
    opened = checkpoints.open(tmp_path / "vit.pth")
    net.heads = nn.Identity()
    with torch.no_grad():
        assert torch.allclose(opened.encoder(PICTURES), net(PICTURES), atol=1e-4)
    assert (opened.arch, opened.side) == ("vit_s_16" if wide == 384 else "vit_t_16", 32)


def test_timms_own_checkpoint_opens(tmp_path):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    net = seeded(lambda: timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=0))
    torch.save(net.state_dict(), tmp_path / "timm.pth")
    with torch.no_grad():
        assert torch.allclose(
            checkpoints.open(tmp_path / "timm.pth").encoder(PICTURES), net(PICTURES), atol=1e-4
        )


def test_safetensors_open(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(safetensors.torch.save(resnet18().state_dict()))
    opened = checkpoints.open(tmp_path / "a.safetensors")
    with torch.no_grad():
        expected = without_classifier(resnet18())(PICTURES)
        assert torch.allclose(opened.encoder(PICTURES), expected, rtol=1e-3, atol=1e-4)
    assert opened.kind == "safetensors"


def test_a_module_of_ones_own_is_taken_as_it_is():
    net = encoders.build("conv16")
    opened = checkpoints.open(net)
    assert opened.encoder is net and opened.origin == "a module handed over in Python"


# ---- a part is no encoder ----------------------------------------------------------------------------------


WHOLE = {  # what is done to a ResNet-18 -> what is said of it
    r"2-2-2-0 in its layers.*report\.check\(module, data\)": lambda s: {
        k: s[k] for k in s if "layer4." not in k
    },
    r"1 of 12\d weights of resnet18 are missing: layer3.0.bn2.running_var": lambda s: {
        k: s[k] for k in s if k != "layer3.0.bn2.running_var"
    },
    "weights that resnet18 does not have: layer1.0.se": lambda s: s | {"layer1.0.se.weight": torch.ones(3)},
    r"layer4.1.bn2.weight is \(7,\), but \(512,\)": lambda s: s | {"layer4.1.bn2.weight": torch.ones(7)},
    r"no ResNet or ViT that is known here.*2 tensors begin with a\. \(1\), b \(1\)": lambda s: {
        "a.weight": torch.ones(3, 3),
        "b": torch.ones(1),
    },
}


@pytest.mark.parametrize("said", WHOLE)
def test_below_a_whole_backbone_it_stops_and_says_what_it_saw(said, tmp_path):
    torch.save(WHOLE[said](resnet18().state_dict()), tmp_path / "part.pth")
    with pytest.raises(ValueError, match=said):
        checkpoints.open(tmp_path / "part.pth")


@pytest.mark.parametrize(
    ("arch", "said"),
    [
        ("resnet50", "arch is 'resnet50', but the weights are those of conv16"),
        ("resnet", "arch is 'resnet'; there are conv16"),
        ("conv16-flat", "option 'flat'; there are maxpool, nomaxpool, padding1, padding2"),
    ],
)
def test_an_arch_that_does_not_fit_or_exist_is_refused(arch, said, tmp_path):
    torch.save(conv_state(), tmp_path / "conv.pt")
    with pytest.raises(ValueError, match=said):
        checkpoints.open(tmp_path / "conv.pt", arch=arch)


def test_what_shapes_do_not_tell_can_be_told(tmp_path):
    net = seeded(lambda: small_stem(torchvision.models.resnet18(), padding=2))
    torch.save(net.state_dict(), tmp_path / "file.pth")
    expected = without_classifier(net)(PICTURES)
    told = checkpoints.open(tmp_path / "file.pth", arch="resnet18-padding2")
    guessed = checkpoints.open(tmp_path / "file.pth")
    assert torch.allclose(told.encoder(PICTURES), expected, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(guessed.encoder(PICTURES), expected, rtol=1e-3, atol=1e-4)
    assert any("weights do not tell (--arch resnet18-padding2)" in note for note in guessed.notes)
    assert not any("padding" in note for note in told.notes)


def layer_of(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Heads as PatrickHua's SimSiam names them."""
    return state | linear("projector.layer1.0") | linear("predictor.layer1.0", features=8)


FOREIGN = {  # the commonest names there are, which must not be taken for one library's habits
    "SimSiam (PatrickHua)": lambda s: layer_of(prefixed(s, "backbone.")),
    "names of many (solo-learn, VICReg)": lambda s: prefixed(s, "backbone.") | linear("projector.0"),
    "names of many (Spijkervet's SimCLR)": lambda s: prefixed(s, "encoder.") | linear("projector.0"),
    "no layout that is known: under 'encoder.'": lambda s: prefixed(s, "encoder.") | linear("classifier"),
    "lightly (DINO)": lambda s: prefixed(s, "teacher_backbone.") | prefixed(s, "student_backbone."),
    "no layout that is known: under 'encoder_q.'": lambda s: prefixed(s, "module.encoder_q."),
    "SupContrast": lambda s: prefixed(s, "encoder.module.") | linear("head.0") | linear("head.2", features=8),
}


@pytest.mark.parametrize("origin", FOREIGN)
def test_names_that_many_share_open_with_the_usual_padding_and_say_so(origin, tmp_path):
    net = seeded(lambda: small_stem(torchvision.models.resnet18()))
    torch.save(FOREIGN[origin](net.state_dict()), tmp_path / "file.pth")
    opened = checkpoints.open(tmp_path / "file.pth")
    assert opened.origin == origin and any("pad by 1: weights do not tell" in note for note in opened.notes)
    with torch.no_grad():
        assert torch.allclose(opened.encoder(PICTURES), without_classifier(net)(PICTURES), atol=1e-4)
    assert ("simsiam" in origin.lower()) == (opened.untempered == "SimSiam")


def test_mocos_demo_opens(tmp_path):
    net = seeded(lambda: small_stem(torchvision.models.resnet18()))
    f = numbered(net, (nn.Linear, nn.MaxPool2d, nn.Identity))
    state = {f"encoder_q.net.{name}": value for name, value in f.state_dict().items()}
    torch.save({"state_dict": state | linear("encoder_q.net.9", 128)}, tmp_path / "file.pth")
    opened = checkpoints.open(tmp_path / "file.pth")
    assert opened.origin == "MoCo (its demo on CIFAR-10)"
    with torch.no_grad():
        assert torch.allclose(opened.encoder(PICTURES), f(PICTURES).flatten(1), atol=1e-4)
