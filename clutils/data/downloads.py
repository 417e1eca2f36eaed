"""Downloads: one sentence for whatever goes wrong; STL-10's archive, resumed and unpacked split by split."""

import os
import shutil
import socket
import tarfile
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from clutils.data.sets import Unavailable

PATIENCE = 15.0  # seconds without a byte after which a server counts as silent
BLOCK = 1 << 20
SWITCHED_OFF = "downloading is switched off by download=False"


@contextmanager
def explained(name: str, root: Path, to_do: str) -> Iterator[None]:
    """Raise `Unavailable`, in one line with what to do, where what stands inside fails to get the data.

    Sockets give up after PATIENCE seconds inside: neither torchvision nor scikit-learn sets a limit. Warnings
    are not shown: of tarfile, NumPy and torch.jit, and of each new try, whose last failure says it all.
    """
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(PATIENCE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # a server, or a damaged file, makes the libraries raise nearly anything
        lost = isinstance(error, urllib.error.URLError) and not isinstance(error, urllib.error.HTTPError)
        said = f"no network: {getattr(error, 'reason', error)}" if lost else str(error)
        reason = " ".join(said.split()) or type(error).__name__
        unavailable = Unavailable(
            f"{name} is not, or not whole, in {root}: {reason}. To do: call again online; or {to_do}. "
            "For another data directory set CLUTILS_DATA."
        )
        unavailable.reason = "no network" if lost else reason
        raise unavailable from error
    finally:
        socket.setdefaulttimeout(before)


def reach(url: str) -> None:
    """Raise OSError where nobody answers at this address; an answer that is an error is one."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=PATIENCE).close()
    except urllib.error.HTTPError as error:
        error.close()


def fetched(url: str) -> bytes:
    """Content of a small file at this address. Raises OSError."""
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.read()


def resumed(url: str, target: Path) -> None:
    """Download to `target`.part, going on where an earlier call stopped, then give it its name.

    Raises OSError where the transfer breaks off; what has arrived is kept.
    """
    part = target.with_name(target.name + ".part")
    have = part.stat().st_size if part.exists() else 0
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers={"Range": f"bytes={have}-"})
        ) as answer:
            have = have if answer.status == 206 else 0  # else the whole file comes, whatever was asked for
            total = have + int(answer.headers["Content-Length"])
            target.parent.mkdir(parents=True, exist_ok=True)
            with (
                open(part, "ab" if have else "wb") as file,
                tqdm(total=total, initial=have, unit="B", unit_scale=True, desc=target.name) as bar,
            ):
                while block := answer.read(BLOCK):
                    file.write(block)
                    bar.update(len(block))
            if bar.n < total:
                raise ConnectionError(f"the download broke off with {human(bar.n)} here")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 416:  # nothing comes after what is here: it is all, or it is wrong
            raise
    os.replace(part, target)


def unpack(archive: Path, sizes: dict[str, int], root: Path) -> None:
    """Unpack these members of a .tar.gz below `root`, each under a passing name until it is whole.

    Raises ValueError on a member of another size, or one that is there twice.
    """
    left = dict(sizes)
    with tarfile.open(archive, mode="r|gz", bufsize=BLOCK) as tar:
        for entry in tqdm(tar, desc=f"unpacking {archive.name}", delay=2):
            if entry.name in sizes:
                path = root / entry.name
                path.parent.mkdir(parents=True, exist_ok=True)
                passing = path.with_name(path.name + ".part")
                packed, size = tar.extractfile(entry), left.pop(entry.name, None)
                if packed is None or entry.issparse() or entry.size != size:
                    what = f"no plain file of {size:,} bytes" if size is not None else "in it twice"
                    raise ValueError(f"{archive.name}: {entry.name} is {what}")
                with packed, open(passing, "wb") as file:
                    shutil.copyfileobj(packed, file, BLOCK)
                os.replace(passing, path)


def human(size: int) -> str:
    """A number of bytes for people: '170 MB'."""
    for unit, step in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= step:
            return f"{size / step:.3g} {unit}"
    return f"{size} bytes"
