"""Atomic file writes (temporary file, fsync, rename), a folder for one process alone, printable names."""

import contextlib
import glob
import io
import os
import posixpath
import re
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # write the text behind them backwards
SIGN = b"clutils"  # in every page, table and image that the package writes
ENDS = 1 << 20  # bytes at a file's beginning and end where its sign is looked for
LOCKED_BY_A_FILE = os.name == "nt"  # it has no fcntl


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
        content = content.encode(errors="backslashreplace")  # a folder's name may be no UTF-8
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
        kept = " (what was there before is kept)" if path.is_file() else ""
        raise OSError(error.errno, f"{error.strerror or error}{kept}", str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # what hindered the writing is the error to tell
            beside.unlink(missing_ok=True)


def demand_writable(path: Path) -> None:
    """Raise ValueError, before the work, where no file can be written, or one of somebody else's lies."""
    try:
        if path.is_dir():
            raise OSError("it is a folder")
        if not path.parent.is_dir():
            raise OSError(f"there is no folder {path.parent}")
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        foreign = path.is_file() and path.stat().st_size and not _signed(path)
    except OSError as error:
        raise ValueError(f"{path} can't be written: {error.strerror or error}") from error
    if foreign:
        raise ValueError(f"{path} is there already, and is no file of this package: choose another name")


def _signed(path: Path) -> bool:
    """True where this package wrote the file, by its first and last bytes: others may be of any size."""
    with open(path, "rb") as file:
        if SIGN in file.read(ENDS):
            return True
        file.seek(max(ENDS - len(SIGN), path.stat().st_size - ENDS))
        return SIGN in file.read(ENDS + len(SIGN))


def arrays(path: str | Path, most: float) -> dict[str, Any]:
    """Arrays of an .npz file by name. Raises ValueError on any other file, and as `demand_one_reading`."""
    import numpy as np

    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                demand_one_reading(archive, most)
            file.seek(0)
            with np.load(file, allow_pickle=False) as found:
                return dict(found)
        except Exception as error:  # a broken file makes NumPy raise nearly anything
            raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error


def demand_one_reading(archive: zipfile.ZipFile, most: float) -> None:
    """Raise ValueError on an .npz that readers would read differently, or that unpacks to more bytes.

    Of two entries `x.npy`, or `x` and `./X.npy`, readers take different ones.
    """
    entries = archive.infolist()
    if not has_one_directory(archive):
        raise ValueError("it is two archives in one")
    plain = (posixpath.normpath(entry.filename.replace("\\", "/")).lower() for entry in entries)
    names = [re.sub(r"(\.npy)+$", "", name) for name in plain]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"two arrays in it are called {printable(twice[0])[:80]!r}")
    if (size := sum(entry.file_size for entry in entries)) > most:
        raise ValueError(f"its arrays unpack to {size:,} bytes, and {most:,.0f} are the most")


def has_one_directory(archive: zipfile.ZipFile) -> bool:
    """True where an archive begins with the file, and has its directory where its end record says.

    Python takes the directory that ends at the end record, others the one at the offset in that record, or
    what comes first.
    """
    stated = zipfile._EndRecData(archive.fp)  # type: ignore[attr-defined]
    begins = min((entry.header_offset for entry in archive.infolist()), default=0)
    at = archive.start_dir
    return stated is not None and begins == 0 and at == stated[zipfile._ECD_OFFSET]  # type: ignore[attr-defined]


@contextlib.contextmanager
def claimed(folder: str | Path) -> Iterator[None]:
    """Context manager: this process alone writes into the folder, which is made, and goes if it stays empty.

    The system gives it up with the process, however that ends. Raises ValueError where another one has it,
    OSError where the folder can't be made.
    """
    folder = Path(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = _locked(folder)
        try:
            yield
        finally:
            os.close(lock)
    finally:
        for path in made:
            with contextlib.suppress(OSError):  # it has something in it
                path.rmdir()


def _locked(folder: Path) -> int:
    """Lock to be closed in the end."""
    try:
        if LOCKED_BY_A_FILE:  # which goes with its last handle, by O_TEMPORARY
            how = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_TEMPORARY", 0)
            return os.open(folder / ".writing", how)
        import fcntl

        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise
        except OSError:  # a network's file system that has no locks
            pass
        return lock
    except (BlockingIOError, FileExistsError) as error:
        raise ValueError(
            f"another process is writing into {folder}: wait for its end, or choose another"
        ) from error


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
