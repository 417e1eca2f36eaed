"""Nothing hostile runs, and what is damaged is refused in one line."""

import argparse
import ast
import builtins
import collections
import datetime
import functools
import io
import json
import os
import pickle
import resource
import runpy
import struct
import subprocess
import sys
import tarfile
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
from tests.checkpoints.files import conv_state, saved


class Runs:
    """Pickled, it is a call."""

    def __init__(self, function: Callable, *arguments: object) -> None:
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


CANARY = "canary-that-must-not-sing"


def touching(folder: Path) -> str:
    return f"open({str(folder / CANARY)!r}, 'w').close()"


def rezipped(source: bytes, change: Callable[[str, bytes], tuple[str, bytes] | None], how: int = 0) -> bytes:
    """The same archive with entries changed, renamed or left out."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(source)) as old, zipfile.ZipFile(written, "w", how) as new:
        for name in old.namelist():
            entry = change(name, old.read(name))
            if entry is not None:
                new.writestr(*entry)
    return written.getvalue()


def with_pickle(program: bytes) -> bytes:
    whole = saved(conv_state())
    return rezipped(whole, lambda name, raw: (name, program if name.endswith("data.pkl") else raw))


def enlarged(by: int) -> bytes:
    """A storage's count of values raised in the pickle: 432 weights of the first convolution."""
    count = struct.pack("<BH", ord("M"), 432)
    return rezipped(
        saved(conv_state()),
        lambda name, raw: (
            name,
            raw.replace(count, b"J" + struct.pack("<i", by)) if name.endswith("data.pkl") else raw,
        ),
    )


def stretched() -> dict[str, torch.Tensor]:
    """A tensor of 10^13 values that are one value."""
    return conv_state() | {"convolutions.0.weight": torch.ones(1).expand(10**13)}


def bombed() -> bytes:
    return rezipped(saved({"a": torch.zeros(10_000_000)}), lambda *entry: entry, zipfile.ZIP_DEFLATED)


def with_nan() -> dict[str, torch.Tensor]:
    state = {name: value.clone() for name, value in conv_state().items()}
    state["convolutions.1.weight"][0, 0, 0, 0] = torch.nan
    return state


def in_tar(folder: Path) -> bytes:
    """The oldest format of torch, whose reader once ran code in spite of weights_only."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        program = pickle.dumps(Runs(builtins.exec, touching(folder)))
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


def header(**entry: object) -> bytes:
    text = json.dumps({"convolutions.0.weight": entry}).encode()
    return struct.pack("<Q", len(text)) + text + b"\0" * 64


def lightning(value: object) -> dict:
    return {
        "state_dict": conv_state(),
        "pytorch-lightning_version": "2.0",
        "hyper_parameters": {"a": [value]},
    }


def legacy(value: object) -> bytes:
    return saved(value, _use_new_zipfile_serialization=False)


def moved_memo() -> bytes:
    return b"\x80\x02}r\xff\xff\xff\x7f."  # memo number 2^31 - 1: C's reader would take 16 GB


def claims_a_tensor(count: int) -> bytes:
    """torch.Tensor(count), called in the pickle: memory without a byte in the file."""
    return b"\x80\x02ctorch\nTensor\nJ" + struct.pack("<i", count) + b"\x85R."


HOSTILE: dict[str, tuple[Callable[[Path], bytes | object], str]] = {
    "os.system": (
        lambda f: saved({"a": Runs(os.system, f"touch {f / CANARY}")}),
        "asks for '(posix|nt).system'",
    ),
    "exec": (lambda f: saved(Runs(builtins.exec, touching(f))), "asks for 'builtins.exec'"),
    "eval, nested": (
        lambda f: saved({"a": [(1, {"b": Runs(eval, touching(f))})]}),
        "asks for 'builtins.eval'",
    ),
    "subprocess": (
        lambda f: saved(Runs(subprocess.Popen, ["touch", str(f / CANARY)])),
        r"asks for '\w+\.Popen'",
    ),
    "runpy": (lambda f: saved(Runs(runpy.run_path, str(f / "x.py"))), "runpy"),
    "a pickle in a pickle": (
        lambda f: saved(Runs(pickle.loads, pickle.dumps(Runs(exec, touching(f))))),
        "asks for '_?pickle.loads'",
    ),
    "torch.load in a pickle": (lambda f: saved(Runs(torch.load, "x")), "asks for 'torch.*load'"),
    "getattr": (lambda f: saved(Runs(getattr, {}, "clear")), "asks for 'builtins.getattr'"),
    "in Lightning's settings": (
        lambda f: saved(lightning(Runs(os.system, "true"))),
        r"asks for '\w+.system'",
    ),
    "in a key": (lambda f: saved({"state_dict": conv_state(), Key(): 1}), "asks for"),
    "a file of torch before 1.6": (
        lambda f: legacy({"a": Runs(exec, touching(f))}),
        "asks for 'builtins.exec'",
    ),
    "a plain pickle": (lambda f: pickle.dumps(Runs(exec, touching(f))), "a plain pickle"),
    "protocol 4": (lambda f: with_pickle(pickle.dumps(Runs(exec, touching(f)), 4)), "which torch.save never"),
    "a tar": (in_tar, "a tar archive"),
    "a whole module": (lambda f: saved(encoders.build("conv16")), "asks for 'clutils.encoders.ConvNet'"),
    "a zip bomb": (lambda f: bombed(), "a zip bomb"),
    "a path that leads out": (
        lambda f: rezipped(saved(conv_state()), lambda n, raw: (f"../../{n}", raw)),
        "leads out of the archive",
    ),
    "an absolute path": (lambda f: rezipped(saved(conv_state()), lambda n, raw: (f"/{n}", raw)), "leads out"),
    "two pickles of one name": (lambda f: twice_named(), "two entries"),
    "no pickle": (
        lambda f: rezipped(saved(conv_state()), lambda n, raw: None if n.endswith("data.pkl") else (n, raw)),
        "0 data.pkl",
    ),
    "a storage that is missing": (
        lambda f: rezipped(saved(conv_state()), lambda n, raw: None if n.endswith("/data/0") else (n, raw)),
        "the file holds none",
    ),
    "a storage of 8 GB": (lambda f: enlarged(2**31 - 1), "claims 8,589,934,588 bytes"),
    "a stretched tensor": (lambda f: saved(stretched()), "which the file does not hold"),
    "a tensor by its count": (lambda f: with_pickle(claims_a_tensor(2**31 - 1)), "asks for 'torch.Tensor'"),
    "a bytearray by its count": (
        lambda f: with_pickle(b"\x80\x02c__builtin__\nbytearray\nJ\xff\xff\xff\x7f\x85R."),
        "asks for 'builtins.bytearray'",
    ),
    "a memo of 16 GB": (lambda f: with_pickle(moved_memo()), "no tensors with names"),
    "a storage called": (
        lambda f: with_pickle(b"\x80\x02ctorch\nFloatStorage\nJ\xff\xff\xff\x7f\x85R."),
        "calls 'torch.FloatStorage'",
    ),
    "a stack run dry": (lambda f: with_pickle(b"\x80\x02ttR."), "damaged, or no checkpoint"),
    "NaN weights": (
        lambda f: saved(with_nan()),
        "1 of its .* weight tensors holds NaN .*from before may be whole$",
    ),
    "only text": (lambda f: saved("hello"), "no tensors with names"),
    "wrong magic": (lambda f: b"XX" + saved(conv_state())[2:], "no checkpoint of torch"),
    "empty": (lambda f: b"", "is empty"),
    "a text": (lambda f: b"hello, world\n", "a text file"),
    "a web page": (lambda f: b"<!DOCTYPE html><html>404</html>", "a web page"),
    "a Git LFS pointer": (lambda f: b"version https://git-lfs.github.com/spec/v1\noid 1\n", "git lfs pull"),
    "noise": (lambda f: bytes(range(128, 256)) * 100, "no checkpoint|plain pickle"),
    "a zip of something else": (
        lambda f: rezipped(saved({}), lambda n, raw: (n + ".txt", raw)),
        "two entries|0 data",
    ),
    "a header without end": (
        lambda f: struct.pack("<Q", 1 << 39) + b"{" * 99,
        "no .safetensors file",
    ),
    "a header that is no JSON": (lambda f: struct.pack("<Q", 64) + b"{" * 99, "no .safetensors file"),
    "a header of deep brackets": (
        lambda f: struct.pack("<Q", 100_010) + b'{"a":' + b"[" * 100_005 + b"]" * 9,
        "no .safetensors file",
    ),
    "a shape of 10^18": (
        lambda f: header(dtype="F32", shape=[10**9, 10**9], data_offsets=[0, 64]),
        "no .safetensors file",
    ),
    "a shape below 0": (
        lambda f: header(dtype="F32", shape=[-4, -4], data_offsets=[0, 64]),
        "no .safetensors file",
    ),
    "bytes beyond the end": (
        lambda f: header(dtype="F32", shape=[99], data_offsets=[0, 396]),
        "no .safetensors file",
    ),
    "a type of no encoder": (
        lambda f: header(dtype="F8_E4M3", shape=[64], data_offsets=[0, 64]),
        "float8_e4m3fn, which no encoder",
    ),
    "an unknown type": (
        lambda f: header(dtype="F1", shape=[16], data_offsets=[0, 64]),
        "no .safetensors file",
    ),
    "an entry that is none": (lambda f: header(shape="all"), "no .safetensors file"),
}


class Key:
    def __hash__(self) -> int:
        return 1

    def __reduce__(self):
        return (os.getenv, ("HOME",))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line_and_nothing_in_it_runs(name, tmp_path):
    make, said = HOSTILE[name]
    path = tmp_path / "file.ckpt"
    path.write_bytes(make(tmp_path))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=said) as caught:
        checkpoints.open(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
    assert not (tmp_path / CANARY).exists()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB on Linux
    assert grown < 200_000 * (1024 if sys.platform == "darwin" else 1)


def test_a_folder_and_no_file_are_said_to_be_so(tmp_path):
    with pytest.raises(ValueError, match="is a folder, but a checkpoint is a file"):
        checkpoints.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        checkpoints.open(tmp_path / "nothing.pt")


@pytest.mark.parametrize("form", ["zip", "legacy", "safetensors"])
def test_a_file_cut_off_anywhere_is_refused(form, tmp_path):
    state = conv_state()
    make = {"zip": saved, "legacy": legacy, "safetensors": safetensors.torch.save}[form]
    whole, path = make(state), tmp_path / "cut.pt"
    path.write_bytes(whole)
    assert checkpoints.open(path).arch == "conv16"
    for tenth in range(10):
        path.write_bytes(whole[: len(whole) * tenth // 10])
        with pytest.raises(ValueError) as caught:
            checkpoints.open(path)
        assert "\n" not in str(caught.value)
        assert tenth < 2 or "truncated" in str(caught.value)


def test_a_flipped_byte_is_a_damaged_file(tmp_path):
    whole = bytearray(saved(conv_state()))
    whole[len(whole) // 2] ^= 1
    (tmp_path / "a.pt").write_bytes(whole)
    with pytest.raises(ValueError, match="checksum"):
        checkpoints.open(tmp_path / "a.pt")


def test_what_is_listed_as_harmless_is_kept_or_becomes_nothing(tmp_path):
    value = {
        "state_dict": conv_state(),
        "args": argparse.Namespace(temperature=0.5),
        "best": np.float64(0.9),
        "folder": Path("a/b"),
        "order": collections.OrderedDict(a=1),
        "array": np.arange(3),
    }
    torch.save(value, tmp_path / "a.pt")
    contents = reading.read(tmp_path / "a.pt")
    assert isinstance(contents.state["best"], reading.Nothing)
    assert isinstance(contents.state["folder"], reading.Nothing)
    assert checkpoints.open(tmp_path / "a.pt").temperature == 0.5


def test_no_name_on_the_list_can_call_or_take_memory():
    calls = reading.CALLED - set(reading.STAND_INS)
    assert calls == {
        "collections.OrderedDict",
        "torch._utils._rebuild_tensor",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        "torch.Size",
        "torch.device",
        "_codecs.encode",
    }
    assert set(reading.STAND_INS.values()) == {argparse.Namespace, dict, reading.Plain, reading.Nothing}
    assert not reading.INGREDIENTS & reading.CALLED


def test_what_configuration_libraries_leave_is_read_and_stands_for_nothing(tmp_path):
    counts = collections.defaultdict(list, {"lr": [0.1]})
    value = {
        "state_dict": conv_state(),
        "hyper_parameters": types.SimpleNamespace(temperature=0.3, model="conv16"),
        "optimizer": functools.partial(torch.optim.Adam, lr=1e-3),
        "counts": counts,
        "written": datetime.datetime(2024, 5, 6),
        "took": datetime.timedelta(hours=3),
        "torch": torch.torch_version.TorchVersion("2.4.0"),
    }
    torch.save(value, tmp_path / "a.pt")
    contents = reading.read(tmp_path / "a.pt")
    assert isinstance(contents.state["optimizer"], reading.Nothing)
    assert contents.state["counts"] == {"lr": [0.1]}
    assert checkpoints.open(tmp_path / "a.pt").temperature == 0.3


def test_torchscript_is_called_what_it_is(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases would rather have another format
        torch.jit.script(torch.nn.Linear(300, 300)).save(tmp_path / "script.pt")
    with pytest.raises(ValueError, match="is TorchScript, which holds code"):
        checkpoints.open(tmp_path / "script.pt")


def aimed(*program: bytes) -> Callable[[Path], bytes]:
    """A whole file whose pickle is this program, of protocol 2."""
    return lambda folder: with_pickle(b"\x80\x02" + b"".join(program) + b".")


def named(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def text(words: str) -> bytes:
    return b"X" + struct.pack("<I", len(words)) + words.encode()


CALL, ONE, BUILD, NEW = b"R", b"\x85", b"b", b"\x81"
PARTIAL, SYSTEM = named("functools", "partial"), named("os", "system")
AIMED: dict[str, tuple[Callable[[Path], bytes], str]] = {  # at the stand-ins -> what is said
    "a partial of os.system": (aimed(PARTIAL, SYSTEM, ONE, CALL), "asks for 'os.system'"),
    "a partial, called": (
        aimed(PARTIAL, named("builtins", "int"), ONE, CALL, text("1"), ONE, CALL),
        "calls 'something that it built'",
    ),
    "a partial of eval": (aimed(PARTIAL, named("__builtin__", "eval"), ONE, CALL), "'builtins.eval'"),
    "a partial of getattr": (aimed(PARTIAL, named("builtins", "getattr"), ONE, CALL), "'builtins.getattr'"),
    "a default made by exec": (
        aimed(named("collections", "defaultdict"), named("builtins", "exec"), ONE, CALL),
        "'builtins.exec'",
    ),
    "an ingredient called": (
        aimed(named("builtins", "list"), text("aa"), ONE, CALL),
        "calls 'builtins.list'",
    ),
    "an ingredient made anew": (aimed(named("builtins", "str"), text("a"), ONE, NEW), "calls 'builtins.str'"),
    "an optimiser called": (
        aimed(named("torch.optim.adam", "Adam"), b"]", ONE, CALL),
        "calls 'torch.optim.adam.Adam'",
    ),
    "typing called": (aimed(named("typing", "Any"), b")", CALL), "calls 'typing.Any'"),
    "another name of typing": (aimed(named("typing", "get_type_hints"), b")", CALL), "typing.get_type_hints"),
    "another of functools": (aimed(named("functools", "reduce"), b")", CALL), "functools.reduce"),
    "another of types": (aimed(named("types", "FunctionType"), b")", CALL), "types.FunctionType"),
    "code": (aimed(named("types", "CodeType"), b")", CALL), "types.CodeType"),
    "another of collections": (
        aimed(named("collections", "namedtuple"), b")", CALL),
        "collections.namedtuple",
    ),
    "omegaconf's loader": (
        aimed(named("omegaconf.omegaconf", "OmegaConf.load"), text("x"), ONE, CALL),
        "OmegaConf.load",
    ),
    "hydra's instantiate": (aimed(named("hydra.utils", "instantiate"), b"}", ONE, CALL), "hydra.utils"),
    "a dotted way out": (aimed(named("types", "SimpleNamespace.__init__.__globals__")), "asks for"),
    "a dotted way through partial": (aimed(named("functools", "partial.func")), "asks for"),
    "the module under another name": (
        aimed(named("_functools", "partial"), b")", CALL),
        "_functools.partial",
    ),
    "an argument that is no tuple": (aimed(PARTIAL, b"]", CALL), "calls 'functools.partial'"),
    "a namespace as a function": (
        aimed(named("types", "SimpleNamespace"), b")", CALL, b")", CALL),
        "calls 'something that it built'",
    ),
    "a date by protocol 4": (aimed(text("datetime"), text("datetime"), b"\x93"), "STACK_GLOBAL"),
    "an instance the old way": (aimed(b"(itypes\nSimpleNamespace\n"), "which torch.save never writes"),
}


@pytest.mark.parametrize("name", AIMED)
def test_what_aims_at_a_stand_in_is_refused(name, tmp_path):
    make, said = AIMED[name]
    (tmp_path / "file.ckpt").write_bytes(make(tmp_path))
    with pytest.raises(reading.Refused, match=said):
        reading.read(tmp_path / "file.ckpt")


def test_a_stand_in_keeps_nothing_of_what_it_is_told_to_become(tmp_path):
    """`__class__` and `__reduce__` in a state are an attribute's name and a value here."""
    state = b"}(" + text("__class__") + named("builtins", "dict") + text("temperature") + b"G"
    state += struct.pack(">d", 0.4) + b"u"
    program = b"}" + text("args") + named("types", "SimpleNamespace") + b")" + CALL + state + BUILD + b"s"
    (tmp_path / "a.pt").write_bytes(aimed(program)(tmp_path))
    found = reading.read(tmp_path / "a.pt").state["args"]
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
