"""`python -m clutils doctor`: which Python do the notebooks run, and will their sliders show?

One line of advice for each problem. It needs no network, and answers where packages are missing, too. For
versions see `pip check`, for the GPU `torch.utils.collect_env`, for downloads `python -m clutils data`.
"""

import argparse
import importlib.metadata
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

from clutils.commands.arguments import Add

ROOT = Path(__file__).resolve().parents[2]
MANAGER = "@jupyter-widgets/jupyterlab-manager"  # the part of ipywidgets that runs in JupyterLab's page
OWN = ROOT / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")  # what `make lab` made
IN_PLACE = OWN.exists() and Path(sys.prefix).resolve() != OWN.parent.parent.resolve()


def _package() -> str:
    """Names for pip: the clone with its extra; beside a wheel the extra's packages, by their own names.

    `pip install "clutils[course]"` would ask the package index, where anybody could publish that name.
    """
    if (ROOT / "pyproject.toml").exists():
        return f'--editable "{ROOT}[course]"'
    try:
        asked = importlib.metadata.requires("clutils") or []
    except importlib.metadata.PackageNotFoundError:
        asked = []
    course = [one.partition(";")[0].strip() for one in asked if one.endswith('extra == "course"')]
    return " ".join(f'"{one}"' for one in course) or "the packages of requirements.txt"


INSTALL = (
    f'this is not the course\'s own Python: "{OWN}" -m clutils doctor'
    if IN_PLACE
    else f'"{sys.executable}" -m pip install {_package()}'
)


class Finding(NamedTuple):
    """Finding of a check; advice where it is a problem."""

    detail: str
    advice: str = ""


def add_to(add: Add) -> None:
    add(
        "doctor",
        doctor,
        "check which Python the notebooks use and whether sliders will show; say how to fix what is wrong",
    )


def doctor(options: argparse.Namespace) -> int:
    """Print both findings, below a problem what to do; 1 where one is a problem, else 0."""
    found = {"kernel": kernel(), "widgets": widgets()}
    for name, (detail, advice) in found.items():
        print(f"{'problem' if advice else 'ok':8} {name:8} {detail}")
        if advice:
            print(f"{'':8} -> {advice}")
    return int(any(finding.advice for finding in found.values()))


def kernel() -> Finding:
    """Which Python notebooks run: the program that Jupyter would start as their kernel."""
    if _version("clutils") is None:
        return Finding(f"notebooks won't find clutils: it is not installed in {sys.executable}", INSTALL)
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        command = KernelSpecManager().get_kernel_spec("python3").argv[0]
    except (ImportError, KeyError) as error:  # NoSuchKernel is a KeyError
        return Finding(str(error), INSTALL)
    advice = f'"{sys.executable}" -m ipykernel install --sys-prefix'
    advice += ", and 'jupyter kernelspec remove python3' where another comes first"
    if command in ("python", "python3", f"python3.{sys.version_info[1]}"):
        return Finding(f"python3 runs {sys.executable}")  # Jupyter puts itself in its place
    if not Path(command).exists():
        return Finding(f"python3 should run {command}, which is not there", advice)
    if Path(command).absolute().parent != Path(sys.executable).absolute().parent:
        return Finding(f"python3 runs {command}, not {sys.executable}", advice)
    return Finding(f"python3 runs {command}")


def widgets() -> Finding:
    """Check for sliders: ipywidgets in the kernel and its counterpart in the page, of one generation."""
    versions = {name: _version(name) for name in ("ipywidgets", "jupyterlab_widgets", "jupyterlab")}
    if missing := [name for name, version in versions.items() if version is None]:
        return Finding(f"no slider will show: {' and '.join(missing)} missing", INSTALL)
    from jupyter_core.paths import jupyter_config_path, jupyter_path

    again = f'"{sys.executable}" -m pip install --force-reinstall --no-deps jupyterlab_widgets'
    managers = [Path(folder, MANAGER, "package.json") for folder in jupyter_path("labextensions")]
    manager = next(filter(Path.is_file, managers), None)  # JupyterLab, too, takes the first
    if manager is None:
        return Finding(f"JupyterLab's extension {MANAGER} is not there", again)
    try:
        version = json.loads(manager.read_text(encoding="utf-8"))["version"]
        page, kernel = (int(text.split(".")[0]) for text in (version, str(versions["ipywidgets"])))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return Finding(f"{manager} can't be read: {error}", again)
    detail = f"ipywidgets {versions['ipywidgets']}, {MANAGER} {version}"
    if page != kernel - 3:  # 5 goes with ipywidgets 8
        advice = f"another copy is found first, at {manager.parent}: remove it, or {again}"
        return Finding(f"{detail}: of two generations", advice)
    for path in (Path(folder, "labconfig", "page_config.json") for folder in jupyter_config_path()):
        if MANAGER in _disabled(path):
            advice = f'"{sys.executable}" -m jupyter labextension enable {MANAGER}'
            return Finding(f"{detail}: switched off in {path}", advice)
    return Finding(detail)


def _disabled(path: Path) -> set[str]:
    """The extensions that a page_config.json switches off, whole or one plugin of them."""
    try:
        off = json.loads(path.read_text(encoding="utf-8")).get("disabledExtensions", {})
    except (FileNotFoundError, ValueError):
        return set()
    names = off if isinstance(off, list) else [name for name, value in off.items() if value]
    return {name.partition(":")[0] for name in names}


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
