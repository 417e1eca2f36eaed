"""The doctor sees each way an installation can be broken, says what to do, and is quiet about a sound one."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from clutils import __main__ as command_line
from clutils.commands import doctor

ROOT = Path(__file__).resolve().parents[2]

Findings = Iterable[doctor.Finding] | doctor.Finding


def problem(findings: Findings, status: str = "problem") -> doctor.Finding:
    """The one finding that is not ok; it must have this status, and advice."""
    findings = [findings] if isinstance(findings, doctor.Finding) else findings
    (found,) = [finding for finding in findings if finding.status != "ok"]
    assert found.status == status
    assert found.advice
    return found


def sound(findings: Findings) -> bool:
    findings = [findings] if isinstance(findings, doctor.Finding) else findings
    return all(finding.status == "ok" and not finding.advice for finding in findings)


def versions(monkeypatch: pytest.MonkeyPatch, **changed: str | None) -> None:
    """Pretend that these packages have these versions; None = not installed."""
    real = doctor.importlib.metadata.version

    def version(name: str) -> str:
        found = changed.get(name, real(name) if name not in changed else None)
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(doctor.importlib.metadata, "version", version)


# ---- software ----------------------------------------------------------------------------------------------


def test_an_old_python_is_a_problem():
    assert "3.9.2" in problem(doctor.python((3, 9, 2))).detail
    assert sound(doctor.python((3, 11, 0)))
    assert sound(doctor.python((4, 0, 0)))
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    assert declared == f">={'.'.join(map(str, doctor.PYTHON))}"


def test_a_package_that_runs_from_its_folder_without_being_installed_is_a_problem(monkeypatch):
    """Then `import clutils` works here and not in a notebook, which runs in another folder."""
    versions(monkeypatch, clutils=None)
    assert "--editable" in problem(doctor.python()).advice


def test_a_missing_requirement_is_a_problem(monkeypatch):
    versions(monkeypatch, seaborn=None)
    found = problem(doctor.packages(["torch>=2.4", "seaborn>=0.13"]))
    assert (found.name, found.detail) == ("seaborn", "missing, >=0.13 is needed")


def test_a_requirement_is_compared_as_versions_and_not_as_texts(monkeypatch):
    versions(monkeypatch, torch="2.10.0+cu130")
    assert sound(doctor.packages(["torch>=2.9"]))
    assert "2.10.0" in problem(doctor.packages(["torch>=2.11"])).detail


def test_the_project_s_own_requirements_are_the_ones_looked_at(monkeypatch, tmp_path):
    looked_at = [finding.name for finding in doctor.packages()]
    written = (ROOT / "requirements.txt").read_text().splitlines()
    assert looked_at == [line.split(">=")[0] for line in written if line and not line.startswith("#")]
    monkeypatch.setattr(doctor, "ROOT", tmp_path)  # installed from a wheel: no requirements.txt beside it
    declared = ["torch>=2.6", 'pytest>=9; extra == "test"']
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: declared)
    assert [finding.name for finding in doctor.packages()] == ["torch"]


# ---- machine -----------------------------------------------------------------------------------------------


def test_a_torch_that_does_not_load_is_a_problem_and_no_crash(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "torch does not load" in problem(doctor.device()).detail


def test_a_driver_that_torch_cannot_use_is_pointed_out(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert "update NVIDIA's driver" in problem(doctor.device(), "warn").advice
    monkeypatch.setattr(torch.version, "cuda", None)
    assert "built without CUDA" in problem(doctor.device(), "warn").advice
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    assert sound(doctor.device())


def test_a_gpu_that_fails_at_its_first_sum_is_a_problem(monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no kernel image is available for execution on the device\nmore lines")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "an old GPU")
    monkeypatch.setattr(torch, "ones", refuse)
    found = problem(doctor.device())
    assert found.detail == "an old GPU: no kernel image is available for execution on the device"


def test_threads_and_precision_are_said():
    first = next(doctor.device())
    assert f"{torch.get_num_threads()} threads" in first.detail
    assert "bfloat16" in first.detail


def test_little_memory_and_little_disk_are_pointed_out(tmp_path):
    assert "0.9 GB" in problem(doctor.memory(0.9e9), "warn").detail
    assert "0.9 GB" in problem(doctor.disk(tmp_path, 0.9e9), "warn").detail
    assert sound(doctor.memory(8e9))
    assert sound(doctor.disk(tmp_path, 8e9))


def test_half_a_download_is_pointed_out_with_the_command_that_goes_on(monkeypatch, tmp_path):
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    assert sound(doctor.data())
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(bytes(3_000_000))
    found = problem(doctor.data(), "warn")
    assert (found.name, found.advice) == ("cifar10", "python -m clutils data cifar10 goes on with it")
    assert "3 MB" in found.detail


# ---- notebooks ---------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path) -> SimpleNamespace:
    """A JupyterLab's folders with the widgets' extension in them."""
    folders = SimpleNamespace(extensions=tmp_path / "labextensions", settings=tmp_path / "labconfig")
    folders.package = folders.extensions / doctor.MANAGER / "package.json"
    folders.package.parent.mkdir(parents=True)
    folders.package.write_text('{"version": "5.0.13"}')
    folders.settings.mkdir()
    folders.config = folders.settings / "page_config.json"
    folders.examine = lambda: doctor.widgets([tmp_path / "none", folders.extensions], [folders.settings])
    return folders


def test_widgets_that_render_are_sound(page):
    assert sound(page.examine())
    assert sound(doctor.widgets()), "in this environment the browser tests show sliders"


@pytest.mark.parametrize("name", ["ipywidgets", "jupyterlab_widgets", "jupyterlab"])
def test_a_missing_part_of_the_widgets_is_a_problem(monkeypatch, page, name):
    versions(monkeypatch, **{name: None})
    assert f"{name} missing" in problem(page.examine()).detail


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
    path = getattr(page, file)
    path.unlink() if content is None else path.write_text(content)
    assert said in problem(page.examine()).detail


def test_other_extensions_may_be_switched_off(page):
    page.config.write_text(switched_off({"@jupyterlab/news": True, doctor.MANAGER: False}))
    assert sound(page.examine())


def test_a_kernel_that_runs_another_python_or_none_is_a_problem(tmp_path):
    assert "is not there" in problem(doctor.kernel(str(tmp_path / "python"))).detail
    assert f"not {sys.executable}" in problem(doctor.kernel("/bin/sh")).detail
    assert sound(doctor.kernel("python"))
    assert sound(doctor.kernel(sys.executable))


def test_a_kernel_of_the_user_s_own_that_comes_first_is_found(monkeypatch, tmp_path):
    spec = tmp_path / "kernels" / "python3" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text(
        json.dumps({"argv": ["/gone/bin/python", "-m", "ipykernel_launcher"], "display_name": "x"})
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    assert "/gone/bin/python" in problem(doctor.kernel()).detail


def test_a_missing_browser_is_pointed_out(monkeypatch):
    monkeypatch.setenv("CLUTILS_CHROMIUM", "")
    assert "browser tests skip" in problem(doctor.browser(["no-such-browser"]), "warn").detail
    assert sound(doctor.browser(["sh"]))
    monkeypatch.setenv("CLUTILS_CHROMIUM", "another-browser")
    assert "another-browser" in problem(doctor.browser(["sh"]), "warn").detail


# ---- all of it ---------------------------------------------------------------------------------------------


def test_each_finding_is_a_line_and_advice_follows_it(capsys):
    doctor.show([doctor.Finding("a", "ok", "fine"), doctor.Finding("b", "problem", "broken", "mend it")])
    assert capsys.readouterr().out.splitlines() == [
        "ok       a                fine",
        "problem  b                broken",
        "         -> mend it",
    ]


def test_a_problem_is_an_exit_code_and_a_warning_is_none(monkeypatch, capsys):
    for status, code in (("ok", 0), ("warn", 0), ("problem", 1)):
        finding = doctor.Finding("browser", status, "made up", "do something")
        for name in ("python", "packages", "device", "memory", "disk", "data"):
            monkeypatch.setattr(doctor, name, lambda *_: [])
        for name in ("widgets", "kernel", "browser"):
            monkeypatch.setattr(doctor, name, lambda: doctor.ok("x", "fine"))
        monkeypatch.setattr(doctor, "browser", lambda finding=finding: finding)
        assert command_line.main(["doctor"]) == code
        assert capsys.readouterr().out.splitlines()[-1] == ("1 problem" if code else "no problems")


def test_it_answers_also_where_nothing_is_installed():
    """A Python with nothing but its standard library: every problem is listed, none is a traceback."""
    code = "import runpy, sys; sys.argv[1:] = ['doctor']; runpy.run_module('clutils', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for name in ("clutils", "packages", "device", "data", "widgets", "kernel"):
        assert f"problem  {name:16}" in done.stdout
