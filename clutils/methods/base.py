"""`Method`, the base of all: an encoder, a projection head and a loss, and how views are drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from clutils import encoders, losses, processes, similarities
from clutils.data.kinds import KINDS
from clutils.losses import hyperparameters
from clutils.losses.hyperparameters import Hyperparameter, declare

Augment = Callable[..., Tensor]
WIDTH = Hyperparameter(1, whole=True)  # numbers in a vector
MOMENTUM = Hyperparameter(0, 1, "m", dial=(0, 1, "near one"))  # of an exponential moving average
PREDICTOR_RATE = Hyperparameter(1e-3, 1e3)  # of the predictor, over all else's


class Method(nn.Module):
    """An encoder, a head and a loss; a step is for each method to say.

    - encoder: with `.features`, as from `encoders.build`
    - loss: of `clutils.losses`, or any module that takes two batches of embeddings
    - out: dimension of the space that the loss sees; the head is features -> hidden -> out
    - hidden: of the head, None = as many as the encoder has features; a setting of simclr, supcon and moco
    - bfloat16: compute the encoder in it; head and loss stay in float32

    A method's own settings are the further arguments of its `__init__`, each kept as an attribute of the same
    name and of a plain type, so that a run can be rebuilt from them; `ranges` declares those that are
    numbers. Those in `live` may be changed between two steps, and the history follows them.
    """

    paper: str
    year: int
    equation = ""  # or algorithm, or section
    ranges: Mapping[str, Hyperparameter] = declare(out=WIDTH, hidden=replace(WIDTH, also=(None,)))
    live: tuple[str, ...] = ()
    uses_labels = False
    kinds: tuple[str, ...] = ("pictures", "vectors", "sentences")  # of samples (`data.KINDS`) that it takes
    takes_extra_views = True  # whether a run may ask for `extra_views`
    encoder: nn.Module
    head: nn.Module
    loss: nn.Module
    needs = "takes two views"  # the property of a loss that `fits` looks for, for the error

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        hyperparameters.document(cls)

    def __init__(
        self,
        encoder: nn.Module,
        loss: nn.Module,
        out: int = 128,
        bfloat16: bool = False,
        hidden: int | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.out, self.hidden = out, hidden
        hyperparameters.check(self, Method.ranges, type(self).__name__)
        width = encoders.width(encoder)
        self.head = encoders.ProjectionHead(width, hidden or width, out)
        self.check_loss(loss)
        self.loss = loss
        # what the encoder is computed in; None: float32
        self.half_type: torch.dtype | None = torch.bfloat16 if bfloat16 else None
        self.extra_views = 0  # further views of each image, handed to the loss as its positives
        self.reported: dict[str, Tensor] = {}  # what a step adds to the history beside its loss

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """(B, ...) images or vectors -> the scalar to descend, both views' embeddings (B, out), detached.

        - labels: (B,) int64, for a method that `uses_labels`
        - index: (B,) int64, the samples' numbers in the data, for what keeps a state per sample
        """
        raise NotImplementedError(f"{type(self).__name__} says nothing about what a step does")

    def compare(self, z1: Tensor, z2: Tensor, index: Tensor | None = None, **given: Tensor | None) -> Tensor:
        """The loss of two batches of embeddings; one with a state per sample gets their numbers."""
        if "index" in getattr(self.loss, "takes", ()):
            given["index"] = index
        return self.loss(z1, z2, **given)

    def per_anchor(self, positives: Tensor, negatives: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss of each anchor, (A,), of similarities that are no two views' of a batch.

        - positives, negatives: (A, P), (A, K); mask: (A, K) bool, the negatives that count, None = all

        For a loss that `compares_similarities`, as a method that calls it demands in its `fits`.
        """
        loss: Any = self.loss
        return loss.per_anchor(positives, negatives, negative_mask=mask)

    def allocate(self, samples: int) -> None:
        """Make room for a state per sample: called before training, and after `use`."""
        allocate = getattr(self.loss, "allocate", None)
        if allocate is not None:
            allocate(samples)

    def after_step(self) -> None:
        """Called when the weights have moved: for what follows them (a moving average, a queue)."""

    def _repr_markdown_(self) -> str:
        """What a notebook's cell shows: formula, settings as they are now, source."""
        return hyperparameters.card(self, self.settings())

    @classmethod
    def example(cls) -> list[str]:
        """Lines of a call, for the docstring."""
        name, data = cls.__name__.lower(), next(kind.example for kind in KINDS if kind.name in cls.kinds)
        return [
            f'run = training.train(method="{name}", data="{data}", batch_size=64, steps=2)',
            "run.history  # a row a step",
        ]

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        """The loss of a run that names none; settings: those that the method is made with."""
        return losses.NTXent(temperature=0.2)

    @classmethod
    def rate_share(cls, **settings: Any) -> float:
        """What part of the encoder's usual learning rate suits the method, for a run that names none."""
        return 1.0

    @classmethod
    def fits(cls, loss: nn.Module | type[nn.Module]) -> bool:
        """Whether the method can descend such a loss; its class says as much as an instance."""
        return True

    @classmethod
    def check_loss(cls, loss: nn.Module) -> None:
        """Raise ValueError where the method cannot descend such a loss."""
        if not isinstance(loss, nn.Module):
            raise ValueError(
                f"training: loss is {loss!r}, but must be a module, as in losses.NTXent(temperature=0.2)"
            )
        if not cls.fits(loss):
            fitting = [name for name, entry in losses.catalogue().items() if cls.fits(entry.loss)]
            raise ValueError(
                f"{cls.__name__} needs a loss that {cls.needs}, which {type(loss).__name__} does not: "
                f"there {'is' if len(fitting) == 1 else 'are'} {', '.join(fitting)}"
            )

    def use(self, loss: nn.Module) -> None:
        """Descend this loss from the next step on. Raises ValueError where it does not fit."""
        self.check_loss(loss)
        self.loss = loss

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of the method's own settings, as its `__init__` takes them."""
        common = ("self", "encoder", "loss", "bfloat16")
        return tuple(name for name in inspect.signature(cls.__init__).parameters if name not in common)

    def settings(self) -> dict[str, Any]:
        """The method's own settings and their present values."""
        return {name: getattr(self, name) for name in self.setting_names()}

    def check_settings(self) -> None:
        """Raise ValueError when a setting is outside its range; more where a method's file says so."""
        hyperparameters.check(self, self.ranges, type(self).__name__)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """What the optimiser moves, as torch takes it; `factor` multiplies the run's learning rate."""
        return [{"params": [p for p in self.parameters() if p.requires_grad], "factor": 1.0}]

    def chance(self, batch_size: int) -> float | None:
        """The loss of a batch where all similarities are 0: log(2B - 1) for NT-Xent; None if it has none."""
        chance = getattr(self.loss, "chance", None)
        if chance is None:
            return None
        return chance(similarities.count(batch_size, getattr(self.loss, "against", "both views")))

    def check_batch(self, size: int) -> None:
        """Raise ValueError where the method can't take this many images a step."""

    def networks(self) -> list[nn.Module]:
        """Those that views go through: the encoder, and its moving average where there is one."""
        following = getattr(self, "target_encoder", None)
        return [self.encoder] if following is None else [self.encoder, following]

    def changing_buffers(self) -> list[Tensor]:
        """The buffers that `forward` changes, as batch normalisation's: a step that fails puts them back.

        What moves in `after_step` alone (a queue) need not be among them: it is reached after a step only.
        """
        return list(self.buffers())

    def features_of(self, views: Tensor, encoder: nn.Module | None = None) -> Tensor:
        """(N, ...) views -> (N, features) float32, with a gradient; encoder: None = the method's own.

        Where several processes train, all of them must call it: each encodes its share of the views.
        """
        views = encoders.as_input(processes.share(views))
        encoder = self.encoder if encoder is None else encoder
        with half_precision(views.device, self.half_type):
            features = encoder(views).float()
        return processes.gathered(features)

    def predictor_apart(self, predictor: nn.Module, factor: float) -> list[dict[str, Any]]:
        """`parameter_groups` of a method whose predictor learns `factor` times as fast as all else."""
        own = {id(weight) for weight in predictor.parameters()}
        others = [p for p in self.parameters() if p.requires_grad and id(p) not in own]
        return [
            {"params": others, "factor": 1.0},
            {"params": list(predictor.parameters()), "factor": factor},
        ]


def compares_similarities(loss: nn.Module | type[nn.Module]) -> bool:
    """Whether a loss is a function of each anchor's similarities, which may then be of anything."""
    return getattr(loss, "level", "") == "similarity"


def half_precision(device: torch.device, half: torch.dtype | None) -> torch.autocast:
    """Within, what autocast knows of is computed in this type; None = all in float32."""
    return torch.autocast(device.type, dtype=half or torch.bfloat16, enabled=half is not None)


def drawing_on(device: torch.device, generator: torch.Generator) -> torch.Generator:
    """Where random numbers for this device come from: on a CPU the generator itself.

    On a GPU another one, there, seeded by the next number of this: so that nothing large is copied. What it
    gives differs from a CPU's numbers, and follows from the same seed.
    """
    if device.type in ("cpu", generator.device.type):
        return generator
    seed = int(torch.randint(2**62, (), generator=generator))
    return torch.Generator(device).manual_seed(seed)


def several_views(
    augment: Augment, images: Tensor, generator: torch.Generator, number: int = 2
) -> list[Tensor]:
    """`number` views of each image, each (B, ...): each drawn independently by `augment`.

    An augmentation that has `.several_views(images, generator, number)` makes them itself: PiNDA's does, and
    its first view is the one with the learned noise. So a method whose sides differ lets the first view be
    the side that has a gradient.
    """
    if hasattr(augment, "several_views"):
        return augment.several_views(images, generator, number)
    return list(augment(torch.cat([images] * number), generator=generator).chunk(number))
