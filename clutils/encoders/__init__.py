"""Backbones and heads: a small convolutional net for the CPU, torchvision's ResNets for small images.

Also an MLP for vectors, GIN and GCN for graphs (`graphs`), a small transformer for sentences (`transformer`).
"""

import contextlib
import copy
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from clutils.data.kinds import KINDS, kind_of
from clutils.encoders.graphs import GCNLayer, GINLayer, GraphNetwork
from clutils.encoders.transformer import Dropout as Dropout
from clutils.encoders.transformer import Transformer as Transformer
from clutils.settings import demand_room, one_of, within

NAMES = {  # and the kind of samples that each takes: `data.KINDS`
    "conv16": "pictures",
    "conv32": "pictures",
    "resnet18": "pictures",
    "resnet50": "pictures",
    "mlp": "vectors",
    "gin": "graphs",
    "gcn": "graphs",
    "gcn-nodes": "nodes",
    "gcn-prelu": "nodes",
    "transformer": "sentences",
}
FLAGS_OF_BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}  # x86 (two kinds), Arm: as Linux spells them


class ConvNet(nn.Module):
    """Four 3x3 convolutions, each with batch normalisation and ReLU; (N, C, H, W) -> (N, 8 * width).

    The image is halved in each of the first three layers, but not below 2x2, and averaged at the end. Pooling
    stands before normalisation: nearly the same as after the ReLU (a maximum passes through any rising
    function), and normalising a quarter of the pixels saves a CPU time.

    - channels: of the images; width: of the first layer, the others have 2, 4 and 8 times as many
    """

    def __init__(self, channels: int = 3, width: int = 16) -> None:
        super().__init__()
        widths = [channels, width, 2 * width, 4 * width, 8 * width]
        demand_room("ConvNet", f"width {width:,}", 9 * sum(a * b for a, b in pairwise(widths)))
        self.features = widths[-1]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(narrow, wide, kernel_size=3, padding=1, bias=False)  # the normalisation has a bias
            for narrow, wide in pairwise(widths)
        )
        self.normalisations = nn.ModuleList(nn.BatchNorm2d(wide) for wide in widths[1:])

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for layer, (convolve, normalise) in enumerate(
            zip(self.convolutions, self.normalisations, strict=True)
        ):
            x = convolve(x)
            if layer < 3 and min(x.shape[-2:]) > 2:
                x = nn.functional.max_pool2d(x, 2)
            x = nn.functional.relu(normalise(x), inplace=True)
        return x.mean(dim=(2, 3))


class MLP(nn.Sequential):
    """Three linear layers with ReLU between: (N, numbers) -> (N, features).

    PiNDA's encoder of vectors (arXiv 2408.09929, section 4.2.2): hidden width 1024, 256 features.
    """

    def __init__(self, numbers: int, hidden: int = 1024, features: int = 256) -> None:
        room = hidden * (numbers + hidden + features)
        demand_room("MLP", f"layers of {numbers:,}, {hidden:,} and {features:,} numbers", room)
        super().__init__(
            nn.Linear(numbers, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, features),
        )
        self.features = features


class ProjectionHead(nn.Sequential):
    """Linear, batch normalisation, ReLU, linear; (N, features) -> (N, out).

    The loss sees its output; what a run is used for afterwards is the encoder's, before the head
    (Chen et al. 2020, section 4.2). Not normalised: the losses do that.

    - layers: linear ones; each but the last has `hidden` outputs, batch normalisation and ReLU behind it
    """

    def __init__(self, features: int, hidden: int, out: int, layers: int = 2) -> None:
        widths = [features, *[hidden] * (layers - 1)]
        room = sum(a * b for a, b in pairwise([*widths, out]))
        demand_room("ProjectionHead", f"hidden {hidden:,} and out {out:,}", room)
        inner: list[nn.Module] = []
        for narrow, wide in pairwise(widths):
            inner += [nn.Linear(narrow, wide, bias=False), nn.BatchNorm1d(wide), nn.ReLU(inplace=True)]
        super().__init__(*inner, nn.Linear(widths[-1], out))
        self.features = out


def build(name: str, channels: int = 3, stem: str = "3x3") -> nn.Module:
    """A fresh, randomly initialised encoder: images (N, channels, H, W) -> features (N, .features).

    - "mlp": `MLP`, of vectors (N, channels); "transformer": `Transformer`, of sentences (N, channels)
    - "gin", "gcn", "gcn-nodes": `GraphNetwork`, of graphs of so many attributes (96 features) or of nodes
      (two layers of 64, 128 features); "gcn-prelu": of nodes, without batch normalisation, one layer of 512
      features and PReLU, as the authors of DGI and MVGRL have it
    - "conv16", "conv32": `ConvNet` of width 16 (128 features, 0.10 M parameters) or 32 (256, 0.39 M)
    - "resnet18", "resnet50": torchvision's, without the classifier (512 and 2,048 features; 11 M and 24 M)
    - stem: of the ResNets. "3x3" for small images: a 3x3 first convolution of stride 1 and no max-pool,
      as SimCLR's appendix B.9 does for CIFAR-10; "7x7": as for ImageNet, it shrinks the image fourfold

    Random numbers come from torch's global stream: seed it, or build inside `torch.random.fork_rng()`.
    Raises ValueError on an unknown name or stem.
    """
    if name not in NAMES:
        raise ValueError(f"encoders.build: no encoder is called {name!r}; there are {', '.join(NAMES)}")
    one_of("encoders.build", "stem", stem, ("3x3", "7x7"))
    within("encoders.build", "channels", channels, 1, whole=True)
    if name == "mlp":
        return MLP(channels)
    if name == "gcn-nodes":
        return GraphNetwork(channels, GCNLayer, width=64, layers=2, of_nodes=True)
    if name == "gcn-prelu":
        return GraphNetwork(channels, GCNLayer, width=512, layers=1, of_nodes=True, normalise=False)
    if name in ("gin", "gcn"):
        return GraphNetwork(channels, GINLayer if name == "gin" else GCNLayer)
    if name == "transformer":
        return Transformer(channels)
    if name.startswith("conv"):
        return ConvNet(channels, width=int(name.removeprefix("conv")))
    import torchvision

    net = torchvision.models.get_model(name, weights=None)
    net.features = net.fc.in_features
    net.fc = nn.Identity()
    if stem == "3x3":
        net.conv1 = nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False)
        net.maxpool = nn.Identity()
    elif channels != 3:
        net.conv1 = nn.Conv2d(channels, 64, kernel_size=7, stride=2, padding=3, bias=False)
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")  # as torchvision's own
    return net


def width(encoder: nn.Module) -> int:
    """How many features an encoder gives: its `.features`. Raises ValueError where that is no number."""
    found = getattr(encoder, "features", None)
    if not isinstance(found, int):
        raise ValueError(
            f"the encoder, a {type(encoder).__name__}, does not say how many numbers it gives for a sample: "
            "set its attribute features, as in encoder.features = 512"
        )
    return found


def half_precision(device: torch.device) -> torch.dtype | None:
    """The 16-bit type that this device multiplies in faster than in float32; None where it has none.

    bfloat16, whose range is float32's, goes first; float16 is for GPUs before Ampere, as Colab's T4.
    """
    if computes_bfloat16(str(device)):
        return torch.bfloat16
    return torch.float16 if device.type == "cuda" else None


@cache
def computes_bfloat16(device: str) -> bool:
    """True where the device of this name has instructions for bfloat16; without, it takes twice as long.

    Processors are asked by their flags in Linux's /proc/cpuinfo: where there is none, the answer is no.
    """
    kind = torch.device(device)
    if kind.type == "cuda":
        return torch.cuda.get_device_capability(kind) >= (8, 0)  # Ampere; older ones emulate it
    if kind.type != "cpu":
        return False
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not FLAGS_OF_BFLOAT16.isdisjoint(flags.split())


OFF = 1e-3  # by which rounding may take a float image out of [0, 1]


def embed(encoder: nn.Module, images: Tensor, batch_size: int | None = None) -> Tensor:
    """Features of samples of any kind in `KINDS`: (N, features) float32 on the CPU.

    In evaluation mode, on the encoder's device; nothing about it changes. Images may be uint8, or float in
    [0, 1]; ValueError on anything else. batch_size: None = 128 on a CPU, for its cache; 512 elsewhere
    """
    if not isinstance(images, Tensor) or not len(images):
        what = tuple(images.shape) if isinstance(images, Tensor) else type(images).__name__
        shapes = ", ".join(f"{kind} {kind.shape}" for kind in KINDS)
        raise ValueError(f"embed: the tensor is {what}, but must be {shapes}, at least one")
    kind_of(images, "embed: the tensor")
    within("embed", "batch_size", 1 if batch_size is None else batch_size, 1, whole=True)
    if images.ndim == 4 and images.is_floating_point():
        low, high = (float(end) for end in images.aminmax())
        if not (low >= -OFF and high <= 1 + OFF):  # nor NaN
            raise ValueError(
                f"embed: float images are in [0, 1], these are from {low:.4g} to {high:.4g}: clamp what a "
                "change took out of it, and give images before their normalisation"
            )
    demand_weights(encoder)
    parameter = next(encoder.parameters(), images)
    on_device = 128 if parameter.device.type == "cpu" else 512
    with evaluating(encoder), torch.no_grad():
        parts = images.split(on_device if batch_size is None else batch_size)
        fed = (as_input(part.to(parameter.device), computes_in(encoder)) for part in parts)
        return torch.cat([features_in(encoder(part), encoder).cpu() for part in fed])


def demand_weights(encoder: nn.Module) -> None:
    """Raise ValueError where a weight has no values: one on the meta device."""
    if without := [name for name, weight in encoder.named_parameters() if weight.is_meta]:
        raise ValueError(
            f"the encoder, a {type(encoder).__name__}, has weights without values ({without[0]} is on the "
            "meta device): fill it first, as by load_state_dict(..., assign=True)"
        )


def computes_in(encoder: nn.Module) -> torch.dtype:
    """Kind of numbers that its weights are, unless it says that it takes float32 whatever that is."""
    weights = next(encoder.parameters(), None)
    if weights is None or not weights.is_floating_point() or getattr(encoder, "takes_float32", False):
        return torch.float32
    return weights.dtype


def features_in(given: object, encoder: nn.Module) -> Tensor:
    """The features in what an encoder gave, as (N, features) float32. Raises ValueError where none are."""
    if not isinstance(given, Tensor) or given.ndim < 2:
        what = f"a tensor {tuple(given.shape)}" if isinstance(given, Tensor) else f"a {type(given).__name__}"
        raise ValueError(
            f"the encoder, a {type(encoder).__name__}, gives {what}, but must give a tensor (N, features): "
            "wrap it in a module that returns one"
        )
    return given.flatten(1).float()


def unseen(encoder: nn.Module) -> bool:
    """True where it has batch normalisations, none of which has seen an image: a network as it is made."""
    kinds = nn.BatchNorm1d | nn.BatchNorm2d
    norms = [m for m in encoder.modules() if isinstance(m, kinds) and m.num_batches_tracked is not None]
    counts = [m.num_batches_tracked for m in norms if m.num_batches_tracked is not None]
    return bool(counts) and not any(map(int, counts))


def settled(encoder: nn.Module, images: Tensor, batch_size: int = 64) -> nn.Module:
    """A copy whose batch normalisations hold the mean statistics of these images.

    An untrained encoder with settled statistics gives other features than as it was made, and neither is
    always the better one: a baseline is the better of both.
    """
    made = copy.deepcopy(encoder)
    device = next(made.parameters(), images).device
    with torch.random.fork_rng(devices=[]):  # dropout draws
        kind = computes_in(made)
        update_bn((as_input(part.to(device), kind) for part in images.split(batch_size)), made)
    return made.eval()


@contextlib.contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode; afterwards each layer is in the mode it was in."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def as_input(images: Tensor, kind: torch.dtype = torch.float32) -> Tensor:
    """uint8 -> floats in [0, 1], and the memory order (channels last) in which convolutions are fastest.

    Integers, a sentence's words, stay what they are; kind: of the floats, as an encoder's weights are.
    """
    if images.dtype == torch.int64:
        return images
    images = (images.float() / 255 if images.dtype == torch.uint8 else images.float()).to(kind)
    if images.ndim != 4:
        return images
    return images.contiguous(memory_format=torch.channels_last)
