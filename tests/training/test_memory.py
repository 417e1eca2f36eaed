"""glibc keeps the memory of a step for the next one and gives it back afterwards: pages handed out anew."""

import gc
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

KEPT = ["kept", "kept", "anew", "anew", "kept"]
CODE = """
import ctypes, resource
from clutils.training import devices

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]


def handed_out():
    "MiB that the system hands out for four blocks of 24 MiB, which are freed"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [libc.malloc(24 << 20) for _ in range(4)]
    for block in blocks:
        ctypes.memset(block, 1, 24 << 20)
    for block in blocks:
        libc.free(block)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) * resource.getpagesize() >> 20


handed_out()
with devices.memory_kept():
    handed_out()
    for _ in range(3):
        with devices.memory_kept():
            inside = handed_out()
    still = handed_out()
after, again = handed_out(), handed_out()
for _ in range(3):
    with devices.memory_kept(give_back=False):
        in_single_steps = handed_out()
print(inside, still, after, again, in_single_steps)
"""


def handed_out(**variables: str) -> list[str]:
    "within (twice), after (twice) and in single steps: whether the system hands out the memory anew"
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE], env=own | variables, capture_output=True, text=True, check=True
    )
    return ["anew" if int(number) > 48 else "kept" for number in done.stdout.split()]


def test_memory_is_kept_within_and_given_back_after():
    assert handed_out() == KEPT


def test_thresholds_of_the_user_s_own_are_left_alone(monkeypatch):
    assert handed_out(MALLOC_TRIM_THRESHOLD_="131072") == ["anew"] * 5
    found = devices._glibc.__wrapped__  # looked at once a process otherwise
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=0:glibc.rtld.optional_static_tls=16384")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "2")
    assert found() is not None  # others don't count
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=0:glibc.malloc.mmap_threshold=1048576")
    assert found() is None


def test_a_glibc_that_takes_no_more_than_32_MiB_gets_that(monkeypatch):
    given = []

    class Old:
        def mallopt(self, which: int, number: int) -> int:
            taken = which != devices.M_MMAP_THRESHOLD or number <= 2**25
            given.extend([(which, number >> 20)] if taken else [])
            return int(taken)

        def malloc_trim(self, pad: int) -> int:
            return given.append("back") or 1

    monkeypatch.setattr(devices, "_glibc", Old)
    with devices.memory_kept():
        pass
    assert given == [(-3, 32), (-1, 512), (-3, 32), (-3, 32), (-1, 64), "back"]


def test_without_glibc_nothing_happens(monkeypatch):
    for error in (AttributeError, OSError, TypeError):  # another C library, macOS; Windows

        def refuse(*_: object, error: type[Exception] = error) -> None:
            raise error

        devices._glibc.cache_clear()
        monkeypatch.setattr(devices.ctypes, "CDLL", refuse)
        with devices.memory_kept():
            assert devices._glibc() is None
    devices._glibc.cache_clear()


def test_a_run_that_goes_gives_back_what_its_single_steps_kept(monkeypatch):
    given = []
    run, other = small(steps=3), small(steps=3)
    run.step()
    monkeypatch.setattr(devices, "give_back_memory", lambda: given.append("back"))
    kept = small(steps=3)
    kept.step()
    assert given == []
    del kept
    gc.collect()
    assert given == ["back"] and other.step()


def test_a_run_keeps_it_while_it_trains_and_no_longer_however_it_ends():
    seen = []
    run = small(steps=3)
    run.finish(lambda _: seen.append(devices._within), progress=False)
    assert seen == [1, 1, 1] and devices._within == 0
    run = small(steps=3)
    with pytest.raises(ZeroDivisionError):
        run.finish(lambda _: 1 / 0, progress=False)
    assert devices._within == 0
    background = Background(small(steps=2), on_step=lambda _: seen.append(devices._within)).start()
    background.wait()
    assert seen[3:] == [1, 1] and devices._within == 0
