"""Devices: find one by name; what float16, torch.compile, a run's threads and its memory need of it."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from clutils.training.settings import Settings

DEVICES = ("cpu", "cuda", "mps")

# glibc, the C library of most Linuxes, hands large blocks that are freed back to the system, and the next
# step gets them again page by page: a third of its time on a CPU, where its blocks have 32 MiB or more. MiB:
# a block from which on that is so, and how much may lie free behind the last block in use.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h
IN_A_STEP, ELSEWHERE = (128, 512), (32, 64)  # the latter are what glibc itself comes to after large blocks
LONG = 1.0  # seconds of training, after which it is worth looking for what is free


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
    """True where a gradient norm is not finite because a float16 loss was scaled too far."""
    # a GPU waits for the scale: it is asked for last
    return not math.isfinite(length) and scaler.is_enabled() and scaler.get_scale() > 1


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Context manager: `torch.set_num_threads(number)`, for this thread and those that it starts."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def memory_kept() -> Iterator[None]:
    """Context manager for a step: memory that is freed is kept, for the next step takes as much.

    Elsewhere it would be a danger: blocks of all sizes with small ones between leave holes that fit nothing.
    Nothing happens without glibc, nor where the environment sets these thresholds. In another thread than the
    main one, where glibc keeps 64 MiB at most, it brings little.
    """
    _set_thresholds(*IN_A_STEP)
    try:
        yield
    finally:
        _set_thresholds(ELSEWHERE[0])  # what is free behind the last block stays, until it is given back


def give_back_memory(seconds: float) -> None:
    """Hand back to the system what steps kept that took so many seconds together; if few, most of it."""
    _set_thresholds(*ELSEWHERE)
    if seconds > LONG and (libc := _glibc()):
        libc.malloc_trim(0)  # takes long where there are many small holes


def _set_thresholds(block: int, behind: int | None = None) -> None:
    if libc := _glibc():
        if not libc.mallopt(M_MMAP_THRESHOLD, block << 20):  # glibc before 2.35 takes 32 at most
            libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)
        if behind is not None:
            libc.mallopt(M_TRIM_THRESHOLD, behind << 20)


@cache
def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is glibc and nobody has set its thresholds."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    for name in ("mmap_threshold", "trim_threshold"):
        if f"MALLOC_{name.upper()}_" in os.environ or f"glibc.malloc.{name}" in tunables:
            return None
    try:
        libc = ctypes.CDLL(None)
        return (
            libc if all(map(libc.__getattr__, ("gnu_get_libc_version", "mallopt", "malloc_trim"))) else None
        )
    except (AttributeError, OSError, TypeError):  # macOS or another C library; Windows
        return None
