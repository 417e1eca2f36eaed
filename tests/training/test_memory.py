"""glibc keeps the memory of a step for the next one and gives it back afterwards: pages handed out anew."""

import contextlib
import os
import platform
import subprocess
import sys

import pytest

from clutils.course.lab.background import Background
from clutils.training import devices
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


def fails(raised: type[BaseException]):
    def on_step(run: object) -> None:
        raise raised

    return on_step


ENDS = {
    "its last step": lambda: small(steps=1).step(),
    "an error": lambda: small(steps=3).finish([fails(ZeroDivisionError)], progress=False),
    "an interrupt": lambda: small(steps=3).finish([fails(KeyboardInterrupt)], progress=False),
    "the background's end": lambda: Background(small(steps=1)).start().wait(),
    "an error in the background": lambda: (
        Background(small(steps=3), [fails(ZeroDivisionError)]).start().wait()
    ),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_step_keeps_memory_and_however_a_run_ends_it_gives_it_back_once(how, monkeypatch):
    told = []
    monkeypatch.setattr(devices, "_set_thresholds", lambda *given: told.append(given))
    monkeypatch.setattr(devices, "give_back_memory", lambda seconds: told.append(seconds > 0))
    small(steps=2).step()
    assert told == [devices.IN_A_STEP, devices.ELSEWHERE[:1]]
    with contextlib.suppress(ZeroDivisionError):
        ENDS[how]()
    assert told[2:] == [devices.IN_A_STEP, devices.ELSEWHERE[:1], True]
