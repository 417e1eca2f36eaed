"""Networks of torchvision and timm by name, `torchvision:convnext_tiny`, without weights; CIFAR's ResNets.

No weights are ever fetched: a name with a scheme of its own (`hf_hub:`, `local-dir:`) is refused.
"""

import contextlib
import importlib
import itertools
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from clutils.settings import did_you_mean

CLASSIFIERS = ("fc", "classifier", "head", "heads")  # modules whose last linear layer gives the classes
SIGNS: dict[str, tuple[str, ...]] = {  # in a weight's name -> networks, or how their names begin
    "features.": (
        *("torchvision:convnext", "torchvision:densenet", "torchvision:efficientnet"),
        *("torchvision:mobilenet", "torchvision:swin", "torchvision:vgg"),
    ),
    "conv1.0.weight": tuple(f"timm:resnet{depth}d" for depth in (18, 34, 50, 101, 152)),
    "stages.0.blocks.": tuple(f"timm:convnext_{size}" for size in ("tiny", "small", "base", "large")),
    "conv_stem.weight": (
        *("timm:efficientnet_b0", "timm:mobilenetv3_small_100", "timm:mobilenetv3_large_100"),
    ),
    "ls1.gamma": (
        *("timm:vit_small_patch14_dinov2", "timm:vit_base_patch14_dinov2", "timm:vit_large_patch14_dinov2"),
        *("timm:vit_small_patch14_reg4_dinov2", "timm:vit_base_patch14_reg4_dinov2"),
        *("timm:vit_large_patch14_reg4_dinov2", "timm:vit_giant_patch14_dinov2"),
    ),
}
LARGEST = 518  # width of images that a transformer may be bound to, as DINOv2's
COPIES = 20  # of a network in one file: as many beginnings are tried
DEPTHS = {(n, n, n): f"resnet{6 * n + 2}" for n in (3, 5, 7, 9, 18)}  # blocks in the three layers


def demand(arch: str) -> None:
    """Raises ValueError, saying what there is, where LIBRARY:NAME is no network that can be built here."""
    library, _, name = arch.partition(":")
    if library not in ("torchvision", "timm") or not re.fullmatch(r"\w[\w.]*", name):
        raise ValueError(
            f"arch is {arch!r}, but by name there are torchvision:NAME and timm:NAME, a plain NAME each: "
            "one with a scheme of its own would be fetched"
        )
    try:
        there = _listed(library)
    except ImportError:
        raise ValueError(f"arch is {arch!r}, but {library} is not installed: pip install {library}") from None
    known = name in there
    if library == "timm":  # which knows older names, too, and the data of the weights behind a dot
        known = importlib.import_module("timm").is_model(name.partition(".")[0])
    if not known:
        raise ValueError(f"arch is {arch!r}, but {library} has no such network{did_you_mean(name, there)}")


def candidates(name: str) -> list[str]:
    """The archs of torchvision and timm that have this name; behind a dot it has the data of the weights."""
    found, name = [], name.partition(".")[0]
    for library in ("torchvision", "timm"):
        with contextlib.suppress(ValueError):
            demand(f"{library}:{name}")
            found.append(f"{library}:{name}")
    return found


def _listed(library: str) -> list[str]:
    if library == "timm":
        return importlib.import_module("timm").list_models()
    models = importlib.import_module("torchvision.models")
    return models.list_models(module=models)


def build(arch: str, side: int | None = None, hidden: bool = True) -> nn.Module:
    """The network without its classifier, its weights random: images -> features (N, width).

    - side: of the images, where a transformer of timm was made for others than usual
    - hidden: whether the classifier's layers before its last one are kept; else features end before them
    """
    demand(arch)
    library, _, name = arch.partition(":")
    if library == "timm":
        sized = {} if side is None else {"img_size": side}
        timm = importlib.import_module("timm")
        net: nn.Module = timm.create_model(name, pretrained=False, num_classes=0, **sized)
        return net
    net = importlib.import_module("torchvision.models").get_model(name, weights=None)
    heads = [n for n, m in net.named_modules() if isinstance(m, nn.Linear) and n.split(".")[0] in CLASSIFIERS]
    if heads:
        net.set_submodule(heads[-1], nn.Identity())
    classifier = next((name for name in CLASSIFIERS if hasattr(net, name)), None)
    if not hidden and classifier is not None:
        layers = itertools.takewhile(_weightless, net.get_submodule(classifier).children())
        net.set_submodule(classifier, nn.Sequential(*layers, nn.Flatten(1)))
    return net


def _weightless(layer: nn.Module) -> bool:
    return not layer.state_dict()


def channels(net: nn.Module) -> int:
    """How many its first convolution takes; without one, 3."""
    return next((m.in_channels for m in net.modules() if isinstance(m, nn.Conv2d)), 3)


def side(net: nn.Module) -> int | None:
    """The width of images that a vision transformer of torchvision or timm is bound to; None = any."""
    embedding = getattr(net, "patch_embed", None)  # timm's
    strict = getattr(embedding, "strict_img_size", False)
    return getattr(net, "image_size", embedding.img_size[0] if embedding is not None and strict else None)


def find_prefix(names: Mapping[str, Tensor], wanted: Mapping[str, object]) -> str | None:
    """Prefix of a network's own names in a file; None where no prefix has most of them."""
    first = next(iter(wanted))
    begins = [name.removesuffix(first) for name in names if name.endswith(first)][:COPIES]
    counts = {begin: sum(begin + name in names for name in wanted) for begin in begins}
    best = max(counts, key=lambda begin: counts[begin], default=None)
    return best if best is not None and 2 * counts[best] > len(wanted) else None


def by_shapes(names: Mapping[str, Tensor]) -> str:
    """The one network of `SIGNS` whose weights are all there by name and shape, with a classifier at most; ""
    where there is none, or several. No two of torchvision's share all shapes; of timm's some do.
    """
    there = (arch for begin in signed(names) for arch in _there(begin))
    fitting = [arch for arch in there if weights_match(arch, names)]
    return fitting[0] if len(fitting) == 1 else ""


def signed(names: Mapping[str, Tensor]) -> list[str]:
    """Networks of `SIGNS`, or how their names begin, of which a sign is in one of these names."""
    return [arch for sign in SIGNS if any(sign in name for name in names) for arch in SIGNS[sign]]


def weights_match(arch: str, names: Mapping[str, Tensor]) -> bool:
    """True where all weights of this network are there, by name and shape, with a classifier at most.

    Not of one that can't be built without memory, as torchvision's RegNets.
    """
    names = to_timm_names(arch, names)
    try:
        usual = _on_meta(arch)
        begin = find_prefix(names, usual.state_dict())
        if begin is None:
            return False
        wanted = _on_meta(arch, **build_options(arch, usual, names, begin)).state_dict()
    except RuntimeError:
        return False
    if any(
        begin + name not in names or names[begin + name].shape != value.shape
        for name, value in wanted.items()
    ):
        return False
    own = [name.removeprefix(begin) for name in names if name.startswith(begin)]
    return all(name in wanted or name.split(".")[0] in (*CLASSIFIERS, "mask_token") for name in own)


def build_options(arch: str, net: nn.Module, names: Mapping[str, Tensor], begin: str) -> dict[str, Any]:
    """How `build` makes the network that these weights are of; net: the usual one.

    A transformer of timm for as many positions as there are; one of torchvision that ends before its
    classifier, where the file has nothing of that.
    """
    wanted, positions, default = net.state_dict(), names.get(f"{begin}pos_embed"), side(net)
    usual = wanted.get("pos_embed")
    if arch.startswith("timm:") and positions is not None and usual is not None and default is not None:
        patch = wanted["patch_embed.proj.weight"].shape[-1]
        others = usual.shape[1] - (default // patch) ** 2  # of a class, or registers
        across = math.isqrt(max(0, positions.shape[1] - others)) if positions.ndim == 3 else 0
        squared = across**2 == positions.shape[1] - others
        if across * patch != default and squared and 0 < across * patch <= LARGEST:
            return {"side": across * patch}
    hidden = [name for name in wanted if name.split(".")[0] in CLASSIFIERS]
    if arch.startswith("torchvision:") and hidden and not any(begin + name in names for name in hidden):
        return {"hidden": False}
    return {}


def to_timm_names(arch: str, names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same weights as this library has them: timm adds the position of DINOv2's class token to it."""
    made = dict(names)
    for name in names if arch.startswith("timm:") else ():
        begin, _, last = name.rpartition("register_tokens")
        positions, token = names.get(f"{begin}pos_embed"), names.get(f"{begin}cls_token")
        if not name.endswith("register_tokens") or last or positions is None or token is None:
            continue
        if positions.ndim == 3 and token.shape == (1, 1, positions.shape[-1]) and len(positions) == 1:
            made[f"{begin}reg_token"] = made.pop(name)
            made[f"{begin}cls_token"] = token + positions[:, :1]
            made[f"{begin}pos_embed"] = positions[:, 1:]
    gated = {".mlp.w12.": ".mlp.fc1.", ".mlp.w3.": ".mlp.fc2."}  # of its giant
    for theirs, ours in gated.items() if arch.startswith("timm:") else ():
        made = {name.replace(theirs, ours): value for name, value in made.items()}
    return made


def _there(begin: str) -> list[str]:
    """This network of timm, or all of torchvision whose names begin so, where the library is installed."""
    library, _, name = begin.partition(":")
    with contextlib.suppress(ImportError):
        known = _listed(library)
        return [f"{library}:{n}" for n in known if n == name or (library != "timm" and n.startswith(name))]
    return []


@cache
def _on_meta(arch: str, **built: Any) -> nn.Module:
    """The network without memory for its weights. Raises RuntimeError where it computes as it is built."""
    with torch.device("meta"):
        return build(arch, **built)


# ---- CIFAR's family (He et al. 2016, section 4.2) ----------------------------------------------------------


def cifar_resnet(blocks: int, channels: int = 3, convolved: bool = False) -> nn.Module:
    """ResNet-20 to 110 for images of 32x32: three layers of n basic blocks, 16, 32 and 64 wide.

    - convolved: whether a shortcut that halves is a 1x1 convolution, as torchvision builds it; else every
      second pixel, and channels of zeros on both sides, which has no weights
    """
    from torchvision.models.resnet import BasicBlock, ResNet

    with torch.device("meta"):  # all of its weights are replaced
        net = ResNet(BasicBlock, [1, 1, 1, 1])
    net.inplanes, net.features = 16, 64
    net.conv1, net.bn1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
    net.layer1 = net._make_layer(BasicBlock, 16, blocks)
    for name, width in (("layer2", 32), ("layer3", 64)):
        net.add_module(name, net._make_layer(BasicBlock, width, blocks, stride=2))
        if not convolved:
            zeros = nn.ConstantPad3d((0, 0, 0, 0, width // 4, width // 4), 0)
            net.get_submodule(name)[0].downsample = nn.Sequential(nn.AvgPool2d(1, 2), zeros)
    net.maxpool = net.layer4 = net.fc = nn.Identity()
    return net
