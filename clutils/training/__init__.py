"""Training: `train` makes a run and takes its steps, `resume` goes on with one that was saved."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from clutils import views
from clutils.data import OWN, SentenceSet, load, sentences
from clutils.training import callbacks, checkpoint, migrations, noise_maps
from clutils.training.devices import device
from clutils.training.run import Run
from clutils.training.saved import Checkpoints, save_run
from clutils.training.schedules import Cosine
from clutils.training.settings import Data, Settings, described, from_plain, usual_rate
from clutils.training.watcher import Watcher, snapshot, watching

__all__ = [
    "FAST_STEPS",
    "Checkpoints",
    "Cosine",
    "Run",
    "Settings",
    "Watcher",
    "callbacks",
    "device",
    "fast",
    "fewer",
    "noise_maps",
    "resume",
    "save_run",
    "shorten",
    "snapshot",
    "train",
    "usual_rate",
    "watching",
]

FAST_STEPS = 10


@described
def train(*settings: Any, callbacks: Iterable[Any] = (), progress: bool = True, **by_name: Any) -> Run:
    """`Run(...)`, then `run.finish(callbacks, progress)`.

    Its arguments are those of `Run`, and two more:

    {settings}
    - callbacks: what acts before, between and after the steps, as in `Run.finish`
    - progress: show a bar with the loss and its chance level, where it has one, on stdout

    With CLUTILS_FAST=1 in the environment, as the tests have it, it stops after 10 steps and says so.
    """
    run = Run(*settings, **by_name)
    if shorter := shorten(run):
        print(shorter)
    return run.finish(callbacks, progress)


def resume(
    path: str | Path,
    data: Data | None = None,
    encoder: nn.Module | None = None,
    loss: nn.Module | None = None,
    augmentation: views.Augment | None = None,
    device: str | None = None,
    compile: bool | None = None,
) -> Run:
    """The run that `Run.save` or `save_run` wrote, at the step it had reached.

    `.finish()` goes on, bit for bit on the CPU.

    data, encoder, loss and augmentation are needed where the run was made from such an object of your own and
    not from a name; data may also be the name under which the same images are found now.

    - compile: None = as the run had it; False, where there is no compiler any more, is the same except for
      rounding

    Raises FileNotFoundError where there is no file; ValueError where it is not a whole checkpoint of a run,
    where one of those objects is missing, or where images, labels or class names are not those that the run
    learned from.
    """
    state = checkpoint.read(path)
    given: dict[str, Any] = {"data": data, "encoder": encoder, "loss": loss, "augmentation": augmentation}
    with checkpoint.damage_said(path):
        settings = from_plain(migrations.of_settings(state["configuration"]))
    for name, value in given.items():
        if value is None and name not in settings:
            raise ValueError(
                f"resume: {path} was trained with {name} given as an object: resume(path, {name}=...)"
            )
    given |= {"compile": compile, "device": device}
    made = settings | {name: value for name, value in given.items() if value is not None}
    with _version_said(made["data"]):
        run = Run(**made)
    otherwise = checkpoint.sampled(run.images) != state["pictures"]
    if otherwise and isinstance(run.data, SentenceSet) and state["words"] != run.data.rule:
        by_rule = sentences.by_rule(run.data, state["words"])
        vars(run).update(data=by_rule, images=by_rule.inputs.to(run.device))
    if otherwise and str(made["data"]).startswith("folder:") and len(set(state["pictures"][2:4])) == 1:
        again = load(made["data"], size=state["pictures"][2])  # one tiny image once made all as small
        vars(run).update(data=again, images=again.inputs.to(run.device))
    if not state["distinct"]:
        vars(run).update(distinct=None)
    with checkpoint.damage_said(path), _version_said(made["data"]):
        checkpoint.demand_same_data(run, state, path)
    with checkpoint.damage_said(path):
        _take_up(run, state, path)
    return run


@contextmanager
def _version_said(data: Any) -> Iterator[None]:
    """Name the version that reads a reader's own file as before, in a ValueError about its data."""
    try:
        yield
    except ValueError as error:
        if not isinstance(data, str) or not data.startswith(OWN[1:]):
            raise
        raise ValueError(f"{error}; commit 4d9e61c reads {data} as before pandas did") from error


def _take_up(run: Run, state: Mapping[str, Any], path: str | Path) -> None:
    """Give a run the weights and the past of a checkpoint."""
    try:
        run.method.load_state_dict(state["method"])
        for group, own in zip(state["optimiser"]["param_groups"], run.optimiser.param_groups, strict=False):
            group["fused"] = own["fused"]  # as suits this device, whatever the run began on
        run.optimiser.load_state_dict(state["optimiser"])
        for weight, kept in run.optimiser.state.items():
            moments = [value for value in kept.values() if isinstance(value, Tensor) and value.ndim]
            if any(value.shape != weight.shape for value in moments):
                raise ValueError("its optimiser is of other weights")
        if run.scaler.is_enabled() and state.get("scaler"):
            run.scaler.load_state_dict(state["scaler"])
    except (RuntimeError, ValueError) as error:
        raise ValueError(f"resume: the weights in {path} do not fit its encoder: {error}") from error
    run.steps_done = run.resumed_at_step = state["steps_done"]
    run.rows = state["history"]
    run.looks = state["looks"]
    run.schedules = {name: Cosine(**kept) for name, kept in state["schedules"].items()}


def fast() -> bool:
    """True where CLUTILS_FAST=1 asks for short runs."""
    return os.environ.get("CLUTILS_FAST", "") not in ("", "0")


def fewer(steps: int) -> int:
    """That many steps; with CLUTILS_FAST=1 at most 10."""
    return min(steps, FAST_STEPS) if fast() else steps


def shorten(run: Run) -> str:
    """With CLUTILS_FAST=1 let a run end after 10 steps; returns what to say of it, "" where nothing is."""
    if not fast() or run.steps <= FAST_STEPS:
        return ""
    said, run.steps = f"CLUTILS_FAST=1: {FAST_STEPS} steps instead of {run.steps:,}", FAST_STEPS
    return said
