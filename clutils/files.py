"""Atomic file writes: temporary file, fsync, rename."""

import contextlib
import glob
import io
import os
from collections.abc import Callable
from pathlib import Path


def write_atomically(
    path: str | Path, content: bytes | memoryview | str | Callable[[io.BytesIO], object]
) -> None:
    """Write a file, in UTF-8 where it is text; one already there is replaced at once and whole, or kept.

    - content: or what writes it into a file that it is called with, as functools.partial(torch.save, state)

    It is written beside, as `.NAME.PROCESS.part`, and renamed when it is on the disk. What an earlier writer
    left there when it was killed is removed. Raises OSError, naming the file, where it can't be written.
    """
    path = Path(path)
    if callable(content):  # in memory first: what can't be written is none of the disk's errors
        content(written := io.BytesIO())
        content = written.getbuffer()
    if isinstance(content, str):
        content = content.encode()
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear(path)
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the old one goes
        os.replace(beside, path)
    except OSError as error:
        what = f"{error.strerror or error} (what was there before is kept)"
        raise OSError(error.errno, what, str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # what hindered the writing is the error to tell
            beside.unlink(missing_ok=True)


def _clear(path: Path) -> None:
    """Remove what writers of this file left beside it that are no more."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        process = left.name.removesuffix(".part").rpartition(".")[2]
        if process.isdecimal() and not _alive(int(process)):
            with contextlib.suppress(OSError):
                left.unlink()


def _alive(process: int) -> bool:
    if os.name == "nt":  # there signal 0 is Ctrl-C; but a file that someone writes can't be removed there
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
