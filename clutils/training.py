"""The loop: `Run.step()` is one step, and `train`, figures, panels and the command line are built on it.

Everything random in a run follows from its seed: the weights it starts from, the order of the pictures in
each epoch, the views of each step and what a loss draws in it have a stream each, and step 57's is the same
however one got there. So a run that was saved needs nothing but its weights and its step to go on, bit for
bit.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, files, interrupts, losses, methods, one_run, processes, views

if TYPE_CHECKING:
    import pandas as pd

STREAMS = ("weights", "order", "views", "mixes")
LEARNING_RATES = {"conv16": 5e-3, "conv32": 3e-3}  # of AdamW; any other encoder starts from 1e-3
SGD_LEARNING_RATE = 0.03  # for 256 pictures a step, and in proportion for others
OPTIMISERS = ("adamw", "sgd")
WEIGHT_DECAY = 1e-4  # of AdamW
SGD_WEIGHT_DECAY = 5e-4
MOMENTUM = 0.9  # of SGD
WARM_UP = 0.05  # share of the steps in which the learning rate rises
FAST_STEPS = 20
FORMAT = "clutils run 1"
FITTING = "what suits the pictures"  # the default augmentation's name, and the default encoder's

Augment = Callable[..., Tensor]


class Run:
    """One training run: its settings, its weights, and the history of the steps it has done.

    - method: a name from `methods.catalogue()`
    - loss: from `clutils.losses`; None = the method's own, for most NT-Xent at τ = 0.2
    - data: a name for `data.load`, or "vectors:NAME" for `data.load_vectors`; an ImageSet or a VectorSet;
      pictures as a uint8 tensor (N, C, H, W); vectors as a float32 tensor (N, D)
    - encoder: a name from `encoders.NAMES`, or a module with `.features` (which is then trained in place);
      None = "conv16" for pictures, "mlp" for vectors
    - augmentation: called as `augment(images, generator=...)`, or the name of one of `views.PRESETS`; None =
      `default_augmentation`
    - batch_size: pictures a step; where several processes train (`clutils.processes`), of all together
    - epochs: instead of steps, where given; an epoch's last, incomplete batch is left out
    - learning_rate: the highest of its course, which rises over the first 5 % of the steps and falls as half
      a cosine; None = what suits the encoder and the method, or for "sgd" 0.03 · batch_size / 256
    - optimiser: "adamw", or "sgd" with a momentum of 0.9 (not Nesterov's)
    - weight_decay: None = 1e-4 for "adamw", 5e-4 for "sgd"
    - device: "cpu", "cuda", ...; None = `device()`
    - precision: of the encoder, "float32" or "bfloat16"; None = bfloat16 where the machine computes in it
    - compile: let torch.compile rewrite the encoder's step, which takes a minute or less before the first;
      False, as it made conv16 and conv32 slower on a CPU (`benchmarks/throughput.py`)
    - extra_views: further views of each picture, for a loss that takes them as positives (AttentionNCE)
    - method_settings: the method's own, by name, as its class in `clutils.methods` takes them

    `run.loss.temperature = 0.5` takes effect at the next step, and the history says so; likewise every other
    setting of the loss, those settings of `run.method` that it lists as `live`, and `run.loss`,
    `run.augmentation`, `run.learning_rate` and `run.steps` themselves.
    Raises ValueError, quoting what came in, on settings that do not fit.
    """

    def __init__(
        self,
        method: str = "simclr",
        loss: nn.Module | None = None,
        data: str | datasets.ImageSet | datasets.VectorSet | Tensor = "scenes",
        encoder: str | nn.Module | None = None,
        augmentation: str | Augment | None = None,
        epochs: int | None = None,
        steps: int = 300,
        batch_size: int = 256,
        learning_rate: float | None = None,
        seed: int = 0,
        device: str | torch.device | None = None,
        precision: str | None = None,
        extra_views: int = 0,
        method_settings: Mapping[str, Any] | None = None,
        optimiser: str = "adamw",
        weight_decay: float | None = None,
        compile: bool = False,
    ) -> None:
        if method not in methods.catalogue():
            known = ", ".join(methods.catalogue())
            raise ValueError(f"training: no method is called {method!r}; there are {known}")
        self.seed, self.batch_size = _whole("seed", seed, 0), _whole("batch_size", batch_size, 2)
        self.device = _device(device)
        self.data = _loaded(data) if isinstance(data, str) else data
        images = _images(self.data, batch_size)
        if batch_size % processes.number():
            shared = f"{processes.number()} processes can only share it equally"
            raise ValueError(f"training: batch_size is {batch_size}, but {shared}")
        self.images = images.to(self.device)
        labels = getattr(self.data, "labels", None)
        self.labels = None if labels is None else labels.to(self.device)
        if encoder is None:
            encoder = "mlp" if images.ndim == 2 else "conv16"
        if augmentation is None:
            augmentation = default_augmentation(images)
        if isinstance(augmentation, str):
            augmentation = named_augmentation(augmentation, images)
        self.augmentation = augmentation
        self.steps_an_epoch = len(images) // batch_size
        if epochs is not None:
            steps = _whole("epochs", epochs, 1) * self.steps_an_epoch
        self.steps = _whole("steps", steps, 1)
        if optimiser not in OPTIMISERS:
            raise ValueError(f"training: optimiser is {optimiser!r}, but must be 'adamw' or 'sgd'")
        self.optimiser_name = optimiser
        if learning_rate is None:
            learning_rate = usual_rate(method, encoder, optimiser, batch_size, **(method_settings or {}))
        self.learning_rate = learning_rate
        if not isinstance(learning_rate, int | float) or not 0 < learning_rate < math.inf:
            raise ValueError(f"training: learning_rate is {learning_rate!r}, but must be a positive number")
        if weight_decay is None:
            weight_decay = SGD_WEIGHT_DECAY if optimiser == "sgd" else WEIGHT_DECAY
        self.weight_decay = weight_decay
        if not isinstance(weight_decay, int | float) or not 0 <= weight_decay < math.inf:
            raise ValueError(f"training: weight_decay is {weight_decay!r}, but must be a number from 0 on")
        if precision is None:
            precision = "bfloat16" if encoders.computes_bfloat16(self.device.type) else "float32"
        if precision not in ("float32", "bfloat16"):
            raise ValueError(f"training: precision is {precision!r}, but must be 'float32' or 'bfloat16'")
        self.precision = precision
        self._names = {
            "method": method,
            "data": data if isinstance(data, str) else None,
            "encoder": encoder if isinstance(encoder, str) else None,
        }
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
            torch.default_generator.manual_seed(_seed(seed, "weights"))
            if isinstance(encoder, str):
                _demand_fitting(encoder, images)
                encoder = encoders.build(encoder, channels=images.shape[1])
            kind, given = methods.catalogue()[method], dict(method_settings or {})
            for name in given:
                if name not in kind.setting_names():
                    known = ", ".join(kind.setting_names())
                    raise ValueError(f"training: {method} has no setting {name!r}; it has {known}")
            loss = kind.default_loss(**given) if loss is None else loss
            kind.check_loss(loss)
            built = kind(encoder, loss, bfloat16=precision == "bfloat16", **given)
        if built.uses_labels and self.labels is None:
            raise ValueError(f"training: {method} learns from labels, but the data has none")
        if built.uses_labels and bool((self.labels < 0).any()):  # -1, as in STL-10's unlabeled part
            number = int((self.labels < 0).sum())
            raise ValueError(
                f"training: {method} learns from labels, but {number:,} of {len(images):,} pictures have none"
            )
        built.check_batch(batch_size)
        built.extra_views = _whole("extra_views", extra_views, 0)
        if extra_views and not built.takes_extra_views:
            raise ValueError(f"training: extra_views is {extra_views}, but {method} compares two views alone")
        if extra_views and "extra_views" not in getattr(loss, "takes", ()):
            raise ValueError(f"training: extra_views is {extra_views}, but {type(loss).__name__} takes none")
        self.method = built.to(self.device, memory_format=torch.channels_last)
        self.optimiser = _optimiser(optimiser, self.method.parameter_groups(), weight_decay)
        self.compile = bool(compile)
        if self.compile:
            _demand_compiler(self.device)
            self.encoder.compile()  # in place: names in its state_dict stay what they are
        self.steps_done = 0
        self.rows: list[dict[str, float]] = []
        self._order: tuple[int, Tensor] | None = None  # an epoch, and the order of its pictures

    # ---- the loop --------------------------------------------------------------------------------------

    def step(self) -> dict[str, float]:
        """One step; returns the row that it adds to the history.

        Raises ValueError, naming the step and the settings, where the loss or its gradient is not finite or a
        setting is out of range: then the run is as it was before that step.
        """
        if self.done:
            raise ValueError(f"training: all {self.steps:,} steps are done; set run.steps higher to go on")
        started = time.perf_counter()
        chosen = self._batch()
        images = self.images[chosen]
        labels = self.labels[chosen] if self.method.uses_labels else None
        generator = torch.Generator().manual_seed(_seed(self.seed, "views", self.steps_done))
        changing = self.method.changing_buffers()  # batch statistics learn going forward
        before = [buffer.clone() for buffer in changing]
        self.method.train()
        try:
            rate = self._rate()
            if hasattr(self.loss, "generator"):  # of a loss that draws: SSCL, MoCHi
                self.loss.generator = torch.Generator().manual_seed(
                    _seed(self.seed, "mixes", self.steps_done)
                )
            loss, z1, z2 = self.method(images, self.augmentation, generator, labels)
            self.optimiser.zero_grad()
            loss.backward()
            learned = [p.grad for p in self.method.parameters() if p.grad is not None]
            processes.average([*learned, *changing])
            reported = self.method.reported | getattr(self.loss, "reported", {})
            measured = [loss.detach(), *_alignment_and_uniformity(z1, z2), self._gradient_length()]
            measured += reported.values()
            measured = torch.stack([value.float() for value in measured]).tolist()  # a GPU waits here, once
            if not all(map(math.isfinite, measured)):
                raise ValueError(f"its loss is {measured[0]:.4g}, its gradient {measured[3]:.4g} long")
        except BaseException as error:
            for buffer, old in zip(changing, before, strict=True):
                buffer.copy_(old)
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
            self.optimiser.step()
            self.method.after_step()
            self.steps_done += 1
            chance = self.method.chance(self.batch_size)
            row = {
                "step": self.steps_done,
                "loss": measured[0],
                "chance": math.nan if chance is None else chance,
                "learning_rate": rate,
                "alignment": measured[1],
                "uniformity": measured[2],
                **dict(zip(reported, measured[4:], strict=True)),
                **self._live_settings(),
                "seconds": (self.rows[-1]["seconds"] if self.rows else 0.0) + time.perf_counter() - started,
            }
            self.rows.append(row)
        return row

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
        with one_run.alone(self), bar() as bar:  # in this order: a run that is refused shows no bar
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
        self.method.use(loss.to(self.device) if isinstance(loss, nn.Module) else loss)

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
            return encoders.embed(self.method.encoder, self._pictures(images))

    def project(self, images: Tensor | datasets.ImageSet) -> Tensor:
        """The same after the head: the space that the loss sees, not normalised."""
        with self._uncompiled():
            return encoders.embed(
                nn.Sequential(self.method.encoder, self.method.head), self._pictures(images)
            )

    # ---- to a file -------------------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """What `resume` rebuilds the run from, in plain values; None for what was given as an object."""
        loss, augmentation = self.loss, self.augmentation
        listed = type(loss).__name__ in losses.catalogue()
        listed_views = type(augmentation) in (views.Augmentation, views.Identity)
        return {
            **self._names,
            "loss": {"name": type(loss).__name__, "settings": self._loss_settings()} if listed else None,
            "augmentation": asdict(augmentation) if listed_views else None,  # {}: none at all
            "steps": self.steps,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            "seed": self.seed,
            "precision": self.precision,
            "extra_views": self.method.extra_views,
            "method_settings": self.method.settings(),
            "optimiser": self.optimiser_name,
            "weight_decay": self.weight_decay,
            "compile": self.compile,
        }

    def save(self, path: str | Path) -> None:
        """Write a checkpoint for `resume`. A file already there is replaced at once and whole, or kept.

        So a run that is killed, while it saves too, goes on from the last one. Raises OSError on a full disk.
        """
        state = {
            "format": FORMAT,
            "configuration": self.configuration,
            "pictures": _fingerprint(self.images),
            "steps_done": self.steps_done,
            "method": self.method.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "history": self.rows,
        }
        written = io.BytesIO()
        torch.save(state, written)
        files.replace(path, written.getbuffer())

    # ---- inside ----------------------------------------------------------------------------------------

    def _batch(self) -> Tensor:
        """Which pictures the next step takes: its part of this epoch's order."""
        epoch, part = divmod(self.steps_done, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            order = torch.Generator().manual_seed(_seed(self.seed, "order", epoch))
            self._order = epoch, torch.randperm(len(self.images), generator=order).to(self.device)
        return self._order[1][part * self.batch_size : (part + 1) * self.batch_size]

    def _rate(self) -> float:
        rate = self.learning_rate
        if not isinstance(rate, int | float) or not 0 < rate < math.inf:
            raise ValueError(f"learning_rate is {rate!r}, but must be a positive number")
        rising = max(1, round(WARM_UP * self.steps))
        if self.steps_done < rising:
            return rate * (self.steps_done + 1) / rising
        return rate * (1 + math.cos(math.pi * (self.steps_done - rising) / (self.steps - rising))) / 2

    def _gradient_length(self) -> Tensor:
        gradients = [p.grad for p in self.method.parameters() if p.grad is not None]
        return torch.stack([gradient.norm() for gradient in gradients]).norm()

    @contextmanager
    def _uncompiled(self) -> Iterator[None]:
        """Within, the encoder computes as written: for each new shape and mode it would be compiled anew."""
        if not self.compile:
            yield
            return
        with torch.compiler.set_stance("force_eager"):
            yield

    def _loss_settings(self) -> dict[str, float]:
        names = self.loss.hyperparameters() if hasattr(self.loss, "hyperparameters") else ()
        return {name: getattr(self.loss, name) for name in names}

    def _live_settings(self) -> dict[str, float]:
        return self._loss_settings() | {name: getattr(self.method, name) for name in self.method.live}

    def _pictures(self, images: Tensor | datasets.ImageSet | datasets.VectorSet) -> Tensor:
        images = _tensor(images)
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


def train(
    method: str = "simclr",
    loss: nn.Module | None = None,
    data: str | datasets.ImageSet | datasets.VectorSet | Tensor = "scenes",
    encoder: str | nn.Module | None = None,
    augmentation: str | Augment | None = None,
    epochs: int | None = None,
    steps: int = 300,
    batch_size: int = 256,
    learning_rate: float | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    precision: str | None = None,
    extra_views: int = 0,
    method_settings: Mapping[str, Any] | None = None,
    optimiser: str = "adamw",
    weight_decay: float | None = None,
    compile: bool = False,
    on_step: Callable[[Run], object] | None = None,
    progress: bool = True,
) -> Run:
    """`Run(...)`, then `run.finish(on_step, progress)`: see there.

    With CLUTILS_FAST=1 in the environment, as the tests have it, it stops after 20 steps and says so.
    """
    run = Run(
        method=method,
        loss=loss,
        data=data,
        encoder=encoder,
        augmentation=augmentation,
        epochs=epochs,
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        precision=precision,
        extra_views=extra_views,
        method_settings=method_settings,
        optimiser=optimiser,
        weight_decay=weight_decay,
        compile=compile,
    )
    if fast() and run.steps > FAST_STEPS:
        print(f"CLUTILS_FAST=1: {FAST_STEPS} steps instead of {run.steps}")
        run.steps = FAST_STEPS
    return run.finish(on_step, progress)


def resume(
    path: str | Path,
    data: str | datasets.ImageSet | datasets.VectorSet | Tensor | None = None,
    encoder: nn.Module | None = None,
    loss: nn.Module | None = None,
    augmentation: Augment | None = None,
    device: str | torch.device | None = None,
    compile: bool | None = None,
) -> Run:
    """The run that `Run.save` wrote, at the step it had reached: `.finish()` goes on, bit for bit on the CPU.

    data, encoder, loss and augmentation are needed where the run was made from such an object and not from a
    name (or, for loss and augmentation, from one of this package's). data may also be the name under
    which the same pictures are found now.

    - compile: None = as the run had it; False, where there is no compiler any more, is the same but for
      rounding

    Raises FileNotFoundError where there is no file; ValueError where it is not a whole checkpoint of a run,
    where one of those objects is missing, or where the pictures are not those that the run learned from.
    """
    state = _read(path)
    kept = state["configuration"]
    given = {"data": data, "encoder": encoder, "loss": loss, "augmentation": augmentation}
    for name, value in given.items():
        if value is None and kept[name] is None:
            raise ValueError(f"resume: {path} was trained with {name} of your own: resume(path, {name}=...)")
    if loss is None:
        loss = losses.catalogue()[kept["loss"]["name"]].loss(**kept["loss"]["settings"])
    if augmentation is None:
        augmentation = (
            views.Augmentation(**kept["augmentation"]) if kept["augmentation"] else views.Identity()
        )
    same = ("method", "steps", "batch_size", "learning_rate", "seed", "precision", "extra_views")
    run = Run(
        data=kept["data"] if data is None else data,
        encoder=kept["encoder"] if encoder is None else encoder,
        loss=loss,
        augmentation=augmentation,
        device=device,
        method_settings=kept.get("method_settings"),
        optimiser=kept.get("optimiser", "adamw"),
        weight_decay=kept.get("weight_decay"),
        compile=kept.get("compile", False) if compile is None else compile,
        **{name: kept[name] for name in same},
    )
    if _fingerprint(run.images) != state["pictures"]:
        shape = tuple(run.images.shape)
        raise ValueError(f"resume: the pictures now given, {shape}, are not those that {path} was trained on")
    try:
        run.method.load_state_dict(state["method"])
        run.optimiser.load_state_dict(state["optimiser"])
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"resume: the weights in {path} do not fit its encoder: {error}") from error
    run.steps_done, run.rows = state["steps_done"], state["history"]
    return run


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
    share = methods.catalogue()[method].rate_share(**method_settings)
    return LEARNING_RATES.get(str(encoder), 1e-3) * share


def default_augmentation(images: Tensor) -> Augment:
    """What suits the pictures (N, C, H, W): SimCLR's for colour; for one channel gentler crops, no mirror.

    A mirrored digit is another one or none, a fifth of one could be any, and grey has only its brightness and
    contrast to jitter. Vectors (N, D) have no augmentation of their own: `views.Identity`.
    """
    if images.ndim == 2:
        return views.Identity()
    size = min(images.shape[-2:])
    if images.shape[1] == 3:
        return views.Augmentation(size=size)
    return views.Augmentation(size=size, crop_scale=(0.5, 1.0), flip=0.0, grayscale=0.0)


def named_augmentation(name: str, images: Tensor) -> Augment:
    """`views.preset(name)` at the pictures' size; for vectors (N, D) 'none' alone, which is `views.Identity`.

    Raises ValueError, listing what there is, on another name.
    """
    if images.ndim != 2:
        return views.preset(name, size=min(images.shape[-2:]))
    if name != "none":
        raise ValueError(
            f"training: augmentation is {name!r}, but vectors {tuple(images.shape)} have only 'none'"
        )
    return views.Identity()


def name_of_augmentation(settings: Mapping[str, Any], shape: Sequence[int] | None = None) -> str:
    """What an augmentation is called: `FITTING`, a preset, or the nearest of these and what differs from it.

    - settings: as `Run.configuration` has them, {} = `views.Identity`
    - shape: of the pictures, (N, C, H, W), or of the vectors, (N, D); None = not known
    """
    if not settings:
        return FITTING if shape is not None and len(shape) == 2 else "identity"
    size = settings["size"] if shape is None else min(shape[-2:])
    known = {name: views.preset(name, size) for name in views.PRESETS}
    if shape is not None:
        known = {FITTING: default_augmentation(torch.empty(0, *shape[1:]))} | known
    others = {name: _changed(asdict(augmentation), settings) for name, augmentation in known.items()}
    nearest = min(others, key=lambda name: len(others[name]))
    changed = ", ".join(
        f"{name.replace('_', ' ')} {_plain(value)}" for name, value in others[nearest].items()
    )
    return f"{nearest} but {changed}" if changed else nearest


def _changed(usual: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What changes a view; a pair is a list in a file."""
    return {
        name: value
        for name, value in settings.items()
        if name != "check_inputs" and _plain(value) != _plain(usual.get(name))
    }


def _plain(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (" to " if len(value) == 2 else " / ").join(map(_plain, value))
    return f"{value:.6g}" if isinstance(value, int | float) else str(value)


def device(name: str | torch.device | None = None) -> torch.device:
    """The device called `name`; None = CUDA where there is one, else the CPU (Apple's "mps" only by name).

    Raises ValueError where this machine has no such device.
    """
    return _device(name)


def fast() -> bool:
    """Whether CLUTILS_FAST=1 asks for short runs."""
    return os.environ.get("CLUTILS_FAST", "") not in ("", "0")


def _device(name: str | torch.device | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"training: device is {name!r}, which this machine does not have: {reason}"
        ) from error
    return found


def _optimiser(name: str, groups: list[dict[str, Any]], weight_decay: float) -> torch.optim.Optimizer:
    if name == "sgd":
        return torch.optim.SGD(groups, lr=1e-3, momentum=MOMENTUM, weight_decay=weight_decay)
    return torch.optim.AdamW(groups, weight_decay=weight_decay)


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


def _loaded(name: str) -> datasets.ImageSet | datasets.VectorSet:
    if name.startswith("vectors:"):
        return datasets.load_vectors(name.removeprefix("vectors:"))
    return datasets.load(name)


def _tensor(data: datasets.ImageSet | datasets.VectorSet | Tensor) -> Tensor:
    return getattr(data, "images", getattr(data, "vectors", data))


def _images(data: datasets.ImageSet | datasets.VectorSet | Tensor, batch_size: int) -> Tensor:
    images = _tensor(data)
    if not isinstance(images, Tensor):
        raise ValueError(
            f"training: data is {data!r}, but must be a name, an ImageSet or a tensor of pictures"
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


def _whole(name: str, value: object, lowest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"training: {name} is {value!r}, but must be a whole number from {lowest} on")
    return value


def _alignment_and_uniformity(z1: Tensor, z2: Tensor) -> tuple[Tensor, Tensor]:
    """`measures.alignment`, and the mean of `measures.uniformity` of both, left on the device."""
    z1, z2 = nn.functional.normalize(z1, dim=1), nn.functional.normalize(z2, dim=1)
    pairs = len(z1) * (len(z1) - 1)
    logs = []
    for z in (z1, z2):
        exponents = (4 * (z @ z.T - 1)).fill_diagonal_(-torch.inf)  # -2 d²
        logs.append(exponents.flatten().logsumexp(dim=0) - math.log(pairs))
    return 2 - 2 * (z1 * z2).sum(dim=1).mean(), (logs[0] + logs[1]) / 2


def _fingerprint(images: Tensor) -> list[int]:
    """The shape of a set and a checksum of (at most) 256 of its pictures, spread over it."""
    some = images[:: max(1, len(images) // 256)].contiguous().cpu().numpy()
    return [*images.shape, zlib.crc32(some)]


def _read(path: str | Path) -> dict[str, Any]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"resume: there is no file {path}")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch itself does not look at the checksums
        if damaged is not None:
            raise zipfile.BadZipFile(f"bad checksum of {damaged}")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (zipfile.BadZipFile, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"resume: {path} is damaged, or no checkpoint of a run: {reason}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise ValueError(f"resume: {path} is not a checkpoint that Run.save wrote ({FORMAT})")
    return state
