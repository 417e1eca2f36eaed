"""PiNDA: one of the two views carries noise from a generator that is trained with the encoder."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from clutils import noise
from clutils.losses.hyperparameters import SWITCH, Hyperparameter, hyperparameter, one_of
from clutils.methods.base import Augment, Compared, Given, Method, drawing_on, half_precision, several_views
from clutils.views import Identity

ON = ("picture", "view")
OF_THE_NOISE = ("distribution", "learned_mean", "positive", "highest", "start", "rms", "padding", "skips")
ABOVE_0 = Hyperparameter(0, open_below=True)


class PiNDA(Method):
    r"""Zhang et al. 2024 (arXiv 2408.09929), algorithms 1 and 2: any method's step, with noise in view one.

    $$\min_{\theta,\psi}\;\ell\bigl(f_\theta(x + \varepsilon_\psi),\, f_\theta(a(x))\bigr)
      + \lambda\,\frac{1}{\overline{\|\varepsilon_\psi\|}}$$

    - base: the name of the method whose step it is; base_settings: that method's own
    - network, distribution, learned_mean, positive, highest, start, rms, padding, skips: see
      `noise.Generator`; network None = "conv" for images, "mlp" for vectors; "fixed" is the baseline of
      random noise
    - penalty (live): λ, in units of the loss times the noise's norm; None = 1 on images and 0 on vectors,
      as in the paper, and 0 on fixed noise. Noise of σ in d entries has the norm σ√d, so one λ presses less
      the larger the input: λ = 1 on 8 x 8 digits is as much as 7 on 3 x 32 x 32, 21 on 3 x 96 x 96
    - share: of the images whose first view is the noisy one (live), drawn again each step; 1 is algorithm 1.
      Algorithm 2 draws both views from the augmentations and PiNDA; with one augmentation beside PiNDA, a
      quarter of the pairs have noise in both views and a quarter in none. Here view two has none. The
      penalty counts every image's noise and the loss meets a share of it, so λ acts as λ / share
    - on: what the noise is added to: "picture", the whole image as in algorithm 1, or "view", an augmented
      view of it, so that noise comes on top of the crop and the colours
    - noise_rate: the generator's learning rate as a share of the run's; 0.2 of conv16's 5e-3 is
      the paper's 1e-3; of the mlp's 1e-3 it is 1

    x + ε is not clamped to [0, 1]: the paper does not, and a clamp would hide the gradient where it acts.
    The history gets `loss` (without the penalty, so that it compares with chance), `penalty_term` (λ times
    the penalty) and `noise` (root mean square of ε).
    """

    paper, year, equation = "PiNDA (Zhang et al.)", 2024, "algorithms 1 and 2"
    bases: ClassVar[dict[str, type[Method]]] = {}  # what it can stand on; `clutils.methods` knows all
    kinds = ("pictures", "vectors")  # what numbers can be added to
    out, hidden = 0, None  # the base's
    base: str = hyperparameter(None, default="simclr")
    base_settings: dict[str, Any] | None = hyperparameter(None, default=None)
    network: str | None = hyperparameter(None, default=None)
    distribution: str = hyperparameter(None, default="gaussian")
    learned_mean: bool = hyperparameter(SWITCH, default=False)
    positive: str = hyperparameter(None, default="softplus")
    highest: float = hyperparameter(replace(ABOVE_0, also=(None,)), default=1.0)
    start: float = hyperparameter(ABOVE_0, default=0.02)
    rms: float | None = hyperparameter(replace(ABOVE_0, also=(None,)), default=None)
    padding: str = hyperparameter(None, default="reflect")
    skips: bool = hyperparameter(SWITCH, default=True)
    penalty: float | None = hyperparameter(Hyperparameter(0, symbol="λ", dial=(0, 10, "even")), default=None)
    share: float = hyperparameter(replace(ABOVE_0, highest=1, dial=(0.05, 1, "even")), default=1.0)
    on: str = hyperparameter(None, default="picture")
    noise_rate: float = hyperparameter(ABOVE_0, default=0.2)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        """The method whose step this is, which has encoder, head and loss, and the noise's generator."""
        self.base_settings = _checked(self.base, self.base_settings)
        self.method = _base(self.base)(encoder, loss, **self.base_settings)
        weights = next(p for p in encoder.parameters() if p.ndim > 1)  # of layer 1: (out, channels, ...)
        if self.network is None:
            self.network = "mlp" if weights.ndim == 2 else "conv"
        if self.penalty is None:
            self.penalty = 0.0 if self.network in ("mlp", "fixed") else 1.0
        own = {name: getattr(self, name) for name in OF_THE_NOISE}
        self.noise = noise.Generator(self.network, weights.shape[1], **own)
        self.check_settings()

    def step(self, given: Given) -> Compared:
        """The scalar is loss + λ · penalty."""
        views = _WithNoise(given.augment, self)
        loss, z1, z2 = self.method(given.images, views, given.generator, given.labels, given.index)
        assert views.sample is not None  # every method asks for several views
        term = self.penalty * noise.penalty(views.sample) if self.penalty else loss.new_zeros(())
        self.reported = {
            **self.method.reported,
            "loss": loss.detach(),
            "penalty_term": term.detach(),
            "noise": views.sample.detach().pow(2).mean().sqrt(),
        }
        return loss + term, z1, z2

    @classmethod
    def default_loss(
        cls, base: str = "simclr", base_settings: dict[str, Any] | None = None, **settings: Any
    ) -> nn.Module:
        return _base(base).default_loss(**_checked(base, base_settings))

    @classmethod
    def rate_share(cls, base: str = "simclr", **settings: Any) -> float:
        return _base(base).rate_share()

    def settings(self) -> dict[str, Any]:
        """As of every method; `base_settings` are the base's present ones, which may have been changed."""
        return super().settings() | {"base_settings": self.method.settings()}

    def check_settings(self) -> None:
        super().check_settings()
        one_of("PiNDA", "on", self.on, ON)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The generator has no weight decay: it would pull σ towards `start`."""
        learned = {"params": list(self.noise.parameters()), "factor": self.noise_rate, "weight_decay": 0.0}
        return [*self.method.parameter_groups(), *([learned] if learned["params"] else [])]

    def changing_buffers(self) -> list[Tensor]:
        return [*self.method.changing_buffers(), *self.noise.buffers()]


def _its(name: str) -> property:
    """What the method has whose step this is, as PiNDA's own."""
    found, put = attrgetter(f"method.{name}"), lambda self, value: setattr(self.method, name, value)
    return property(found, put)


for _name in (
    *("encoder", "head", "loss", "out", "half_type", "uses_labels", "takes_extra_views", "extra_views"),
    *("allocate", "after_step", "check_batch", "use", "networks", "chance"),
):
    setattr(PiNDA, _name, _its(_name))


class _WithNoise:
    """An augmentation whose first view carries the generator's noise, with its gradient."""

    def __init__(self, augment: Augment, of: PiNDA) -> None:
        self.augment, self.of = augment, of
        self.sample: Tensor | None = None

    def several_views(self, images: Tensor, generator: torch.Generator, number: int) -> list[Tensor]:
        first, *others = several_views(self.augment, images, generator, number)
        x = first if self.of.on == "view" else Identity()(images)
        if x.shape != first.shape:
            raise ValueError(
                f"PiNDA: pictures are {tuple(x.shape)} and views {tuple(first.shape)}; the noise goes on "
                "whole pictures, so both need one size: load them at the views' size, or set on='view'"
            )
        generator = drawing_on(x.device, generator)
        with half_precision(x.device, self.of.half_type):
            self.sample = self.of.noise(x, generator).sample
        noisy = x + self.sample
        if self.of.share < 1:
            drawn = torch.rand(len(x), generator=generator, device=generator.device).to(x.device)
            noisy = torch.where((drawn < self.of.share).view(-1, *[1] * (x.ndim - 1)), noisy, first)
        return [noisy, *others]


def _checked(base: str, settings: dict[str, Any] | None) -> dict[str, Any]:
    """The settings of the method that it stands on. Raises ValueError on what that does not have."""
    known = _base(base).setting_names()
    if not isinstance(settings, dict | None) or not set(settings or {}) <= set(known):
        raise ValueError(
            f"PiNDA: base_settings is {settings!r}, but must set, by name, what {base} has: "
            f"{', '.join(known)}"
        )
    return settings or {}


def _base(name: str) -> type[Method]:
    one_of("PiNDA", "base", name, PiNDA.bases)
    return PiNDA.bases[name]
