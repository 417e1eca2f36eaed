"""The doctor sees each way in which widgets or the kernel can be broken, and is quiet about sound ones."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_core import paths

from clutils import __main__ as command_line
from clutils.commands import doctor

ROOT = Path(__file__).resolve().parents[2]


def problem(found: doctor.Finding) -> str:
    assert found.advice
    return found.detail


def without(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Pretend that this package is not installed."""
    real = importlib.metadata.version

    def version(name: str) -> str:
        if name == missing:
            raise importlib.metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A JupyterLab's folders with the widgets' extension in them: its package.json, and page_config.json."""
    files = {"package": tmp_path / "labextensions" / doctor.MANAGER / "package.json"}
    files["config"] = tmp_path / "labconfig" / "page_config.json"
    for file in files.values():
        file.parent.mkdir(parents=True)
    files["package"].write_text('{"version": "5.0.13"}')
    folders = [str(tmp_path / "none"), str(tmp_path)]
    monkeypatch.setattr(paths, "jupyter_path", lambda inside: [f"{folder}/{inside}" for folder in folders])
    monkeypatch.setattr(paths, "jupyter_config_path", lambda: folders)
    return files


def test_widgets_that_render_are_sound(request):
    assert not doctor.widgets().advice, "in this environment the browser tests show sliders"
    request.getfixturevalue("page")
    assert not doctor.widgets().advice


@pytest.mark.parametrize("name", ["ipywidgets", "jupyterlab_widgets", "jupyterlab"])
def test_a_missing_part_of_the_widgets_is_a_problem(monkeypatch, page, name):
    without(monkeypatch, name)
    assert f"{name} missing" in problem(doctor.widgets())


def switched_off(extensions: object) -> str:
    return json.dumps({"disabledExtensions": extensions})


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("package", None, "is not there"),
        ("package", "", "can't be read"),
        ("package", "{}", "can't be read"),
        ("package", "[1", "can't be read"),
        ("package", '{"version": "3.1.1"}', "of two generations"),
        ("config", switched_off({doctor.MANAGER: True}), "switched off in"),
        ("config", switched_off({f"{doctor.MANAGER}:plugin": True}), "switched off in"),
        ("config", switched_off([doctor.MANAGER]), "switched off in"),  # the older spelling
    ],
)
def test_widgets_without_their_extension_are_a_problem(page, file, content, said):
    path = page[file]
    path.unlink() if content is None else path.write_text(content)
    assert said in problem(doctor.widgets())


def test_other_extensions_may_be_switched_off(page):
    page["config"].write_text(switched_off({"@jupyterlab/news": True, doctor.MANAGER: False}))
    assert not doctor.widgets().advice


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/gone/bin/python", "python3 should run /gone/bin/python, which is not there"),
        ("/bin/sh", f"not {sys.executable}"),
        ("python", ""),
        (sys.executable, ""),
    ],
)
def test_a_kernel_of_the_user_s_own_that_comes_first_is_found(monkeypatch, tmp_path, command, said):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(json.dumps({"argv": [command, "-m", "ipykernel_launcher"], "display_name": "x"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = doctor.kernel()
    assert said in problem(found) if said else not found.advice


def test_a_package_that_runs_from_its_folder_without_being_installed_is_a_problem(monkeypatch):
    """Then `import clutils` works here and not in a notebook, which runs in another folder."""
    without(monkeypatch, "clutils")
    assert "won't find clutils" in problem(doctor.kernel())


@pytest.mark.parametrize(("advice", "code"), [("", 0), ("mend it", 1)])
def test_each_finding_is_a_line_and_a_problem_has_advice_below_it_and_an_exit_code(
    monkeypatch, capsys, advice, code
):
    monkeypatch.setattr(doctor, "kernel", lambda: doctor.Finding("fine"))
    monkeypatch.setattr(doctor, "widgets", lambda: doctor.Finding("found", advice))
    assert command_line.main(["doctor"]) == code
    said = ["problem  widgets  found", "         -> mend it"] if advice else ["ok       widgets  found"]
    assert capsys.readouterr().out.splitlines() == ["ok       kernel   fine", *said]


def test_it_answers_also_where_nothing_is_installed():
    """A Python with nothing but its standard library: every problem is listed, none is a traceback."""
    code = "import runpy, sys; sys.argv[1:] = ['doctor']; runpy.run_module('clutils', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "problem  kernel " in done.stdout and "problem  widgets " in done.stdout
