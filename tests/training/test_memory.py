"""glibc keeps the memory of a step for the next one and gives it back afterwards: pages handed out anew."""

import contextlib
import os
import platform
import subprocess
import sys

import pytest

from clutils.training import devices
from clutils.training.background import Background
from tests.runs import small

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or devices._glibc() is None,
    reason="not with glibc's own thresholds, so memory is left as it is",
)

CODE = """
import ctypes, resource
from clutils.training import devices

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() >> 20


def stays():
    "MiB that are still the process's own after four blocks of 24 MiB were taken and freed"
    blocks = [libc.malloc(24 << 20) for _ in range(4)]
    for block in blocks:
        ctypes.memset(block, 1, 24 << 20)
    for block in blocks:
        libc.free(block)
    return resident() - before


before = resident()
found = [stays()]
with devices.memory_kept():
    found.append(stays())
found.append(resident() - before)
devices.give_back_memory(2)
found += [resident() - before, stays()]
for seconds in (2, 0):
    with devices.memory_kept():
        stays()
    devices.give_back_memory(seconds)
    found.append(stays())
print(*found)
"""


def stays(**variables: str) -> list[str]:
    """Of 96 MiB: before, within, after, given back, later, after steps that took long, and that did not."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=own | variables, capture_output=True, text=True, check=True
    )
    return ["kept" if int(number) > 48 else "gone" for number in done.stdout.split()]


def test_memory_stays_within_and_is_given_back_after():
    assert stays() == ["gone", "kept", "kept", "gone", "gone", "gone", "gone"]


def test_thresholds_of_the_user_s_own_are_left_alone():
    assert stays(MALLOC_TRIM_THRESHOLD_="131072") == ["gone"] * 7


class Libc:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def mallopt(self, which: int, number: int) -> int:
        self.told.append((which, number >> 20))
        return 1

    def malloc_trim(self, pad: int) -> int:
        self.told.append("trim")
        return 1


STEP, AFTER = [(-3, 128), (-1, 512), (-3, 32)], [(-3, 32), (-1, 64)]


@pytest.fixture
def libc(monkeypatch) -> Libc:
    libc = Libc()
    monkeypatch.setattr(devices, "_glibc", lambda: libc)
    return libc


def test_each_step_keeps_memory_and_the_last_gives_it_back(libc):
    run = small(steps=2)
    run.step()
    assert libc.told == STEP
    run.step()
    assert libc.told == [*STEP, *STEP, *AFTER]


def test_however_a_run_ends_it_gives_back(libc, monkeypatch):
    monkeypatch.setattr(devices, "LONG", 0)
    for raised in (ZeroDivisionError, KeyboardInterrupt):

        def on_step(run: object, raised: type[BaseException] = raised) -> None:
            raise raised

        libc.told.clear()
        with pytest.raises(ZeroDivisionError) if raised is ZeroDivisionError else contextlib.nullcontext():
            small(steps=3).finish([on_step], progress=False)
        assert libc.told == [*STEP, *AFTER, "trim"]
    for steps in (1, 3):  # one that is done, and one that fails
        libc.told.clear()
        background = Background(small(steps=steps), callbacks=[lambda run: run.done or 1 / 0]).start()
        with pytest.raises(ZeroDivisionError) if steps > 1 else contextlib.nullcontext():
            background.wait()
        assert libc.told == [*STEP, *AFTER, "trim"]
