"""A training run: `Run.step()` is one step; `train`, panels and the command line are built on it.

Each random stream (first weights, order of the images, views, what a loss draws) is seeded by (seed,
stream, step), so a run resumed from its weights, the optimiser's state and its step is bit-identical.

On a GPU a seed gives the first weights, the order and the views that it gives on a CPU; noise and mixes that
methods and losses draw are other numbers. Sums are not the same to the last bit, and convolutions in float32
take cuDNN's default, TF32. In one process and uncompiled, the processor waits for a GPU once a step.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, files, methods, processes, views
from clutils.data.sets import check_edges
from clutils.methods.base import half_precision, learned_by
from clutils.settings import one_of
from clutils.training import checkpoint, interrupts
from clutils.training.schedules import Cosine
from clutils.training.settings import (
    PRECISIONS,
    STEPS,
    Settings,
    check_rate,
    described,
    names,
    plain,
    shortened,
)

if TYPE_CHECKING:
    import pandas as pd

DEVICES = ("cpu", "cuda", "mps")
STREAMS = ("weights", "order", "views", "mixes", "dropout")
MOMENTUM = 0.9  # of SGD
COLUMNS = ("step", "loss", "chance", "learning_rate", "alignment", "uniformity", "gradient_norm", "seconds")
WARM_UP = 0.05  # share of the steps in which the learning rate rises


@described
class Run:
    """One training run: its settings, its weights, and the history of the steps it has done.

    Its arguments are the fields of `Settings`, by name or in their order:

    {settings}

    `run.settings` has them as they were given, each None replaced by what suits the images.
    `run.loss.temperature = 0.5` takes effect at the next step, and the history says so; likewise every other
    setting of the loss, those settings of `run.method` that it lists as `live`, and `run.loss`,
    `run.augmentation`, `run.learning_rate` and `run.steps` themselves. One may follow the step:
    `run.schedules["temperature"] = training.Cosine(0.1, 1.0, period=400)`, which checkpoints keep.
    Raises ValueError, quoting what came in, on settings that do not fit.
    """

    _trains: ClassVar[Run | None] = None  # the run that trains in this process
    _claiming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *settings: Any, **by_name: Any) -> None:
        for name in by_name:
            if name not in names():
                own = f"; a method's own go into method_settings={{{name!r}: {shortened(by_name[name])}}}"
                raise TypeError(f"training: there is no setting {name!r}, but {', '.join(names())}{own}")
        given = Settings(*settings, **by_name)
        self.device = device(given.device)
        self.data = datasets.load(given.data) if isinstance(given.data, str) else given.data
        self.images = _inputs(self.data, given.batch_size).to(self.device)
        labels: Tensor | None = getattr(self.data, "labels", None)
        self.labels = None if labels is None else labels.to(self.device)
        self.kind = datasets.kind_of(self.images)
        self.settings = given.fitted(self.images, self.device)
        fitted: Any = self.settings  # nothing in it is None
        self.augmentation, self.steps = fitted.augmentation, fitted.steps
        self.batch_size: int = fitted.batch_size
        self.learning_rate: float = fitted.learning_rate
        self.steps_an_epoch = max(1, len(self.images) // self.batch_size)  # of a network, all of it
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
            torch.default_generator.manual_seed(_seed(given.seed, "weights"))
            self.method = self._built().to(self.device).to(memory_format=torch.channels_last)
        self.optimiser = _optimiser(self.settings, self.method, self.device)
        self._learn_with_the_loss()
        if given.compile:
            _demand_compiler(self.device)
            for network in self.method.networks():
                network.compile()  # in place: names in its state_dict stay what they are
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # batches have one size
        self.steps_done = 0
        self.rows: list[dict[str, float]] = []
        self.looks: dict[int, dict[str, float]] = {}  # step -> numbers by name, which the history has too
        self.schedules: dict[str, Cosine] = {}  # of live settings, by name
        self._order: tuple[int, Tensor] | None = None  # an epoch, and the order of its images
        self.scaler = self._new_scaler()

    def _built(self) -> methods.Method:
        """The method, its encoder and its head, with weights from torch's default generator."""
        given, encoder, own = self.settings, self.settings.encoder, self.kind.name
        cls = methods.catalogue()[given.method].cls
        if own not in cls.sample_kinds:
            fitting = ", ".join(methods.catalogue(own))
            default = "the default, " if given.method == Settings.method else ""
            takes = f"{default}for {' and '.join(cls.sample_kinds)}"
            raise ValueError(
                f"training: method is {given.method!r}, {takes}, but must be one for {own}: {fitting}"
            )
        if isinstance(encoder, str):
            if encoders.NAMES.get(encoder, own) != own:
                fitting = ", ".join(name for name, of in encoders.NAMES.items() if of == own)
                right = f"one for {own} {self.kind.shape}: {fitting}"
                raise ValueError(f"training: encoder is {encoder!r}, but must be {right}")
            encoder = encoders.build(encoder, channels=datasets.width(self.images))
        if given.extra_views and "extra_views" not in getattr(given.loss, "accepts", ()):
            name = type(given.loss).__name__
            raise ValueError(f"training: extra_views is {given.extra_views}, but {name} takes none")
        method = cls(encoder, given.loss, **given.method_settings)
        method.half_type = PRECISIONS[str(given.precision)]
        # -1 stands for no label, as in STL-10's unlabeled part
        without = len(self.images) if self.labels is None else int((self.labels < 0).sum())
        if method.uses_labels and without:
            few = f"{without:,} of {len(self.images):,} {own}"
            raise ValueError(f"training: {given.method} learns from labels, but {few} have none")
        method.check_batch(self.batch_size)
        method.extra_views = given.extra_views
        method.allocate(len(self.images))
        return method

    # ---- the loop --------------------------------------------------------------------------------------

    def step(self) -> dict[str, float]:
        """One step; returns the row that it adds to the history.

        Raises ValueError, naming the step and the settings, where the loss or its gradient is not finite or a
        setting is out of range: then weights, buffers and history are as they were before that step.
        """
        if self.done:
            raise ValueError(f"training: all {self.steps:,} steps are done; set run.steps higher to go on")
        threads = torch.get_num_threads()
        # of this thread of Python's, and of those it starts
        torch.set_num_threads(cast(int, self.settings.threads))
        try:
            return self._step()
        finally:
            torch.set_num_threads(threads)

    def _step(self) -> dict[str, float]:
        started = time.perf_counter()
        chosen = self._batch()
        images = self.images[chosen]
        labels = None if self.labels is None or not self.method.uses_labels else self.labels[chosen]
        changing = self.method.changing_buffers()  # batch statistics learn going forward
        before = [buffer.clone() for buffer in changing]
        self.method.train()
        try:
            self._follow_schedules()
            self._learn_with_the_loss()
            rate = self._rate()
            with self._drawing():
                augment = self._ahead or self.augmentation
                loss, z1, z2 = self.method(images, augment, self._stream("views"), labels, chosen)
            self.optimiser.zero_grad()
            self.scaler.scale(loss).backward()
            learned = [p.grad for p in self.method.parameters() if p.grad is not None]
            processes.average([*learned, *changing])
            self.scaler.unscale_(self.optimiser)
            reported = self.method.reported | getattr(self.loss, "reported", {})
            numbers = [loss.detach(), *_alignment_and_uniformity(z1, z2), nn.utils.get_total_norm(learned)]
            numbers += reported.values()
            on_device = torch.stack([value.float() for value in numbers])
            if self._ahead is not None:
                self._ahead.draw(self._stream("views", step=self.steps_done + 1), self.device)
            measured = on_device.tolist()  # here alone the processor waits for a GPU
            length = measured[3]
            # asked of the scale, which a GPU waits for, only where the gradient is not finite
            too_large = not math.isfinite(length) and self.scaler.is_enabled() and self.scaler.get_scale() > 1
            if not all(map(math.isfinite, [*measured[:3], *measured[4:], 0.0 if too_large else length])):
                raise ValueError(f"its loss is {measured[0]:.4g}, its gradient {length:.4g} long")
            chance = self.method.chance(self.batch_size)
        except BaseException as error:
            for buffer, kept in zip(changing, before, strict=True):
                buffer.copy_(kept)
            scale = self.scaler.state_dict()
            self.scaler = self._new_scaler()  # one left in the middle of a step would refuse the next
            self.scaler.load_state_dict(scale)
            if not isinstance(error, ValueError):
                raise
            settings = {"learning_rate": self.learning_rate, **self._live_settings()}
            raise ValueError(
                f"training: step {self.steps_done + 1:,} was not taken, the weights from before it are kept: "
                f"{error} (with {', '.join(f'{name} = {value}' for name, value in settings.items())})"
            ) from error
        with interrupts.deferred():  # a step is taken and counted, or neither
            for group in self.optimiser.param_groups:
                group["lr"] = rate * group.get("factor", 1.0)
            self.scaler.step(self.optimiser)  # not where a float16 gradient went to infinity: the scale falls
            self.scaler.update()
            self.method.after_step()
            self.steps_done += 1
            row = {
                "step": self.steps_done,
                "loss": measured[0],
                "chance": math.nan if chance is None else chance,
                "learning_rate": rate,
                "alignment": measured[1],
                "uniformity": measured[2],
                "gradient_norm": math.nan if too_large else length,
                **dict(zip(reported, measured[4:], strict=True)),
                **self._live_settings(),
                "seconds": (self.rows[-1]["seconds"] if self.rows else 0.0) + time.perf_counter() - started,
            }
            self.rows.append(row)
        return row

    @property
    def steps(self) -> int:
        return self._steps

    @steps.setter
    def steps(self, steps: int) -> None:
        STEPS.check("training", "steps", steps)
        self._steps = int(steps)

    @property
    def augmentation(self) -> views.Augment:
        return self._augmentation

    @augmentation.setter
    def augmentation(self, augmentation: views.Augment | str) -> None:
        if isinstance(augmentation, str):
            augmentation = views.named(augmentation, self.images)
        if not callable(augmentation):
            raise ValueError(f"training: augmentation is {augmentation!r}, but must be a name or a function")
        own = self.kind.name
        its = own if views.settings_of(augmentation) is None else getattr(augmentation, "kind", own)
        if its != own:
            raise ValueError(
                f"training: augmentation is {type(augmentation).__name__}, for {its}, but must be one for "
                f"{own}: {', '.join(views.names(own))}"
            )
        self._augmentation = augmentation
        self._ahead: views.Ahead | None = None
        if self.device.type == "cuda" and type(augmentation) is views.Augmentation:
            self._ahead = views.Ahead(augmentation, self.settings.compile)

    @property
    def done(self) -> bool:
        return self.steps_done >= self.steps

    def finish(self, on_step: Callable[[Run], object] | None = None, progress: bool = True) -> Run:
        """Step until done; returns the run. A keyboard interrupt stops it and keeps what was learned.

        Raises ValueError while another run trains in this process. on_step, progress: see `train`.
        """
        from tqdm import tqdm

        form = "{bar:20} {n_fmt}/{total_fmt} steps [{elapsed}, {remaining} left]{postfix}"
        shown: dict[str, Any] = {"file": sys.stdout, "bar_format": form, "mininterval": 0.5, "miniters": 1}
        with (
            self.alone(),  # first: a run that is refused shows no bar
            tqdm(total=self.steps, initial=self.steps_done, disable=not progress, **shown) as bar,
        ):
            try:
                while not self.done:
                    row = self.step()
                    chance = "" if math.isnan(row["chance"]) else f", chance {row['chance']:.3f}"
                    bar.set_postfix_str(f"loss {row['loss']:.3f}{chance}", refresh=False)
                    bar.update()
                    if self.steps_done == 1 and (said := self.equal_views()):
                        tqdm.write(said, file=sys.stdout)
                    if on_step is not None:
                        on_step(self)
            except KeyboardInterrupt:
                bar.close()
                print(f"stopped after {self.steps_done} of {self.steps} steps; what was learned is kept")
        return self

    def equal_views(self) -> str:
        """A sentence that says so where the two views of each sample are equal; "" where they are not.

        Looked at in the next batch. Equal views are no fault where the method changes them itself or learns
        from labels, or where dropout does.
        """
        dropout = any(isinstance(part, encoders.Dropout | nn.Dropout) for part in self.method.modules())
        if self.method.varies or self.method.uses_labels or dropout:
            return ""
        images, draw = self.images[self._batch()], self._stream("views")
        with torch.random.fork_rng(devices=[]):
            first, second, *_ = methods.base.several_views(self.augmentation, images, draw)
        if not torch.equal(first, second):
            return ""
        others = ", ".join(name for name in views.names(self.kind.name) if name != "none")
        return (
            "the two views of each sample are equal, so alignment is 0 and samples are only pushed apart; "
            f"augmentations for {self.kind.name}: {others}"
        )

    # ---- what it has learned ---------------------------------------------------------------------------

    @property
    def loss(self) -> nn.Module:
        return self.method.loss

    @loss.setter
    def loss(self, loss: nn.Module) -> None:
        self.method.use(loss)
        self.method.allocate(len(self.images))
        self.method.to(self.device)  # what was allocated, too
        self._learn_with_the_loss()

    @property
    def encoder(self) -> nn.Module:
        return self.method.encoder

    @property
    def history(self) -> pd.DataFrame:
        """A row a step.

        step (from 1), loss, chance (the loss where all similarities are 0; NaN where that means nothing),
        learning_rate, alignment and uniformity of what the loss compared (see `clutils.measures`),
        gradient_norm (of all weights together; NaN where a float16 gradient overflowed and the step was
        skipped), what method and loss report of themselves (MACL's effective_temperature), every setting of
        the loss, the method's live ones, and seconds spent in steps so far.

        What was looked at (`looks`) has a column a number, NaN between two looks; before the first step that
        is row 0, with nothing else in it.
        """
        import pandas as pd

        rows, looks = list(self.rows), dict(self.looks)  # as they are now: another thread may be adding
        names = list(dict.fromkeys(name for row in rows for name in row)) or list(COLUMNS)
        names += dict.fromkeys(name for seen in looks.values() for name in seen)
        before = [{"step": 0, **looks[0]}] if 0 in looks else []
        return pd.DataFrame(
            [*before, *(row | looks.get(int(row["step"]), {}) for row in rows)], columns=names
        )

    def embed(self, images: Tensor | datasets.ImageSet) -> Tensor:
        """Features of the encoder, before the head: images (N, C, H, W) or an ImageSet -> (N, D) float32.

        Raises ValueError on images of more or fewer channels than the run's own.
        """
        return self._embedded(self.method.encoder, images)

    def project(self, images: Tensor | datasets.ImageSet) -> Tensor:
        """The same after the head: the space that the loss sees, not normalised."""
        return self._embedded(nn.Sequential(self.method.encoder, self.method.head), images)

    # ---- to a file -------------------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """The settings as they are now, in plain values; None for what was given as an object."""
        return self.settings.plain(
            loss=self.loss,
            augmentation=self.augmentation,
            steps=self.steps,
            learning_rate=self.learning_rate,
            method_settings=self.method.settings(),
            extra_views=self.method.extra_views,
        )

    def save(self, path: str | Path) -> None:
        """Write a checkpoint for `resume`. A file already there is replaced at once and whole, or kept.

        Raises OSError on a full disk.
        """
        state = {
            "format": checkpoint.FORMAT,
            "configuration": self.configuration,
            "pictures": checkpoint.fingerprint(self.images),
            "words": getattr(self.data, "rule", None),  # by which a sentence's were found
            "steps_done": self.steps_done,
            "method": self.method.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.scaler.state_dict(),
            "history": self.rows,
            "looks": self.looks,
            "schedules": {name: asdict(schedule) for name, schedule in self.schedules.items()},
        }
        files.write_atomically(path, partial(torch.save, state))

    # ---- one run at a time: two would share the cores, and their times and sliders be mixed up -----------

    @staticmethod
    def check_free() -> None:
        """Raise ValueError while a run trains in this process."""
        if (now := Run._trains) is not None:
            where = f"at step {now.steps_done:,} of {now.steps:,}"
            stop = "stop it first (a panel has a button for it), or wait for its end"
            raise ValueError(f"training: a run is training already, {where}: {stop}")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within, this is the run that trains in this process. Raises ValueError while one trains already."""
        with Run._claiming:
            self.check_free()
            Run._trains = self
        try:
            yield
        finally:
            Run._trains = None

    # ---- inside ----------------------------------------------------------------------------------------

    def _batch(self) -> Tensor:
        """Which images the next step takes: its part of this epoch's order."""
        epoch, part = divmod(self.steps_done, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            order = torch.Generator().manual_seed(_seed(self.settings.seed, "order", epoch))
            drawn = torch.randperm(len(self.images), generator=order)
            if self.device.type == "cuda":
                drawn = drawn.pin_memory()
            self._order = epoch, drawn.to(self.device, non_blocking=True)
        return self._order[1][part * self.batch_size : (part + 1) * self.batch_size]

    def _rate(self) -> float:
        check_rate(self.learning_rate)
        rate, rising = float(self.learning_rate), max(1, round(WARM_UP * self.steps))
        if self.steps_done < rising:
            return rate * (self.steps_done + 1) / rising
        return rate * (1 + math.cos(math.pi * (self.steps_done - rising) / (self.steps - rising))) / 2

    def _stream(
        self, name: str, device: torch.device | None = None, step: int | None = None
    ) -> torch.Generator:
        """The random numbers of this name for the next step or another; on a GPU only where that is asked."""
        there = "cpu" if device is None or device.type != "cuda" else device
        number = self.steps_done if step is None else step
        return torch.Generator(there).manual_seed(_seed(self.settings.seed, name, number))

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        """Within, loss and dropout draw from the step's own streams; each process has its own for dropout.

        On a GPU the loss does not look at what it is given, and wait: the check is that all ends finite.
        """
        on_gpu, loss = self.device.type == "cuda", cast(Any, self.loss)
        if hasattr(loss, "generator"):  # one that draws: SSCL, MoCHi
            loss.generator = self._stream("mixes", self.device)
        looking: list[Any] = [p for p in loss.modules() if on_gpu and getattr(p, "check_inputs", False)]
        layers = [part for part in self.method.modules() if isinstance(part, encoders.Dropout)]
        if layers:
            number = self.steps_done * processes.number() + processes.rank()
            stream = self._stream("dropout", self.device, number)
        for part in looking:
            part.check_inputs = False
        for layer in layers:
            layer.generator = stream
        try:
            yield
        finally:
            for part in looking:
                part.check_inputs = True
            for layer in layers:
                layer.generator = None  # one can't be copied with the encoder

    def _new_scaler(self) -> torch.amp.GradScaler:
        """Of a float16 loss, whose small gradients would be 0."""
        enabled = self.settings.precision == "float16"
        return torch.amp.GradScaler(self.device.type, init_scale=2.0**12, enabled=enabled)

    def _embedded(self, network: nn.Module, images: Tensor | datasets.ImageSet) -> Tensor:
        half = self.method.half_type if self.device.type == "cuda" else None
        inputs: Any = getattr(images, "inputs", images)
        if isinstance(inputs, Tensor):
            kind, channels, came = self.kind, datasets.width(self.images), tuple(inputs.shape)
            if inputs.ndim != self.images.ndim:
                raise ValueError(f"embed: images is {came}, but must be the run's {kind.name} {kind.shape}")
            if datasets.width(inputs) != channels:
                raise ValueError(f"embed: images is {came}, but the run's have {channels} {kind.parts}")
        # not compiled, which it would be again for each new shape and mode
        eager = torch.compiler.set_stance("force_eager") if self.settings.compile else nullcontext()
        with eager, half_precision(self.device, half):
            return encoders.embed(network, inputs)

    def _follow_schedules(self) -> None:
        live = self.live() if self.schedules else {}
        for name, schedule in self.schedules.items():
            one_of("schedules", "a live setting", name, live)
            setattr(live[name], name, schedule(self.steps_done))

    def _learn_with_the_loss(self) -> None:
        """Let the optimiser move what the loss learns itself now, and nothing that another one did."""
        own, groups = learned_by(self.loss), self.optimiser.param_groups
        held = [p for group in groups if group.get("of_loss") for p in group["params"]]
        if list(map(id, own)) == list(map(id, held)):
            return
        self.method.to(self.device)
        groups[:] = [group for group in groups if not group.get("of_loss")]
        for parameter in held:
            self.optimiser.state.pop(parameter, None)
        if own:
            alone = {"params": own, "factor": 1.0, "weight_decay": 0.0, "of_loss": True}
            self.optimiser.add_param_group(alone)

    def _live_settings(self) -> dict[str, Any]:
        return plain({name: getattr(of, name) for name, of in self.live().items() if of is not self})

    def live(self) -> dict[str, Any]:
        """Settings that may be changed while it trains -> what has them: the loss, the method, or the run."""
        of_loss: tuple[str, ...] = getattr(self.loss, "hyperparameters", tuple)()
        found = dict.fromkeys(of_loss, self.loss) | dict.fromkeys(self.method.live, self.method)
        return found | {"learning_rate": self}


def device(name: str | torch.device | None = None) -> torch.device:
    """The device called `name`; None = CUDA where there is one, else the CPU (Apple's "mps" only by name).

    Raises ValueError where this machine has no such device.
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        found = torch.device(name)
    except (RuntimeError, TypeError):
        found = torch.device("meta")  # a word that torch does not know
    if found.type not in DEVICES:
        known = f"{', '.join(DEVICES)}, cuda:N"
        raise ValueError(f"training: device is {str(name)!r}, but must be one of {known}")
    try:
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0].split(". ")[0]
        raise ValueError(
            f"training: device is {str(name)!r}, which this machine does not have: {reason}"
        ) from error
    if found.type == "cuda" and found.index is None:  # by its number: a thread has a current GPU of its own
        found = torch.device("cuda", torch.cuda.current_device())
    return found


def _optimiser(settings: Settings, method: methods.Method, device: torch.device) -> torch.optim.Optimizer:
    groups = method.parameter_groups()
    fused = True if device.type == "cuda" else None
    given: dict[str, Any] = {"weight_decay": settings.weight_decay, "fused": fused}
    if settings.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=1e-3, momentum=MOMENTUM, **given)
    return torch.optim.AdamW(groups, **given)


def _demand_compiler(device: torch.device) -> None:
    """Raise ValueError where torch.compile fails on a function of one line, as without a C++ compiler."""
    try:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device=device))
    except Exception as error:  # torch has no class in common for what may be missing
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"training: compile is True, but torch.compile does not work here: {reason} "
            "(compile=False trains the same without)"
        ) from error


def _seed(seed: int, stream: str, number: int = 0) -> int:
    """A number to seed one stream of random numbers with, unrelated to that of any other."""
    return int(np.random.SeedSequence([seed, STREAMS.index(stream), number]).generate_state(1)[0])


def _inputs(data: Any, batch_size: int | None) -> Tensor:
    images = getattr(data, "inputs", data)
    if not isinstance(images, Tensor):
        raise ValueError(
            f"training: data is {shortened(data)}, but must be a name, an ImageSet or a tensor of pictures"
        )
    kind = datasets.kind_of(images, "training: data")
    if images.dtype != kind.dtype:
        what = f"{tuple(images.shape)} {images.dtype}"
        raise ValueError(f"training: data is {what}, but {kind.name} must be {kind.dtype}")
    if kind.name in ("graphs", "nodes"):
        check_edges(images, "training: data")
    if len(images) < (batch_size or 2) and kind.name != "nodes":
        raise ValueError(
            f"training: batch_size is {batch_size or 2}, but the data has only {len(images)} {kind.name}"
        )
    return images


def _alignment_and_uniformity(z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor]:
    """`measures.alignment`, and the mean of `measures.uniformity` of both, left on the device."""
    z1, z2 = nn.functional.normalize(z1, dim=1), nn.functional.normalize(z2, dim=1)
    pairs = len(z1) * (len(z1) - 1)
    logs = []
    for z in (z1, z2):
        exponents = (4 * (z @ z.T - 1)).fill_diagonal_(-torch.inf)  # -2 d²
        logs.append(exponents.flatten().logsumexp(dim=0) - math.log(pairs))
    return 2 - 2 * (z1 * z2).sum(dim=1).mean(), (logs[0] + logs[1]) / 2
