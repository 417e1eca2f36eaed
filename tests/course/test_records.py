"""A record says where it came from, and can be read back."""

import re
import runpy

import pytest
import torch

from clutils.course import records


def test_a_row_comes_back_with_its_provenance(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1, "knn": 0.5})
    records.append("sample", {"seed": 2, "knn": 0.25})
    table = records.read("sample")
    assert table["knn"].tolist() == [0.5, 0.25]
    assert table["seed"].tolist() == [1, 2]
    row = table.iloc[0]
    assert row["machine"]
    assert f"torch=={torch.__version__.partition('+')[0]}" in row["versions"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])


def test_columns_that_do_not_fit_are_refused_and_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1, "knn": 0.5})
    with pytest.raises(ValueError, match=r"sample\.csv has the columns"):
        records.append("sample", {"seed": 2})
    assert len(records.read("sample")) == 1


def test_an_unknown_record_names_the_known_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    records.append("sample", {"seed": 1})
    with pytest.raises(FileNotFoundError, match=r"no record 'nothing'.*there are sample"):
        records.read("nothing")


def test_known_tells_which_runs_are_on_record(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert records.known("sample", "views", "seed") == set()
    records.append("sample", {"views": None, "seed": 1, "tau": 0.1})
    records.append("sample", {"views": "none", "seed": 2, "tau": 0.2})
    records.append("sample", {"views": "simclr", "seed": 2, "tau": 0.5})
    known = {("none", 1, 0.1), ("none", 2, 0.2), ("simclr", 2, 0.5)}
    assert records.known("sample", "views", "seed", "tau") == known


def test_keep_prints_a_row_rounded_and_records_it_when_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    row = {"command": "python run.py", "seed": 1, "knn": 1 / 3}
    records.keep("sample", row, record=False)
    assert capsys.readouterr().out == "seed 1 knn 0.33333\n"
    assert not list(tmp_path.iterdir())
    records.keep("sample", row, record=True)
    assert records.read("sample")["knn"].tolist() == [0.33333]


def test_every_committed_record_names_its_machine_and_commit():
    files = sorted(records.FOLDER.glob("*.csv"))
    for file in files:
        table = records.read(file.stem)
        for column in ("machine", "cores", "python", "versions", "date"):
            assert column in table, f"{file.name} lacks {column}"
            assert table[column].notna().all(), f"{file.name}: {column} is empty"
        for command in table.get("command", ()):  # none names a path of that machine
            assert re.fullmatch(r"python benchmarks/\w+\.py [^/]*--record[^/]*", command), command


def test_every_record_is_told_of_with_a_script_that_there_is():
    lines = (records.FOLDER / "README.md").read_text().splitlines()
    listed = {}
    for line in lines:
        if line.startswith("| `"):
            kept, _, script = (cell.strip() for cell in line.split("|")[1:4])
            for name in kept.replace("`", "").split(", "):
                listed[name if "." in name else f"{name}.csv"] = script.strip("`")
    files = {file.name for file in records.FOLDER.iterdir() if file.is_file() and file.name != "README.md"}
    inside = {name for name in listed if "/" in name}  # in the package, which reads them
    assert set(listed) - inside == files and all((records.ROOT / name).is_file() for name in inside)
    for name, script in listed.items():
        known = script == "python -m clutils train" or (records.ROOT / "benchmarks" / script).is_file()
        known |= re.fullmatch(r"\w+\.py` at [0-9a-f]{7}", script) is not None  # it went with what it measured
        assert known, f"{name}: no script {script}"


def test_what_is_promised_of_speed_is_on_record():
    """Twice lightly's images a second, float32 on both sides."""
    ratios = records.read("throughput").query("encoder == 'conv16'").set_index("ratio")["median"]
    assert ratios.loc[["clutils, float32 / lightly, float32"]].iloc[-1] >= 2


def test_a_ratio_of_speeds_is_taken_turn_by_turn():
    throughput = runpy.run_path(str(records.ROOT / "benchmarks" / "throughput.py"))
    found = throughput["ratio"]([4.0, 9.0, 40.0], [2.0, 3.0, 10.0])
    assert found == {"median": 3.0, "lowest": 2.0, "highest": 4.0}
    turns = iter(range(100))
    seconds = throughput["in_turns"]({"a": lambda: next(turns), "b": lambda: next(turns)}, 3)
    assert {name: len(found) for name, found in seconds.items()} == {"a": 3, "b": 3} and next(turns) == 8


@pytest.mark.parametrize("started_in", ["project", "project/notebooks", "project/notebooks/mine"])
def test_a_readers_own_run_is_found_from_wherever_a_notebook_runs(started_in, tmp_path, monkeypatch):
    (tmp_path / "project" / "notebooks" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / started_in)
    monkeypatch.setattr(records, "ROOT", tmp_path / "elsewhere")
    assert records.own_run("runs/pinda/noise_maps.npz") is None
    written = tmp_path / "project" / "runs" / "pinda" / "noise_maps.npz"
    written.parent.mkdir(parents=True)
    written.touch()
    assert records.own_run("runs/pinda/noise_maps.npz") == written
