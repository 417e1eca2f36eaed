"""Fetch an archive once, check it, unpack it: what was interrupted or damaged is mended by calling again.

Nothing gets its final name before its checksum is right, and no file of a reader's is deleted: only a
broken one is replaced, once the right one is here.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import tarfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tqdm import tqdm

from clutils.data.sets import Unavailable

PATIENCE = 15.0  # seconds that a server may take to answer, whatever its name server and addresses do
_STALL = 10.0  # seconds without a byte after which a transfer counts as broken
_TRIES = 5  # a transfer that breaks goes on from where it stopped, this often
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Member:
    """A file inside an archive. Known by its size, or, where that isn't known, by its MD5.

    The MD5, where known, is always checked while unpacking.
    """

    path: str  # below the data directory, as torchvision lays it out
    size: int | None = None
    md5: str | None = None

    def whole(self, root: Path) -> bool:
        """Whether the file is there, complete."""
        path = root / self.path
        if not path.is_file():
            return False
        return path.stat().st_size == self.size if self.size is not None else _md5(path) == self.md5


@dataclass(frozen=True)
class Archive:
    """A .tar.gz, or the .gz of a single file."""

    url: str
    path: str  # below the data directory
    size: int  # bytes, for messages and to ask whether the disk has room
    md5: str
    members: tuple[Member, ...]

    def there(self, root: Path) -> bool:
        """Whether the archive is there in full length (its MD5 is checked when it is unpacked)."""
        path = root / self.path
        return path.is_file() and path.stat().st_size == self.size


def ensure(name: str, archives: tuple[Archive, ...], paths: set[str], root: Path, download: bool) -> None:
    """Make sure that the members called `paths` lie unpacked below `root`; fetch what is missing.

    Raises `Unavailable`, in one line that says what happened and what to do.
    """
    for archive in archives:
        missing = [m for m in archive.members if m.path in paths and not m.whole(root)]
        if not missing:
            continue
        target = root / archive.path
        damaged = ""
        try:
            if not target.is_file() or _md5(target) != archive.md5:
                if target.is_file():
                    damaged = f"; the {target.name} there is damaged or cut short"
                if not download:
                    raise _Failed("downloading was switched off (download=False)")
                _fetch(archive, target)
            _unpack(archive, missing, root)
        except _Failed as failure:
            reason = str(failure)
        except OSError as error:  # no such place, no right to write, disk full
            reason = f"{error.strerror or error}: {error.filename or target}"
        else:
            continue
        there = "is not complete" if any((root / m.path).exists() for m in missing) else "is not"
        raise Unavailable(
            f"{name} {there} in {root}: {reason}{damaged}. "
            "To do: call again online (what has arrived is kept); or put "
            f"{target.name} ({human(archive.size)}, {archive.url}) into {target.parent} by hand; "
            "or load pictures of your own as 'folder:PATH'. For another data directory set CLUTILS_DATA."
        )


def unreachable(url: str) -> str | None:
    """Why nobody answers at this address within PATIENCE; None where someone does, if only with an error."""
    try:
        _open(urllib.request.Request(url, headers={"User-Agent": "clutils"}, method="HEAD")).close()
    except urllib.error.HTTPError as error:
        error.close()
    except _Failed as failure:
        return str(failure)
    return None


def human(size: int) -> str:
    """A number of bytes for people: '170 MB'."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size} bytes"


class _Failed(Exception):
    """Why a download or an unpacking stopped; `ensure` adds what to do."""


def _fetch(archive: Archive, target: Path) -> None:
    """Download to `target`.part, going on where an earlier call stopped; rename when the MD5 is right."""
    part = target.with_name(target.name + ".part")
    for left in reversed(range(_TRIES)):
        try:
            _transfer(archive, part)
            break
        except _Broken as error:
            if not left:
                here = human(part.stat().st_size)
                raise _Failed(f"the download broke off ({error}) with {here} here") from error
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # nothing comes after what is here: it is all, or it is wrong
                break
            raise _Failed(f"{archive.url} answered {error.code} {error.reason}") from error
    found = _md5(part)
    if found != archive.md5:
        size = part.stat().st_size
        part.unlink()
        raise _Failed(
            f"what {archive.url} sent is not the file ({human(size)}, MD5 {found} instead of {archive.md5}; "
            "perhaps a login page of your network?) and was thrown away"
        )
    os.replace(part, target)


class _Broken(Exception):
    """A transfer that started and then stopped."""


def _transfer(archive: Archive, part: Path) -> None:
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "clutils", **({"Range": f"bytes={have}-"} if have else {})}
    with _open(urllib.request.Request(archive.url, headers=headers)) as answer:
        if answer.status != 206:  # the whole file comes, whatever we asked for
            have = 0
        coming = answer.headers.get("Content-Length")
        total = have + int(coming) if coming else None
        part.parent.mkdir(parents=True, exist_ok=True)
        _need_room(part.parent, int(coming or archive.size))
        with (
            open(part, "ab" if have else "wb") as file,
            tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=Path(archive.path).name) as bar,
        ):
            try:
                while block := answer.read1(_BLOCK):
                    file.write(block)
                    bar.update(len(block))
            except (TimeoutError, ConnectionError, http.client.HTTPException) as error:
                raise _Broken(str(error) or type(error).__name__) from error
            if total is not None and bar.n < total:
                raise _Broken("the server closed the connection")


def _open(request: urllib.request.Request) -> http.client.HTTPResponse:
    """`urlopen` that gives up after PATIENCE: its own timeout starts anew with each address of a server.

    Raises `_Failed`, or HTTPError where the server answered with one.
    """
    answer: list[http.client.HTTPResponse] = []
    trouble: list[Exception] = []

    def ask() -> None:
        try:
            answer.append(urllib.request.urlopen(request, timeout=_STALL))
        except Exception as error:  # handed to the caller below
            trouble.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    if answer:
        return answer[0]
    if trouble and isinstance(trouble[0], urllib.error.HTTPError):
        raise trouble[0]
    why = getattr(trouble[0], "reason", trouble[0]) if trouble else f"no answer in {PATIENCE:g} seconds"
    raise _Failed(f"{request.host} could not be reached ({getattr(why, 'strerror', None) or why})")


def _unpack(archive: Archive, members: list[Member], root: Path) -> None:
    """Unpack `members`, each under a passing name until it is complete."""
    source = root / archive.path
    _need_room(root, sum(m.size or 0 for m in members))
    if not archive.path.endswith(".tar.gz"):
        with gzip.open(source) as file:
            _place(members[0], file, root)
        return
    wanted = {m.path: m for m in members}
    with _bar_over(source) as raw, tarfile.open(fileobj=raw, mode="r|gz", bufsize=_BLOCK) as tar:
        for entry in tar:
            member = wanted.pop(entry.name.removeprefix("./"), None)
            file = tar.extractfile(entry) if member else None
            if member and file:
                _place(member, file, root)
            if not wanted:
                return
    raise _Failed(f"{source} holds no {', '.join(wanted)}")


def _place(member: Member, file: IO[bytes], root: Path) -> None:
    path = root / member.path
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(path.name + ".part")
    try:
        with open(passing, "wb") as out:
            shutil.copyfileobj(file, out, _BLOCK)
        size = passing.stat().st_size
        if size != (member.size or size) or (member.md5 and _md5(passing) != member.md5):
            raise _Failed(
                f"{member.path} came out of its archive with {size:,} bytes or an MD5 it should not have"
            )
        os.replace(passing, path)
    finally:
        passing.unlink(missing_ok=True)


@contextmanager
def _bar_over(path: Path) -> Iterator[IO[bytes]]:
    """The open file, with a progress bar over its reading when that takes more than two seconds."""
    with (
        open(path, "rb") as file,
        tqdm.wrapattr(
            file, "read", total=path.stat().st_size, desc=f"unpacking {path.name}", delay=2
        ) as counted,
    ):
        yield counted


def _need_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise _Failed(f"{human(size)} more are needed on the disk and {human(free)} are free")


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
