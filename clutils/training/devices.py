"""Devices: find one by name; what float16, torch.compile and a run's threads need of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from clutils.training.settings import Settings

DEVICES = ("cpu", "cuda", "mps")


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


def demand_compiler(device: torch.device) -> None:
    """Raise ValueError where torch.compile fails on a function of one line, as without a C++ compiler."""
    try:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device=device))
    except Exception as error:  # torch has no class in common for what may be missing
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(
            f"training: compile is True, but torch.compile does not work here: {reason} "
            "(compile=False trains the same without)"
        ) from error


def loss_scaler(settings: Settings, device: torch.device) -> torch.amp.GradScaler:
    """Multiplies a float16 loss, whose small gradients would be 0; in another precision it does nothing."""
    enabled = settings.precision == "float16"
    return torch.amp.GradScaler(device.type, init_scale=2.0**12, enabled=enabled)


def overflowed(scaler: torch.amp.GradScaler, length: float) -> bool:
    """Whether a gradient of this length is not finite because a float16 loss was scaled too far."""
    # a GPU waits for the scale: it is asked for last
    return not math.isfinite(length) and scaler.is_enabled() and scaler.get_scale() > 1


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Within, torch computes with so many threads in this thread of Python's, and in those that it starts."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
