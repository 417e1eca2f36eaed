"""Atomic writes: what another process has under way stays, and a failure names the file."""

import os

import pytest

from clutils import files


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
