"""Atomic writes: what another process has under way stays, and a failure names the file."""

import io
import os
import struct
import warnings
import zipfile

import numpy as np
import pytest

from clutils import data, files
from clutils.training import noise_maps, saved
from tests.checkpoints.files import two_directories


def test_what_a_living_writer_has_under_way_is_left_alone(tmp_path):
    living = tmp_path / f".a.txt.{os.getppid()}.part"
    dead = tmp_path / f".a.txt.{2**22 + 1}.part"  # above the highest number of a process
    others = [tmp_path / ".b.txt.4194305.part", tmp_path / ".a.txt.x.part", tmp_path / "a.txt.4194305.part"]
    for path in (living, dead, *others):
        path.write_text("half")
    files.write_atomically(tmp_path / "a.txt", "whole, τ")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "whole, τ"
    assert not dead.exists() and all(path.exists() for path in (living, *others))


def test_a_file_that_can_not_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file where a folder should be")
    with pytest.raises(OSError, match=r"taken/run\.pt"):
        files.write_atomically(tmp_path / "taken" / "run.pt", b"")


def test_a_failure_says_that_something_was_kept_only_where_something_was(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '"):
        files.write_atomically(tmp_path / "run.pt", b"new")
    (tmp_path / "run.pt").write_bytes(b"old")
    with pytest.raises(OSError, match=r"No space left on device \(what was there before is kept\)"):
        files.write_atomically(tmp_path / "run.pt", b"new")
    assert (tmp_path / "run.pt").read_bytes() == b"old"


@pytest.mark.parametrize("where", [0, 3 << 20, (6 << 20) - 7])
def test_whose_a_file_is_is_read_at_its_ends_however_large_it_is(tmp_path, where):
    """A sign in the middle is not this package's: a file of terabytes is not read whole."""
    path = tmp_path / "somebodys.html"
    with open(path, "wb") as file:
        file.truncate(6 << 20)
        file.seek(where)
        file.write(files.SIGN)
    if where == 3 << 20:
        with pytest.raises(ValueError, match="is no file of this package"):
            files.demand_writable(path)
    else:
        files.demand_writable(path)


def two_readings(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile: the second one has the name of the first
        for name, rows in entries:
            np.lib.format.write_array(written := io.BytesIO(), rows)
            archive.writestr(name, written.getvalue())
    return path


def refused(path, why):
    """Every reader of an .npz refuses it in one line, and a set that was kept is fetched anew."""
    for read in (lambda p: data.load(f"vectors:array:{p}"), noise_maps.load, saved._map):
        with pytest.raises(ValueError, match=rf"own\.npz.*{why}") as caught:
            read(path)
        assert "\n" not in str(caught.value)
    assert data.vectors._kept(path) is None


TWICE = {
    "the same name": ["vectors.npy", "vectors.npy"],
    "another case": ["vectors.npy", "VECTORS.npy"],
    "without its suffix": ["vectors", "vectors.npy"],
    "its suffix twice": ["vectors.npy", "vectors.npy.npy"],
    "in the same folder, otherwise said": ["vectors.npy", "./vectors.npy"],
    "through another folder": ["vectors.npy", "a/../vectors.npy"],
    "cut short at a zero": ["vectors.npy", "vectors.npy\0x"],
}


@pytest.mark.parametrize("names", TWICE.values(), ids=TWICE)
def test_arrays_that_two_readers_would_find_differently_are_refused(tmp_path, names):
    rows = np.zeros((4, 2)), np.ones((4, 2))
    path = two_readings(tmp_path / "own.npz", zip(names, rows, strict=True))
    refused(path, "two arrays in it are called 'vectors'")


def other_archive(whole):
    """Another archive ahead, whose arrays a reader finds that goes from the first byte on; offsets fit."""
    end, ahead = whole.rindex(b"PK\x05\x06"), whole[: whole.index(b"PK\x01\x02")]
    (start,) = struct.unpack("<I", whole[end + 16 : end + 20])
    directory, far = bytearray(whole[start:end]), struct.pack("<I", len(ahead))
    directory[42:46], record = far, whole[end : end + 16] + struct.pack("<I", start + len(ahead))
    return ahead + whole[:start] + bytes(directory) + record + whole[end + 20 :]


@pytest.mark.parametrize("change", [two_directories, other_archive, lambda whole: whole + whole])
def test_arrays_in_two_archives_or_two_directories_are_refused(tmp_path, change):
    path = two_readings(tmp_path / "own.npz", [("vectors.npy", np.ones((4, 2)))])
    path.write_bytes(change(path.read_bytes()))
    refused(path, "two archives in one")


NUMBERS = ("vectors", "labels", "positions", "class_names", "step", "steps", "pictures", "scale", "mean")


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ((10**12, b"\0" * 64), "Unable to allocate|EOF: reading array data"),
        ((10**7, b"\0" * 64), "EOF: reading array data"),
        ((8, b"\0" * 63), "EOF: reading array data"),
    ],
)
def test_an_array_that_claims_more_than_the_file_holds_is_damage_in_one_line(tmp_path, entry, why):
    count, body = entry
    header = io.BytesIO()
    told = {"descr": "<f8", "fortran_order": False, "shape": (count, 1)}
    np.lib.format.write_array_header_1_0(header, told)
    with zipfile.ZipFile(tmp_path / "own.npz", "w") as archive:
        for name in NUMBERS:
            archive.writestr(f"{name}.npy", header.getvalue() + body)
    refused(tmp_path / "own.npz", f"({why})")


def test_one_array_alone_is_no_map_and_no_set(tmp_path):
    np.save(tmp_path / "own.npy", np.ones((4, 2)))
    for read in (noise_maps.load, saved._map):
        with pytest.raises(ValueError, match="File is not a zip file"):
            read(tmp_path / "own.npy")
    assert data.vectors._kept(tmp_path / "own.npy") is None


def test_arrays_that_unpack_to_gigabytes_are_refused_before_they_are(tmp_path, monkeypatch):
    for module, name in ((data.tables, "UNPACKED"), (noise_maps, "MOST"), (saved, "MOST")):
        monkeypatch.setattr(module, name, 1e5)
    path = two_readings(tmp_path / "own.npz", [("vectors.npy", np.zeros((200, 100)))])
    for read in (lambda p: data.load(f"vectors:array:{p}"), noise_maps.load, saved._map):
        with pytest.raises(ValueError, match="unpack to 160,128 bytes, and 100,000 are the most"):
            read(path)
    np.savez(path, vectors=np.random.default_rng(0).normal(size=(200, 100)))
    assert len(data.load(f"vectors:array:{path}")) == 200  # of its own size it may be any


def test_a_name_that_is_no_utf_8_is_written_with_a_backslash(tmp_path):
    files.write_atomically(tmp_path / "a.txt", os.fsdecode(b"bad\xff"))
    assert (tmp_path / "a.txt").read_bytes() == b"bad\\udcff"


@pytest.mark.parametrize("system", ["posix", "nt"])
def test_a_folder_is_one_writers_and_a_folder_that_stayed_empty_goes(tmp_path, system, monkeypatch):
    if system == "nt":  # where the lock is a file
        monkeypatch.setattr(files, "LOCKED_BY_A_FILE", True)
    folder = tmp_path / "deep" / "er"
    with files.claimed(folder):
        with pytest.raises(ValueError, match="another process is writing into"), files.claimed(folder):
            pass
        if system == "nt":
            next(folder.iterdir()).unlink()  # the system does it there
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    with files.claimed(folder):
        (folder / "run").write_text("")
    assert [path.name for path in folder.iterdir()] == ["run"]
