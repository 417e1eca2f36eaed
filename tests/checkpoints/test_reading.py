"""Nothing hostile runs, and what is damaged is refused in one line."""

import argparse
import ast
import builtins
import collections
import datetime
import decimal
import functools
import io
import json
import os
import pickle
import pickletools
import resource
import runpy
import struct
import subprocess
import sys
import tarfile
import time
import types
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from clutils import checkpoints, encoders
from clutils.checkpoints import reading
from tests.checkpoints.files import conv_state, prefixed, saved, two_directories


class Runs:
    """Pickled, it is a call."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


CANARY = "canary-that-must-not-sing"


def sing(folder: Path) -> str:
    return f"open({str(folder / CANARY)!r}, 'w').close()"


def rezipped(change: Callable[[str, bytes], tuple[str, bytes] | None], **state: object) -> bytes:
    """A whole file, its entries changed, renamed or left out; state: compressed, where it is not weights."""
    how, written = zipfile.ZIP_DEFLATED if state else zipfile.ZIP_STORED, io.BytesIO()
    source = io.BytesIO(saved(state or conv_state()))
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(written, "w", how) as new:
        for name in old.namelist():
            if entry := change(name, old.read(name)):
                new.writestr(*entry)
    return written.getvalue()


def with_pickle(program: bytes) -> bytes:
    return rezipped(lambda name, raw: (name, program if name.endswith("data.pkl") else raw))


def enlarged() -> bytes:
    """A storage's count of values raised in the pickle: 432 weights of the first convolution."""
    count, more = struct.pack("<BH", ord("M"), 432), b"J" + struct.pack("<i", 2**31 - 1)
    return rezipped(lambda n, raw: (n, raw.replace(count, more) if n.endswith("data.pkl") else raw))


def with_nan() -> dict[str, torch.Tensor]:
    state = {name: value.clone() for name, value in conv_state().items()}
    state["convolutions.1.weight"][0, 0, 0, 0] = torch.nan
    return state


def in_tar(folder: Path) -> bytes:
    """The oldest format of torch, whose reader once ran code in spite of weights_only."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        program = pickle.dumps(Runs(builtins.exec, sing(folder)))
        entry = tarfile.TarInfo("storages")
        entry.size = len(program)
        archive.addfile(entry, io.BytesIO(program))
    return written.getvalue()


def twice_named() -> bytes:
    whole = io.BytesIO(saved(conv_state()))
    with zipfile.ZipFile(whole, "a") as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr(name, b"\x80\x02}.")
    return whole.getvalue()


def two_cases(folder: Path) -> bytes:
    """Python's reader finds the harmless data.pkl, torch's, for which case is nothing, the first one."""
    slow = b"\x80\x02}" + shared(45) + b"Ns."  # its key takes 2**45 steps to hash
    harmless = io.BytesIO(saved(conv_state()))
    written = io.BytesIO()
    with zipfile.ZipFile(harmless) as old, zipfile.ZipFile(written, "w") as new:
        (name,) = (name for name in old.namelist() if name.endswith("data.pkl"))
        new.writestr(name.replace("data.pkl", "DATA.PKL"), slow)
        for entry in old.namelist():
            new.writestr(entry, old.read(entry))
    return written.getvalue()


def header(**entry: object) -> bytes:
    text = json.dumps({"convolutions.0.weight": entry}).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * 64


ENTRY = '"convolutions.0.weight": {{"dtype": "{}", "shape": [16], "data_offsets": [{}, {}]}}'


def claimed(*entries: str, more: int = 0, body: int = 64) -> bytes:
    """A file of these entries; more: bytes by which it claims a longer header; body: bytes of tensors."""
    text = f"{{{', '.join(entries)}}}".encode()
    return struct.pack("<Q", len(text) + more) + text + b"\0" * body


def of_two_readings(zero: str = "0") -> bytes:
    """A header in which one name has two types: the library takes the last one, other readers the first."""
    return claimed(ENTRY.format("F32", 0, 64), ENTRY.format("I32", 0, 64).replace("0.w", f"{zero}.w"))


def flipped() -> bytes:
    whole = bytearray(saved(conv_state()))
    whole[len(whole) // 2] ^= 1
    return bytes(whole)


def legacy(value: object) -> bytes:
    return saved(value, _use_new_zipfile_serialization=False)


def program(*parts: bytes) -> Callable[[Path], bytes]:
    """A whole file whose pickle is this program, of protocol 2."""
    return lambda folder: with_pickle(b"\x80\x02" + b"".join(parts) + b".")


def named(full: str) -> bytes:
    module, _, name = full.rpartition(":" if ":" in full else ".")
    return f"c{module}\n{name}\n".encode()


def text(words: str) -> bytes:
    return b"X" + struct.pack("<I", len(words)) + words.encode()


def shared(levels: int) -> bytes:
    """A tuple of itself twice, of itself twice ...: small in a file, and 2**levels long to walk through."""
    return b"K\x01" + b"".join(b"q" + bytes([k]) + b"h" + bytes([k]) + b"\x86" for k in range(levels))


def integers(count: int, value: bytes = b"N") -> bytes:
    """Keys that all have one hash, with a value each."""
    return b"".join(b"\x8a\x0c" + (k * (2**61 - 1)).to_bytes(12, "little") + value for k in range(1, count))


class Key:
    def __hash__(self) -> int:
        return 1

    def __reduce__(self):
        return (os.getenv, ("HOME",))


def legacy_program(program: bytes) -> bytes:
    begins = legacy({})
    return begins[: begins.index(b"\x80\x02}q\x00.", 30)] + b"\x80\x02" + program + b".\x80\x02]."


ONE_VALUE = torch.ones(1)
CALL, ONE, NONE, NEW, MOST = b"R", b"\x85", b")", b"\x81", b"J\xff\xff\xff\x7f\x85"
PAIRS = (named("collections.OrderedDict"), named("lightning.pytorch.utilities.parsing.AttributeDict"))
ENCODE, REBUILD = named("_codecs.encode"), named("torch._utils._rebuild_tensor_v2")
PARTIAL, SPACE = named("functools.partial"), named("types.SimpleNamespace")
HOSTILE: list[tuple[str, Callable[[Path], bytes]]] = [  # what is said, and the file
    ("two entries of the archive have names that differ only in upper and lower case", two_cases),
    ("a zip archive with two directories", lambda f: two_directories(rezipped(lambda *entry: entry))),
    (
        "a zip archive with two directories, or behind another",
        lambda f: saved({"a": 1}) + saved(conv_state()),
    ),
    ("asks for '(posix|nt).system'", lambda f: saved({"a": Runs(os.system, f"touch {f / CANARY}")})),
    ("asks for 'builtins.exec'", lambda f: saved(Runs(builtins.exec, sing(f)))),
    ("asks for 'builtins.eval'", lambda f: saved({"a": [(1, {"b": Runs(eval, sing(f))})]})),
    (r"asks for '\w+\.Popen'", lambda f: saved(Runs(subprocess.Popen, ["touch", str(f / CANARY)]))),
    ("runpy", lambda f: saved(Runs(runpy.run_path, str(f / "x.py")))),
    ("asks for '_?pickle.loads'", lambda f: saved(Runs(pickle.loads, pickle.dumps(Runs(exec, sing(f)))))),
    ("asks for 'torch.*load'", lambda f: saved(Runs(torch.load, "x"))),
    ("asks for 'builtins.getattr'", lambda f: saved(Runs(getattr, {}, "clear"))),
    (r"asks for '\w+.system'", lambda f: saved({"hyper_parameters": {"a": [Runs(os.system, "true")]}})),
    ("asks for", lambda f: saved({"state_dict": conv_state(), Key(): 1})),
    ("asks for 'builtins.exec'", lambda f: legacy({"a": Runs(exec, sing(f))})),
    ("a plain pickle", lambda f: pickle.dumps(Runs(exec, sing(f)))),
    ("which torch.save never", lambda f: with_pickle(pickle.dumps(Runs(exec, sing(f)), 4))),
    ("a tar archive", in_tar),
    ("asks for 'clutils.encoders.ConvNet'", lambda f: saved(encoders.build("conv16"))),
    # archives that are more than they seem, or less
    ("a zip bomb", lambda f: rezipped(lambda *entry: entry, a=torch.zeros(10_000_000))),
    ("leads out of the archive", lambda f: rezipped(lambda n, raw: (f"../../{n}", raw))),
    ("leads out", lambda f: rezipped(lambda n, raw: (f"/{n}", raw))),
    ("two entries", lambda f: twice_named()),
    ("0 data.pkl", lambda f: rezipped(lambda n, raw: None if n.endswith("data.pkl") else (n, raw))),
    ("two entries|0 data", lambda f: rezipped(lambda n, raw: (n + ".txt", raw))),
    ("the file holds none", lambda f: rezipped(lambda n, raw: None if n.endswith("/data/0") else (n, raw))),
    ("is damaged: bad checksum", lambda f: flipped()),
    # memory without a byte in the file
    ("claims 8,589,934,588 bytes", lambda f: enlarged()),
    (
        "which the file does not hold",
        lambda f: saved({"convolutions.0.weight": torch.ones(1).expand(10**13)}),
    ),
    ("asks for 'torch.Tensor'", program(named("torch.Tensor"), MOST, CALL)),
    ("asks for a bytearray of a length", program(named("__builtin__.bytearray"), MOST, CALL)),
    (
        "keys that take long to hash",
        program(named("__builtin__.set"), b"](", integers(1000, b""), b"e\x85R"),
    ),
    ("no tensors with names", program(named("__builtin__.xrange"), MOST, CALL)),
    ("calls 'torch.FloatStorage'", program(named("torch.FloatStorage"), MOST, CALL)),
    ("no tensors with names", program(b"}r\xff\xff\xff\x7f")),  # a memo for which C's reader takes 16 GB
    ("damaged, or no checkpoint", program(b"ttR")),  # a stack run dry
    ("1 of its .* weight tensors hold NaN .*from before may be whole$", lambda f: saved(with_nan())),
    # time without a byte in the file: each of these ran for hours
    ("keys that take long to hash", program(b"}", shared(45), b"Ns")),
    ("keys that take long to hash", lambda f: legacy_program(b"}" + shared(45) + b"Ns")),
    ("keys that take long to hash", program(b"}K\x01", b"\x85" * 100_000, b"Ns")),
    ("keys that take long to hash", program(b"}(", integers(100_000), b"u")),
    *(("keys that take long", program(name, b"](", shared(45), b"N\x86e\x85R")) for name in PAIRS),
    ("keys that take long to hash", program(SPACE, b")\x81](", shared(45), b"N\x86eb")),
    *(
        ("keys that take long to hash", program(named(name), b"](", shared(45), b"e\x85R"))
        for name in ("__builtin__.set", "collections.Counter")
    ),
    ("with over 1,000 values", program(ENCODE, text("a"), shared(45), b"\x86R")),
    ("with over 1,000 values", program(named("torch.Size"), shared(45), b"\x85R")),
    (
        "copies what it holds over and over",
        program(text("a" * 10**6), b"q\x01", (ENCODE + b"h\x01" + text("latin1") + b"\x86R") * 100),
    ),
    ("copies what it holds", program(b"](", b"]" * 10**5, b"eq\x01", (PAIRS[0] + b"h\x01\x85R") * 100)),
    ("holds more than 50,000 tensors", program(REBUILD, b"q\x01)q\x02](", b"h\x01h\x02R" * 50_001, b"e")),
    (
        "names over 100,000 tensors",
        lambda f: saved({f"m{k}": {f"w{j}": ONE_VALUE for j in range(400)} for k in range(251)}),
    ),
    ("nothing but zeros", lambda f: b"\0" * 10**6),
    ("its keys are a$", program(b"}", text("a"), shared(45), b"s")),
    ("its keys are a tuple$", program(b"}K\x01", b"\x85" * 15, b"Ns")),
    # what is no checkpoint
    ("no tensors with names", lambda f: saved("hello")),
    ("no checkpoint of torch", lambda f: b"XX" + saved(conv_state())[2:]),
    ("is empty", lambda f: b""),
    ("a text file", lambda f: b"hello, world\n"),
    ("is ONNX", lambda f: b"\x08\x07\x12\x07pytorch"),
    ("a web page", lambda f: b"<!DOCTYPE html><html>404</html>"),
    ("git lfs pull", lambda f: b"version https://git-lfs.github.com/spec/v1\noid 1\n"),
    ("no checkpoint|plain pickle", lambda f: bytes(range(128, 256)) * 100),
    # .safetensors whose headers have no end, are no JSON, or claim what is not there
    ("no .safetensors file", lambda f: struct.pack("<Q", 1 << 39) + b"{" * 99),
    ("no .safetensors file", lambda f: struct.pack("<Q", 64) + b"{" * 99),
    ("no .safetensors", lambda f: struct.pack("<Q", 100_010) + b'{"a":' + b"[" * 100_005 + b"]" * 9),
    ("no .safetensors file", lambda f: header(dtype="F32", shape=[10**9, 10**9], data_offsets=[0, 64])),
    ("no .safetensors file", lambda f: header(dtype="F32", shape=[-4, -4], data_offsets=[0, 64])),
    ("no .safetensors file", lambda f: header(dtype="F32", shape=[99], data_offsets=[0, 396])),
    ("float8_e4m3fn, which no encoder", lambda f: header(dtype="F8_E4M3", shape=[64], data_offsets=[0, 64])),
    ("no .safetensors file", lambda f: header(dtype="F1", shape=[16], data_offsets=[0, 64])),
    ("no .safetensors file", lambda f: header(shape="all")),
    ("'convolutions.0.weight' is in it twice", lambda f: of_two_readings()),
    (
        "'convolutions.0.weight' is in it twice",
        lambda f: of_two_readings("\\u0030"),
    ),
    ("'dtype' is in it twice", lambda f: claimed(ENTRY.format('F32", "dtype": "I32', 0, 64))),
    ("'__metadata__' is in it twice", lambda f: claimed('"__metadata__": {}', '"__metadata__": {}')),
    (
        "invalid offset",
        lambda f: claimed(ENTRY.format("F32", 0, 64), f'"b{ENTRY.format("F32", 32, 96)[1:]}', body=96),
    ),
    (
        "invalid offset",
        lambda f: claimed(ENTRY.format("F32", 0, 64), f'"b{ENTRY.format("F32", 0, 64)[1:]}'),
    ),
    ("not fully covered", lambda f: claimed(ENTRY.format("F32", 0, 64), body=99)),
    ("invalid header length", lambda f: claimed(ENTRY.format("F32", 0, 64), more=9999)),
    # what aims at a stand-in
    ("asks for 'os.system'", program(PARTIAL, named("os.system"), ONE, CALL)),
    ("something that it built", program(PARTIAL, named("builtins.int"), ONE, CALL, text("1"), ONE, CALL)),
    ("'builtins.eval'", program(PARTIAL, named("__builtin__.eval"), ONE, CALL)),
    ("'builtins.getattr'", program(PARTIAL, named("builtins.getattr"), ONE, CALL)),
    ("'builtins.exec'", program(named("collections.defaultdict"), named("builtins.exec"), ONE, CALL)),
    ("calls 'builtins.list'", program(named("builtins.list"), text("aa"), ONE, CALL)),
    ("calls 'builtins.str'", program(named("builtins.str"), text("a"), ONE, NEW)),
    ("calls 'torch.optim.adam.Adam'", program(named("torch.optim.adam.Adam"), b"]", ONE, CALL)),
    ("calls 'typing.Any'", program(named("typing.Any"), NONE, CALL)),
    ("OmegaConf.load", program(named("omegaconf.omegaconf:OmegaConf.load"), text("x"), ONE, CALL)),
    ("hydra.utils", program(named("hydra.utils.instantiate"), b"}", ONE, CALL)),
    ("asks for", program(named("types:SimpleNamespace.__init__.__globals__"))),
    ("asks for", program(named("functools:partial.func"))),
    ("calls 'functools.partial'", program(PARTIAL, b"]", CALL)),
    ("calls 'something that it built'", program(SPACE, NONE, CALL, NONE, CALL)),
    ("STACK_GLOBAL", program(text("datetime"), text("datetime"), b"\x93")),
    ("which torch.save never writes", program(b"(itypes\nSimpleNamespace\n")),
    # neighbours of what is listed
    *(
        (name, program(named(name), NONE, CALL))
        for name in (
            *("typing.get_type_hints", "functools.reduce", "types.FunctionType", "types.CodeType"),
            *("collections.namedtuple", "_functools.partial"),
        )
    ),
]


@pytest.mark.parametrize(("said", "make"), HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_nothing_in_it_runs(said, make, tmp_path):
    path = tmp_path / "file.ckpt"
    path.write_bytes(make(tmp_path))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=said) as caught:
        checkpoints.open(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert not (tmp_path / CANARY).exists()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB on Linux
    assert grown < 200_000 * (1024 if sys.platform == "darwin" else 1)


def test_a_pickle_may_be_as_long_as_that_of_a_run_of_100_000_steps(tmp_path, monkeypatch):
    row = {f"number {k}": k * 0.1 for k in range(15)}

    def length(steps: int) -> tuple[int, int]:
        with zipfile.ZipFile(io.BytesIO(saved({"history": [dict(row) for _ in range(steps)]}))) as archive:
            pickled = archive.read(next(name for name in archive.namelist() if name.endswith("data.pkl")))
        return sum(1 for _ in pickletools.genops(pickled)), len(pickled)

    (few, few_bytes), (more, more_bytes) = length(100), length(200)
    assert 1000 * (more - few) < reading.INSTRUCTIONS
    assert 1000 * (more_bytes - few_bytes) < reading.STEP_BYTES * reading.INSTRUCTIONS
    monkeypatch.setattr(reading, "INSTRUCTIONS", few)
    (tmp_path / "long.pt").write_bytes(saved({"history": [dict(row) for _ in range(200)]}))
    with pytest.raises(ValueError, match=r"its pickle has [0-9,]+ bytes without any tensor"):
        checkpoints.open(tmp_path / "long.pt")


def test_what_is_no_regular_file_is_said_to_be_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe.pt")
    (tmp_path / "nowhere.pt").symlink_to("gone.pt")
    (tmp_path / "loop.pt").symlink_to("loop.pt")
    (tmp_path / "endless.pt").symlink_to("/dev/zero")
    for name, said in {
        "pipe": "is a named pipe",
        "endless": "is a device",
    }.items():
        with pytest.raises(ValueError, match=said):
            checkpoints.open(tmp_path / f"{name}.pt")
    for name in ("nowhere", "loop"):
        with pytest.raises(FileNotFoundError, match=r"there is no file .* \(a link that leads nowhere\)"):
            checkpoints.open(tmp_path / f"{name}.pt")
    with pytest.raises(ValueError, match="is a folder, but a checkpoint is a file; name the file"):
        checkpoints.open(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.pt$"):
        checkpoints.open(tmp_path / "nothing.pt")


@pytest.mark.parametrize("form", ["torch", "torch before 1.6", "safetensors"])
def test_a_file_cut_off_anywhere_is_refused(form, tmp_path):
    state = conv_state()
    make = {"torch": saved, "torch before 1.6": legacy, "safetensors": safetensors.torch.save}[form]
    whole, path = make(state), tmp_path / "cut.pt"
    path.write_bytes(whole)
    opened = checkpoints.open(path)
    assert (opened.arch, opened.kind) == ("conv16", form)
    own = opened.encoder.state_dict()
    assert all(torch.equal(own[name], value) for name, value in state.items())
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(ValueError) as caught:
            checkpoints.open(path)
        assert "\n" not in str(caught.value)
        assert tenth < 2 or "truncated" in str(caught.value)


def test_no_name_on_the_list_can_call_or_take_memory():
    built = {f"torch._utils._rebuild_{what}" for what in ("tensor", "tensor_v2", "parameter")}
    others = {"collections.OrderedDict", "torch.Size", "torch.device", "_codecs.encode"}
    others |= {"builtins.set", "builtins.complex", "builtins.bytearray"}
    assert reading.CALLED - set(reading.STAND_INS) == built | others
    assert set(reading.STAND_INS.values()) == {argparse.Namespace, dict, reading.Plain, reading.Nothing}
    assert not reading.INGREDIENTS & reading.CALLED


def test_what_is_listed_as_harmless_is_kept_or_becomes_nothing(tmp_path):
    value = {
        "best": np.float64(0.9),
        "folder": Path("a/b"),
        "order": collections.OrderedDict(a=1),
        "array": np.arange(3),
        "optimizer": functools.partial(torch.optim.Adam, lr=1e-3),
        "counts": collections.defaultdict(list, {"lr": [0.1]}),
        "written": datetime.datetime(2024, 5, 6),
        "took": datetime.timedelta(hours=3),
        "torch": torch.torch_version.TorchVersion("2.4.0"),
        "types": [int, str, float, list, bytes, object],
        "values": [range(3), slice(1, 2), 1 + 2j, {1, 2}, frozenset([3])],
        "bytes": [b"", b"a", bytearray(b"ab"), bytearray(), decimal.Decimal("1.5"), datetime.UTC],
    }
    for key, options in (("args", argparse.Namespace), ("hyper_parameters", types.SimpleNamespace)):
        torch.save(value | {"state_dict": conv_state(), key: options(temperature=0.5)}, tmp_path / "a.pt")
        assert checkpoints.open(tmp_path / "a.pt").temperature == 0.5
    found = reading.read(tmp_path / "a.pt")[0]
    assert all(isinstance(found[name], reading.Nothing) for name in ("best", "folder", "optimizer"))
    assert found["counts"] == {"lr": [0.1]} and found["order"] == {"a": 1}


def test_torchscript_is_called_what_it_is(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases would rather have another format
        torch.jit.script(torch.nn.Linear(300, 300)).save(tmp_path / "script.pt")
    with pytest.raises(ValueError, match="is TorchScript, which holds code"):
        checkpoints.open(tmp_path / "script.pt")


def test_a_stand_in_keeps_nothing_of_what_it_is_told_to_become(tmp_path):
    """`__class__` and `__reduce__` in a state are an attribute's name and a value here."""
    state = b"}(" + text("__class__") + named("builtins.dict") + text("temperature") + b"G"
    state += struct.pack(">d", 0.4) + b"u"
    (tmp_path / "a.pt").write_bytes(program(b"}", text("args"), SPACE, NONE, CALL, state, b"bs")(tmp_path))
    found = reading.read(tmp_path / "a.pt")[0]["args"]
    assert type(found) is argparse.Namespace


def test_full_unpickling_is_nowhere_in_the_package():
    folder = Path(reading.__file__).parents[1]
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8")
        assert "weights_only=False" not in text, file
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "torch.load":
                given = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
                assert given["weights_only"] == "True", file


@pytest.mark.parametrize(
    "odd",
    [
        {"args": {"temperature": 2**2000, "t": 0.5}, "epoch": 2**2000},
        {"hyper_parameters": {"temperature": -(2**70), "t": 0.5, 3: 4, "a" * 600: 1}, "epoch": -(2**2000)},
        {"configuration": [1, 2], "settings": {"t": 0.5, "config": [{"t": 0.1}]}},
        {"configuration": {"t": 0.1, "loss": {"t": 0.5}, "args": [1]}, "args": {"t": 0.2}},
    ],
)
def test_settings_may_be_anything_and_what_is_no_number_is_passed_over(odd, tmp_path):
    state = {f"encoder.{name}": value for name, value in conv_state().items()}
    torch.save({"method": state, **odd}, tmp_path / "a.pt")
    opened = checkpoints.open(tmp_path / "a.pt")
    assert (opened.temperature, opened.epoch) == (0.5, None)
    assert all(abs(v) < 2**63 for v in opened.settings.values() if isinstance(v, int))


def test_a_good_encoder_opens_beside_much_else_within_20_seconds(tmp_path):
    """Names beside the encoder were looked up in a list, each anew: 45,000 took minutes."""
    many = {f"w{k}": ONE_VALUE for k in range(5_000)}
    moments = {f"encoder.{k}": {"exp_avg": ONE_VALUE, "exp_avg_sq": ONE_VALUE} for k in range(5_000)}
    state = prefixed("encoder.", conv_state()) | {f"encoder.x{k}": ONE_VALUE for k in range(40_000)}
    torch.save({"ema": many, "optimizer": {"state": moments}, "state_dict": state}, tmp_path / "a.pt")
    before = time.process_time()
    opened = checkpoints.open(tmp_path / "a.pt")
    assert opened.arch == "conv16" and len(opened.unexpected) == 40_000
    assert time.process_time() - before < 20


WEIGHTS = {  # what they become -> what is said
    "int8": (lambda v: (10 * v).to(torch.int8), "weight tensors hold int8 .*quantised"),
    "bool": (lambda v: v > 0, "weight tensors hold bool"),
    "complex": (lambda v: v.to(torch.complex64), "weight tensors hold complex64"),
}


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("form", ["torch", "safetensors"])
def test_weights_that_are_no_floating_point_numbers_are_refused(kind, form, tmp_path):
    become, said = WEIGHTS[kind]
    state = {name: become(v) if v.is_floating_point() else v for name, v in conv_state().items()}
    (tmp_path / "a.pt").write_bytes(saved(state) if form == "torch" else safetensors.torch.save(state))
    with pytest.raises(ValueError, match=said if (kind, form) != ("complex", "safetensors") else "complex64"):
        checkpoints.open(tmp_path / "a.pt")
    one = "convolutions.2.weight"
    (tmp_path / "a.pt").write_bytes(saved(conv_state() | {one: state[one]}))
    with pytest.raises(ValueError, match=f"1 of its .* hold {'complex64' if kind == 'complex' else kind}"):
        checkpoints.open(tmp_path / "a.pt")


def test_a_list_in_the_settings_of_omegaconf_opens(tmp_path):
    """Protocol 2 writes int as '__builtin__ long', by the name that Python 2 had."""
    omegaconf = pytest.importorskip("omegaconf", reason="OmegaConf is not installed")
    settings = omegaconf.OmegaConf.create({"gpus": [0, 1], "steps": [60, 80], "inner": {"rate": None}})
    lightning = {"pytorch-lightning_version": "2.4", "hyper_parameters": settings}
    torch.save({"state_dict": conv_state(), **lightning}, tmp_path / "a.ckpt")
    assert checkpoints.open(tmp_path / "a.ckpt").arch == "conv16"
