"""A run's history for TensorBoard or Weights & Biases, a writer each, used only where that is installed.

log = logs.open("tensorboard", run, "runs/mine")
log.write(step, {"loss": 5.0, "rankme": 61.2})
log.close()
"""

from __future__ import annotations

import importlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from clutils.settings import one_of

if TYPE_CHECKING:
    from clutils.training.run import Run

KINDS = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}  # and the module that each needs
WITHOUT = ("step", "seconds")


class Log(NamedTuple):
    """What writes numbers: `write(step, numbers)`, and `close()` at the end."""

    write: Callable[[int, Mapping[str, float]], object]
    close: Callable[[], object]


def demand(kind: str) -> Any:
    """The module that this kind of log needs. Raises ValueError, saying what to install, without it."""
    one_of("training", "log", kind, KINDS)
    try:
        return importlib.import_module(KINDS[kind])
    except ImportError as error:  # it, or what it needs itself
        raise ValueError(f"{kind} is not installed ({error}): pip install {kind}") from None


def open(kind: str, run: Run, folder: str | Path) -> Log:
    """A log of this run in its folder, going on behind the step that the run has reached. Errors as `demand`.

    - kind: "tensorboard" writes events into the folder, and purges those of later steps; "wandb" a run named
      as the folder, offline, unless the environment's WANDB_MODE says otherwise (`wandb sync` sends it
      later); one that is resumed is a further run of the same group
    """
    module, folder, settings = demand(kind), Path(folder), run.configuration
    if kind == "tensorboard":
        done = run.steps_done
        writer = module.SummaryWriter(str(folder), purge_step=done + 1 if done else None)
        writer.add_text("settings", f"```\n{json.dumps(settings, indent=1, default=str)}\n```", done)

        def write(step: int, numbers: Mapping[str, float]) -> None:
            for name, value in finite(numbers).items():
                writer.add_scalar(name, value, step)

        return Log(write, writer.close)
    folder.mkdir(parents=True, exist_ok=True)
    named = {"project": "clutils", "name": folder.name, "group": folder.name}
    mode = os.environ.get("WANDB_MODE", "offline")
    sent = module.init(**named, dir=str(folder), config=settings, mode=mode)
    return Log(lambda step, numbers: sent.log(finite(numbers), step=step), sent.finish)


def writer(kind: str) -> Callable[[Run, Path], None]:
    """For `training.save_run`: what writes the run's whole history for such a log. Errors as `demand`."""
    demand(kind)

    def write(run: Run, folder: Path) -> None:
        log = open(kind, run, folder)
        for row in run.history.to_dict("records"):
            log.write(int(row["step"]), row)
        log.close()

    return write


def finite(numbers: Mapping[str, Any]) -> dict[str, float]:
    """What a chart can show: finite numbers, without the step and the clock."""
    numeric = {k: float(v) for k, v in numbers.items() if isinstance(v, int | float) and k not in WITHOUT}
    return {name: value for name, value in numeric.items() if math.isfinite(value)}
