"""Atomic file writes: temporary file, fsync, rename; and names that a terminal can show."""

import contextlib
import glob
import io
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # write the text behind them backwards


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


def printable(text: str) -> str:
    r"""A name that can be written anywhere: what is no UTF-8 or would control a terminal is escaped."""
    strange = {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in TURNING}
    return "".join(c.encode("unicode_escape").decode() if c in strange else c for c in text)
