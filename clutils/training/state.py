"""The state of a run: what it is made of, what may change while it trains, what its next step takes."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from clutils import data as datasets
from clutils import encoders, losses, methods, views
from clutils.data.kinds import said
from clutils.data.sets import check_edges
from clutils.methods.base import learned_by
from clutils.settings import did_you_mean, one_of
from clutils.training import devices, optimisers, streams
from clutils.training.schedules import Cosine
from clutils.training.settings import (
    PRECISIONS,
    STEPS,
    Settings,
    check_rate,
    names,
    own_column,
    plain,
    shortened,
)

MOMENTUM = 0.9  # of SGD
WARM_UP = 0.05  # share of the steps in which the learning rate rises


class RunState:
    """Settings, samples, method and optimiser of a run, and how far it is. Arguments as those of `Run`."""

    def __init__(self, *settings: Any, **by_name: Any) -> None:
        for name in by_name:
            if name not in names():
                hint = did_you_mean(name, names(), listed=True)
                own = (
                    f"; settings of a method go into method_settings={{{name!r}: {shortened(by_name[name])}}}"
                )
                if any(name in entry.cls.ranges for entry in losses.catalogue().values()):
                    own = f"; settings of a loss go into it: loss=losses.NTXent({name}=...)"
                raise TypeError(f"training: there is no setting {name!r}{hint}{own}")
        given = Settings(*settings, **by_name)
        self.device = devices.device(given.device)
        self.data = datasets.load(given.data) if isinstance(given.data, str) else given.data
        self.images = _inputs(self.data, given.batch_size).to(self.device)
        labels: Tensor | None = getattr(self.data, "labels", None)
        self.labels = None if labels is None else labels.to(self.device)
        self.kind = datasets.kind_of(self.images)
        self.distinct = _distinct(self.images) if self.kind.name == "sentences" else None
        self.settings = given.fitted(self.images[slice(self.differing)], self.device)  # as many as differ
        fitted: Any = self.settings  # nothing in it is None
        self.augmentation, self.steps = fitted.augmentation, fitted.steps
        self.batch_size: int = fitted.batch_size
        self.learning_rate: float = fitted.learning_rate
        with streams.Drawing(streams.seed(given.seed, "weights")):  # the caller's stay as they were
            self.method = self._built().to(self.device).to(memory_format=torch.channels_last)
        self.optimiser = _optimiser(self.settings, self.method, self.device)
        self._learn_with_the_loss()
        if given.compile:
            devices.demand_compiler(self.device)
        if self.device.type == "cuda":
            torch.backends.cudnn.benchmark = True  # batches have one size
        self.steps_done = self.resumed_at_step = 0
        self.rows: list[dict[str, float]] = []
        self.looks: dict[int, dict[str, float]] = {}  # step -> numbers by name, which the history has too
        self.schedules: dict[str, Cosine] = {}  # of live settings, by name
        self._order: tuple[int, Tensor] | None = None  # an epoch, and the order of its images
        self._graphs: bool | None = None  # compiled as CUDA graphs; None = not compiled yet
        self.data_fingerprint: dict[str, Any] | None = None  # see `checkpoint`
        self.scaler = devices.loss_scaler(self.settings, self.device)
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if "_made" in vars(self):
            self._demand_own(name, value)
        super().__setattr__(name, value)

    def _demand_own(self, name: str, value: Any) -> None:
        """Raise AttributeError, saying what to type, on what a run does not have or can't change."""
        live = {
            live: f"run.{'loss' if of is self.loss else 'method'}.{live}" for live, of in self.live().items()
        }
        del live["learning_rate"]
        ours, own, said = getattr(type(self), name, None), self.method.setting_names(), shortened(value)
        if isinstance(value, torch.optim.Optimizer):
            own_rate = "run.optimiser.state.clear() clears its averages, run.learning_rate sets its rate"
            raise AttributeError(f"training: a run keeps its optimiser; {own_rate}")
        if name in ("images", "labels"):
            raise AttributeError(
                f"training: {name} are fixed when a run is made; type training.Run(data=...)"
            )
        if name in ("stop", "done"):
            raise AttributeError("training: a run ends early by run.steps = run.steps_done")
        if name in live:
            raise AttributeError(f"training: a run has no {name!r}; type {live[name]} = {said}")
        if name in (*names(), *own) and name != "learning_rate" and getattr(ours, "fset", None) is None:
            given = f"method_settings={{{name!r}: {said}}}" if name in own else f"{name}={said}"
            raise AttributeError(f"training: {name} is fixed when a run is made; type training.Run({given})")
        if name not in vars(self) and ours is None:
            known = [word for word in (*vars(self), *dir(type(self))) if not word.startswith("_")]
            hint = did_you_mean(name, [*known, *live.values()])
            raise AttributeError(f"training: a run has no {name!r}{hint}")

    def _built(self) -> methods.Method:
        """The method, its encoder and its head, with fresh weights."""
        given, encoder, own = self.settings, self.settings.encoder, self.kind.name
        cls = methods.catalogue()[given.method].cls
        if own not in cls.sample_kinds:
            fitting = ", ".join(methods.catalogue(own))
            default = "the default, " if given.method == Settings.method else ""
            takes = f"{default}which works on {' and '.join(map(said, cls.sample_kinds))}"
            raise ValueError(
                f"training: method is {given.method!r}, {takes}, but the data are {self.kind}: "
                f"choose {fitting}"
            )
        if isinstance(encoder, str):
            if encoders.NAMES.get(encoder, own) != own:
                fitting = ", ".join(name for name, of in encoders.NAMES.items() if of == own)
                right = f"one for {self.kind} {self.kind.shape}: {fitting}"
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
            few = f"{without:,} of {len(self.images):,} {self.kind}"
            raise ValueError(f"training: {given.method} learns from labels, but {few} have none")
        method.check_batch(self.batch_size)
        method.extra_views = given.extra_views
        method.allocate(len(self.images))
        return method

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
        groups = getattr(self.data, "groups", ())
        if isinstance(augmentation, views.vectors.Corruption) and groups and not augmentation.groups:
            augmentation = replace(augmentation, groups=groups)
        if not callable(augmentation):
            raise ValueError(f"training: augmentation is {augmentation!r}, but must be a name or a function")
        own = self.kind.name
        its = own if views.settings_of(augmentation) is None else getattr(augmentation, "kind", own)
        if its != own:
            raise ValueError(
                f"training: augmentation is {type(augmentation).__name__}, for {said(its)}, but must be one "
                f"for {self.kind}: {', '.join(views.names(own))}"
            )
        self._augmentation = augmentation
        self._ahead: views.Ahead | None = None
        if self.device.type == "cuda" and type(augmentation) is views.Augmentation:
            self._ahead = views.Ahead(augmentation, self.settings.compile)

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

    def live(self) -> dict[str, Any]:
        """Settings that may be changed while it trains -> what has them: the loss, the method, or the run."""
        of_loss: tuple[str, ...] = getattr(self.loss, "hyperparameters", tuple)()
        found = dict.fromkeys(of_loss, self.loss) | dict.fromkeys(self.method.live, self.method)
        return found | {"learning_rate": self}

    def live_settings(self) -> dict[str, Any]:
        """The values of `live`, without the learning rate, as the history has them, by `own_column`."""
        return plain(
            {own_column(name): getattr(of, name) for name, of in self.live().items() if of is not self}
        )

    def compile_networks(self) -> None:
        """Compile them for this thread, where the settings say so; on a GPU also as CUDA graphs.

        One call then launches all of a network's kernels. Before torch 2.14 the main thread alone has them.
        """
        if not self.settings.compile:
            return
        main = threading.current_thread() is threading.main_thread()
        graphs = main and self.device.type == "cuda"
        if graphs:
            torch.compiler.cudagraph_mark_step_begin()
        if graphs != self._graphs:
            self._graphs = graphs
            for network in self.method.networks():  # in place: names in its state_dict stay what they are
                network.compile(mode="reduce-overhead" if graphs else None)

    # ---- what the next step takes ------------------------------------------------------------------------

    def batch_index(self) -> Tensor:
        """(B,) the numbers of the images that the next step takes: its part of this epoch's order."""
        epoch, part = divmod(self.steps_done, self.steps_an_epoch)
        if self._order is None or self._order[0] != epoch:
            drawn = torch.randperm(len(self.images), generator=self.stream("order", number=epoch))
            if self.distinct is not None:
                drawn = drawn[self.distinct[drawn]]
                if len(drawn) < self.batch_size:
                    few = f"of {len(self.images):,} sentences only {len(drawn):,} differ"
                    raise ValueError(f"training: batch_size is {self.batch_size}, but {few}")
            if self.device.type == "cuda":
                drawn = drawn.pin_memory()
            self._order = epoch, drawn.to(self.device, non_blocking=True)
        return self._order[1][part * self.batch_size : (part + 1) * self.batch_size]

    @property
    def steps_an_epoch(self) -> int:
        """Whole batches in the samples that a run learns from; of a network, all of it is one."""
        return max(1, self.differing // self.batch_size)

    @property
    def differing(self) -> int:
        """How many samples a run learns from: all, but of equal sentences only the first."""
        return len(self.images) if self.distinct is None else int(self.distinct.sum())

    @property
    def augment(self) -> views.Augment:
        """Augmentation of a step, on a GPU with random numbers that were drawn ahead."""
        return self._ahead or self._augmentation

    def draw_ahead(self) -> None:
        """On a GPU draw the numbers of the next step's views, while it works on this one."""
        if self._ahead is not None:
            self._ahead.draw(self.stream("views", number=self.steps_done + 1), self.device)

    def stream(
        self, name: str, device: torch.device | None = None, number: int | None = None
    ) -> torch.Generator:
        """The random numbers of this name for the next step, or of another number; on a GPU if asked."""
        number = self.steps_done if number is None else number
        return streams.of(self.settings.seed, name, number, device)

    def follow_settings(self) -> float:
        """Take up for the next step what follows it or was changed since the last; returns its learning rate.

        That rises over a twentieth of the steps, and falls as half a cosine.
        """
        live = self.live() if self.schedules else {}
        for name, schedule in self.schedules.items():
            one_of("schedules", "a live setting", name, live)
            setattr(live[name], name, schedule(self.steps_done))
        self._learn_with_the_loss()
        check_rate(self.learning_rate)
        rate, rising = float(self.learning_rate), max(1, round(WARM_UP * self.steps))
        if self.steps_done < rising:
            return rate * (self.steps_done + 1) / rising
        return rate * (1 + math.cos(math.pi * (self.steps_done - rising) / (self.steps - rising))) / 2

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


def _optimiser(settings: Settings, method: methods.Method, device: torch.device) -> torch.optim.Optimizer:
    groups = method.parameter_groups()
    fused = True if device.type == "cuda" else None
    given: dict[str, Any] = {"weight_decay": settings.weight_decay, "fused": fused}
    if settings.optimiser == "sgd":
        return optimisers.SGD(groups, lr=1e-3, momentum=MOMENTUM, **given)
    return optimisers.AdamW(groups, **given)


def _distinct(sentences: Tensor) -> Tensor | None:
    """(N,) bool: the first of equal rows; None where all differ. In one batch they would be negatives."""
    _, first = np.unique(sentences.cpu().numpy(), axis=0, return_index=True)
    found = torch.zeros(len(sentences), dtype=torch.bool)
    found[torch.from_numpy(first)] = True
    return None if bool(found.all()) else found


def _inputs(data: Any, batch_size: int | None) -> Tensor:
    images = getattr(data, "inputs", data)
    if not isinstance(images, Tensor):
        raise ValueError(
            f"training: data is {shortened(data)}, but must be a name, a set of `data.load` or a tensor; "
            "data.vector_set(table) makes one, data.graph_set(graphs) makes one of graphs, "
            "data.sentence_set of texts"
        )
    kind = datasets.kind_of(images, "training: data")
    if images.dtype != kind.dtype:
        what = f"{tuple(images.shape)} {images.dtype}"
        raise ValueError(f"training: data is {what}, but {kind} must be {kind.dtype}")
    if kind.name in ("graphs", "nodes"):
        check_edges(images, "training: data")
    if len(images) < (batch_size or 2) and kind.name != "nodes":
        raise ValueError(
            f"training: batch_size is {batch_size or 2}, but the data has only {len(images)} {kind}"
        )
    return images
