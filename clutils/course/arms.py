"""Is it the place that matters? Four arms of PiNDA with equal noise in every image and channel.

    run = training.Run(method="pinda", ..., method_settings={"on": "view"})
    arms.use(run, "dealt", rms=0.05)            # before its first step

The amount is the same in all four, so a difference between them is owed to where the noise goes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from clutils.noise import Noise, NoiseGenerator
from clutils.settings import within

if TYPE_CHECKING:
    from clutils.training import Run

ARMS = {
    "uniform": "the same scale everywhere; nothing is learned",
    "learned": "the generator's own map",
    "dealt": "each image gets the map that was learned for another image of the batch",
    "adversarial": "the generator learns to raise the loss",
}


def use(run: Run, arm: str, rms: float) -> Run:
    """Give a run of method pinda, before its first step, the noise of an arm; returns the run.

    - arm: of `ARMS`
    - rms: root mean square of ε over each image's every channel (of vectors, over each vector), in units of
      the input

    With the amount fixed the penalty is a constant, and is set to 0. In "dealt" the gradient of the loss in ε
    is handed to the image's own map: the generator learns as it would, while the encoder meets the maps on
    the wrong images. A map has no size of its own, so nothing keeps the network's output up: it is taken in
    log space, up to a factor of each channel, and never vanishes. The arm is not part of a saved run: after
    `training.resume`, call this again.

    Raises ValueError on an arm that there is not, an rms that is not positive, and a run whose noise has
    nothing to learn, learns a mean, is made positive by another function than softplus, or has an rms or an
    arm already.
    """
    if arm not in ARMS:
        raise ValueError(f"arms: arm is {arm!r}; there are {', '.join(ARMS)}")
    within("arms", "rms", rms, 0, open_below=True)
    generator = getattr(run.method, "noise", None)
    if not isinstance(generator, NoiseGenerator) or generator.network is None:
        raise ValueError(f"arms: a run of pinda with a network is needed, this is {run.settings.method}'s")
    if generator.learned_mean or generator.rms is not None or generator._forward_hooks:
        raise ValueError("arms: a run without a learned mean, rms and arm of its own is needed")
    if generator.positive != "softplus":
        raise ValueError(f"arms: positive is {generator.positive!r}, but must be 'softplus'")
    run.method.penalty = 0.0
    shift = math.log(math.expm1(generator.start))  # as the generator adds it to its network's output

    def never_vanishing(module: object, given: tuple[object, ...], raw: Tensor) -> Tensor:
        return in_log_space(raw.float() + shift) - shift

    def replaced(module: NoiseGenerator, given: tuple[object, ...], drawn: Noise) -> Noise:
        return noise_of(drawn, arm, rms)

    generator.network.register_forward_hook(never_vanishing)
    generator.register_forward_hook(replaced)
    return run


def noise_of(drawn: Noise, arm: str, rms: float | Tensor) -> Noise:
    """A draw's noise as an arm has it: images (N, ...) first, each channel of this root mean square."""
    standard = (drawn.sample / drawn.scale.clamp(min=1e-30)).detach()  # of mean 0 and variance 1
    scale = levelled(torch.ones_like(drawn.scale) if arm == "uniform" else drawn.scale, rms)
    sample = levelled(scale * standard, rms)
    if arm == "dealt":
        scale = scale.detach().roll(1, dims=0)
        sample = levelled(scale * standard, rms) + sample - sample.detach()
    if arm == "adversarial":
        sample = 2 * sample.detach() - sample
    return Noise(sample, scale, drawn.mean)


def in_log_space(a: Tensor) -> Tensor:
    """An a' whose softplus is a's divided by the channel's largest: from e^-60 to 1, wherever a is."""
    over = tuple(range(2, a.ndim)) or (1,)
    log = torch.where(a < -15, a, torch.nn.functional.softplus(a.clamp(min=-15)).log())
    log = (log - log.detach().amax(dim=over, keepdim=True)).clamp(min=-60)
    size = log.exp()
    return log + (torch.expm1(size) / size).log()  # the inverse of softplus


def levelled(x: Tensor, rms: float | Tensor) -> Tensor:
    """Every channel of every image, or every vector, rescaled to this root mean square."""
    over = tuple(range(2, x.ndim)) or (1,)
    largest = x.detach().abs().amax(dim=over, keepdim=True)
    x = x / torch.where(largest > 1e-35, largest, 1.0)  # a map has no size: its squares may vanish
    return x * (rms / x.pow(2).mean(dim=over, keepdim=True).clamp(min=1e-12).sqrt())
