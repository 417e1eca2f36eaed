"""PiNDA: one of the two views carries noise from a generator that is trained with the encoder."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from clutils import noise
from clutils.losses.hyperparameters import SWITCH, Hyperparameter, declare, one_of
from clutils.methods.base import Augment, Method, drawing_on, half_precision, several_views
from clutils.views import Identity

ON = ("picture", "view")
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
    ranges = declare(
        highest=replace(ABOVE_0, also=(None,)),
        start=ABOVE_0,
        rms=replace(ABOVE_0, also=(None,)),
        penalty=Hyperparameter(0, symbol="λ", dial=(0, 10, "even")),
        share=Hyperparameter(0, 1, open_below=True, dial=(0.05, 1, "even")),
        noise_rate=ABOVE_0,
        learned_mean=SWITCH,
        skips=SWITCH,
    )
    live = ("penalty", "share")
    kinds = ("pictures", "vectors")  # what numbers can be added to

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        bfloat16: bool = False,
        base: str = "simclr",
        base_settings: dict[str, Any] | None = None,
        network: str | None = None,
        distribution: str = "gaussian",
        learned_mean: bool = False,
        positive: str = "softplus",
        highest: float = 1.0,
        start: float = 0.02,
        rms: float | None = None,
        padding: str = "reflect",
        skips: bool = True,
        penalty: float | None = None,
        share: float = 1.0,
        on: str = "picture",
        noise_rate: float = 0.2,
    ) -> None:
        nn.Module.__init__(self)  # encoder, head and loss are those of the method whose step this is
        base_settings = _checked(base, base_settings)
        self.method = _base(base)(encoder, loss, bfloat16=bfloat16, **base_settings)
        weights = next(p for p in encoder.parameters() if p.ndim > 1)  # of layer 1: (out, channels, ...)
        if network is None:
            network = "mlp" if weights.ndim == 2 else "conv"
        if penalty is None:
            penalty = 0.0 if network in ("mlp", "fixed") else 1.0
        self.noise = noise.Generator(
            network,
            weights.shape[1],
            distribution=distribution,
            learned_mean=learned_mean,
            positive=positive,
            highest=highest,
            start=start,
            rms=rms,
            padding=padding,
            skips=skips,
        )
        self.base, self.base_settings = base, base_settings
        self.network, self.distribution, self.learned_mean = network, distribution, learned_mean
        self.positive, self.highest, self.start, self.rms = positive, highest, start, rms
        self.padding, self.skips, self.noise_rate = padding, skips, noise_rate
        self.penalty, self.share, self.on = penalty, share, on
        self.reported = {}
        self.check_settings()

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> loss + λ · penalty, both views' embeddings (B, out), detached."""
        self.check_settings()
        views = _WithNoise(augment, self.noise, self.share, self.on, self.method.half_type)
        loss, z1, z2 = self.method(images, views, generator, labels, index)
        assert views.sample is not None  # every method asks for several views
        term = self.penalty * noise.penalty(views.sample) if self.penalty else loss.new_zeros(())
        self.reported = {
            **self.method.reported,
            "loss": loss.detach(),
            "penalty_term": term.detach(),
            "noise": views.sample.detach().pow(2).mean().sqrt(),
        }
        return loss + term, z1, z2

    def allocate(self, samples: int) -> None:
        self.method.allocate(samples)

    def after_step(self) -> None:
        self.method.after_step()

    @classmethod
    def default_loss(
        cls, base: str = "simclr", base_settings: dict[str, Any] | None = None, **settings: Any
    ) -> nn.Module:
        return _base(base).default_loss(**_checked(base, base_settings))

    def check_batch(self, size: int) -> None:
        self.method.check_batch(size)

    @classmethod
    def rate_share(cls, base: str = "simclr", **settings: Any) -> float:
        return _base(base).rate_share()

    def settings(self) -> dict[str, Any]:
        """As of every method; `base_settings` are the base's present ones, which may have been changed."""
        return super().settings() | {"base_settings": self.method.settings()}

    def use(self, loss: nn.Module) -> None:
        self.method.use(loss)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The generator has no weight decay: it would pull σ towards `start`."""
        learned = {"params": list(self.noise.parameters()), "factor": self.noise_rate, "weight_decay": 0.0}
        return [*self.method.parameter_groups(), *([learned] if learned["params"] else [])]

    def networks(self) -> list[nn.Module]:
        return self.method.networks()

    def changing_buffers(self) -> list[Tensor]:
        return [*self.method.changing_buffers(), *self.noise.buffers()]

    def chance(self, batch_size: int) -> float | None:
        return self.method.chance(batch_size)

    # of the method whose step this is; read-only here, attributes there

    @property
    def encoder(self) -> nn.Module:  # type: ignore[override]
        return self.method.encoder

    @property
    def head(self) -> nn.Module:  # type: ignore[override]
        return self.method.head

    @property
    def loss(self) -> nn.Module:  # type: ignore[override]
        return self.method.loss

    @property
    def half_type(self) -> torch.dtype | None:
        return self.method.half_type

    @half_type.setter
    def half_type(self, half: torch.dtype | None) -> None:
        self.method.half_type = half

    @property
    def uses_labels(self) -> bool:  # type: ignore[override]
        return self.method.uses_labels

    @property
    def takes_extra_views(self) -> bool:  # type: ignore[override]
        return self.method.takes_extra_views

    @property
    def extra_views(self) -> int:
        return self.method.extra_views

    @extra_views.setter
    def extra_views(self, number: int) -> None:
        self.method.extra_views = number

    def check_settings(self) -> None:
        super().check_settings()
        one_of("PiNDA", "on", self.on, ON)


class _WithNoise:
    """An augmentation whose first view carries the generator's noise, with its gradient."""

    def __init__(
        self, augment: Augment, generator: noise.Generator, share: float, on: str, half: torch.dtype | None
    ) -> None:
        self.augment, self.generator, self.share, self.on = augment, generator, share, on
        self.half = half
        self.sample: Tensor | None = None

    def several_views(self, images: Tensor, generator: torch.Generator, number: int) -> list[Tensor]:
        first, *others = several_views(self.augment, images, generator, number)
        x = first if self.on == "view" else Identity()(images)
        if x.shape != first.shape:
            raise ValueError(
                f"PiNDA: pictures are {tuple(x.shape)} and views {tuple(first.shape)}; the noise goes on "
                "whole pictures, so both need one size: load them at the views' size, or set on='view'"
            )
        generator = drawing_on(x.device, generator)
        with half_precision(x.device, self.half):
            self.sample = self.generator(x, generator).sample
        noisy = x + self.sample
        if self.share < 1:
            drawn = torch.rand(len(x), generator=generator, device=generator.device).to(x.device)
            noisy = torch.where((drawn < self.share).view(-1, *[1] * (x.ndim - 1)), noisy, first)
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
