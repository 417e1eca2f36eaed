"""A run of so many minutes: one number sets its encoder, its learning rate and its steps."""

from __future__ import annotations

import copy
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import torch

from clutils import data as datasets
from clutils import views
from clutils.settings import within
from clutils.training import devices

if TYPE_CHECKING:
    from clutils.training.run import Run

WIDER = 5.0  # minutes: from there on a CPU trains conv32, which learns more from a step and is slower
LARGE, LARGE_RATE = 1024, 0.6  # images a batch on a GPU, and SGD's learning rate for so many
TRIED = 5  # steps before a step's time counts: the first ones compile, take memory and choose algorithms
SHARE, SECONDS = 0.03, 10.0  # of the time is spent on trying, at most so many seconds


def suiting(
    minutes: float, images: torch.Tensor, device: torch.device, method: str = "simclr"
) -> dict[str, Any]:
    """The settings of `Run` that suit so many minutes; where they name no learning rate, the run has one.

    Images on a CPU: conv16 up to 5 minutes, conv32 from there on. On a GPU: resnet18, compiled where that
    works; with SimCLR, whose recipe `gpu-3min` it is (`benchmarks/recipes.py`), also its batch, by SGD, its
    learning rate, and views of three quarters of the image's side. Batches of larger images are smaller.
    Other samples have one usual encoder.

    - images: (N, C, H, W), or other samples

    Raises ValueError where minutes is no number above 0.
    """
    within("training", "minutes", minutes, 0, open_below=True)
    if datasets.kind_of(images).name != "pictures":
        return {}
    if device.type != "cuda":
        return {"encoder": "conv16" if minutes < WIDER else "conv32"}
    try:
        devices.demand_compiler(device)
        given: dict[str, Any] = {"encoder": "resnet18", "compile": True}
    except ValueError:
        given = {"encoder": "resnet18"}
    if method != "simclr":
        return given
    height, width = images.shape[2:]
    size = min(LARGE, len(images), max(64, LARGE * 32**2 // (height * width)))
    usual = cast(views.Augmentation, views.suiting(images))
    smaller = replace(usual, size=max(1, 3 * usual.size // 4))
    given |= {"batch_size": size, "optimiser": "sgd", "learning_rate": LARGE_RATE * size / LARGE}
    return given | {"augmentation": smaller}


def fit(run: Run, minutes: float, began: float) -> None:
    """Set `run.steps` so that the run ends so many minutes after `began`, if every step takes as long.

    A few steps are tried and undone: the run then begins as one whose number of steps was given.

    - began: seconds of `time.perf_counter`; what has passed since then, compiling included, is in the minutes

    Raises ValueError where the run has begun already.
    """
    within("training", "minutes", minutes, 0, open_below=True)
    if run.steps_done:
        raise ValueError(f"training: minutes is {minutes:g}, but {run.steps_done:,} steps are done already")
    before, whole = copy.deepcopy(run.method.state_dict()), 60 * minutes
    enough, counted = min(SECONDS, SHARE * whole), time.perf_counter()
    given, run.steps = run.steps, 10**6
    try:
        while run.steps_done <= TRIED or time.perf_counter() < counted + enough:
            if run.steps_done == TRIED:
                counted = time.perf_counter()
            run.step()
        a_step = (time.perf_counter() - counted) / (run.steps_done - TRIED)
    finally:
        run.method.load_state_dict(before)
        run.optimiser.state.clear()
        run.scaler = devices.loss_scaler(run.settings, run.device)
        run.rows.clear()
        run.steps_done, run.steps = 0, given
    run.steps = max(1, int((whole - (time.perf_counter() - began)) / a_step))
