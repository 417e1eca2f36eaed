r"""PiNDA's noise generator: learned noise whose scale at every pixel depends on the image.

A network reads an input x and gives a scale σ(x), and if asked a mean μ(x), each shaped like x. The noise is
drawn by the reparameterisation trick, so that a loss of x + ε has a gradient in the network's weights:

$$\varepsilon = \mu(x) + \epsilon\odot\sigma(x),\quad \epsilon\sim N(0, I) \qquad\text{or}\qquad
\varepsilon = (2\epsilon - 1)\,u(x),\quad \epsilon\sim U(0, 1).$$

Zhang et al. 2024, "Data augmentation of contrastive learning is estimating positive-incentive noise"
(arXiv 2408.09929), eqs. 22 to 25. The paper calls Σ a variance and uses it as σ here, a standard deviation
(eq. 23); it says neither how Σ stays positive nor what the image networks look like: both are choices here.
(ϵ is symmetric, so a negative σ would draw the same noise as a positive one.)
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import Field, dataclass
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from clutils import encoders
from clutils.settings import SWITCH, Declared, Setting, bind, check, collect, demand_known, setting

NETWORKS = ("conv", "unet", "resnet18", "mlp", "fixed")
WITH_SKIPS = ("unet", "resnet18")
SLOPE = 0.1  # of leaky ReLUs: with plain ones a small generator can die, and its map is flat
ABOVE_0 = Setting(0, open_below=True)
SMALLEST = {"conv": 2, "unet": 8, "resnet18": 16}  # pixels a side: below, nothing is left to reflect


@dataclass
class Noise:
    """One draw, each shaped like the input.

    sample   ε, what is added to the input
    scale    its standard deviation; of a uniform distribution on [-u, u] that is u/√3
    mean     its mean; 0 where none is learned
    """

    sample: Tensor
    scale: Tensor
    mean: Tensor


@collect
class NoiseGenerator(nn.Module, metaclass=Declared):
    """Input x -> the noise for it: `generator(x)` gives `.sample`, `.scale` and `.mean`, each shaped like x.

    - network: "conv" (three plain convolutions, sees 7x7 pixels), "unet" (two halvings and back, with skips),
      "resnet18" (torchvision's as the way down, a decoder with skips as the way up: the paper's size);
      "mlp" (three layers, 1024 wide) for vectors; "fixed": no network, the scale is `start` everywhere
    - channels: of the images, or the number of entries of the vectors
    - distribution: "gaussian" or "uniform"
    - learned_mean: μ from the same network; else μ = 0
    - positive: what makes σ positive of the network's output a: "softplus", log(1 + e^a); "exp", e^a;
      "bounded", highest · sigmoid(a); "abs", |start + a|, which can reach 0
    - highest: the bound of "bounded", in units of the input (images: 1 is from black to white)
    - start: σ where the last layer's weights give 0, so about where training starts
    - rms: where given, each input's ε is rescaled to this root mean square, and only its pattern is learned
      (the paper's figure 1 normalises the noise, without saying how)
    - padding: of the convolutions, "reflect" or "zeros"; with zeros the border is a place that differs
      from all others, and it collects noise
    - skips: of "unet" and "resnet18", whether the way up sees each size of the way down; without, a map is as
      coarse as the smallest of them. "resnet18" without skips and with "abs" is the form of the same group's
      code for a sibling paper (VPN): a guess at PiNDA's own

    Raises ValueError, quoting what came in, on a setting or an input that does not fit.
    """

    arguments: ClassVar[Mapping[str, Field]]  # see `settings.collect`
    ranges: ClassVar[Mapping[str, Setting]]
    network: Any = setting(choices=NETWORKS, default="conv", about="network that gives the scale")
    channels: int = setting(1, whole=True, default=3, about="channels of the input")
    distribution: str = setting(
        choices=("gaussian", "uniform"), default="gaussian", about="distribution of the draws"
    )
    learned_mean: bool = setting(SWITCH, default=False, about="the mean is learned, too")
    positive: str = setting(
        choices=("softplus", "exp", "bounded", "abs"),
        default="softplus",
        about="function that makes the scale positive",
    )
    highest: float = setting(ABOVE_0, also=(None,), default=1.0, about="upper bound of the scale")
    start: float = setting(ABOVE_0, default=0.02, about="scale before training")
    rms: float | None = setting(
        ABOVE_0, also=(None,), default=None, about="root mean square of each input's noise"
    )
    padding: str = setting(
        choices=("reflect", "zeros"), default="reflect", about="padding of the convolutions"
    )
    skips: bool = setting(SWITCH, default=True, about="skip connections")

    def __setattr__(self, name: str, value: Any) -> None:
        demand_known(self, name, value)
        super().__setattr__(name, value)

    def __init__(self, *given: Any, **by_name: Any) -> None:
        super().__init__()
        for name, value in bind(type(self), *given, **by_name).items():
            setattr(self, name, value)
        check("noise", self)
        network, channels = self.network, self.channels
        if self.learned_mean and (self.distribution == "uniform" or network == "fixed"):
            what = "a fixed noise" if network == "fixed" else "the uniform distribution"
            raise ValueError(f"noise: learned_mean is True, but {what} has none here")
        if not self.skips and network not in WITH_SKIPS:
            raise ValueError(f"noise: skips is False, but {network!r} has none; {', '.join(WITH_SKIPS)} have")
        if self.positive == "bounded" and not self.start < (self.highest or 0):
            raise ValueError(f"noise: start is {self.start}, but must be below highest, {self.highest}")
        out = channels * (2 if self.learned_mean else 1)
        fixed = network == "fixed"  # from here on `network` is the module
        self.network = None if fixed else _network(network, channels, out, self.padding, self.skips)
        self.of_vectors, self.smallest = network == "mlp", SMALLEST.get(network, 1)

    def forward(self, x: Tensor, generator: torch.Generator | None = None) -> Noise:
        """x: (N, channels, H, W) images or (N, channels) vectors, floating, or uint8 images.

        x may lie on any device; the noise is on the network's. Settings are checked again, as losses check
        theirs.
        generator: of the random numbers ϵ; without one torch's global CPU generator is used.
        """
        check("noise", self, {name: own for name, own in self.ranges.items() if name != "network"})
        x = self._checked(x).to(next(self.parameters(), x).device)
        device = "cpu" if generator is None else generator.device
        draw = torch.randn if self.distribution == "gaussian" else torch.rand
        drawn = draw(x.shape, generator=generator, device=device).to(x.device)
        scale, mean = self._scale_and_mean(x)
        if self.distribution == "uniform":
            sample = (2 * drawn - 1) * scale * math.sqrt(3)  # a scale of u/√3 belongs to [-u, u]
        else:
            sample = mean + drawn * scale
        if self.rms is not None:
            factor = self.rms / _rms((scale**2 + mean**2).sqrt())
            sample, scale, mean = sample * (self.rms / _rms(sample)), scale * factor, mean * factor
        return Noise(sample, scale, mean)

    def _scale_and_mean(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.network is None:
            return torch.full_like(x, self.start), torch.zeros_like(x)
        raw = self.network(encoders.as_input(x)).float()
        raw, mean = raw.chunk(2, dim=1) if self.learned_mean else (raw, torch.zeros_like(x))
        if self.positive == "softplus":
            return F.softplus(raw + math.log(math.expm1(self.start))), mean
        if self.positive == "exp":
            return self.start * raw.exp(), mean
        if self.positive == "abs":
            return (self.start + raw).abs(), mean
        return self.highest * torch.sigmoid(raw - math.log(self.highest / self.start - 1)), mean

    def _checked(self, x: Tensor) -> Tensor:
        dimensions = (2,) if self.of_vectors else (4,) if self.network is not None else (2, 4)
        if not isinstance(x, Tensor) or x.ndim not in dimensions or x.shape[1] != self.channels:
            what = tuple(x.shape) if isinstance(x, Tensor) else type(x).__name__
            needed = f"(N, {self.channels})" if self.of_vectors else f"(N, {self.channels}, H, W)"
            raise ValueError(f"noise: x is {what}, but this generator takes {needed}")
        if x.ndim == 4 and min(x.shape[-2:]) < self.smallest:
            raise ValueError(
                f"noise: x is {tuple(x.shape)}, but this network needs images of at least "
                f"{self.smallest} x {self.smallest} pixels"
            )
        if x.dtype != torch.uint8 and not x.is_floating_point():
            raise ValueError(f"noise: x is {x.dtype}, but must be floating, or uint8 images")
        return x.float() / 255 if x.dtype == torch.uint8 else x.float()


del NoiseGenerator.network  # its default would hide the module, which torch looks for last
Generator = NoiseGenerator  # `noise.Generator`, the contract's name for it


def penalty(sample: Tensor) -> Tensor:
    r"""The paper's guard against vanishing noise, $1/\overline{\|\varepsilon\|}$ (section 4.2.4).

    (N, ...) -> scalar. The norm is Euclidean over all of an input's entries, so of 3 x 32 x 32 numbers of
    root mean square 0.1 it is 5.5, and the penalty 0.18.
    """
    return 1 / sample.flatten(1).norm(dim=1).mean()


def _rms(x: Tensor) -> Tensor:
    """Root mean square of each input, (N, 1, ...)."""
    return x.pow(2).mean(dim=tuple(range(1, x.ndim)), keepdim=True).sqrt()


# ---- the networks ------------------------------------------------------------------------------------------


def _network(name: str, channels: int, out: int, padding: str, skips: bool) -> nn.Module:
    if name == "mlp":
        return encoders.MLP(channels, features=out)
    if name == "conv":
        steps = itertools.pairwise((channels, 32, 32, out))
        first, second, third = (_convolution(narrow, wide, padding) for narrow, wide in steps)
        between = nn.LeakyReLU(SLOPE, inplace=True)
        return nn.Sequential(first, between, second, between, third)
    if name == "unet":
        widths = (16, 32, 64)
        return UNet(Halvings(channels, widths, padding), widths, out, padding, skips)
    from torchvision.models._utils import IntermediateLayerGetter

    net = encoders.build("resnet18", channels=channels)
    for module in net.modules():
        if isinstance(module, nn.Conv2d) and module.kernel_size != (1, 1):
            module.padding_mode = cast(Any, padding)
            module._reversed_padding_repeated_twice = [1] * 4  # pixels on each side of a 3x3 convolution
    down = IntermediateLayerGetter(net, {f"layer{n}": str(n) for n in range(1, 5)})
    return UNet(down, (64, 128, 256, 512), out, padding, skips)


def _convolution(narrow: int, wide: int, padding: str) -> nn.Conv2d:
    return nn.Conv2d(narrow, wide, kernel_size=3, padding=1, padding_mode=cast(Any, padding))


class Halvings(nn.ModuleList):
    """Convolutions with average pooling between: (N, C, H, W) -> the image of each, the largest first."""

    def __init__(self, channels: int, widths: tuple[int, ...], padding: str) -> None:
        pairs = itertools.pairwise((channels, *widths))
        super().__init__(_convolution(narrow, wide, padding) for narrow, wide in pairs)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        sizes: dict[str, Tensor] = {}
        for convolution in self:
            x = F.leaky_relu(convolution(F.avg_pool2d(x, 2) if sizes else x), SLOPE)
            sizes[str(len(sizes))] = x
        return sizes


class UNet(nn.Module):
    """A way down and a decoder up, with a skip at each size or none: (N, C, H, W) -> (N, out, H, W).

    - down: image -> images of these widths, the largest first
    """

    def __init__(self, down: nn.Module, widths: tuple[int, ...], out: int, padding: str, skips: bool) -> None:
        super().__init__()
        self.skips, self.down = skips, down
        steps = itertools.pairwise(reversed(widths))
        self.up = nn.ModuleList(_convolution(low + high * skips, high, padding) for low, high in steps)
        self.last = _convolution(widths[0], out, padding)

    def forward(self, x: Tensor) -> Tensor:
        *sizes, x = self.down(x).values()
        for convolution, size in zip(self.up, reversed(sizes), strict=True):
            x = F.interpolate(x, size=size.shape[-2:], mode="bilinear", align_corners=False)
            x = F.leaky_relu(convolution(torch.cat([x, size], dim=1) if self.skips else x), SLOPE)
        return self.last(x)
