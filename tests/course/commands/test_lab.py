"""The course's commands: JupyterLab starts on the reader's copy, and a book says what it needs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from clutils.course.book import running, site
from clutils.course.commands import lab as lab_module
from tests.commands.asked import complaint, run

ROOT = Path(__file__).resolve().parents[3]


def lab(monkeypatch: pytest.MonkeyPatch, *rest: str, user: int = 1000, **variables: str) -> list[str]:
    """The command that starts JupyterLab for this user with these variables."""
    monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return lab_module.lab_command(rest)


def test_the_lab_opens_the_first_notebook_where_it_lies_and_what_the_reader_adds_wins(monkeypatch):
    command = lab(monkeypatch, "--port", "9999")
    assert command[:3] == [sys.executable, "-m", "jupyterlab"] and command[-2:] == ["--port", "9999"]
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in command
    assert f"--ServerApp.root_dir={ROOT}" in command and "--allow-root" not in command
    assert "--allow-root" in lab(monkeypatch, user=0)


def test_no_browser_is_looked_for_where_there_is_no_display(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    assert "--no-browser" in lab(monkeypatch)
    assert "--no-browser" not in lab(monkeypatch, DISPLAY=":0")
    assert "--no-browser" not in lab(monkeypatch, BROWSER="firefox")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "--no-browser" not in lab(monkeypatch)


def test_the_lab_asks_no_question_about_news_and_keeps_what_is_configured(monkeypatch, tmp_path):
    """JupyterLab reads defaults of its settings from `labconfig` in each folder of JUPYTER_CONFIG_PATH."""
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("PATH", os.environ["PATH"])  # the command adds to it
    monkeypatch.setattr(os, "execv", lambda program, command: None)
    assert run("lab", "--no-browser") in (0, None)
    ours, own = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert own == str(tmp_path)
    settings = json.loads(Path(ours, "labconfig", "default_setting_overrides.json").read_text("utf-8"))
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_a_package_without_its_notebooks_says_where_to_get_them(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(lab_module, "ROOT", tmp_path)
    assert run("lab") == 1
    assert "no notebook at" in complaint(capsys)


@pytest.mark.parametrize("command", ["book", "site"])
def test_a_book_without_its_packages_runs_no_notebook_and_prints_one_command(command, capsys, monkeypatch):
    monkeypatch.setattr(site.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(running, "executed", lambda: pytest.fail("notebooks were run"))
    assert run(command) == 1
    said = complaint(capsys)
    assert said.count("pip install") == 1 and said.endswith('[book]"\n')


def test_the_lab_starts_here_and_says_where(tmp_path):
    """The real JupyterLab: it takes our options, prints its address without a display, and asks no news."""
    private = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    started = [sys.executable, "-m", "clutils", "lab", "--port", "0", "--IdentityProvider.token=secret"]
    how = {"env": environment | private, "cwd": tmp_path, "text": True, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **how) as server:
        try:
            printed = (re.search(r"http://(?:localhost|127\.0\.0\.1):[1-9]\d*/\S*", s) for s in server.stdout)
            address = next(filter(None, printed))[0]
            assert "/lab/tree/notebooks/mine/00_start_here.ipynb" in address
            patient = HTTPAdapter(max_retries=Retry(100, backoff_factor=0.1, backoff_max=0.2))
            with requests.Session() as session:  # printed a moment before anyone answers there
                session.mount("http://", patient)
                page = session.get(address.replace("...", "secret"), timeout=30)
            assert '"news": {"disabled": true}' in page.text
        finally:
            server.terminate()
