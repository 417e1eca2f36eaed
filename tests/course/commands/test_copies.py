"""`lab` opens copies: a clone stays clean, what was not worked in follows the project, work is kept."""

import json

import nbformat
import pytest

from clutils.course.commands import copies
from clutils.course.commands import lab as lab_module
from tests.commands.asked import run


def written(path, *sources, output=""):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source, id=f"c{k}") for k, source in enumerate(sources)]
    if output:
        notebook.cells[0].outputs = [nbformat.v4.new_output("stream", text=output)]
    nbformat.write(notebook, path)


@pytest.fixture
def notebooks(tmp_path):
    linked = "[data](../data/README.md), [next](01.ipynb), ![map](pictures/00.png)"
    written(tmp_path / "00_start_here.ipynb", "1 + 1", linked)
    written(tmp_path / "01_next.ipynb", "2 + 2")
    written(tmp_path / "stage_01.ipynb", "for a lecture")
    return tmp_path


def sources(path):
    return [cell.source for cell in nbformat.read(path, 4).cells]


def test_every_notebook_is_copied_and_its_links_lead_where_they_led(notebooks):
    mine, behind = copies.follow(notebooks)
    assert behind == [] and {path.name for path in mine.glob("*.ipynb")} == {
        "00_start_here.ipynb",
        "01_next.ipynb",
    }
    followed = "[data](../../data/README.md), [next](01.ipynb), ![map](../pictures/00.png)"
    assert sources(mine / "00_start_here.ipynb")[1] == followed


def test_a_copy_that_was_only_run_follows_and_one_that_was_worked_in_stays(notebooks):
    mine, _ = copies.follow(notebooks)
    written(mine / "00_start_here.ipynb", *sources(mine / "00_start_here.ipynb"), output="2")
    written(mine / "01_next.ipynb", "2 + 2", "my own line")
    assert copies.follow(notebooks)[1] == []  # nothing new: both stay, with outputs
    assert nbformat.read(mine / "00_start_here.ipynb", 4).cells[0].outputs
    written(notebooks / "00_start_here.ipynb", "1 + 2")
    written(notebooks / "01_next.ipynb", "2 + 3")
    _, behind = copies.follow(notebooks)
    assert sources(mine / "00_start_here.ipynb") == ["1 + 2"]
    assert sources(mine / "01_next.ipynb") == ["2 + 2", "my own line"]
    assert len(behind) == 1 and behind[0].startswith("01_next.ipynb has changed")
    (mine / "01_next.ipynb").unlink()  # as the line says
    assert copies.follow(notebooks)[1] == [] and sources(mine / "01_next.ipynb") == ["2 + 3"]


def test_a_copy_that_is_no_notebook_any_more_is_kept(notebooks):
    mine, _ = copies.follow(notebooks)
    (mine / "01_next.ipynb").write_text("half a file")
    written(notebooks / "01_next.ipynb", "2 + 3")
    assert len(copies.follow(notebooks)[1]) == 1 and (mine / "01_next.ipynb").read_text() == "half a file"


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(4))
def test_a_kill_at_any_write_makes_no_notebook_the_readers_work(notebooks, monkeypatch, write, after):
    """Record of what is coming, two copies, record: the third version then replaces whatever lies there."""
    copies.follow(notebooks)
    for version in ("2", "3"):
        for name in ("00_start_here.ipynb", "01_next.ipynb"):
            written(notebooks / name, version)
        if version == "2":
            written_whole, calls = copies.write_atomically, iter(range(4))

            def killed(path, content, whole=written_whole, calls=calls):
                last = next(calls) == write
                if not last or after:
                    whole(path, content)
                if last:
                    raise KeyboardInterrupt

            with monkeypatch.context() as here, pytest.raises(KeyboardInterrupt):
                here.setattr(copies, "write_atomically", killed)
                copies.follow(notebooks)
    mine, behind = copies.follow(notebooks)
    assert behind == [] and sources(mine / "00_start_here.ipynb") == sources(mine / "01_next.ipynb") == ["3"]


def test_a_damaged_record_keeps_what_is_there(notebooks):
    mine, _ = copies.follow(notebooks)
    written(mine / "01_next.ipynb", "2 + 2", "my own line")
    for damaged in ("", "[]", '{"01_next.ipynb": "7'):
        (mine / ".copied.json").write_text(damaged)
        written(notebooks / "01_next.ipynb", "2 + 2", damaged)
        assert len(copies.follow(notebooks)[1]) == 1
        assert sources(mine / "01_next.ipynb") == ["2 + 2", "my own line"]
    written(notebooks / "00_start_here.ipynb", "new")
    assert copies.follow(notebooks) and sources(mine / "00_start_here.ipynb") == ["new"]


def test_progress_and_runs_from_before_go_with_the_reader(notebooks):
    (notebooks / "my_runs" / "one").mkdir(parents=True)
    mine, _ = copies.follow(notebooks)
    assert (mine / "my_runs" / "one").is_dir()


def test_the_lab_opens_the_copy_or_says_why_not(notebooks, tmp_path_factory, monkeypatch, capsys):
    root = tmp_path_factory.mktemp("root")
    notebooks.rename(root / "notebooks")
    monkeypatch.setattr(lab_module, "ROOT", root)
    started = []
    monkeypatch.setattr(lab_module.os, "execv", lambda program, command: started.append(command))
    for name in ("JUPYTER_CONFIG_PATH", "PATH"):
        monkeypatch.setenv(name, "")
    run("lab")
    assert "--LabApp.default_url=/lab/tree/notebooks/mine/00_start_here.ipynb" in started[0]
    assert json.loads((root / "notebooks" / "mine" / ".copied.json").read_text()).keys() >= {"01_next.ipynb"}

    def refused(folder):
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(copies, "follow", refused)
    run("lab")
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in started[1]
    assert "can't be written: [Errno 13]" in capsys.readouterr().out
