"""A training run: `Run.step()` is one step; `train`, panels and the command line are built on it.

Each random stream (first weights, order of the images, views, what a loss draws, dropout) is seeded by (seed,
stream, step); the order has the epoch in place of the step. So a run resumed from its weights, the
optimiser's state and its step is bit-identical.

On a GPU a seed gives the first weights, the order and the views that it gives on a CPU; noise and mixes that
methods and losses draw are other numbers. Sums are not the same to the last bit, and convolutions in float32
take cuDNN's default, TF32. In one process and uncompiled, the processor waits for a GPU once a step.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, files, views
from clutils.methods.base import autocast, several_views
from clutils.training import checkpoint, devices
from clutils.training.around import demand_finite_weights
from clutils.training.callbacks import Progress, begun_and_ended, checked
from clutils.training.settings import COLUMNS, described
from clutils.training.state import RunState
from clutils.training.step import step

if TYPE_CHECKING:
    import pandas as pd


@described
class Run(RunState):
    """One training run: its settings, its weights, and the history of the steps it has done.

    Its arguments are the fields of `Settings`, by name or in their order:

    {settings}

    `run.settings` has them as they were given, each None replaced by what suits the images.
    `run.loss.temperature = 0.5` takes effect at the next step, and the history says so; likewise every other
    setting of the loss, those settings of `run.method` that it lists as `live`, and `run.loss`,
    `run.augmentation`, `run.learning_rate` and `run.steps` themselves. One may follow the step:
    `run.schedules["temperature"] = training.Cosine(0.1, 1.0, period=400)`, which checkpoints keep.
    Raises ValueError, quoting what came in, on settings that do not fit; AttributeError, saying what to type,
    where an attribute is set that a run does not have, or that is fixed.
    """

    _trains: ClassVar[Run | None] = None  # the run that trains in this process
    _claiming: ClassVar[threading.Lock] = threading.Lock()

    # ---- the loop --------------------------------------------------------------------------------------

    def step(self) -> dict[str, float]:
        """One step; returns the row that it adds to the history.

        Raises ValueError, naming the step and the settings, where the loss or its gradient is not finite or a
        setting is out of range: then weights, buffers and history are as they were before that step.
        """
        if self.done:
            raise ValueError(f"training: all {self.steps:,} steps are done; set run.steps higher to go on")
        with devices.threads(cast(int, self.settings.threads)), devices.memory_kept():
            row = step(self)
        if self.done:
            self.give_back_memory()
        return row

    def give_back_memory(self) -> None:
        """Hand back to the system what the steps kept; a run that is done has done so."""
        devices.give_back_memory(self.rows[-1]["seconds"] if self.rows else 0.0)

    @property
    def done(self) -> bool:
        return self.steps_done >= self.steps

    def finish(self, callbacks: Iterable[Any] = (), progress: bool = True) -> Run:
        """Step until done; returns the run. A keyboard interrupt stops it and keeps what was learned.

        - callbacks: objects with `before_run`, `after_step` or `after_run` (see `training.callbacks`), or
          functions that are called with the run after each step; in this order
        - progress: show a bar with the loss and its chance level, where it has one, on stdout

        Raises ValueError while another run trains in this process, and for an object that is not a callback.
        """
        every, gradients = [*checked(callbacks), Progress(progress)], torch.is_grad_enabled()
        with self.alone(), begun_and_ended(every, self):
            try:
                while not self.done:
                    self.step()
                    for callback in every:
                        callback.after_step(self)
            except KeyboardInterrupt:
                torch.set_grad_enabled(gradients)  # it may have come where torch switches them back on
            finally:
                if not self.done:  # else its last step did
                    self.give_back_memory()
        return self

    def equal_views(self) -> str:
        """A sentence that says so where the two views of each sample, or all samples, are equal; else "".

        Looked at in the next batch. Equal views are no fault where the method changes them itself or learns
        from labels, or where dropout does.
        """
        first, last, number = self.images[0], self.images[-1], len(self.images)
        if number > 1 and torch.equal(first, last) and bool((self.images == first).all()):
            return f"all {number:,} {self.kind} are the same, so only their views can differ"
        dropout = any(isinstance(part, encoders.Dropout | nn.Dropout) for part in self.method.modules())
        if self.method.varies or self.method.uses_labels or dropout:
            return ""
        images, draw = self.images[self.batch_index()], self.stream("views")
        with torch.random.fork_rng(devices=[]):  # an augmentation of one's own may draw by torch
            first, second, *_ = several_views(self.augmentation, images, draw)
        if not torch.equal(first, second):
            return ""
        others = ", ".join(name for name in views.names(self.kind.name) if name != "none")
        return (
            "the two views of each sample are equal, so alignment is 0 and samples are only pushed apart; "
            f"augmentations for {self.kind}: {others}"
        )

    # ---- what it has learned ---------------------------------------------------------------------------

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

        Raises ValueError on images of more or fewer channels than the run's own, and as `encoders.embed`.
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

        Raises OSError on a full disk; ValueError where weights are not finite.
        """
        demand_finite_weights(self)
        state = {
            "format": checkpoint.FORMAT,
            "configuration": self.configuration,
            "pictures": checkpoint.sampled(self.images),
            "words": getattr(self.data, "rule", None),  # by which a sentence's were found
            "distinct": self.distinct is not None,  # whether equal sentences are taken once
            "fingerprint": checkpoint.fingerprint(self),
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
        """Context manager: the one run that trains in this process. ValueError while another trains."""
        with Run._claiming:
            self.check_free()
            Run._trains = self
        try:
            yield
        finally:
            Run._trains = None

    # ---- inside ----------------------------------------------------------------------------------------

    def _embedded(self, network: nn.Module, images: Tensor | datasets.ImageSet) -> Tensor:
        half = self.method.half_type if self.device.type == "cuda" else None
        inputs: Any = getattr(images, "inputs", images)
        if isinstance(inputs, Tensor):
            kind, channels, came = self.kind, datasets.width(self.images), tuple(inputs.shape)
            no_words = kind.dtype == torch.int64 and inputs.is_floating_point()
            if inputs.ndim != self.images.ndim or no_words:
                what = f"{came} {inputs.dtype}"
                raise ValueError(f"embed: the tensor is {what}, but must be the run's {kind} {kind.shape}")
            if datasets.width(inputs) != channels:
                raise ValueError(f"embed: the {kind} are {came}, but the run's have {channels} {kind.parts}")
        # not compiled, which it would be again for each new shape and mode
        eager = torch.compiler.set_stance("force_eager") if self.settings.compile else nullcontext()
        with eager, autocast(self.device, half):
            return encoders.embed(network, inputs)
