"""A run's settings, each declared once.

`Run`, `train`, `resume`, the command's flags, config.json, the comparison of runs and the panel read the
fields of `Settings`. A new one goes to the end, for they may be given in their order.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, losses, methods, processes, views
from clutils.data.sets import SampleSet
from clutils.settings import SWITCH, Setting, check, one_of, ranges_of, setting

BATCH_SIZE = 256
LEARNING_RATES = {"conv16": 5e-3, "conv32": 3e-3}  # of AdamW; any other encoder starts from 1e-3
SGD_LEARNING_RATE = 0.03  # for 256 images a step, and in proportion for others
WEIGHT_DECAYS = {"adamw": 1e-4, "sgd": 5e-4}  # the optimisers, and what each has where none is asked for
# values of a batch below which a second thread gains little on a quiet machine and costs much on a busy one
SMALL = {"conv16": 2**15, "gin": 2**18}
PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
STEPS = Setting(1, whole=True)
LEARNING_RATE = Setting(0, open_below=True, dial=(0.00001, 0.1, "log"))

Data = str | SampleSet | Tensor


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings of a run. Raises ValueError, quoting what came in, on a value out of range.

    In a field's metadata: `in_python`, `about` where Python takes more than a name; `fixed`, False where a
    resumed run may have another; `kept`, False where config.json and checkpoints don't have it.
    """

    method: str = setting(None, default="simclr", about="training method, a name from `methods.catalogue()`")
    loss: nn.Module | None = setting(
        None,
        default=None,
        about="loss, a name from `losses.catalogue()`",
        unset="the method's usual one, for most NTXent with temperature 0.2",
        metadata={"in_python": "a module of `clutils.losses`, or any that takes two batches of embeddings"},
    )
    data: Data = setting(
        None,
        default="scenes",
        about="data set, a name for `data.load`",
        metadata={
            "in_python": "a name for `data.load`, a set from it, images as a uint8 tensor (N, C, H, W), "
            "vectors as a float32 tensor (N, D), sentences as an int64 tensor (N, L); graphs: "
            "`data.graphs.packed`"
        },
    )
    encoder: str | nn.Module | None = setting(
        None,
        default=None,
        about="encoder, a name from `encoders.NAMES`",
        unset="conv16 for images, mlp for vectors, gin for graphs, gcn-nodes for the nodes of a graph (dgi "
        "and mvgrl: gcn-prelu), transformer for sentences",
        metadata={
            "in_python": "a name from `encoders.NAMES`, or a module with `.features`, trained in place"
        },
    )
    augmentation: str | views.Augment | None = setting(
        None,
        default=None,
        about="augmentation, one of `views.names()`",
        unset="one that suits the data, `views.suiting`; none for vectors if the method makes their views",
        metadata={"in_python": "one of `views.names()`, or called as augment(images, generator=...)"},
    )
    epochs: int | None = setting(
        STEPS,
        also=(None,),
        default=None,
        about="number of passes through the data, instead of steps; an incomplete last batch is left out",
        metadata={"kept": False},
    )
    steps: int = setting(
        STEPS, default=300, about="number of batches, which the learning-rate schedule spans"
    )
    batch_size: int | None = setting(
        2,
        whole=True,
        also=(None,),
        default=None,
        about="number of samples in a batch, over all processes",
        unset="256, or all if there are fewer; for nodes all nodes of the graph",
    )
    learning_rate: float | None = setting(
        LEARNING_RATE,
        also=(None,),
        default=None,
        about="peak learning rate (5% warm-up, then cosine decay)",
        unset="what suits the encoder and the method; for sgd 0.03 times batch size / 256",
    )
    seed: int = setting(0, whole=True, default=0, about="random seed")
    device: str | torch.device | None = setting(
        None,
        default=None,
        about="device: cpu, cuda, cuda:1 or mps",
        unset="cuda if available, else cpu",
        metadata={"fixed": False, "kept": False},
    )
    precision: str | None = setting(
        choices=tuple(PRECISIONS),
        also=(None,),
        default=None,
        about="number format of encoder and head: float32, bfloat16, or float16 with a scaled loss",
        unset="bfloat16 if the device computes in it, else float16 on a GPU",
    )
    extra_views: int = setting(
        0,
        whole=True,
        default=0,
        about="number of additional views of each image, for a loss that takes several",
    )
    method_settings: Mapping[str, Any] = setting(
        None, default={}, about="settings of the method, by name, as its class takes them"
    )
    optimiser: str = setting(
        choices=tuple(WEIGHT_DECAYS),
        default="adamw",
        about="optimiser: adamw, or sgd with momentum 0.9 (without Nesterov)",
    )
    weight_decay: float | None = setting(
        0, also=(None,), default=None, about="weight decay", unset="1e-4 for adamw, 5e-4 for sgd"
    )
    compile: bool = setting(
        SWITCH,
        default=False,
        about="compile the encoder with torch.compile; this takes up to a minute before the first step, and "
        "made conv16 and conv32 slower on a CPU",
        metadata={"fixed": False},
    )
    threads: int | None = setting(
        1,
        1024,
        whole=True,
        also=(None,),
        default=None,
        about="number of CPU threads for torch; the last bits of results depend on it",
        unset="the number that torch uses when the run begins; 1 on a GPU and where a step is small",
    )

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) and hasattr(self.method, "class_names"):
            raise ValueError("training: method is a data set; give the data by name, as in Run(data=...)")
        one_of("training", "method", self.method, methods.catalogue())
        if not isinstance(self.encoder, nn.Module | str | None):
            raise ValueError(f"training: encoder is {self.encoder!r}, but must be a name or a module")
        if (
            isinstance(self.encoder, nn.Module)
            and (kind := encoders.computes_in(self.encoder)) != torch.float32
        ):
            raise ValueError(
                f"training: the encoder's weights are {kind}, but must be float32, as encoder.float() makes "
                "them; precision='bfloat16' computes a step in less"
            )
        check("training", self)
        method = methods.catalogue()[self.method].cls
        own = method.checked(self.method_settings, "method_settings")  # a copy: the caller's may change
        object.__setattr__(self, "method_settings", own)
        if self.batch_size is not None and self.batch_size % processes.number():
            shared = f"{processes.number()} processes can only share it equally"
            raise ValueError(f"training: batch_size is {self.batch_size}, but {shared}")
        if self.extra_views and not method.takes_extra_views:
            raise ValueError(
                f"training: extra_views is {self.extra_views}, but {self.method} compares two views alone"
            )

    def fitted(self, images: Tensor, device: torch.device) -> Settings:
        """The same with every None replaced by what suits these images (N, C, H, W) or vectors (N, D)."""
        kind = datasets.kind_of(images)
        cls = methods.catalogue()[self.method].cls
        encoder = cls.usual_encoder(kind) if self.encoder is None else self.encoder
        share = processes.number()  # who share it equally
        size = self.batch_size or max(2, min(BATCH_SIZE, len(images)) // share * share)
        if kind.name == "nodes":
            size = int((images[0, :, 0] > 0).sum())
        precision = self.precision
        if precision is None:
            half = encoders.half_precision(device)
            precision = next(name for name, of in PRECISIONS.items() if of is half)
        given = self.method_settings
        loss = cls.default_loss(**given) if self.loss is None else self.loss
        rate = usual_rate(self.method, encoder, self.optimiser, size, **given)
        changed = kind.name == "vectors" and cls.varies
        suiting = views.Identity() if changed else views.suiting(images)
        return replace(
            self,
            loss=loss,
            encoder=encoder,
            augmentation=suiting if self.augmentation is None else self.augmentation,
            steps=self.steps if self.epochs is None else self.epochs * max(1, len(images) // size),
            batch_size=size,
            learning_rate=rate if self.learning_rate is None else self.learning_rate,
            precision=precision,
            threads=usual_threads(device, encoder, size * images[0].numel())
            if self.threads is None
            else self.threads,
            weight_decay=WEIGHT_DECAYS[self.optimiser] if self.weight_decay is None else self.weight_decay,
        )

    def plain(self, **now: Any) -> dict[str, Any]:
        """Plain values for config.json and checkpoints; None for an object of the caller's own.

        - now: values that have changed since
        """
        return {name: plain(now.get(name, getattr(self, name))) for name in names(kept=True)}


def from_plain(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `Settings`, from what `Settings.plain` gave."""
    values = {name: kept[name] for name in names(kept=True) if kept.get(name) is not None}
    if "loss" in values:
        values["loss"] = losses.catalogue()[kept["loss"]["name"]].cls.stored(kept["loss"]["settings"])
    if "augmentation" in values:
        values["augmentation"] = views.from_settings(kept["augmentation"])
    return values


def names(**wanted: Any) -> tuple[str, ...]:
    """Names of settings; wanted: those that are so, as in names(fixed=True)."""
    return tuple(
        entry.name
        for entry in fields(Settings)
        if all(entry.metadata.get(name, True) == value for name, value in wanted.items())
    )


def described(target: Callable) -> Callable:
    """A decorator: all settings by name in the signature, and {settings} in the docstring a line on each."""
    listed = [
        f"- {entry.name}: {entry.metadata.get('in_python', own.about)}"
        + (f"; None = {own.unset}" if own.unset else "")
        for entry, own in zip(fields(Settings), ranges_of(Settings).values(), strict=True)
    ]
    target.__doc__ = (target.__doc__ or "").replace("{settings}", "\n    ".join(listed))
    own = [p for p in inspect.signature(target).parameters.values() if p.kind is p.KEYWORD_ONLY]
    parameters = [*inspect.signature(Settings).parameters.values(), *own]
    target.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return target


def usual_threads(device: torch.device, encoder: str | nn.Module, values: int) -> int:
    """Threads of a run that names no number: torch's own, or one where threads would wait for each other.

    They do where a step is small: on a GPU (of 16 threads, the roots of 20,000 numbers took up to 9 ms), and
    with these encoders on a batch of few values (`SMALL`).
    """
    small = isinstance(encoder, str) and values < SMALL.get(encoder, 0)
    return torch.get_num_threads() if device.type == "cpu" and not small else 1


def usual_rate(
    method: str = "simclr",
    encoder: str | nn.Module = "conv16",
    optimiser: str = "adamw",
    batch_size: int = 256,
    **method_settings: Any,
) -> float:
    """The learning rate of a run that names none: by the encoder and the method, for "sgd" by the batch."""
    if optimiser == "sgd":
        return SGD_LEARNING_RATE * batch_size / 256
    share = methods.catalogue()[method].cls.rate_share(**method_settings)
    return LEARNING_RATES.get(str(encoder), 1e-3) * share


def check_rate(value: Any) -> None:
    """Raise ValueError unless a run's learning rate can be this."""
    if not LEARNING_RATE.allows(value):
        raise ValueError(f"learning_rate is {value!r}, but must be {LEARNING_RATE}")


def plain(value: Any) -> Any:
    """Plain value for JSON: numbers are Python's own, None for an object that a file can't name."""
    if isinstance(value, nn.Module):
        if not isinstance(value, losses.Loss) or type(value) not in losses.CLASSES:
            return None
        own = {key: plain(getattr(value, key)) for key in value.hyperparameters()}
        return {"name": type(value).__name__, "settings": own}
    if (chosen := views.settings_of(value)) is not None:
        return chosen
    if isinstance(value, Mapping):
        return {key: plain(of) for key, of in value.items()}
    if isinstance(value, str | bool | None):
        return value
    if isinstance(value, numbers.Real):  # NumPy's too: a checkpoint that held them could not be read safely
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    return None


COLUMNS = ("step", "loss", "chance", "learning_rate", "alignment", "uniformity", "gradient_norm", "seconds")


def own_column(name: str) -> str:
    """A setting's column in the history: its name, and where one of `COLUMNS` has that, with "(setting)"."""
    return f"{name} (setting)" if name in COLUMNS else name


LONG = 200  # letters of what came in that an error quotes


def shortened(value: Any) -> str:
    """Short repr of an argument for error messages; an array by its type and shape."""
    kind, shape, said = type(value).__name__, getattr(value, "shape", None), repr(value)
    if shape is not None and (len(said) >= 80 or "\n" in said):
        return f"of type {kind}, {tuple(shape)}"
    return said if len(said) <= LONG else f"of type {kind}, {said[:LONG]}…"
