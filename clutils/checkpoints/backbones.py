"""Recognise an architecture by its weights' names and shapes, build it and fill it.

Nothing is built that is not listed here, so no file can make this take more memory than its largest network.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders
from clutils.checkpoints import named
from clutils.files import printable

RESNETS = {
    ("basic", (2, 2, 2, 2)): "resnet18",
    ("basic", (3, 4, 6, 3)): "resnet34",
    ("bottleneck", (3, 4, 6, 3)): "resnet50",
    ("bottleneck", (3, 4, 23, 3)): "resnet101",
    ("bottleneck", (3, 8, 36, 3)): "resnet152",
}
WIDER = {  # of these, width of a first block's 3x3 convolution, channels that each group of it sees -> name
    ("resnet50", 128, 128): "wide_resnet50_2",
    ("resnet101", 128, 128): "wide_resnet101_2",
    ("resnet50", 128, 4): "resnext50_32x4d",
    ("resnet101", 256, 8): "resnext101_32x8d",
}
VITS = {(192, 12): "vit_t", (384, 12): "vit_s", (768, 12): "vit_b"}  # (width, layers); its patch is added
HEADS = {192: 3, 384: 6, 768: 12}  # DINO, DeiT and timm; MoCo v3's ViT-S has 12
OPTIONS: dict[str, tuple[str, Any]] = {  # behind a dash in an arch -> what it says of a `Backbone`
    "maxpool": ("maxpool", True),
    "nomaxpool": ("maxpool", False),
    "padding1": ("padding", 1),
    "padding2": ("padding", 2),
    "12heads": ("heads", 12),
}
NAMES = ("conv16", "conv32", *RESNETS.values(), *WIDER.values(), *named.DEPTHS.values())
NAMES += ("vit_t_16", "vit_s_16", "vit_b_16", "vit_b_32")
COUNTER = "num_batches_tracked"  # of a batch normalisation: how often, not what it learned
LARGEST_SIDE = 512


class Unsound(ValueError):
    """A whole network whose weights are not finite numbers: another layout or arch would not mend it."""


class Partial(ValueError):
    """Something that begins like a backbone but is none that is whole: what is missing or too much."""


@dataclass(frozen=True)
class Backbone:
    """A network as it was recognised: its name, what shapes can't tell, and where its weights are.

    - names: a weight's name in the file -> its name in the network
    - channels, side: of the images it takes; side None = any
    - how: what its builder takes besides: `_build_resnet`, `_build_vit`, `named.cifar_resnet`, `named.build`
    - assumed: which of maxpool and padding nothing in the file tells
    """

    arch: str
    names: Mapping[str, str]
    channels: int = 3
    side: int | None = None
    how: Mapping[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def with_options(self, **what: Any) -> Backbone:
        """With what weights do not show, which then is not assumed any more."""
        how = {name: what.get(name, value) for name, value in self.how.items()}
        return replace(self, how=how, assumed=tuple(name for name in self.assumed if name not in what))

    @property
    def assumptions(self) -> list[str]:
        """Assumptions about it, a sentence each, with the option that says otherwise."""
        said = []
        if "maxpool" in self.assumed:
            there, other = ("a", "nomaxpool") if self.how["maxpool"] else ("no", "maxpool")
            stem = "{0}x{0}".format(self.how["stem"])
            said.append(
                f"{there} max-pool behind the first convolution is assumed, as is usual behind a {stem} one: "
                f"weights do not tell (--arch {self.arch}-{other})"
            )
        if "padding" in self.assumed:
            said.append(
                f"its first convolution is assumed to pad by {self.how['padding']}: weights do not tell "
                f"(--arch {self.arch}-padding{3 - self.how['padding']})"
            )
        return said

    def build(self) -> nn.Module:
        """The network, its weights still random."""
        with torch.random.fork_rng(devices=[]):
            if self.arch.startswith("conv"):
                return encoders.ConvNet(self.channels, int(self.arch.removeprefix("conv")))
            if ":" in self.arch:
                return named.build(self.arch, **self.how)
            if self.arch in named.DEPTHS.values():
                return named.cifar_resnet(channels=self.channels, **self.how)
            if self.arch.startswith("vit"):
                return _build_vit(self.side, **self.how)
            return _build_resnet(self.arch, self.channels, **self.how)


def _build_resnet(
    arch: str, channels: int, stem: int, maxpool: bool, padding: int, activated: bool
) -> nn.Module:
    """maxpool, padding, activated: of the stem, where it differs from torchvision's."""
    import torchvision

    net = torchvision.models.get_model(arch, weights=None)
    net.features, net.fc = net.fc.in_features, nn.Identity()
    stride, padding = (2, 3) if stem == 7 else (1, padding)
    net.conv1 = nn.Conv2d(channels, 64, stem, stride, padding, bias=False)
    if not maxpool:
        net.maxpool = nn.Identity()
    if not activated:
        net.relu = nn.Identity()  # of the stem alone: blocks have their own
    return net


def _build_vit(side: int | None, patch: int, heads: int, width: int, hidden: int) -> nn.Module:
    from torchvision.models import VisionTransformer

    net = VisionTransformer(side, patch, 12, heads, width, hidden)
    net.heads, net.features = nn.Identity(), width
    return net


def recognise(found: Mapping[str, Tensor], **options: object) -> Backbone | None:
    """The backbone in tensors whose names are without prefix; None where nothing looks like one.

    - options: what a library is known to do that shapes do not tell (padding, heads)

    Raises Partial where it looks like one and is not whole.
    """
    if _shape(found, "convolutions.0.weight", 4):
        return _conv(found)
    if _shape(found, "conv1.weight", 4) and any(k.startswith("layer1.") for k in found):
        return _resnet(found, {}, options)
    if _shape(found, "0.weight", 4) and any(re.match(r"\d+\.0\.conv1\.weight$", k) for k in found):
        return _numbered_resnet(found, options)
    if _shape(found, "conv_proj.weight", 4) or _shape(found, "patch_embed.proj.weight", 4):
        return _vit(found, options)
    return None


def fill(backbone: Backbone, found: Mapping[str, Tensor]) -> tuple[nn.Module, list[str]]:
    """Build it and put the weights in -> the network, and what the file lacked that does not matter.

    Raises Partial where weights are missing, too many or of another shape; Unsound where they are no finite
    floating-point numbers.
    """
    net = backbone.build()
    own = net.state_dict()
    given = {new: found[old] for old, new in backbone.names.items()}
    missing = [name for name in own if name not in given]
    lacking = [name for name in missing if not name.endswith(COUNTER)]
    if lacking:
        raise Partial(f"{len(lacking)} of {len(own)} weights of {backbone.arch} are missing: {_few(lacking)}")
    beyond = [name for name in given if name not in own]
    if beyond:
        raise Partial(f"there are weights that {backbone.arch} does not have: {_few(beyond)}")
    for name, value in given.items():
        if value.shape != own[name].shape:
            raise Partial(f"{name} is {tuple(value.shape)}, but {tuple(own[name].shape)} in {backbone.arch}")
    _demand_sound(given, own)
    own.update({name: value.to(own[name].dtype) for name, value in given.items()})
    net.load_state_dict(own)  # with what it says of itself, as MNASNet's version
    net = net.to(memory_format=torch.channels_last)  # as runs are trained, and fastest
    return net.eval(), missing


def _demand_sound(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Raises Unsound where weights are no floating-point numbers, as the network's own are, or not finite."""
    odd = [
        name
        for name, value in given.items()
        if not value.is_floating_point() and (own[name].is_floating_point() or value.is_complex())
    ]
    if odd:
        kinds = ", ".join(sorted({str(given[name].dtype).removeprefix("torch.") for name in odd}))
        raise Unsound(
            f"{len(odd)} of its {len(given)} weight tensors hold {kinds} ({_few(odd)}), but weights "
            "are floating-point numbers: quantised ones without their scale are no encoder"
        )
    # a sum is quicker, and finite only where all are; it may overflow
    bad = [n for n, value in given.items() if not (value.sum().isfinite() or value.isfinite().all())]
    if bad:
        raise Unsound(
            f"{len(bad)} of its {len(given)} weight tensors hold NaN or infinity ({_few(bad)}): "
            "training ran away; a checkpoint from before may be whole"
        )


# ---- one function a family ---------------------------------------------------------------------------------


def _conv(found: Mapping[str, Tensor]) -> Backbone:
    width, channels = found["convolutions.0.weight"].shape[:2]
    if width not in (8, 16, 32, 64):
        raise Partial(f"a ConvNet {width} wide, but this package has 16 and 32")
    names = {k: k for k in found if k.startswith(("convolutions.", "normalisations."))}
    return Backbone(f"conv{width}", names, channels)


def _resnet(
    found: Mapping[str, Tensor],
    renamed: Mapping[str, str],
    options: Mapping[str, Any],
    maxpool: bool | None = None,
    activated: bool = True,
) -> Backbone:
    """renamed: name in the file -> torchvision's, where they differ in more than 'shortcut'."""
    names, stage = {}, re.compile(r"(conv1|bn1|layer\d+)\.")
    for old in found:
        new = renamed.get(old, old).replace(".shortcut.", ".downsample.")
        if stage.match(new):
            names[old] = new
    shapes = {new: tuple(found[old].shape) for old, new in names.items()}
    blocks = {tuple(map(int, m.groups())) for m in map(re.compile(r"layer(\d+)\.(\d+)\.").match, shapes) if m}
    one, two, three, four = (sum(block[0] == n for block in blocks) for n in range(1, 5))
    depth = one, two, three, four
    kind = "bottleneck" if "layer1.0.conv3.weight" in shapes else "basic"
    if kind == "basic" and depth[:3] in named.DEPTHS and not four and shapes["conv1.weight"][0] == 16:
        convolved = "layer2.0.downsample.0.weight" in shapes
        padded = "its shortcuts have no weights: they are taken to pad channels on both sides"
        said = () if convolved else (padded,)
        arch = named.DEPTHS[depth[:3]]
        how = {"blocks": depth[0], "convolved": convolved}
        return Backbone(arch, names, shapes["conv1.weight"][1], how=how, notes=said)
    if (kind, depth) not in RESNETS or len(blocks) != sum(depth):
        listed = "-".join(map(str, depth))
        raise Partial(f"a ResNet of {kind} blocks, {listed} in its layers, which is none of ResNet-18 to 152")
    _, channels, stem, _ = shapes["conv1.weight"]
    if stem not in (3, 7) or channels not in (1, 3):
        first = shapes["conv1.weight"]
        raise Partial(f"a ResNet whose first convolution is {first}, but stems are 3x3 or 7x7")
    assumed: tuple[str, ...] = () if maxpool is not None else ("maxpool",)
    maxpool = stem == 7 if maxpool is None else maxpool
    padding = int(options.get("padding", 1)) if stem == 3 else 3
    assumed += ("padding",) if stem == 3 and "padding" not in options else ()
    notes: tuple[str, ...] = ()
    if stem == 3 and padding != 1:
        notes = (f"its first convolution pads by {padding}, as that library's does for CIFAR",)
    arch = RESNETS[kind, depth]
    if kind == "bottleneck":
        wide, seen = shapes.get("layer1.0.conv2.weight", (64, 64))[:2]
        arch = WIDER.get((arch, wide, seen), arch)
    how = {"stem": stem, "maxpool": maxpool, "padding": padding, "activated": activated}
    return Backbone(arch, names, channels, how=how, assumed=assumed, notes=notes)


def _numbered_resnet(found: Mapping[str, Tensor], options: Mapping[str, Any]) -> Backbone:
    """nn.Sequential(*children): 0 is the convolution, 1 its normalisation, then what has weights or none.

    The number of the first layer tells what stands before it: 4 = ReLU and max-pool, 3 = ReLU alone, 2 =
    nothing (lightly's ResNetGenerator applies its ReLU as a function, which such a Sequential loses).
    """
    first = min(int(k.split(".")[0]) for k in found if re.match(r"\d+\.0\.conv1\.weight$", k))
    if first not in (2, 3, 4):
        raise Partial(f"a numbered ResNet whose first layer is number {first}, but 2, 3 or 4 are known")
    stages = {"0": "conv1", "1": "bn1", **{str(first + n): f"layer{n + 1}" for n in range(4)}}
    renamed = {}
    for old in found:
        number, _, rest = old.partition(".")
        renamed[old] = f"{stages[number]}.{rest}" if number in stages else old
    backbone = _resnet(found, renamed, options, maxpool=first == 4, activated=first != 2)
    if first == 2:
        note = "no ReLU after its first convolution: as a Sequential of lightly's ResNetGenerator computes"
        return replace(backbone, notes=(*backbone.notes, note))
    return backbone


TIMM = {  # a part of a transformer's name as timm has it -> as torchvision has it
    r"^cls_token$": "class_token",
    r"^pos_embed$": "encoder.pos_embedding",
    r"^patch_embed\.proj\.": "conv_proj.",
    r"^norm\.": "encoder.ln.",
    r"^blocks\.(\d+)\.": r"encoder.layers.encoder_layer_\1.",
    r"\.norm([12])\.": r".ln_\1.",
    r"\.attn\.qkv\.": ".self_attention.in_proj_",
    r"\.attn\.proj\.": ".self_attention.out_proj.",
    r"\.mlp\.fc1\.": ".mlp.0.",
    r"\.mlp\.fc2\.": ".mlp.3.",
}


def _vit(found: Mapping[str, Tensor], options: Mapping[str, Any]) -> Backbone:
    """torchvision's names, or timm's, which DINO and MoCo v3 share."""
    names = {}
    for old in found:
        new = old
        for theirs, ours in TIMM.items():
            new = re.sub(theirs, ours, new)
        if new.startswith(("class_token", "conv_proj.", "encoder.")):
            names[old] = new
        elif new.startswith(("blocks.", "patch_embed.", "reg_token", "register_tokens", "dist_token")):
            raise Partial(f"a vision transformer with {short(old)}, which torchvision's does not have")
    shapes = {new: tuple(found[old].shape) for old, new in names.items()}
    width, channels, patch, _ = shapes["conv_proj.weight"]
    layers = {m[1] for m in map(re.compile(r"encoder\.layers\.encoder_layer_(\d+)\.").match, shapes) if m}
    places = shapes.get("encoder.pos_embedding")
    mlp = shapes.get("encoder.layers.encoder_layer_0.mlp.0.weight")
    if (width, len(layers)) not in VITS or channels != 3 or places is None or mlp is None:
        size = f"{width} wide of {len(layers)} layers"
        raise Partial(f"a vision transformer {size}, but ViT-T, S and B are known")
    across = math.isqrt(places[1] - 1)
    if across * across != places[1] - 1 or across * patch > LARGEST_SIDE or mlp[0] > 8 * width:
        raise Partial(f"a vision transformer with {places[1]} positions of patches {patch} wide")
    heads = int(options.get("heads", 0)) if width == 384 and options.get("heads") else HEADS[width]
    notes = (f"{heads} attention heads: weights do not tell how many",)
    arch = f"{VITS[width, len(layers)]}_{patch}"
    how = {"patch": patch, "heads": heads, "width": width, "hidden": mlp[0]}
    return Backbone(arch, names, side=across * patch, how=how, notes=notes)


def _shape(found: Mapping[str, Tensor], name: str, dimensions: int) -> bool:
    return name in found and found[name].ndim == dimensions


def _few(names: list[str]) -> str:
    return ", ".join(map(short, names[:3])) + (", ..." if len(names) > 3 else "")


def short(name: str) -> str:
    """A name out of a file, cut, on one line and without what steers a terminal."""
    return printable(name[:60])
