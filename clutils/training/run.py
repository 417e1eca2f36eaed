"""A training run: `Run.step()` is one step; `train`, panels and the command line are built on it.

Everything random in a run follows from its seed: the weights it starts from, the order of the pictures in
each epoch, the views of each step and what a loss draws in it have a stream each, seeded by (seed, stream,
step). So a run that was saved needs nothing but its weights, the optimiser's memory and its step to go on,
bit for bit.

On a GPU a seed gives the first weights, the order and the views that it gives on a CPU. Noise on pictures or
features (PiNDA's, SimCL's) and mixed negatives (SSCL's, MoCHi's) are drawn on the device: from the seed too,
but other numbers. Sums are not the same to the last bit, and convolutions in float32 take cuDNN's default,
TF32. In one process and uncompiled, a GPU is asked once a step what came out, and works through the rest
without the processor waiting.
"""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, files, methods, processes, views
from clutils.methods.base import half_precision
from clutils.training import checkpoint, interrupts
from clutils.training.settings import (
    PRECISIONS,
    Settings,
    check_rate,
    described,
    names,
    plain,
    range_of,
    shortened,
)

if TYPE_CHECKING:
    import pandas as pd

DEVICES = ("cpu", "cuda", "mps")
STREAMS = ("weights", "order", "views", "mixes")
MOMENTUM = 0.9  # of SGD
WARM_UP = 0.05  # share of the steps in which the learning rate rises


@described
class Run:
    """One training run: its settings, its weights, and the history of the steps it has done.

    Its arguments are the fields of `Settings`, by name or in their order:

    {settings}

    `run.settings` has them as they were given, each None replaced by what suits the pictures.
    `run.loss.temperature = 0.5` takes effect at the next step, and the history says so; likewise every other
    setting of the loss, those settings of `run.method` that it lists as `live`, and `run.loss`,
    `run.augmentation`, `run.learning_rate` and `run.steps` themselves.
    Raises ValueError, quoting what came in, on settings that do not fit.
    """

    _trains: ClassVar[Run | None] = None  # the run that trains in this process
    _taken: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, *settings: Any, **by_name: Any) -> None:
        _demand_known(by_name)
        given = Settings(*settings, **by_name)
        self.device = device(given.device)
        self.data = datasets.load(given.data) if isinstance(given.data, str) else given.data
        self.images = _inputs(self.data, given.batch_size).to(self.device)
        labels = getattr(self.data, "labels", None)
        self.labels = None if labels is None else labels.to(self.device)
        self.settings = given = given.fitted(self.images, self.device)
        self.augmentation, self.steps = given.augmentation, given.steps
        self.learning_rate = given.learning_rate
        self.steps_an_epoch = len(self.images) // given.batch_size
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
            torch.default_generator.manual_seed(_seed(given.seed, "weights"))
            self.method = self._built().to(self.device, memory_format=torch.channels_last)
        self.optimiser = _optimiser(given, self.method.parameter_groups(), self.device)
        if given.compile:
            _demand_compiler(self.device)
            for network in self.method.networks():
                network.compile()  # in place: names in its state_dict stay what they are
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # batches have one size
        self.steps_done = 0
        self.rows: list[dict[str, float]] = []
        self._order: tuple[int, Tensor] | None = None  # an epoch, and the order of its pictures
        self._before: list[Tensor] = []  # buffers as they were before the step under way
        self._ahead: views.Ahead | None = None
        # of a float16 loss, whose small gradients would be 0
        self.scaler = _scaler(self.device, given.precision == "float16")

    def _built(self) -> methods.Method:
        """The method, its encoder and its head, with weights from torch's default generator."""
        given, encoder = self.settings, self.settings.encoder
        kind = methods.catalogue()[given.method]
        if isinstance(encoder, str):
            _demand_fitting(encoder, self.images)
            encoder = encoders.build(encoder, channels=self.images.shape[1])
        kind.check_loss(given.loss)
        if given.extra_views and "extra_views" not in getattr(given.loss, "takes", ()):
            name = type(given.loss).__name__
            raise ValueError(f"training: extra_views is {given.extra_views}, but {name} takes none")
        method = kind(encoder, given.loss, **given.method_settings)
        method.half = PRECISIONS[given.precision]
        if method.uses_labels and self.labels is None:
            raise ValueError(f"training: {given.method} learns from labels, but the data has none")
        if method.uses_labels and bool((self.labels < 0).any()):  # -1, as in STL-10's unlabeled part
            number, of = int((self.labels < 0).sum()), len(self.images)
            raise ValueError(
                f"training: {given.method} learns from labels, but {number:,} of {of:,} pictures have none"
            )
        method.check_batch(given.batch_size)
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
        torch.set_num_threads(self.settings.threads)  # of this thread of Python's, and of those it starts
        try:
            return self._step()
        finally:
            torch.set_num_threads(threads)

    def _step(self) -> dict[str, float]:
        started = time.perf_counter()
        chosen = self._batch()
        images = self.images[chosen]
        labels = self.labels[chosen] if self.method.uses_labels else None
        changing = self.method.changing_buffers()  # batch statistics learn going forward
        self._keep(changing)
        self.method.train()
        try:
            rate = self._rate()
            if hasattr(self.loss, "generator"):  # of a loss that draws: SSCL, MoCHi
                self.loss.generator = self._stream("mixes", self.device)
            with self._without_waiting():
                loss, z1, z2 = self.method(images, self._augment(), self._stream("views"), labels, chosen)
            self.optimiser.zero_grad()
            self.scaler.scale(loss).backward()
            learned = [p.grad for p in self.method.parameters() if p.grad is not None]
            processes.average([*learned, *changing])
            self.scaler.unscale_(self.optimiser)
            reported = self.method.reported | getattr(self.loss, "reported", {})
            measured = [loss.detach(), *_alignment_and_uniformity(z1, z2), nn.utils.get_total_norm(learned)]
            measured += reported.values()
            measured = torch.stack([value.float() for value in measured])
            if self._ahead is not None:
                self._ahead.draw(self._stream("views", step=self.steps_done + 1), self.device)
            measured = measured.tolist()  # here alone the processor waits for a GPU
            length = measured.pop(3)
            # asked of the scale, which a GPU waits for, only where the gradient is not finite
            too_large = not math.isfinite(length) and self.scaler.is_enabled() and self.scaler.get_scale() > 1
            if not all(map(math.isfinite, [*measured, 0.0 if too_large else length])):
                raise ValueError(f"its loss is {measured[0]:.4g}, its gradient {length:.4g} long")
            chance = self.method.chance(self.settings.batch_size)
        except BaseException as error:
            self._put_back(changing)
            self._forget_scaled()
            if not isinstance(error, ValueError):
                raise
            settings = {"learning_rate": self.learning_rate, **self._live_settings()}
            raise ValueError(
                f"training: step {self.steps_done + 1:,} was not taken, the weights from before it are kept: "
                f"{error} (with {', '.join(f'{name} = {value}' for name, value in settings.items())})"
            ) from error
        with interrupts.held_back():  # a step is taken and counted, or neither
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
                **dict(zip(reported, measured[3:], strict=True)),
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
        if not range_of("steps").allows(steps):
            raise ValueError(f"training: steps is {steps!r}, but must be {range_of('steps')}")
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
        self._augmentation = augmentation

    @property
    def done(self) -> bool:
        return self.steps_done >= self.steps

    def finish(self, on_step: Callable[[Run], object] | None = None, progress: bool = True) -> Run:
        """Step until done; returns the run. A keyboard interrupt stops it and keeps what was learned.

        Raises ValueError while another run trains in this process (`background.Background`).

        - on_step: called with the run after each step
        - progress: show a bar with the loss and its chance level, where it has one, on stdout
        """
        from tqdm import tqdm

        bar = partial(
            tqdm,
            total=self.steps,
            initial=self.steps_done,
            disable=not progress,
            file=sys.stdout,
            bar_format="{bar:20} {n_fmt}/{total_fmt} steps [{elapsed}, {remaining} left]{postfix}",
            mininterval=0.5,
            miniters=1,
        )
        with self.alone(), bar() as bar:  # in this order: a run that is refused shows no bar
            try:
                while not self.done:
                    row = self.step()
                    chance = "" if math.isnan(row["chance"]) else f", chance {row['chance']:.3f}"
                    bar.set_postfix_str(f"loss {row['loss']:.3f}{chance}", refresh=False)
                    bar.update()
                    if on_step is not None:
                        on_step(self)
            except KeyboardInterrupt:
                bar.close()
                print(f"stopped after {self.steps_done} of {self.steps} steps; what was learned is kept")
        return self

    # ---- what it has learned ---------------------------------------------------------------------------

    @property
    def loss(self) -> nn.Module:
        return self.method.loss

    @loss.setter
    def loss(self, loss: nn.Module) -> None:
        self.method.use(loss)
        self.method.allocate(len(self.images))
        self.method.to(self.device)  # what was allocated, too

    @property
    def encoder(self) -> nn.Module:
        return self.method.encoder

    @property
    def history(self) -> pd.DataFrame:
        """A row a step.

        step (from 1), loss, chance (the loss where all similarities are 0; NaN where that means nothing),
        learning_rate, alignment and uniformity of what the loss compared (`clutils.measures` says what they
        are; the method, which embeddings these were), what the method and the loss report of themselves
        (MACL's temperature moves: effective_temperature), every setting of the loss, the method's live ones,
        and seconds spent in steps so far.
        """
        import pandas as pd

        columns = ["step", "loss", "chance", "learning_rate", "alignment", "uniformity", "seconds"]
        rows = list(self.rows)  # as it is now: another thread may be adding to it
        return pd.DataFrame(rows, columns=None if rows else columns)

    def embed(self, images: Tensor | datasets.ImageSet) -> Tensor:
        """Features of the encoder, before the head: pictures (N, C, H, W) or an ImageSet -> (N, D) float32.

        The run is afterwards as it was. Raises ValueError on pictures of more or fewer channels than its own.
        """
        with self._uncompiled():
            return self._embedded(self.method.encoder, images)

    def project(self, images: Tensor | datasets.ImageSet) -> Tensor:
        """The same after the head: the space that the loss sees, not normalised."""
        with self._uncompiled():
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

        So a run that is killed, while it saves too, goes on from the last one. Raises OSError on a full disk.
        """
        state = {
            "format": checkpoint.FORMAT,
            "configuration": self.configuration,
            "pictures": checkpoint.fingerprint(self.images),
            "steps_done": self.steps_done,
            "method": self.method.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scaler": self.scaler.state_dict(),
            "history": self.rows,
        }
        written = io.BytesIO()
        torch.save(state, written)
        files.replace(path, written.getbuffer())

    # ---- one run at a time: two would share the cores, and their times and sliders be mixed up -----------

    def claim(self) -> None:
        """From now on this run trains, until `release`. Raises ValueError while one trains already."""
        if not Run._taken.acquire(blocking=False):
            raise ValueError(_busy())
        Run._trains = self

    @staticmethod
    def release() -> None:
        """The run that claimed this process has stopped. Any thread may say so."""
        Run._trains = None
        Run._taken.release()

    @staticmethod
    def check_free() -> None:
        """Raise ValueError while a run trains, as `claim` does: for what takes long before it can claim."""
        if Run._taken.locked():
            raise ValueError(_busy())

    @contextmanager
    def alone(self) -> Iterator[None]:
        """`claim` within, `release` after."""
        self.claim()
        try:
            yield
        finally:
            self.release()

    # ---- inside ----------------------------------------------------------------------------------------

    def _batch(self) -> Tensor:
        """Which pictures the next step takes: its part of this epoch's order."""
        epoch, part = divmod(self.steps_done, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            order = torch.Generator().manual_seed(_seed(self.settings.seed, "order", epoch))
            drawn = torch.randperm(len(self.images), generator=order)
            if self.device.type == "cuda":
                drawn = drawn.pin_memory()
            self._order = epoch, drawn.to(self.device, non_blocking=True)
        return self._order[1][part * self.settings.batch_size : (part + 1) * self.settings.batch_size]

    def _rate(self) -> float:
        check_rate(self.learning_rate)
        rate = float(self.learning_rate)
        rising = max(1, round(WARM_UP * self.steps))
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

    def _augment(self) -> views.Augment:
        """The augmentation; on a GPU one that may draw the next step's numbers while the GPU works."""
        if self.device.type != "cuda" or type(self.augmentation) is not views.Augmentation:
            self._ahead = None
            return self.augmentation
        if self._ahead is None or self._ahead.augment is not self.augmentation:
            self._ahead = views.Ahead(self.augmentation, self.settings.compile)
        return self._ahead

    @contextmanager
    def _without_waiting(self) -> Iterator[None]:
        """Within, on a GPU, the loss does not look at what it is given: the check is that all ends finite."""
        on_gpu = self.device.type == "cuda"
        looking = [part for part in self.loss.modules() if on_gpu and getattr(part, "check_inputs", False)]
        for part in looking:
            part.check_inputs = False
        try:
            yield
        finally:
            for part in looking:
                part.check_inputs = True

    def _keep(self, changing: list[Tensor]) -> None:
        """Copy what a step changes going forward, for `_put_back`."""
        kinds = [[(b.shape, b.dtype, b.device) for b in buffers] for buffers in (self._before, changing)]
        if kinds[0] != kinds[1]:
            self._before = [torch.empty_like(buffer) for buffer in changing]
        _copy(changing, self._before)

    def _put_back(self, changing: list[Tensor]) -> None:
        _copy(self._before, changing)

    def _forget_scaled(self) -> None:
        """A scaler that was left in the middle of a step would refuse the next one."""
        if self.scaler.is_enabled():
            kept = self.scaler.state_dict()
            self.scaler = _scaler(self.device, True)
            self.scaler.load_state_dict(kept)

    def _embedded(self, network: nn.Module, images: Tensor | datasets.ImageSet) -> Tensor:
        half = self.method.half if self.device.type == "cuda" else None
        with half_precision(self.device, half):
            return encoders.embed(network, self._pictures(images))

    @contextmanager
    def _uncompiled(self) -> Iterator[None]:
        """Within, the encoder computes as written: for each new shape and mode it would be compiled anew."""
        if not self.settings.compile:
            yield
            return
        with torch.compiler.set_stance("force_eager"):
            yield

    def _loss_settings(self) -> dict[str, Any]:
        names = self.loss.hyperparameters() if hasattr(self.loss, "hyperparameters") else ()
        return {name: getattr(self.loss, name) for name in names}

    def _live_settings(self) -> dict[str, Any]:
        own = {name: getattr(self.method, name) for name in self.method.live}
        return plain(self._loss_settings() | own)

    def _pictures(self, images: Tensor | datasets.ImageSet | datasets.VectorSet) -> Tensor:
        images = getattr(images, "inputs", images)
        if not isinstance(images, Tensor):
            return images
        channels = self.images.shape[1]
        if images.ndim != self.images.ndim:
            kind = "vectors (N, D)" if self.images.ndim == 2 else "a tensor (N, C, H, W)"
            raise ValueError(f"embed: images is {tuple(images.shape)}, but the run's pictures are {kind}")
        if images.shape[1] != channels:
            what = "channels" if images.ndim == 4 else "numbers"
            raise ValueError(f"embed: images is {tuple(images.shape)}, but the run's have {channels} {what}")
        return images


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


def _demand_known(given: Mapping[str, Any]) -> None:
    """Raise TypeError on what is no setting, with those that there are."""
    for name, value in given.items():
        if name not in names():
            own = f"; a method's own go into method_settings={{{name!r}: {shortened(value)}}}"
            raise TypeError(f"training: there is no setting {name!r}, but {', '.join(names())}{own}")


def _busy() -> str:
    now = Run._trains
    which = "" if now is None else f", at step {now.steps_done:,} of {now.steps:,}"
    stop = "stop it first (a panel has a button for it), or wait for its end"
    return f"training: a run is training already{which}: {stop}"


def _optimiser(
    settings: Settings, groups: list[dict[str, Any]], device: torch.device
) -> torch.optim.Optimizer:
    given = {"weight_decay": settings.weight_decay, "fused": True if device.type == "cuda" else None}
    if settings.optimiser == "sgd":
        return torch.optim.SGD(groups, lr=1e-3, momentum=MOMENTUM, **given)
    return torch.optim.AdamW(groups, **given)


def _scaler(device: torch.device, enabled: bool) -> torch.amp.GradScaler:
    return torch.amp.GradScaler(device.type, init_scale=2.0**12, enabled=enabled)


def _copy(sources: list[Tensor], targets: list[Tensor]) -> None:
    """Copy each source into its target, those of one type at a time."""
    for dtype in {source.dtype for source in sources}:
        pairs = [pair for pair in zip(targets, sources, strict=True) if pair[0].dtype == dtype]
        torch._foreach_copy_(*map(list, zip(*pairs, strict=True)))


def _demand_fitting(encoder: str, images: Tensor) -> None:
    if encoder in encoders.NAMES and (encoder == "mlp") != (images.ndim == 2):
        shape, others = tuple(images.shape), ", ".join(name for name in encoders.NAMES if name != "mlp")
        raise ValueError(
            f"training: encoder is {encoder!r} and data {shape}, but 'mlp' takes vectors (N, D) and {others} "
            "take pictures (N, C, H, W)"
        )


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


def _inputs(data: datasets.ImageSet | datasets.VectorSet | Tensor, batch_size: int) -> Tensor:
    images = getattr(data, "inputs", data)
    if not isinstance(images, Tensor):
        raise ValueError(
            f"training: data is {shortened(data)}, but must be a name, an ImageSet or a tensor of pictures"
        )
    if (images.dtype, images.ndim) not in ((torch.uint8, 4), (torch.float32, 2)):
        what = f"{tuple(images.shape)} {images.dtype}"
        raise ValueError(
            f"training: data is {what}, but pictures must be uint8, (N, C, H, W), and vectors float32, (N, D)"
        )
    if len(images) < batch_size:
        raise ValueError(
            f"training: batch_size is {batch_size}, but the data has only {len(images)} pictures"
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
