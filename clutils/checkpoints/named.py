"""Networks of torchvision and timm by name, `torchvision:convnext_tiny`, without weights; CIFAR's ResNets.

No weights are ever fetched: a name with a scheme of its own (`hf_hub:`, `local-dir:`) is refused.
"""

import difflib
import importlib
import re
from collections.abc import Mapping
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
    ),
}
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
        near = ", ".join(difflib.get_close_matches(name, there, 3, 0.4)) or "none that is near"
        raise ValueError(f"arch is {arch!r}, but {library} has no such network; it has {near}")


def _listed(library: str) -> list[str]:
    if library == "timm":
        return importlib.import_module("timm").list_models()
    models = importlib.import_module("torchvision.models")
    return models.list_models(module=models)


def build(arch: str) -> nn.Module:
    """The network without its classifier, its weights random: images -> features (N, width)."""
    demand(arch)
    library, _, name = arch.partition(":")
    if library == "timm":
        net: nn.Module = importlib.import_module("timm").create_model(name, pretrained=False, num_classes=0)
        return net
    net = importlib.import_module("torchvision.models").get_model(name, weights=None)
    heads = [n for n, m in net.named_modules() if isinstance(m, nn.Linear) and n.split(".")[0] in CLASSIFIERS]
    if heads:
        net.set_submodule(heads[-1], nn.Identity())
    return net


def channels(net: nn.Module) -> int:
    """How many its first convolution takes; without one, 3."""
    return next((m.in_channels for m in net.modules() if isinstance(m, nn.Conv2d)), 3)


def side(net: nn.Module) -> int | None:
    """The width of images that a vision transformer of torchvision or timm is bound to; None = any."""
    embedding = getattr(net, "patch_embed", None)  # timm's
    strict = getattr(embedding, "strict_img_size", False)
    return getattr(net, "image_size", embedding.img_size[0] if embedding is not None and strict else None)


def beginning(names: Mapping[str, Tensor], wanted: Mapping[str, object]) -> str | None:
    """What stands before a network's own names in a file; None where no beginning has most of them."""
    first = next(iter(wanted))
    begins = [name.removesuffix(first) for name in names if name.endswith(first)][:COPIES]
    counts = {begin: sum(begin + name in names for name in wanted) for begin in begins}
    best = max(counts, key=lambda begin: counts[begin], default=None)
    return best if best is not None and 2 * counts[best] > len(wanted) else None


def by_shapes(names: Mapping[str, Tensor]) -> tuple[str, str]:
    """The one network of `SIGNS` whose weights are all there by name and shape, with a classifier at most.

    -> its arch, "" where there is none, and what else there is to say of it. No two of torchvision's share
    all shapes; of timm's some do, and compute otherwise.
    """
    fitting, lacking = [], ""
    for sign in (sign for sign in SIGNS if any(sign in name for name in names)):
        there = _there(SIGNS[sign])
        fitting += [arch for arch in there if _fits(_shapes(arch), names)]
        if not there:
            lacking = f"{sign!r} in a name is a sign of timm's networks, which open where timm is installed"
    if len(fitting) != 1:
        return "", lacking
    said = "its network is told by all of its weights' names and shapes"
    if fitting[0].startswith("timm:"):
        said += "; a variant of timm's that has the same may compute otherwise (then --arch timm:NAME)"
    return fitting[0], said


def _fits(wanted: Mapping[str, tuple[int, ...]], names: Mapping[str, Tensor]) -> bool:
    begin = beginning(names, wanted)
    if begin is None or any(
        begin + name not in names or tuple(names[begin + name].shape) != shape
        for name, shape in wanted.items()
    ):
        return False
    own = [name.removeprefix(begin) for name in names if name.startswith(begin)]
    return all(name in wanted or name.split(".")[0] in (*CLASSIFIERS, "mask_token") for name in own)


def _there(begins: tuple[str, ...]) -> list[str]:
    library = begins[0].partition(":")[0]
    try:
        known = [f"{library}:{name}" for name in _listed(library)]
    except ImportError:
        return []
    if library == "timm":
        return [arch for arch in begins if arch in known]
    return [arch for arch in known if arch.startswith(begins)]


@cache
def _shapes(arch: str) -> dict[str, tuple[int, ...]]:
    """A network's weights: name -> shape; nothing is allocated."""
    with torch.device("meta"):
        return {name: tuple(value.shape) for name, value in build(arch).state_dict().items()}


# ---- CIFAR's family (He et al. 2016, section 4.2) ----------------------------------------------------------


class CifarResNet(nn.Module):
    """ResNet-20 to 110 for images of 32x32: three layers of n basic blocks, 16, 32 and 64 wide.

    - convolved: whether a shortcut that halves is a 1x1 convolution; else every second pixel, and channels of
      zeros on both sides, which has no weights
    """

    features = 64

    def __init__(self, blocks: int, channels: int = 3, convolved: bool = False) -> None:
        super().__init__()
        from torchvision.models.resnet import BasicBlock

        self.conv1 = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        for layer, (before, width) in enumerate(((16, 16), (16, 32), (32, 64)), start=1):
            made = [BasicBlock(before, width, stride=width // before)]
            if before < width and convolved:
                convolution = nn.Conv2d(before, width, 1, 2, bias=False)
                made[0].downsample = nn.Sequential(convolution, nn.BatchNorm2d(width))
            elif before < width:
                made[0].downsample = Padded((width - before) // 2)
            made += [BasicBlock(width, width) for _ in range(blocks - 1)]
            self.add_module(f"layer{layer}", nn.Sequential(*made))

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(images)))
        for layer in ("layer1", "layer2", "layer3"):
            x = self.get_submodule(layer)(x)
        return x.mean(dim=(2, 3))


class Padded(nn.Module):
    """A shortcut without weights: every second pixel, and channels of zeros on both sides."""

    def __init__(self, zeros: int) -> None:
        super().__init__()
        self.zeros = zeros

    def forward(self, x: Tensor) -> Tensor:
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.zeros, self.zeros))
