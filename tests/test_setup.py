"""The set-up: one command on a fresh machine, its reasons in a line, repairs; what importing costs."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch"}
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the set-up reads, to set up in."""
    folder = tmp_path / "project"
    (folder / ".ci").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "requirements.txt", ".ci/set_up.py", ".ci/run"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(project: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "VENV", "PYTHON")}
    return subprocess.run(
        command, cwd=project, env={**inherited, **variables}, capture_output=True, text=True, timeout=60
    )


def program(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def python_where(path: Path, what: str) -> Path:
    """A Python in which `what` was executed before the script that it is given."""
    code = f"import runpy, sys; {what}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    return program(path, f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')


def set_up_module(project: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("set_up", project / ".ci" / "set_up.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- where it can't be done --------------------------------------------------------------------------------


@needs_make
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "sys.version_info = (3, 9, 2, 'final', 0)",
            r"needs Python 3\.11 or newer, found 3\.9\.2 at .+: .*PYTHON=python3\.12 make lab",
        ),
        ("sys.modules['ensurepip'] = None", r"has no venv module: .*sudo apt install python3\.\d+-venv"),
        (
            "import shutil, types; shutil.disk_usage = lambda p: types.SimpleNamespace(free=3.21e9)",
            r"needs about (7|10) GB of disk at .+, found 3\.2 GB free: .*VENV=",
        ),
    ],
    ids=["old Python", "no venv", "no disk"],
)
def test_what_stands_in_the_way_is_one_line_and_nothing_is_made(project, tmp_path, what, message):
    fake = python_where(tmp_path / "python3", what)
    done = run(project, "make", "lab", PYTHON=str(fake))
    ours = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode != 0
    assert len(ours) == 1 and re.search(message, ours[0]), done.stderr
    assert "Traceback" not in done.stderr
    assert not (project / ".venv").exists()


@needs_make
def test_a_python_that_is_not_there_is_named(project):
    done = run(project, "make", "test", PYTHON="python9")
    assert done.returncode != 0
    assert "no python9 here: install Python 3.11 or newer" in done.stderr


@needs_make
def test_a_folder_that_is_no_environment_survives(project):
    (project / "mine").mkdir()
    (project / "mine" / "thesis.txt").write_text("years of work")
    done = run(project, "make", "lab", PYTHON=sys.executable, VENV="mine")
    assert done.returncode != 0 and "is no virtual environment" in done.stderr
    run(project, "make", "clean", VENV="mine")
    assert (project / "mine" / "thesis.txt").read_text() == "years of work"


def test_the_set_up_can_be_read_by_old_pythons():
    tree = ast.parse((ROOT / ".ci" / "set_up.py").read_text(), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.AsyncFunctionDef, ast.Nonlocal)
    for node in ast.walk(tree):
        assert not isinstance(node, newer), f"line {node.lineno} is no Python 2.7"
        if isinstance(node, ast.FunctionDef):
            annotated = [a for a in (*node.args.args, *node.args.kwonlyargs) if a.annotation]
            assert not annotated and node.returns is None and not node.args.kwonlyargs, node.name
        if isinstance(node, ast.Raise):
            assert node.cause is None, f"line {node.lineno}: 'raise from' is no Python 2.7"


def test_really_old_pythons_say_so(project):
    versions = ("2.7", "3.6", "3.7", "3.8", "3.9", "3.10")
    found = [shutil.which(f"python{version}") for version in versions]
    found += [str(p) for v in versions for p in Path.home().glob(f".pyenv/versions/{v}.*/bin/python")]
    old = [p for p in found if p and subprocess.run([p, "--version"], capture_output=True).returncode == 0]
    if not old:
        pytest.skip("no Python older than 3.11 here")
    for python in old:
        done = run(project, python, ".ci/set_up.py", ".venv")
        assert done.returncode == 1
        assert "needs Python 3.11 or newer, found " in done.stderr and len(done.stderr.splitlines()) == 1


def test_one_disk_needs_room_for_both_and_two_disks_for_each(project, monkeypatch):
    set_up = set_up_module(project)
    enough = {str(project): (1, set_up.ENVIRONMENT_GB + 0.1)}
    monkeypatch.setattr(set_up.tempfile, "gettempdir", lambda: "/")
    monkeypatch.setattr(set_up, "disk_of", lambda folder: disks[folder])
    disks = {**enough, "/": (1, set_up.ENVIRONMENT_GB + 0.1)}
    with pytest.raises(set_up.CannotSetUp, match="needs about 10 GB"):
        set_up.check_disk(str(project / ".venv"))
    disks = {**enough, "/": (2, 0.0)}
    with pytest.raises(set_up.CannotSetUp, match=r"needs about 3 GB of disk at /, found 0\.0 GB"):
        set_up.check_disk(str(project / ".venv"))
    disks = {**enough, "/": (2, set_up.DOWNLOADS_GB + 0.1)}
    set_up.check_disk(str(project / ".venv"))


# ---- pip, and what an environment remembers ----------------------------------------------------------------


@pytest.fixture
def environment(project: Path) -> Path:
    """An environment whose Python notes what pip is asked for, and then does as `answer` says."""
    folder = project / ".venv"
    (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    (folder / "answer").write_text("exit 0")
    program(
        folder / "bin" / "python",
        '#!/bin/sh\n[ "$1" = -c ] && exit 0\ncd "$(dirname "$0")/.."\necho "$@" >> asked\n. ./answer\n',
    )
    return folder


def set_up(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(project, sys.executable, ".ci/set_up.py", ".venv", *arguments)


def asked(environment: Path) -> list[str]:
    """The calls of pip since the last look."""
    file = environment / "asked"
    calls = file.read_text().splitlines() if file.exists() else []
    file.unlink(missing_ok=True)
    return calls


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("NewConnectionError: Failed to establish a new connection", "can't reach its packages: connect"),
        ("Temporary failure in name resolution", "can't reach its packages: connect"),
        ("No matching distribution found for torch>=2.4 (from versions: none)", "can't reach its packages"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("error: metadata-generation-failed", "pip failed with code 1, its own words"),
    ],
)
def test_a_failed_pip_is_explained_and_tried_again(project, environment, said, message):
    (environment / "answer").write_text(f"echo '{said}' >&2; exit 1")
    failed = set_up(project)
    assert failed.returncode == 1
    first, last = failed.stderr.splitlines()
    assert first == said and message in last, "pip's words come first, ours last"
    (environment / "answer").write_text("exit 0")
    asked(environment)
    assert set_up(project).returncode == 0
    assert asked(environment), "the failure was taken for a finished set-up"


def test_a_pip_that_was_killed_says_nothing_itself_so_we_do(project, environment):
    (environment / "answer").write_text("kill -9 $$")
    failed = set_up(project)
    assert failed.returncode == 1
    assert "killed by signal 9, for want of memory perhaps" in failed.stderr


def test_a_set_up_that_is_stopped_takes_pip_with_it(project, environment):
    (environment / "answer").write_text("echo $$ > pip; exec sleep 60")
    command = [sys.executable, ".ci/set_up.py", ".venv"]
    started = subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    number = environment / "pip"
    for _ in range(200):
        if number.exists() and number.read_text().strip():
            break
        time.sleep(0.05)
    started.terminate()
    assert started.wait(20) == 128 + 15
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)
    assert not (environment / "ready").exists()


def test_a_ready_environment_is_left_alone_until_what_it_was_made_from_changes(project, environment):
    assert set_up(project).returncode == 0
    calls = asked(environment)
    assert calls[0].endswith("setuptools>=77") and calls[-1].endswith("--editable .")
    assert set_up(project).returncode == 0 and asked(environment) == []
    os.utime(project / "requirements.txt")  # a new time, as after a checkout, is no change
    assert set_up(project).returncode == 0 and asked(environment) == []
    for name in ("requirements.txt", "pyproject.toml"):
        with open(project / name, "a") as file:
            file.write("# changed\n")
        assert set_up(project).returncode == 0 and asked(environment), f"{name} changed, and nothing happened"
    moved = project.rename(project.with_name("moved"))
    assert set_up(moved).returncode == 0
    assert asked(moved / ".venv"), "the editable package still points to where the project was"


def test_tests_need_more_than_the_lab_and_the_lab_nothing_more(project, environment):
    assert set_up(project).returncode == 0 and asked(environment)
    assert set_up(project, "test").returncode == 0
    assert asked(environment)[-1].endswith("--editable .[test]")
    assert set_up(project).returncode == 0 and asked(environment) == []


def test_what_was_cut_short_is_installed_again_and_the_rest_is_kept(project, environment):
    packages = environment / "lib" / "python3.11" / "site-packages"

    def install(name: str, without: str | None = None) -> Path:
        info = packages / f"{name}-1.0.dist-info"
        files = [f"{name}/__init__.py", f"{name}/__pycache__/__init__.pyc", f"{info.name}/INSTALLER"]
        for file in files:
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            (packages / file).touch()
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
        if without:
            (packages / without).unlink()
        return info

    whole = install("whole"), install("tidied", "tidied/__pycache__/__init__.pyc")
    halves = (
        install("unpacked", "unpacked-1.0.dist-info/INSTALLER"),
        install("unlisted", "unlisted-1.0.dist-info/RECORD"),
        install("removed", "removed/__init__.py"),
        packages / "~alf_removed",
        packages / "~alf_removed.py",
    )
    halves[-2].mkdir()
    halves[-1].touch()
    done = set_up(project)
    assert done.returncode == 0
    assert all(info.exists() for info in whole)
    assert not any(info.exists() for info in halves)
    assert (
        all(name in done.stdout for name in ("unpacked", "unlisted", "removed"))
        and "whole" not in done.stdout
    )


def test_an_environment_whose_python_is_gone_is_made_anew(project, environment):
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to("/nowhere/python3")
    fake = python_where(
        project / "python3",
        "import shutil, types, subprocess; "
        "shutil.disk_usage = lambda p: types.SimpleNamespace(free=1e12); "
        "subprocess.call = lambda c, **k: print('made with', *c[1:]) or 1",
    )
    done = run(project, str(fake), ".ci/set_up.py", ".venv")
    assert "made with -m venv --clear .venv" in done.stdout


# ---- the continuous integration's run ----------------------------------------------------------------------


@needs_make
@pytest.mark.parametrize("failing", ["", "test-environment", "lint", "test"])
def test_the_ci_run_uses_its_own_environment_and_removes_it_also_on_failure(project, tmp_path, failing):
    steps = ("test-environment", "lint", "test")
    rules = [
        f'{step}:\n\t@mkdir -p "$(VENV)"; echo "{step} in $(VENV)"; {"false" if step == failing else "true"}'
        for step in steps
    ]
    (project / "Makefile").write_text("\n".join(rules) + "\n")
    program(project / ".venv" / "bin" / "python", "#!/bin/sh\necho used the wrong environment\n")
    tools = program(tmp_path / "bin" / "chromium", "#!/bin/sh\n").parent
    done = run(project, str(project / ".ci" / "run"), PATH=f"{tools}:{os.environ['PATH']}")
    ran = steps[: steps.index(failing) + 1] if failing else steps
    assert (done.returncode == 0) is (not failing), done.stderr
    assert re.findall(r"^(\S+) in ", done.stdout, re.MULTILINE) == list(ran)
    places = set(re.findall(r"^\S+ in (.+)", done.stdout, re.MULTILINE))
    assert len(places) == 1 and not Path(places.pop()).exists()
    assert sorted(p.name for p in (project / ".ci").iterdir()) == ["run", "set_up.py"]
    assert (project / ".venv" / "bin" / "python").exists()
    assert failing or re.search(r"== tests: \d+ s\n== all: \d+ s\n$", done.stdout)


@needs_make
def test_the_ci_run_goes_on_without_a_browser(project, tmp_path):
    (project / "Makefile").write_text("test-environment lint test:\n\t@true\n")
    tools = tmp_path / "bin"
    for name in ("env", "bash", "sh", "dirname", "mktemp", "rm", "id", "make", "true"):
        program(tools / name, f'#!/bin/sh\nexec "{shutil.which(name)}" "$@"\n')
    for name in ("apt-get", "sudo"):
        program(tools / name, "#!/bin/sh\necho no network >&2; exit 100\n")
    done = run(project, str(project / ".ci" / "run"), PATH=str(tools))
    assert done.returncode == 0, done.stderr
    assert "the browser tests will skip" in done.stdout


# ---- what is required --------------------------------------------------------------------------------------


def requirements() -> dict[str, str]:
    """requirements.txt as {name: floor}; the pattern allows a floor and nothing else."""
    lines = [line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    found = [re.fullmatch(r"([a-z0-9-]+)>=([\d.]+)", line) for line in lines if line]
    assert all(found), "a requirement is not NAME>=FLOOR"
    return {match[1]: match[2] for match in found}


def test_conda_gets_what_pip_gets():
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pip = [entry["pip"] for entry in conda if isinstance(entry, dict)]
    named = dict(entry.split(">=") for entry in conda if isinstance(entry, str) and entry != "pip")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert named.pop("python") == project["requires-python"].removeprefix(">=")
    assert named == {CONDA_NAMES.get(name, name): floor for name, floor in requirements().items()}
    assert pip == [["--editable ."]], "everything but the package itself comes from conda"


def test_what_is_imported_is_required():
    """Each third-party import of the package is in requirements.txt, or brought by something that is."""
    names = {"PIL": "pillow", "sklearn": "scikit-learn", "umap": "umap-learn"}
    brought = {
        "jupyterlab": {"IPython", "jupyter_core", "jupyter_client", "psutil"},
        "ipywidgets": {"traitlets"},
        "matplotlib": {"cycler"},
        "scikit-learn": {"scipy", "threadpoolctl"},
    }
    required = requirements()
    allowed = set(required).union(*(brought.get(name, ()) for name in required))
    for file in (ROOT / "clutils").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            for module in {module.partition(".")[0] for module in modules}:
                known = module in sys.stdlib_module_names or module == "clutils"
                assert known or names.get(module, module) in allowed, f"{file.name} imports {module}"


# ---- what importing costs ----------------------------------------------------------------------------------

HEAVY = ("torch", "numpy", "pandas", "matplotlib", "seaborn", "sklearn", "umap", "numba", "ipywidgets")


def loaded(statement: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    """Which of `names` are loaded by a fresh Python that executes the statement."""
    code = f"{statement}\nimport sys; print(*(n for n in {names} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.split())


def test_importing_the_package_loads_none_of_the_heavy_ones():
    assert loaded("import clutils; clutils.__version__; dir(clutils)") == set()


def test_the_measuring_stick_sees_what_is_loaded():
    assert loaded("import numpy") == {"numpy"}


def test_nothing_before_the_figures_loads_what_draws():
    """The way of a picture: what comes earlier must not need what comes later."""
    below = "data views encoders similarities losses anatomy noise methods measures maps training"
    heavy = ("matplotlib", "ipywidgets", "seaborn", "umap", "numba", "sklearn", "pandas")
    assert loaded(f"from clutils import {', '.join(below.split())}", heavy) == set()
    assert loaded("from clutils import figures", ("ipywidgets",)) == set()


def test_modules_load_when_they_are_named():
    modules = ("clutils.files", "clutils.losses")
    assert loaded("import clutils", modules) == set()
    assert loaded("import clutils; clutils.files.replace", modules) == {"clutils.files"}
    assert loaded("from clutils import files", modules) == {"clutils.files"}


def test_an_unknown_module_names_the_known_ones():
    import clutils

    with pytest.raises(AttributeError, match=r"no attribute 'lossses'; it has .*losses"):
        _ = clutils.lossses
    assert {"losses", "training", "course"} <= set(dir(clutils))
    assert not hasattr(clutils, "__path_of_nothing__")


def test_the_version_is_the_one_that_is_published():
    import clutils

    assert clutils.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
