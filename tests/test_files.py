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
