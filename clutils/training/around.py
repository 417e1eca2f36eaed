"""Random numbers of a step, and the way back where it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from clutils import encoders, processes
from clutils.training import devices
from clutils.training.state import RunState


@contextmanager
def undone_on_failure(run: RunState, buffers: Sequence[Tensor]) -> Iterator[None]:
    """Context manager for computing a step: where that fails, these buffers and the loss scale are put back.

    Weights do not change within. A ValueError is raised again with the step and the settings that it had.
    """
    before = _copies(buffers)
    try:
        yield
    except BaseException as error:
        for buffer, kept in zip(buffers, before, strict=True):
            buffer.copy_(kept)
        scale = run.scaler.state_dict()
        run.scaler = devices.loss_scaler(run.settings, run.device)  # the old one would not unscale again
        run.scaler.load_state_dict(scale)
        if not isinstance(error, ValueError):
            raise
        demand_finite_weights(run)
        raise ValueError(
            f"training: step {run.steps_done + 1:,} was not taken, the weights from before it are kept: "
            f"{error} (with {_settings(run)})"
        ) from error


def demand_finite_weights(run: RunState) -> None:
    """Raise ValueError where a step has left weights or batch statistics that are not finite."""
    networks = nn.ModuleList([run.method.encoder, run.method.head])  # a state per sample may be infinite
    if not all(bool(of.isfinite().all()) for of in (*run.method.parameters(), *networks.buffers())):
        raise ValueError(
            f"training: weights are not finite after step {run.steps_done:,} (with {_settings(run)}): "
            "a lower learning_rate trains"
        )


def _settings(run: RunState) -> str:
    settings = {"learning_rate": run.learning_rate, **run.live_settings()}
    return ", ".join(f"{name} = {value}" for name, value in settings.items())


def _copies(buffers: Sequence[Tensor]) -> list[Tensor]:
    """One of each, by one launch a type on a GPU."""
    copies = [torch.empty_like(buffer) for buffer in buffers]
    for dtype in {buffer.dtype for buffer in buffers}:
        alike = [n for n, buffer in enumerate(buffers) if buffer.dtype == dtype]
        torch._foreach_copy_([copies[n] for n in alike], [buffers[n] for n in alike])
    return copies


@contextmanager
def drawing(run: RunState) -> Iterator[None]:
    """Context manager: loss and dropout draw from the step's streams; a process has its own for dropout.

    On a GPU the loss does not look at what it is given, and wait: the check is that all ends finite.
    """
    on_gpu, loss = run.device.type == "cuda", cast(Any, run.loss)
    if hasattr(loss, "generator"):  # one that draws: SSCL, MoCHi
        loss.generator = run.stream("mixes", run.device)
    looking: list[Any] = [p for p in loss.modules() if on_gpu and getattr(p, "check_inputs", False)]
    layers = [part for part in run.method.modules() if isinstance(part, encoders.Dropout)]
    if layers:
        number = run.steps_done * processes.number() + processes.rank()
        stream = run.stream("dropout", run.device, number)
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
