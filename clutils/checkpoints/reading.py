"""Read untrusted checkpoints without executing their pickle: a static check of its opcodes first.

A checkpoint of torch is a pickle, and a pickle is a program. Three fences stand one behind the other:

1. the file is what it claims to be, no larger unpacked than on the disk (`_refuse_archive`), and its
   directory and pickle are those that torch's reader finds (`_refuse_two_readings`);
2. a static check of its pickle opcodes (`_walk`), which builds nothing: every name it asks for is on a short
   list, every storage it claims has as many bytes in the file, and every key is cheap to hash;
3. only then torch reads it, with `weights_only=True`; what is not on torch's own list (a Namespace, a NumPy
   scalar) becomes a plain stand-in. There is no way back to full unpickling.

`.safetensors` files hold no program: the library of that name reads them.

Limits, so that any file is opened or refused within 20 s and 2 GB beyond its weights: 48 MB and 6 million
instructions of pickle (a ResNet-50 and its optimiser have 0.2 MB, 100,000 steps of a run 14 MB), 16 MB of a
zip's directory or a .safetensors header, 50,000 tensors, names of 500 characters, 1,000 values in a call, 20
in a key. `training.resume` reads its own files behind the same fences, of any length.
"""

from __future__ import annotations

import _compat_pickle
import argparse
import collections
import contextlib
import json
import pickletools
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch

from clutils.files import has_one_directory, printable

PROGRAM_BYTES = 16 << 20  # of a header, a zip's directory or one value
INSTRUCTIONS = 6_000_000  # of a pickle: 6 s to check, 6 s to read; a run's history has 20 to 40 a step
STEP_BYTES = 8  # of a pickle for each instruction, at most
COPIED = 2_000_000  # values that its calls copy
TENSORS = 50_000  # ResNet-152 twice, with its optimiser, has 4,000
NAME = 500  # characters of a key that may name a tensor or a mapping
ARGUMENTS = 1_000  # values of a call, those of tuples within it each time counted
KEY_VALUES, COSTLY_KEYS = 20, 100  # values of a tuple that is a key; such keys, which can be made to collide
LARGEST_PLAIN = 2**61 - 1  # an integer from here on shares its hash with a smaller one, and is such a key
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # torch before 1.6 begins with this number, pickled
LEGACY_PICKLES = 5  # that number, the protocol, the machine, the object, the names of its storages

ITEM_BYTES = {
    **{"Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1},
    **{"Byte": 1, "Bool": 1, "ComplexDouble": 16, "ComplexFloat": 8},
}
STORAGES = {
    **{f"torch.{name}Storage": size for name, size in ITEM_BYTES.items()},
    **{f"torch.cuda.{name}Storage": size for name, size in ITEM_BYTES.items()},
    "torch.storage.UntypedStorage": 1,
}
SUFFIXES = (".pt", ".pth", ".ckpt", ".tar", ".th", ".bin", ".safetensors")
OF_A_HUB = ("model.safetensors", "pytorch_model.bin")  # the same weights twice
DTYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
LOOKS = {  # first bytes of what is often mistaken for a checkpoint
    b"version https://git-lfs": "a Git LFS pointer: the file itself was not fetched ('git lfs pull')",
    b"<": "a web page: the download gave a page instead of the file",
    b"\x1f\x8b": "gzip: unpack it first",
    b"\x89HDF": "HDF5, as Keras writes",
    b"\x08": "ONNX, or the like: save the state_dict() of the module that was exported",
    b"\x80": "a plain pickle, which is not opened: it could run anything",
}


class Refused(ValueError):
    """The file is not opened: what it is or asks for, in one line."""


class Nothing:
    """Replaces a value that is listed as harmless and not needed: keeps nothing, does nothing."""

    def __new__(cls, *_: object) -> Nothing:
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        pass


class Plain:
    """Replaces a dictionary of another class: an empty dict, whatever it is made from."""

    def __new__(cls, *_: object) -> dict[Any, Any]:  # type: ignore[misc]
        return {}


# what checkpoints of known libraries hold beside weights and nothing here needs: module -> classes
NOT_NEEDED = {
    "pytorch_lightning.callbacks.model_checkpoint": ("ModelCheckpoint",),
    **dict.fromkeys(("pathlib", "pathlib._local"), ("PosixPath", "WindowsPath")),
    # a best accuracy that was never made a float
    **dict.fromkeys(("numpy.core.multiarray", "numpy._core.multiarray"), ("scalar", "_reconstruct")),
    "numpy": ("ndarray", "dtype"),
    # what configuration libraries leave
    "torch.torch_version": ("TorchVersion",),
    "functools": ("partial",),
    "datetime": ("datetime", "date", "time", "timedelta", "timezone"),
    "builtins": ("slice", "range", "frozenset", "bytes"),
    **{"decimal": ("Decimal",), "uuid": ("UUID",), "collections": ("deque", "Counter")},
    "omegaconf.dictconfig": ("DictConfig",),
    "omegaconf.listconfig": ("ListConfig",),
    "omegaconf.base": ("ContainerMetadata", "Metadata"),
    "omegaconf.nodes": ("AnyNode", "StringNode", "IntegerNode", "FloatNode", "BooleanNode"),
}
LIGHTNING = (
    *("pytorch_lightning.utilities.parsing", "lightning.pytorch.utilities.parsing"),
    *("lightning_fabric.utilities.data", "lightning.fabric.utilities.data"),
)
# what is kept of such a file -> what it becomes here
STAND_INS: dict[str, type] = {
    "argparse.Namespace": argparse.Namespace,  # SupContrast's options
    "types.SimpleNamespace": argparse.Namespace,
    "collections.defaultdict": Plain,
    **{f"{module}.AttributeDict": dict for module in LIGHTNING},  # Lightning's hyper-parameters
    **{f"{module}.{name}": Nothing for module, names in NOT_NEEDED.items() for name in names},
}
# what those are made from: named in a file, and never called
INGREDIENTS = {
    *(f"builtins.{name}" for name in ("dict", "list", "tuple", "int", "float", "str", "bool", "object")),
    "typing.Any",
    *(f"torch.optim.{file}.{name}" for file, name in (("adam", "Adam"), ("adamw", "AdamW"), ("sgd", "SGD"))),
    *(f"clutils.training.optimisers.{name}" for name in ("AdamW", "SGD")),
}
# what torch itself knows and may call; nothing here takes memory that the file does not hold
CALLED = {
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.Size",
    "torch.device",
    "_codecs.encode",
    *("builtins.set", "builtins.complex", "builtins.bytearray"),
    *STAND_INS,
}
NAMED = CALLED | INGREDIENTS | set(STORAGES) | {f"torch.{name}" for name in DTYPES}


def read(path: str | Path) -> tuple[Any, str]:
    """Tensors and plain values in a checkpoint, and its kind in words. Nothing in it runs, whatever it is.

    Raises FileNotFoundError where there is no file, Refused (a ValueError) in one line on anything else that
    is no whole and harmless checkpoint. Memory stays below the file's size: tensors stay on the disk until
    they are used (except in files of torch before 1.6).
    """
    path = Path(path)
    kind = demand_harmless(path)
    _demand_name(path)
    with _refusing(path):
        return (_safetensors(path) if kind == "safetensors" else _load(path, mapped=kind == "torch")), kind


def demand_harmless(path: Path, most: float | None = None) -> str:
    """The kind of a file that torch may read. Raises as `read` does on any other; it reads no tensor.

    most: instructions of its pickle; None = INSTRUCTIONS
    """
    most = INSTRUCTIONS if most is None else most
    with _refusing(path), _open(path) as file:
        kind = _kind(file, path)
        for pickle in _pickles(file, path, kind, most) if kind != "safetensors" else ():
            _walk(*pickle, path, most)
        return kind


@contextlib.contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Context manager: an error that a broken or hostile file provokes in a parser becomes Refused."""
    try:
        yield
    except (Refused, FileNotFoundError):
        raise
    except OSError as error:
        raise Refused(f"{path} can't be read: {error.strerror or error}") from error
    except (zipfile.BadZipFile, EOFError) as error:
        raise Refused(
            f"{path} is truncated or not a whole file: it begins as a checkpoint, but its "
            f"{path.stat().st_size:,} bytes stop short; fetch or save it again"
        ) from error
    except MemoryError as error:
        raise Refused(f"{path} needs more memory than there is") from error
    except Exception as error:
        raise Refused(f"{path} is damaged, or no checkpoint: {one_line(error)}") from error


def within(folder: Path) -> Path:
    """The one file of weights in a folder: of a run its checkpoint.pt, of a hub what lies by its config.json.

    Raises Refused, naming what there is, where there is none or more than one; FileNotFoundError on a run's
    folder that has none yet.
    """
    if (of_a_run := folder / "checkpoint.pt").is_file():
        return of_a_run
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())
    usual = [path for path in files if path.name in OF_A_HUB]
    if len(found := usual[:1] or files) == 1:
        return found[0]
    if not files and (folder / "config.json").is_file():
        raise FileNotFoundError(
            f"the run in {folder} has no checkpoint.pt yet: train writes it at the end, and on the way with "
            "--checkpoint-every STEPS"
        )
    names = ", ".join(path.name for path in files[:5]) + (", ..." if len(files) > 5 else "")
    way = f"name one of the files in it: {names}" if files else "name the file, or a folder of train's"
    raise Refused(f"{folder} is a folder, but a checkpoint is a file; {way}")


def _open(path: Path) -> BinaryIO:
    """A regular file. Raises FileNotFoundError where there is nothing, Refused on anything else."""
    if not path.exists():
        leads = " (a link that leads nowhere)" if path.is_symlink() else ""
        raise FileNotFoundError(f"there is no file {path}{leads}")
    if not path.is_file():
        kinds = {stat.S_IFDIR: "folder", stat.S_IFIFO: "named pipe", stat.S_IFSOCK: "socket"}
        what = kinds.get(stat.S_IFMT(path.stat().st_mode), "device")
        raise Refused(f"{path} is a {what}, but a checkpoint is a file")
    return path.open("rb")


def _demand_name(path: Path) -> None:
    """Raises Refused where torch and safetensors can't open a file of this name."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise Refused(f"{path} has a name that is not UTF-8, which torch can't open: rename it") from None


def one_line(error: Exception) -> str:
    """A parser's own words, which may quote the file, without what steers a terminal."""
    said = " ".join(str(error).split())[:200]
    return printable(said) or type(error).__name__


def _kind(file: BinaryIO, path: Path) -> str:
    """By its first bytes, never by its name. Raises Refused, saying what it looks like instead."""
    start = file.read(512)
    file.seek(0)
    if start.startswith(b"PK\x03\x04"):
        return "torch"
    if start.startswith(LEGACY):
        if _begins_tar(start):
            raise Refused(f"{path} is a tar archive and a pickle at once, which no program writes")
        return "torch before 1.6"
    if len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 40:
        return "safetensors"
    if not start:
        looks = "empty"
    elif _begins_tar(start):
        looks = "a tar archive, as torch wrote before 0.4; only newer files are opened"
    else:
        looks = (
            "a text file, not a checkpoint"
            if start.isascii()
            else "no checkpoint of torch and no .safetensors"
        )
        looks = "nothing but zeros where it begins: a download that broke off" if not any(start) else looks
        looks = next((what for sign, what in LOOKS.items() if start.lstrip().startswith(sign)), looks)
    raise Refused(f"{path} is {looks}")


def _begins_tar(start: bytes) -> bool:
    """True where these 512 bytes are a tar archive's first header; the rest of the file is not read."""
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


class _Bounded:
    """A file that gives no more than so many bytes at a time: a length that it claims takes no memory."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.file, self.path = file, path
        self.seek, self.tell, self.seekable = file.seek, file.tell, lambda: True

    def read(self, count: int = -1) -> bytes:
        if count > PROGRAM_BYTES:
            raise Refused(f"{self.path} claims {count:,} bytes at once without any tensor")
        return self.file.read(count if count >= 0 else PROGRAM_BYTES)

    def readline(self) -> bytes:
        return self.file.readline(PROGRAM_BYTES)


def _pickles(
    file: IO[bytes], path: Path, kind: str, most: float
) -> Iterator[tuple[IO[bytes], dict[str, int] | int]]:
    """The pickles that torch would read, each with the bytes that its storages may have."""
    if kind == "torch before 1.6":
        size = path.stat().st_size
        for _ in range(LEGACY_PICKLES):
            yield cast(IO[bytes], _Bounded(file, path)), size
        return
    with zipfile.ZipFile(cast(IO[bytes], _Bounded(file, path))) as archive:
        entries = archive.infolist()
        if any("/code/" in e.filename for e in entries):  # and that is compressed
            raise Refused(f"{path} is TorchScript, which holds code: save the module's state_dict() instead")
        _refuse_archive(entries, path)
        programs = [e for e in entries if e.filename.endswith("/data.pkl") or e.filename == "data.pkl"]
        if len(entries) > 2 * TENSORS:
            raise Refused(
                f"{path} is a zip archive of {len(entries):,} entries, and {TENSORS:,} tensors are the most"
            )
        if len(programs) != 1:
            raise Refused(f"{path} is a zip archive with {len(programs)} data.pkl, but a checkpoint has one")
        if programs[0].file_size > STEP_BYTES * most:
            raise Refused(f"{path}: its pickle has {programs[0].file_size:,} bytes without any tensor")
        folder = programs[0].filename.removesuffix("data.pkl") + "data/"
        held = {
            e.filename.removeprefix(folder): e.file_size for e in entries if e.filename.startswith(folder)
        }
        _refuse_two_readings(archive, programs[0], path)
        with archive.open(programs[0]) as program:
            yield program, held
        damaged = archive.testzip()  # torch itself does not look at the checksums
        if damaged is not None:
            raise Refused(f"{path} is damaged: bad checksum of {damaged[:100]!r}")


def _refuse_archive(entries: list[zipfile.ZipInfo], path: Path) -> None:
    names = [e.filename for e in entries]
    for name in names:
        if name.startswith(("/", "\\")) or ".." in Path(name.replace("\\", "/")).parts or ":" in name:
            raise Refused(f"{path}: an entry is called {name[:100]!r}, which leads out of the archive")
    if len({name.lower() for name in names}) < len(names):  # torch's reader finds names in any case
        raise Refused(
            f"{path}: two entries of the archive have names that differ only in upper and lower case"
        )
    unpacked, packed = sum(e.file_size for e in entries), path.stat().st_size
    if unpacked > packed:
        raise Refused(
            f"{path} unpacks from {packed:,} to {unpacked:,} bytes, but torch does not compress: a "
            "compressed zip, such as NumPy's .npz, or a zip bomb"
        )


def _refuse_two_readings(archive: zipfile.ZipFile, program: zipfile.ZipInfo, path: Path) -> None:
    """Raise Refused where torch's reader would find another directory or another pickle in the archive."""
    if not has_one_directory(archive):
        raise Refused(f"{path} is a zip archive with two directories, or behind another")
    with path.open("rb") as file:  # by its name torch opens none that is not UTF-8
        seen = torch._C.PyTorchFileReader(file).get_record("data.pkl")
    if seen != archive.read(program):
        raise Refused(f"{path} is a zip archive with two readings: torch would find another data.pkl in it")


# ---- the machine that builds nothing -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Name:
    full: str


class _Values(tuple[Any, ...]):
    """A tuple of the pickle, and how many values a walk through all of it meets: shared ones each time."""

    size: int

    def __new__(cls, values: Iterable[Any]) -> _Values:
        made = super().__new__(cls, values)
        within = sum(value.size if isinstance(value, _Values) else 1 for value in made)
        made.size = min(1 + within, PROGRAM_BYTES)
        return made


class _Built:
    """Whatever would be built here but lists, of how many entries, and by what."""

    def __init__(self, size: int = 1, by: str = "") -> None:
        self.size, self.by = size, by


_PLAIN = {"NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE"}
_PLAIN |= {"SHORT_BINSTRING"}


def _walk(program: IO[bytes], held: dict[str, int] | int, path: Path, most: float) -> None:
    """Walk through one pickle as torch's reader would, and build nothing.

    - held: storage -> its bytes in the archive; or the whole file's bytes, which all storages share
    - most: instructions

    Raises Refused on a name that is not listed, a call of what is none, a storage that is not in the file,
    what takes long to hash, and an instruction that torch.save never writes.
    """
    stack: list[Any] = []
    below: list[list[Any]] = []  # the stacks under each mark
    memo: dict[Any, Any] = {}
    claimed: dict[Any, int] = {}
    total = made = costly = copied = 0

    def to_mark() -> list[Any]:
        nonlocal stack
        items, stack = stack, below.pop()
        return items

    def hashed(keys: Iterable[Any]) -> None:
        nonlocal costly
        for key in keys:
            costly += isinstance(key, tuple) or (isinstance(key, int) and abs(key) >= LARGEST_PLAIN)
            if costly > COSTLY_KEYS or (isinstance(key, _Values) and key.size > KEY_VALUES):
                raise Refused(f"{path} has keys that take long to hash, which no checkpoint needs")

    def given(values: Iterable[Any], of_set: bool = False) -> None:
        """Count the values of arguments or a state that are copied, and hashed in a mapping (of pairs)."""
        nonlocal copied
        for value in values:
            long = len(value) // 16 if isinstance(value, str | bytes) else getattr(value, "size", 1)
            copied += len(value) if isinstance(value, list) else int(long)
            if copied > COPIED:
                raise Refused(f"{path} copies what it holds over and over, which no checkpoint needs")
            pairs = value if isinstance(value, list | tuple) else ()
            hashed(one[0] for one in pairs if isinstance(one, list | tuple) and one)
            hashed(one for one in pairs if isinstance(one, int | tuple) and of_set)

    start = program.tell()
    for number, (op, argument, position) in enumerate(pickletools.genops(program)):
        if (position or 0) - start > STEP_BYTES * most or number > most:
            what = f"{STEP_BYTES * most:,} bytes" if number <= most else f"{most:,} instructions"
            raise Refused(f"{path}: its pickle has over {what} without any tensor")
        match op.name:
            case "PROTO" if argument == 2:
                pass
            case "STOP":
                return
            case "MARK":
                below.append(stack)
                stack = []
            case name if name in _PLAIN:
                stack.append(argument)
            case "EMPTY_DICT" | "EMPTY_SET":
                stack.append(_Built())
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(_Values(()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                count = int(op.name[-1])
                stack[-count:] = [_Values(stack[-count:])]
            case "TUPLE":
                values = _Values(to_mark())
                stack.append(values)
            case "APPEND" | "APPENDS":
                items = [stack.pop()] if op.name == "APPEND" else to_mark()
                if isinstance(stack[-1], list):
                    stack[-1].extend(items)
            case "SETITEM" | "SETITEMS":
                items = to_mark() if op.name == "SETITEMS" else [stack.pop(), stack.pop()][::-1]
                hashed(items[::2])
                if isinstance(stack[-1], _Built):
                    stack[-1].size += len(items) // 2
            case "BINPUT" | "LONG_BINPUT":
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "GLOBAL":
                stack.append(_listed(str(argument), path))
            case "REDUCE" | "NEWOBJ":
                arguments, called = stack.pop(), stack.pop()
                _refuse_call(called, arguments, path)
                before = copied
                given(arguments, called.full in ("builtins.set", "collections.Counter"))
                made += called.full.startswith("torch._utils._rebuild_tensor")
                if made > TENSORS:
                    raise Refused(f"{path} holds more than {TENSORS:,} tensors, which no encoder has")
                stack.append(_Built(copied - before, called.full))
            case "BUILD":
                state = stack.pop()
                given([state, *(state if isinstance(state, tuple) else ())])
            case "BINPERSID":
                key, size = _storage(stack.pop(), path)
                total += size - claimed.get(key, 0)
                claimed[key] = size
                have = held.get(str(key)) if isinstance(held, dict) else None
                if isinstance(held, dict) and have != size:
                    raise Refused(f"{path}: a tensor claims {size:,} bytes, the file holds {have or 'none'}")
                if isinstance(held, int) and total > held:
                    raise Refused(
                        f"{path}: its tensors claim {total:,} bytes, but the file has {held:,}: "
                        "it is truncated, or made up"
                    )
                stack.append(_Built())
            case _:
                raise Refused(f"{path}: its pickle has {op.name} in it, which torch.save never writes")


def _listed(argument: str, path: Path) -> _Name:
    module, _, name = argument.partition(" ")
    if (module, name) in _compat_pickle.NAME_MAPPING:  # protocol 2 has Python 2's names, as 'long' for int
        module, name = _compat_pickle.NAME_MAPPING[module, name]
    full = f"{_compat_pickle.IMPORT_MAPPING.get(module, module)}.{name}"
    if full not in NAMED:
        raise Refused(
            f"{path} asks for {full[:100]!r}, which is not on the list of harmless names: it is not opened, "
            "and nothing in it was run; where you trust it, load it yourself and save its state_dict alone"
        )
    return _Name(full)


def _refuse_call(called: Any, arguments: Any, path: Path) -> None:
    if not isinstance(called, _Name) or called.full not in CALLED or not isinstance(arguments, _Values):
        what = called.full if isinstance(called, _Name) else "something that it built"
        raise Refused(f"{path} calls {what!r}, which no checkpoint needs, so it is not opened")
    if arguments.size > ARGUMENTS:
        raise Refused(
            f"{path} calls {called.full!r} with over {ARGUMENTS:,} values, which no checkpoint needs"
        )
    if called.full == "_codecs.encode" and arguments[1:] != ("latin1",):
        raise Refused(f"{path} encodes text in another way than 'latin1', which no checkpoint needs")
    of_bytes = all(isinstance(one, str) or getattr(one, "by", "") == "_codecs.encode" for one in arguments)
    if called.full == "builtins.bytearray" and not of_bytes:
        raise Refused(
            f"{path} asks for a bytearray of a length, which takes memory that the file does not hold"
        )


def _storage(claim: Any, path: Path) -> tuple[Any, int]:
    """('storage', type, key, place, count, ...) -> its key and bytes."""
    match claim:
        case ("storage", _Name(full=full), str() as key, str(), int() as count, *_) if (
            full in STORAGES and count >= 0
        ):
            return key, count * STORAGES[full]
    raise Refused(f"{path}: a tensor's storage is described as no program of torch does it")


# ---- torch, at last ----------------------------------------------------------------------------------------


def _load(path: Path, mapped: bool) -> Any:
    stand_ins: list[Any] = [(stand_in, name) for name, stand_in in STAND_INS.items()]
    stand_ins += [(Nothing, name) for name in sorted(INGREDIENTS)]
    with torch.serialization.safe_globals(stand_ins):
        return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)


def _refuse_twice(header: bytes, path: Path) -> None:
    """Raise Refused where a .safetensors header has one name twice: readers take different ones."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        for name, count in collections.Counter(name for name, _ in found).items():
            if count > 1:
                raise Refused(
                    f"{path} is a .safetensors file with two readings: {name[:80]!r} is in it twice"
                )
        return dict(found)

    with contextlib.suppress(
        json.JSONDecodeError, UnicodeDecodeError, RecursionError
    ):  # the library says what is wrong
        json.loads(header, object_pairs_hook=pairs)


def _safetensors(path: Path) -> dict[str, torch.Tensor]:
    """name -> tensor, mapped from the disk."""
    from safetensors import SafetensorError, safe_open

    with path.open("rb") as raw:
        header = int.from_bytes(raw.read(8), "little")
        if header > PROGRAM_BYTES:
            raise Refused(
                f"{path} is no .safetensors file that is opened here: its header claims {header:,} bytes"
            )
        _refuse_twice(raw.read(header), path)
    try:
        with safe_open(path, framework="pt") as file:
            if len(file.keys()) > TENSORS:
                raise Refused(f"{path} holds more than {TENSORS:,} tensors, which no encoder has")
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping
    except SafetensorError as error:
        reason = one_line(error)
        raise Refused(f"{path} is truncated, damaged or no .safetensors file: {reason}") from error
    for name, value in found.items():
        if str(value.dtype).removeprefix("torch.") not in DTYPES:
            raise Refused(f"{path}: {name[:80]!r} is {value.dtype}, which no encoder here computes with")
    return found


# ---- what torch gave ---------------------------------------------------------------------------------------


def mappings(state: Any, deepest: int = 3) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every mapping in a state with the keys that lead to it, outermost first, each once."""
    seen: set[int] = set()
    waiting: collections.deque[tuple[tuple[str, ...], Any]] = collections.deque([((), state)])
    while waiting:
        keys, value = waiting.popleft()
        if isinstance(value, argparse.Namespace):
            value = vars(value)
        if not isinstance(value, dict) or id(value) in seen:
            continue
        seen.add(id(value))
        yield keys, value
        if len(keys) < deepest:
            inner = ((k, v) for k, v in value.items() if isinstance(k, str) and len(k) <= NAME)
            waiting.extend(((*keys, k), v) for k, v in inner if isinstance(v, dict | argparse.Namespace))


def tensors(state: dict[str, Any], path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a mapping by name. Raises Refused on one that claims more values than it holds."""
    found = {}
    for name, value in state.items():
        if not isinstance(name, str) or len(name) > NAME or not isinstance(value, torch.Tensor):
            continue
        if value.layout != torch.strided or value.is_quantized or value.device.type != "cpu":
            raise Refused(f"{path}: {name[:80]!r} is no plain tensor")
        if value.numel() * value.element_size() > value.untyped_storage().nbytes():
            shape = tuple(value.shape)
            raise Refused(f"{path}: {name[:80]!r} claims the shape {shape}, which the file does not hold")
        found[name] = value
    return found
