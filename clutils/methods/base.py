"""`Method`, the base of all: an encoder, a projection head and a loss, and how views are drawn."""

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from clutils import encoders, losses, processes, similarities
from clutils.data.kinds import KINDS, Kind
from clutils.losses.entries import card, document
from clutils.settings import Declared, Setting, bind, check, collect, demand_known, setting

Augment = Callable[..., Tensor]
LossAndViews = tuple[Tensor, Tensor, Tensor]  # a loss, and the two batches of embeddings that it compared
WIDTH = Setting(1, whole=True, about="dimension of the embeddings")
MOMENTUM = Setting(0, 1, "m", dial=(0, 1, "near one"), about="momentum of the moving average")
PREDICTOR_RATE = Setting(1e-3, 1e3, about="predictor's learning rate over the run's")
PARTS = ("encoder", "loss")  # what a method is made from, besides its settings


@dataclass(frozen=True)
class Given:
    """Arguments of `Method.objective`, those of `Method.forward`."""

    images: Tensor
    augment: Augment
    generator: torch.Generator
    labels: Tensor | None
    index: Tensor | None

    def views(self, number: int = 2) -> list[Tensor]:
        """Views of the batch, by `several_views`."""
        return several_views(self.augment, self.images, self.generator, number)


class Need(NamedTuple):
    """Requirement of a method on a loss: the words after "a loss that", and the test of its class."""

    words: str
    met: Callable[[Any], bool]


OWN_VIEWS = Need(  # one of a reader's own need not say
    "compares the two views of an image alone",
    lambda loss: getattr(loss, "comparison", "own view") == "own view",
)
SIMILARITIES = Need(  # which may then be of anything
    "is a function of an anchor's similarities", lambda loss: getattr(loss, "level", "") == "similarity"
)


@collect
class Method(nn.Module, metaclass=Declared):
    """An encoder, a head and a loss; `objective` is for each method to write.

    - encoder: with `.features`, as from `encoders.build`
    - loss: of `clutils.losses`, or any module that takes two batches of embeddings
    - out: dimension of the space that the loss sees; the head is features -> hidden -> out
    - hidden: of the head, None = as many as the encoder has features

    A method's own settings are declared in its class's body, each with range and default, and are the further
    arguments that the class takes; a body that gives `out` or `hidden` a plain value leaves a run no choice.
    What has a dial is `live`: it may be changed between two steps, and the history follows it.

    Head and loss are computed in float32, the encoder in `half_type`, which a run sets; None: float32 too.
    """

    encoder: nn.Module = field()
    loss: Any = field()
    out: int = setting(WIDTH, default=128)
    hidden: int | None = setting(
        WIDTH, also=(None,), default=None, kw_only=True, about="width of the head's hidden layer"
    )
    paper: str
    year: int
    equation = ""  # or algorithm, or section
    arguments: ClassVar[Mapping[str, Field]]  # see `settings.collect`
    ranges: ClassVar[Mapping[str, Setting]]  # what each setting may be
    live: tuple[str, ...] = ()
    usual_loss: nn.Module = losses.NTXent(temperature=0.2)  # of a run that names none
    usual_share = 1.0  # of the encoder's usual learning rate, for a run that names none
    needs = Need("takes two views", lambda loss: True)
    uses_labels = False
    sample_kinds: tuple[str, ...] = ("pictures", "vectors", "sentences")  # of `data.KINDS`, that it takes
    takes_extra_views = False  # whether a run may ask for `extra_views`
    varies = False  # whether a step itself makes two equal views of a sample differ
    after_step_only: tuple[str, ...] = ()  # buffers that `forward` leaves alone
    head: nn.Module
    predictor: nn.Module  # where there is one
    predictor_rate: float
    half_type: torch.dtype | None = None
    extra_views = 0  # further views of each image, handed to the loss as its positives

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        collect(cls)
        cls.live = tuple(name for name, of in cls.ranges.items() if of.dial or name in cls.live)
        document(cls)

    def __init__(self, encoder: nn.Module, loss: nn.Module, *given: Any, **by_name: Any) -> None:
        super().__init__()
        self.reported: dict[str, Tensor] = {}  # what a step adds to the history beside its loss
        for name, value in bind(type(self), encoder, loss, *given, **by_name).items():
            if name not in PARTS:
                setattr(self, name, value)
        self.build(encoder, loss)

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = name in (*Method.arguments, *self.arguments) and name not in (*PARTS, *self.live)
        if fixed and "_made" in vars(self):
            raise AttributeError(
                f"{type(self).__name__}: {name} is fixed when a method is made; what may be changed later is "
                f"{', '.join(self.live) or 'nothing'}"
            )
        demand_known(self, name, value)
        super().__setattr__(name, value)

    def build(self, encoder: nn.Module, loss: nn.Module) -> None:
        """Make what is learned or carried: encoder, head and loss here; a method's own come behind them."""
        self.check_settings()
        self.check_loss(loss)
        width = encoders.width(encoder)
        self.encoder = encoder
        self.head = encoders.ProjectionHead(width, self.hidden or width, self.out)
        self.loss = loss

    def forward(
        self,
        images: Tensor,
        augment: Augment,
        generator: torch.Generator,
        labels: Tensor | None = None,
        index: Tensor | None = None,
    ) -> LossAndViews:
        """(B, ...) samples -> the scalar to descend, both views' embeddings (B, out), detached.

        - labels: (B,) int64, for a method that `uses_labels`
        - index: (B,) int64, the samples' numbers in the data, for what keeps a state per sample

        Raises ValueError on a setting out of its range, or a batch that the method can't take; TypeError on
        an `objective` that gives anything else.
        """
        self.check_settings()
        self.check_batch(len(images))
        found = self.objective(Given(images, augment, generator, labels, index))
        parts = found if isinstance(found, tuple) else (found,)
        shapes = [tuple(part.shape) if isinstance(part, Tensor) else part for part in parts]
        if len(parts) != 3 or shapes[0] != () or not all(isinstance(part, Tensor) for part in parts):
            gave = f"{type(self).__name__}.objective gave {', '.join(map(repr, shapes)):.100}"
            raise TypeError(f"{gave}, not a scalar loss and the two batches (B, out) that it compared")
        loss, z1, z2 = found
        return loss, z1.detach(), z2.detach()

    def objective(self, given: Given) -> LossAndViews:
        """The scalar to descend, and the embeddings that it compared: what each method writes itself."""
        raise NotImplementedError(f"{type(self).__name__} has no `objective`")

    def compare(self, z1: Tensor, z2: Tensor, index: Tensor | None = None, **given: Tensor | None) -> Tensor:
        """The loss of two batches of embeddings; one with a state per sample gets their numbers.

        The loss decides who is compared with whom: `losses.Loss.compare` shows those pairs.
        """
        if "index" in takes(self.loss):
            given["index"] = index
        return self.loss(z1, z2, **given)

    def one_way(self, anchors: Tensor, others: Tensor) -> Tensor:
        """The loss of each anchor (B, out), (B,): its own row of others the positive, the rest negatives."""
        checked, who = getattr(self.loss, "check_inputs", True), type(self).__name__
        first, second = (similarities.normalise(z, who=who, check=checked) for z in (anchors, others))
        pairs = similarities.two_views(first, second, "one way")
        return self.loss.per_anchor(pairs.positives, pairs.negatives)

    def allocate(self, samples: int) -> None:
        """Make room for a state per sample: called before training, and after `use`."""
        allocate = getattr(self.loss, "allocate", None)
        if allocate is not None:
            allocate(samples)

    def after_step(self) -> None:
        """Called when the weights have moved: for what follows them (a moving average, a queue)."""

    def _repr_markdown_(self) -> str:
        """Markdown for a notebook's cell: formula, settings as they are now, source."""
        return card(self, self.settings())

    @classmethod
    def example(cls) -> list[str]:
        """Lines of a call, for the docstring."""
        name = cls.__name__.lower()
        data = next(kind.example for kind in KINDS if kind.name in cls.sample_kinds)
        return [
            f'run = training.train(method="{name}", data="{data}", batch_size=64, steps=2)',
            "run.history  # a row a step",
        ]

    @classmethod
    def default_loss(cls, **settings: Any) -> nn.Module:
        """The loss of a run that names none; settings: those that the method is made with."""
        return copy.deepcopy(cls.usual_loss)

    @classmethod
    def rate_share(cls, **settings: Any) -> float:
        """Factor on the encoder's usual learning rate, for a run that names no rate."""
        return cls.usual_share

    @classmethod
    def usual_encoder(cls, kind: Kind) -> str:
        """The encoder of a run on samples of this kind that names none."""
        return kind.encoder

    @classmethod
    def fits(cls, loss: type[nn.Module]) -> bool:
        """True where the method can train with losses of this class."""
        return cls.needs.met(loss)

    @classmethod
    def check_loss(cls, loss: nn.Module) -> None:
        """Raise ValueError where the method cannot descend such a loss."""
        if not isinstance(loss, nn.Module):
            raise ValueError(
                f"training: loss is {loss!r}, but must be a module, as in losses.NTXent(temperature=0.2)"
            )
        if not cls.fits(type(loss)):
            fitting = [name for name, entry in losses.catalogue().items() if cls.fits(entry.cls)]
            raise ValueError(
                f"{cls.__name__} needs a loss that {cls.needs.words}, which {type(loss).__name__} does not: "
                f"there {'is' if len(fitting) == 1 else 'are'} {', '.join(fitting)}"
            )

    def use(self, loss: nn.Module) -> None:
        """Descend this loss from the next step on. Raises ValueError where it does not fit."""
        self.check_loss(loss)
        self.loss = loss

    @classmethod
    def checked(cls, settings: Any, called: str) -> dict[str, Any]:
        """A copy of these settings. Raises ValueError unless they name what the method has, with values."""
        if not isinstance(settings, Mapping | None):
            raise ValueError(f"training: {called} is {settings!r}, but must name settings and values")
        known = cls.setting_names()
        for name in settings or {}:
            if name not in known:
                own = f"{cls.__name__.lower()} has no setting {name!r}; it has {', '.join(known)}"
                raise ValueError(f"training: {own}")
        return dict(settings or {})

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The defaults of the method's own settings, by name, in the order the class takes them."""
        parameters = inspect.signature(cls).parameters
        return {name: one.default for name, one in parameters.items() if name not in PARTS}

    @classmethod
    def setting_names(cls) -> tuple[str, ...]:
        """The names of the method's own settings."""
        return tuple(cls.defaults())

    def settings(self) -> dict[str, Any]:
        """The method's own settings and their present values."""
        return {name: getattr(self, name) for name in self.setting_names()}

    def check_settings(self) -> None:
        """Raise ValueError when a setting is outside its range."""
        check(type(self).__name__, self)

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameter groups for the optimiser; `factor` multiplies the run's learning rate.

        A predictor is a group of its own where the method has a setting `predictor_rate`, its factor. What a
        loss of the package learns is not among them.
        """
        faster = list(self.predictor.parameters()) if "predictor_rate" in self.setting_names() else []
        own = set(map(id, [*faster, *learned_by(self.loss)]))
        others = [p for p in self.parameters() if p.requires_grad and id(p) not in own]
        groups = [{"params": others, "factor": 1.0}]
        return [*groups, {"params": faster, "factor": self.predictor_rate}] if faster else groups

    def chance(self, batch_size: int) -> float | None:
        """The loss of a batch where all similarities are 0: log(2B - 1) for NT-Xent; None if it has none."""
        chance = getattr(self.loss, "chance", None)
        return None if chance is None else chance(self.negatives(batch_size))

    def negatives(self, batch_size: int) -> int:
        """How many an anchor has."""
        return similarities.count(batch_size, getattr(self.loss, "comparison", "both views"))

    def check_batch(self, size: int) -> None:
        """Raise ValueError where the method can't take this many images a step."""

    def networks(self) -> list[nn.Module]:
        """Those that views go through: the encoder, and its moving average where there is one."""
        following = getattr(self, "target_encoder", None)
        return [self.encoder] if following is None else [self.encoder, following]

    def hindrance(self, kind: Kind, samples: int) -> str:
        """A sentence on what keeps the encoder from learning of so many samples by this method, or ""."""
        return ""

    def changing_buffers(self) -> list[Tensor]:
        """The buffers that `forward` changes, as batch normalisation's: a step that fails puts them back.

        What moves in `after_step` alone (a queue) is not among them: it is reached after a step only.
        """
        return [buffer for name, buffer in self.named_buffers() if name not in self.after_step_only]

    def features_of(self, views: Tensor, encoder: nn.Module | None = None) -> Tensor:
        """(N, ...) views -> (N, features) float32, with a gradient; encoder: None = the method's own.

        Where several processes train, all of them must call it: each encodes its share of the views.
        """
        views = encoders.as_input(processes.local_shard(views))
        encoder = self.encoder if encoder is None else encoder
        with autocast(views.device, self.half_type):
            features = encoders.features_in(encoder(views), encoder)
        says = getattr(encoder, "features", None)
        if isinstance(says, int) and features.shape[1] != says:
            raise ValueError(f"the encoder gives {features.shape[1]} numbers, but its features are {says}")
        return processes.all_gather(features)

    def projected(self, *views: Tensor) -> tuple[Tensor, ...]:
        """The embeddings of views (B, ...) that go through the networks as one batch: (B, out) each."""
        return self.head(self.features_of(torch.cat(views))).chunk(len(views))


def takes(loss: nn.Module | type[nn.Module]) -> frozenset[str]:
    """Names of the arguments that a loss takes beside two views."""
    return getattr(loss, "accepts", frozenset())


def learned_by(loss: nn.Module) -> list[nn.Parameter]:
    """Parameters that a loss of the package learns itself, such as CLIP's scale."""
    if not isinstance(loss, losses.Loss):
        return []
    return list(loss.parameters())


def autocast(device: torch.device, half: torch.dtype | None) -> torch.autocast:
    """Context manager: autocast to this type; None = all in float32."""
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
    """`number` views of each image, each (B, ...), drawn by one call of `augment` on so many copies.

    So what an augmentation draws once a call, as `Augmentation` the order of its colours, all views share.

    An augmentation that has `.several_views(images, generator, number)` makes them itself: PiNDA's does, and
    its first view is the one with the learned noise. So a method whose sides differ lets the first view be
    the side that has a gradient.
    """
    if hasattr(augment, "several_views"):
        return augment.several_views(images, generator, number)
    return list(augment(torch.cat([images] * number), generator=generator).chunk(number))
