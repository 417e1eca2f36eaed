"""PiNDA: one of the two views carries noise from a generator that is trained with the encoder."""

from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from clutils import noise
from clutils.methods.base import Augment, Given, LossAndViews, Method, autocast, drawing_on, several_views
from clutils.settings import one_of, setting
from clutils.views import Identity, checks

OF_THE_NOISE = ("distribution", "learned_mean", "positive", "highest", "start", "rms", "padding", "skips")


class PiNDA(Method):
    r"""Zhang et al. 2024 (arXiv 2408.09929), algorithms 1 and 2: any method's step, with noise in view one.

    $$\min_{\theta,\psi}\;\ell\bigl(f_\theta(x + \varepsilon_\psi),\, f_\theta(a(x))\bigr)
      + \lambda\,\frac{1}{\overline{\|\varepsilon_\psi\|}}$$

    - base, base_settings: the name of the method whose step it is, and that method's own settings; it is
      `.method`, and has encoder, head and loss
    - network (None = "conv" for images, "mlp" for vectors), distribution, learned_mean, positive, highest,
      start, rms, padding, skips: see `noise.NoiseGenerator`; "fixed" is the baseline of random noise
    - penalty (live): λ, in units of the loss times the noise's norm; None = 1 on images and 0 on vectors,
      as in the paper, and 0 on fixed noise. Noise of σ in d entries has the norm σ√d: λ = 1 on 8 x 8 digits
      is as much as 7 on 3 x 32 x 32, 21 on 3 x 96 x 96
    - share (live): of the images whose first view is the noisy one, drawn again each step. The penalty counts
      every image, so λ acts as λ / share. In algorithm 2 view two may be noisy, too; here never
    - on: `"picture"`, noise on the whole image as in algorithm 1, or `"view"`, on top of crop and colours
    - noise_rate: the generator's learning rate as a share of the run's; 0.2 of conv16's 5e-3 is the paper's

    x + ε is not clamped to [0, 1]: the paper does not, and a clamp would hide the gradient where it acts.
    The history gets `loss` (without the penalty), `penalty_term` and `noise` (root mean square of ε).
    """

    paper, year, equation = "PiNDA (Zhang et al.)", 2024, "algorithms 1 and 2"
    varies = True
    sample_kinds = ("pictures", "vectors")  # what numbers can be added to
    bases: ClassVar[dict[str, type[Method]]] = {}  # what it can stand on; `clutils.methods` knows all
    out, hidden = 0, None  # the base's
    base: str = field(default="simclr")
    base_settings: dict[str, Any] | None = field(default=None)
    network: str | None = setting(
        choices=noise.NETWORKS, also=(None,), default=None, about="generator's network"
    )
    # the generator's, as it declares them
    distribution, learned_mean, positive, highest, start, rms, padding, skips = (
        noise.NoiseGenerator.arguments[name] for name in OF_THE_NOISE
    )
    penalty: float | None = setting(
        0, symbol="λ", dial=(0, 10, "even"), default=None, about="weight of 1/‖ε‖"
    )
    share: float = setting(
        noise.ABOVE_0, highest=1, dial=(0.05, 1, "even"), default=1.0, about="share of images with noise"
    )
    on: str = setting(choices=("picture", "view"), default="picture", about="where noise is added")
    noise_rate: float = setting(noise.ABOVE_0, default=0.2, about="generator's learning rate over the run's")

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        base = self.under(self.base)
        self.base_settings = base.checked(self.base_settings, "base_settings")
        self.method = base(encoder, loss, **self.base_settings)
        weights = next(p for p in encoder.parameters() if p.ndim > 1)  # of layer 1: (out, channels, ...)
        if self.network is None:
            self.network = "mlp" if weights.ndim == 2 else "conv"
        if self.penalty is None:
            self.penalty = 0.0 if self.network in ("mlp", "fixed") else 1.0
        own = {name: getattr(self, name) for name in OF_THE_NOISE}
        self.noise = noise.NoiseGenerator(self.network, weights.shape[1], **own)
        self.check_settings()

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), property):  # the base's, also where it is a module
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    @classmethod
    def under(cls, base: str) -> type[Method]:
        """The method of this name. Raises ValueError where there is none, or none to stand on."""
        one_of(cls.__name__, "base", base, cls.bases)
        return cls.bases[base]

    @classmethod
    def default_loss(cls, base: str = "simclr", base_settings: Any = None, **settings: Any) -> nn.Module:
        return cls.under(base).default_loss(**cls.under(base).checked(base_settings, "base_settings"))

    @classmethod
    def rate_share(cls, base: str = "simclr", **settings: Any) -> float:
        return cls.under(base).rate_share()

    def settings(self) -> dict[str, Any]:
        """Settings as of every method; `base_settings` are the base's present ones."""
        return super().settings() | {"base_settings": self.method.settings()}

    def objective(self, given: Given) -> LossAndViews:
        """The scalar is loss + λ · penalty."""
        views = _WithNoise(given.augment, self)
        loss, z1, z2 = self.method(given.images, views, given.generator, given.labels, given.index)
        term = self.penalty * noise.penalty(views.sample) if self.penalty else loss.new_zeros(())
        self.reported = {
            **self.method.reported,
            "loss": loss.detach(),
            "penalty_term": term.detach(),
            "noise": views.sample.detach().pow(2).mean().sqrt(),
        }
        return loss + term, z1, z2

    def parameter_groups(self) -> list[dict[str, Any]]:
        """The generator has no weight decay: it would pull σ towards `start`."""
        learned = {"params": list(self.noise.parameters()), "factor": self.noise_rate, "weight_decay": 0.0}
        return [*self.method.parameter_groups(), *([learned] if learned["params"] else [])]

    @property
    def after_step_only(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(f"method.{name}" for name in self.method.after_step_only)


def _its(name: str) -> property:
    """Attribute of the base, as PiNDA's own."""
    return property(attrgetter(f"method.{name}"), lambda self, value: setattr(self.method, name, value))


for _name in (
    *("encoder", "head", "loss", "out", "half_type", "uses_labels", "takes_extra_views", "extra_views"),
    *("allocate", "after_step", "check_batch", "use", "networks", "chance", "negatives"),
):
    setattr(PiNDA, _name, _its(_name))


@dataclass
class _WithNoise:
    """An augmentation whose first view carries the generator's noise, with its gradient."""

    augment: Augment
    of: PiNDA
    sample: Tensor = field(init=False)  # the noise of the last call

    def several_views(self, images: Tensor, generator: torch.Generator, number: int) -> list[Tensor]:
        first, *others = several_views(self.augment, images, generator, number)
        x = first if self.of.on == "view" else Identity()(images)
        if x.shape != first.shape:
            sizes = f"images are {tuple(x.shape)} and views {tuple(first.shape)}"
            raise ValueError(f"PiNDA: {sizes}: load them at one size, or set on='view'")
        generator = drawing_on(x.device, generator)
        with autocast(x.device, self.of.half_type):
            self.sample = self.of.noise(x, generator).sample
        noisy = x + self.sample
        if self.of.share < 1:
            chosen = checks.drawn((len(x), *[1] * (x.ndim - 1)), x, generator) < self.of.share
            noisy = torch.where(chosen, noisy, first)
        return [noisy, *others]
