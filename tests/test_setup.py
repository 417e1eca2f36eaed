"""The set-up: one command on a fresh machine, its refusals in a line, repairs; what importing costs."""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

from clutils.commands import doctor

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"torch": "pytorch"}
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="no make here")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the set-up reads, on a path with a space, to set up in."""
    folder = tmp_path / "a project"
    (folder / ".ci").mkdir(parents=True)
    scripts = (".ci/forget_halves.py", ".ci/install_torch.py", ".ci/run")
    for name in ("Makefile", "pyproject.toml", "requirements.txt", *scripts):
        shutil.copy(ROOT / name, folder / name)
    return folder


def run(project: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "VENV", "PYTHON")}
    return subprocess.run(
        command, cwd=project, env={**inherited, **variables}, capture_output=True, text=True, timeout=300
    )


def program(path: Path, text: str) -> Path:
    """An executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """A Python whose `-m venv` makes an environment in which pip only notes what it is asked for."""
    inside = f"""#!/bin/sh
[ "$1" = -c ] && exec "{sys.executable}" "$@"
echo "$@" | grep -v -e --version >>"$(dirname "$0")/asked"
[ ! -e fails ]
"""
    made = program(tmp_path / "inside", inside)
    return program(
        tmp_path / "python3",
        f"""#!/bin/sh
[ "$1" = -m ] || exec "{sys.executable}" "$@"
rm -rf "$4"; mkdir -p "$4/bin"; touch "$4/pyvenv.cfg"; cp -p "{made}" "$4/bin/python"
""",
    )


# ---- make's set-up -----------------------------------------------------------------------------------------


@needs_make
@pytest.mark.parametrize("python", ["python9", "#!/bin/sh\necho Python 3.9.2; exit 1\n"], ids=["none", "old"])
def test_a_missing_or_old_python_is_one_line_and_nothing_is_made(project, tmp_path, python):
    name = str(program(tmp_path / "python3", python)) if python.startswith("#!") else python
    done = run(project, "make", "lab", PYTHON=name)
    ours = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode != 0 and len(ours) == 1
    assert "needs Python 3.11" in ours[0] and name in ours[0] and ("3.9.2" in ours[0] or name == "python9")
    assert not (project / ".venv").exists()


@needs_make
def test_a_folder_that_is_no_environment_survives(project, python):
    (project / "mine").mkdir()
    (project / "mine" / "thesis.txt").write_text("years of work")
    done = run(project, "make", "lab", PYTHON=str(python), VENV="mine")
    assert done.returncode != 0 and "is no virtual environment" in done.stderr
    run(project, "make", "clean", VENV="mine")
    assert (project / "mine" / "thesis.txt").read_text() == "years of work"


@needs_make
@pytest.mark.parametrize("venv", [".venv", "my environment"])
def test_a_ready_environment_is_left_alone_until_what_it_was_made_from_changes(project, python, venv):
    def asked(where: Path = project, what: str = "environment") -> list[str]:
        """What the environment's Python was asked for to make it ready."""
        done = run(where, "make", what, PYTHON=str(python), VENV=venv)
        assert done.returncode == 0, done.stderr
        file = where / venv / "bin" / "asked"
        calls = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return calls

    _, setuptools, torch, package = asked()
    assert torch.startswith(".ci/install_torch.py auto")
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert setuptools.endswith(built[0])
    assert package.endswith("--editable .[course]") and asked() == []
    assert asked(what="test-environment")[-1].endswith("--editable .[test]")
    assert asked(what="test-environment") == asked() == []
    for name in ("requirements.txt", "pyproject.toml"):
        os.utime(project / name, (time.time() + 1,) * 2)
        assert asked(what="test-environment"), f"{name} changed, and nothing happened"
        os.utime(project / name, (0, 0))
    moved = project.rename(project.with_name("moved"))
    assert asked(moved), "the editable package still points to where the project was"
    (moved / venv / "bin" / "python").unlink()
    (moved / venv / "bin" / "python").symlink_to("/nowhere/python3")
    assert asked(moved), "an environment whose Python is gone"


@needs_make
def test_a_set_up_that_failed_is_tried_again(project, python):
    (project / "fails").touch()
    assert run(project, "make", "environment", PYTHON=str(python)).returncode != 0
    (project / "fails").unlink()
    assert "--editable '.[course]'" in run(project, "make", "environment", PYTHON=str(python)).stdout


def test_what_was_cut_short_is_installed_again_and_the_rest_is_kept(project):
    done = run(project, sys.executable, "-m", "venv", "--without-pip", ".venv")
    assert done.returncode == 0, done.stderr
    (packages,) = project.glob(".venv/lib/python*/site-packages")

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
    done = run(project, ".venv/bin/python", ".ci/forget_halves.py")
    assert done.returncode == 0, done.stderr
    assert all(info.exists() for info in whole)
    assert not any(info.exists() for info in halves)
    assert {line.split()[0] for line in done.stdout.splitlines()} == {"unpacked", "unlisted", "removed"}


# ---- PyTorch's builds, and a folder of wheels --------------------------------------------------------------


def wheel(folder: Path, name: str, version: str) -> Path:
    """A wheel with one empty module, as small as they come."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    tags = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{name}/__init__.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": tags,
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(file, "w") as zipped:
        for path, text in (files | {f"{info}/RECORD": record}).items():
            zipped.writestr(path, text)
    return file


@pytest.fixture
def indices(tmp_path: Path) -> dict[str, Path]:
    """Two indices of tiny wheels: `cpu`, laid out as PyTorch's own, and `configured`, a plain folder."""
    cpu, configured = tmp_path / "cpu", tmp_path / "configured"
    for name in ("torch", "torchvision"):
        wheel(configured, name, "3.0")
        file = wheel(cpu / name, name, "3.0+cpu")
        (cpu / name / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    return {"cpu": cpu, "configured": configured, "none": tmp_path / "nowhere"}


def install_torch(project: Path, indices: dict[str, Path], cpu: str, asked: str, *more: str, **has: bool):
    """What the script says, and which torch it installs into project/into.

    has: `driver`, of NVIDIA; `index`, that pip may ask one: else the configured index is a folder alone
    """
    tools = project / "tools"
    tools.mkdir(exist_ok=True)
    if has.get("driver"):
        program(tools / "nvidia-smi", "#!/bin/sh\n")
    settings = {
        "PATH": str(tools),
        "PYTHONPATH": "",
        "CPU_INDEX": indices[cpu].as_uri(),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_TARGET": str(project / "into"),
        "PIP_FIND_LINKS": str(indices["configured"]),
    }
    settings |= {} if has.get("index") else {"PIP_NO_INDEX": "1"}  # which silences --index-url, too
    missing = "import importlib.util as found, runpy, sys; found.find_spec = lambda name: None"
    start = f"{missing}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    done = run(project, sys.executable, "-c", start, ".ci/install_torch.py", asked, *more, **settings)
    found = {path.name.split(".dist-info")[0] for path in (project / "into").glob("torch-*.dist-info")}
    return done, found


LONG = pytest.mark.sweep  # pip takes seconds each time


@pytest.mark.parametrize(
    ("cpu", "asked", "driver", "version", "said"),
    [
        ("cpu", "auto", False, "torch-3.0+cpu", "builds for the CPU (no NVIDIA driver is here"),
        ("cpu", "auto", True, "torch-3.0", "an NVIDIA driver is here; TORCH=cpu"),
        pytest.param(
            "cpu", "cpu", True, "torch-3.0+cpu", "builds for the CPU (as asked; TORCH=default", marks=LONG
        ),
        pytest.param("cpu", "default", False, "torch-3.0", "configured index (as asked", marks=LONG),
        ("none", "auto", False, "torch-3.0", "can't be reached"),
    ],
)
@pytest.mark.skipif(Path("/proc/driver/nvidia/version").exists(), reason="an NVIDIA driver is here")
def test_pytorch_comes_in_the_builds_that_suit_the_machine(
    project, indices, cpu, asked, driver, version, said
):
    done, found = install_torch(project, indices, cpu, asked, driver=driver, index="+cpu" in version)
    assert done.returncode == 0, done.stderr
    assert found == {version} and said in done.stdout


def test_another_choice_is_refused_and_a_folder_of_wheels_is_all_that_is_asked(project, indices):
    done, found = install_torch(project, indices, "cpu", "rocm")
    assert done.returncode != 0 and "TORCH is rocm, but must be auto, cpu or default" in done.stderr
    assert not found
    offline = ("--no-index", "--find-links", str(indices["configured"]))
    done, found = install_torch(project, indices, "none", "auto", *offline)
    assert found == {"torch-3.0"} and "from the folder of wheels" in done.stdout


@needs_make
def test_make_with_a_folder_of_wheels_asks_no_index(project, python):
    done = run(project, "make", "environment", PYTHON=str(python), WHEELS="/a stick")
    assert done.returncode == 0, done.stderr
    _, *asked = (project / ".venv" / "bin" / "asked").read_text().splitlines()
    assert len(asked) == 3 and all("--no-index --find-links /a stick" in call for call in asked)


@needs_make
def test_make_wheels_packs_what_is_installed(project, python):
    assert run(project, "make", "wheels", PYTHON=str(python)).returncode != 0, "no folder was named"
    done = run(project, "make", "wheels", PYTHON=str(python), WHEELS="stick")
    assert done.returncode == 0, done.stderr
    *_, frozen, torch, rest = (project / ".venv" / "bin" / "asked").read_text().splitlines()
    assert "freeze" in frozen and "--wheels stick" in torch and "--no-index" not in torch + rest
    assert rest.endswith(".[book]") and "--wheel-dir stick" in rest


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
    assert sorted(p.name for p in (project / ".ci").iterdir()) == [
        "forget_halves.py",
        "install_torch.py",
        "run",
    ]
    assert (project / ".venv" / "bin" / "python").exists()
    assert failing or re.search(r"^== tests: \d+ s; CPU ", done.stderr, re.MULTILINE)
    assert failing or re.search(r"^== all: \d+ s; CPU ", done.stdout, re.MULTILINE)


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


def floors(lines: list[str]) -> dict[str, str]:
    return dict(line.split(">=") for line in lines)


def test_the_whole_list_is_the_package_and_its_course():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own, course = floors(project["dependencies"]), floors(project["optional-dependencies"]["course"])
    assert not own.keys() & course.keys()
    assert requirements() == own | course


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
        "jupyterlab": {"IPython", "jupyter_core", "jupyter_client", "jupyterlab_server", "psutil"}
        | {"nbformat", "nbclient", "nbconvert", "pygments"},
        "ipywidgets": {"traitlets"},
        "matplotlib": {"cycler"},
        "scikit-learn": {"scipy", "threadpoolctl"},
    }
    required = requirements()
    # asked for where they are used; docutils comes with Sphinx
    extras = {"segno", "docutils", "sentence_transformers", "torch_geometric"}
    allowed = extras | set(required).union(*(brought.get(name, ()) for name in required))
    for file in (ROOT / "clutils").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            for module in {module.partition(".")[0] for module in modules}:
                known = module in sys.stdlib_module_names or module == "clutils"
                assert known or names.get(module, module) in allowed, f"{file.name} imports {module}"


def without(names: set[str], statement: str) -> subprocess.CompletedProcess[str]:
    """The statement in a fresh Python in which none of the packages can be imported."""
    code = f"import sys; sys.modules.update(dict.fromkeys({sorted(names)}))\n{statement}"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)


COURSE_ONLY = {
    "matplotlib",
    "seaborn",
    "umap",
    "jupyterlab",
    "ipywidgets",
    "IPython",
    "safetensors",
    "jinja2",
}


def test_losses_measures_and_training_run_without_the_extra():
    done = without(
        COURSE_ONLY,
        "import torch\n"
        "from clutils import anatomy, losses, maps, measures, methods, noise, training, views\n"
        "run = training.train(data='digits', steps=2, batch_size=32)\n"
        "z = run.embed(run.images[:64])\n"
        "print(float(losses.NTXent(0.1)(z, z.flip(0))), float(measures.effective_rank(z)), len(run.history))",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "2"


@pytest.mark.parametrize(
    "statement",
    [
        "from clutils import figures",
        "from clutils.__main__ import main; sys.exit(main(['lab']))",
        "from clutils.__main__ import main; sys.exit(main(['check', 'x', '--data', 'digits']))",
    ],
)
def test_what_draws_names_the_extra_where_it_is_missing(statement):
    done = without(COURSE_ONLY, statement)
    assert done.returncode == 1 and "[course]" in done.stderr.strip().splitlines()[-1], done.stderr


def test_beside_a_wheel_the_packages_are_named_for_the_index_knows_no_clutils(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    advice = doctor._package()
    assert "clutils" not in advice and {"matplotlib>=3.8", "umap-learn>=0.5.6"} <= set(advice.split('"')), (
        advice
    )


# ---- what importing costs ----------------------------------------------------------------------------------

HEAVY = ("torch", "numpy", "pandas", "matplotlib", "seaborn", "sklearn", "umap", "numba", "ipywidgets")


def loaded(statement: str, names: tuple[str, ...] = HEAVY) -> set[str]:
    """Which of `names` are loaded by a fresh Python that executes the statement."""
    code = f"{statement}\nimport sys; print(*(n for n in {names} if n in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stdout.split())


def test_the_losses_load_nothing_but_torch_and_numpy():
    others = ("pandas", "PIL", "torchvision", "tqdm", "matplotlib", "sklearn", "scipy", "ipywidgets")
    assert loaded("import clutils.losses, clutils.anatomy, clutils.similarities", others) == loaded(
        "import torch", others
    )


BELOW = "from clutils import data, views, encoders, similarities, losses, anatomy, noise, methods, measures"
STEP = "training.Run(data=torch.zeros(64, 3, 32, 32, dtype=torch.uint8).random_(), batch_size=32).step()"
DRAWS = ("matplotlib", "ipywidgets", "seaborn", "umap", "numba", "sklearn", "scipy", "pandas")
MODULES = ("clutils.files", "clutils.losses")


@pytest.mark.parametrize(
    ("statement", "names", "found"),
    [
        ("import numpy", HEAVY, "numpy"),  # what is loaded is seen
        ("import clutils; clutils.__version__; dir(clutils)", HEAVY, ""),
        (f"{BELOW}, maps, training", DRAWS, ""),  # what comes earlier must not need what comes later
        (f"import torch; from clutils import training; {STEP}", (*DRAWS, "torch._dynamo"), ""),
        ("from clutils import figures", ("ipywidgets",), ""),
        ("import clutils", MODULES, ""),
        ("import clutils; clutils.files.write_atomically", MODULES, "clutils.files"),
        ("from clutils import files", MODULES, "clutils.files"),
    ],
)
def test_an_import_loads_what_is_named_and_nothing_that_only_a_later_room_needs(statement, names, found):
    assert loaded(statement, names) == set(found.split())


def test_an_unknown_module_names_the_known_ones():
    import clutils

    with pytest.raises(AttributeError, match=r"no attribute 'lossses'; it has .*losses"):
        _ = clutils.lossses
    assert {"losses", "training", "course"} <= set(dir(clutils))
    assert not hasattr(clutils, "__path_of_nothing__")


# ---- files for the repository's visitors -------------------------------------------------------------------


def test_the_citation_and_the_published_package_name_this_version_and_licence():
    import clutils

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    published = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all((of["version"], of["license"]) == (clutils.__version__, "MIT") for of in (cited, published))
    assert {"cff-version", "message", "title", "authors", "type"} <= cited.keys()


def test_the_workflow_needs_no_shell_of_one_system():
    """Steps of the matrix are one command each, and name only commands that exist."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())["jobs"]
    assert jobs["systems"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13", "3.14"]
    lines = [step["run"] for step in jobs["systems"]["steps"] if "run" in step]
    assert len(lines) >= 6
    for line in lines:
        assert re.match(r"python ", line) and not re.search(r"[\n$|<>]|&&", line), line
    assert [step["run"] for step in jobs["all"]["steps"] if "run" in step] == ["bash .ci/run"]


def test_a_lock_holds_each_requirement_at_or_above_its_floor():
    from packaging.version import Version

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    locked = dict(line.split("==") for line in lines if not line.startswith("#"))
    for name, floor in requirements().items():
        assert Version(locked[name]) >= Version(floor), name
