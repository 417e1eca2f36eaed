"""`python -m clutils doctor`: what is here, what is missing, and for each problem what to do about it.

Each examination returns findings; one function prints them. It asks nothing of the network, and answers also
where packages are missing: finding that out is what it is for.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from clutils.commands.arguments import Add

ROOT = Path(__file__).resolve().parents[2]
MANAGER = "@jupyter-widgets/jupyterlab-manager"  # the part of ipywidgets that runs in JupyterLab's page
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MEMORY_GB = 2.0  # a notebook's kernel with torch, a set of 32x32 pictures and a map of them
DISK_GB = 1.0
OWN = ROOT / ".venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")  # what `make lab` made
IN_PLACE = OWN.exists() and Path(sys.prefix).resolve() != OWN.parent.parent.resolve()
INSTALL = (
    f'this is not the course\'s own Python: "{OWN}" -m clutils doctor'
    if IN_PLACE
    else f'"{sys.executable}" -m pip install --editable "{ROOT}"'
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: status 'ok', 'warn' or 'problem'; advice where it is not 'ok'."""

    name: str
    status: str
    detail: str
    advice: str = ""


def add_to(add: Add) -> None:
    add("doctor", doctor, "examine this installation: versions, device, data, widgets, and what to do")


def doctor(options: argparse.Namespace) -> int:
    """Say what is here, what is missing, and what to do about it."""
    return examine()


def examine() -> int:
    """Look at everything and print it; 1 where something is a problem, else 0."""
    findings = [
        *python(),
        *packages(),
        *device(),
        *memory(),
        *disk(ROOT),
        *data(),
        *widgets(),
        *kernel(),
        *browser(),
    ]
    show(findings)
    problems = sum(finding.status == "problem" for finding in findings)
    print(f"{problems or 'no'} problem{'s' if problems != 1 else ''}")
    return 1 if problems else 0


def show(findings: Iterable[Finding]) -> None:
    """A line a finding; below it what to do, where there is something to do."""
    for finding in findings:
        print(f"{finding.status:8} {finding.name:16} {finding.detail}")
        if finding.status != "ok":
            print(f"{'':8} -> {finding.advice}")


# ---- software ----------------------------------------------------------------------------------------------


def python(version: tuple[int, ...] = sys.version_info[:3]) -> list[Finding]:
    """Whether this Python is new enough, and whether notebooks, which run elsewhere, will find clutils."""
    needed = _numbers(_declared("Requires-Python") or "3.11")
    detail = f"{'.'.join(map(str, version))} at {sys.executable}, {platform.platform()}"
    too_old = version[:2] < needed[:2]
    advice = f"install Python {'.'.join(map(str, needed))} or newer, and make the environment anew"
    findings = [Finding("python", "problem" if too_old else "ok", detail, advice if too_old else "")]
    installed = _version("clutils")
    if installed is None:
        findings.append(Finding("clutils", "problem", f"at {ROOT}, but not installed", INSTALL))
    else:
        findings.append(Finding("clutils", "ok", f"{installed} at {ROOT}"))
    return findings


def packages(requirements: Sequence[str] | None = None) -> list[Finding]:
    """Each requirement, as in 'torch>=2.4', with the version that is here; None = the project's own."""
    findings = []
    for requirement in _requirements() if requirements is None else requirements:
        name, _, floor = requirement.partition(">=")
        found = _version(name)
        if found is None:
            findings.append(Finding(name, "problem", f"missing, {floor} or newer is needed", INSTALL))
        elif _numbers(found) < _numbers(floor):
            findings.append(Finding(name, "problem", f"{found}, {floor} or newer is needed", INSTALL))
        else:
            findings.append(Finding(name, "ok", found))
    return findings


def _requirements() -> list[str]:
    """requirements.txt beside the package; else what the package was installed with."""
    file = ROOT / "requirements.txt"
    if file.is_file():
        lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line]
    try:
        declared = importlib.metadata.requires("clutils") or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return [line for line in declared if "extra ==" not in line]


def _declared(field: str) -> str | None:
    try:
        return importlib.metadata.metadata("clutils")[field]
    except importlib.metadata.PackageNotFoundError:
        return None


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    """'2.15.0+cu130' -> (2, 15, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


# ---- machine -----------------------------------------------------------------------------------------------


def device() -> list[Finding]:
    """What training will run on."""
    try:
        import torch

        from clutils import encoders
    except (ImportError, OSError) as error:  # OSError: a library that torch loads is missing or broken
        return [Finding("device", "problem", f"torch does not load: {error}", INSTALL)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = f"{torch.get_num_threads()} threads on {cores} cores"
    kind = "bfloat16" if encoders.computes_bfloat16("cpu") else "float32 (no bfloat16 instructions)"
    findings = [Finding("cpu", "ok", f"{threads}, trains in {kind}")]
    if torch.cuda.is_available():
        findings.append(_cuda(torch.cuda.get_device_name()))
    elif shutil.which("nvidia-smi") and torch.version.cuda:
        advice = f"update NVIDIA's driver: this torch is built for CUDA {torch.version.cuda}; the CPU serves"
        findings.append(Finding("cuda", "warn", "an NVIDIA driver is here, but torch can't use it", advice))
    elif shutil.which("nvidia-smi"):
        advice = "this torch is built without CUDA: install one with it to train on the GPU; the CPU serves"
        findings.append(Finding("cuda", "warn", "an NVIDIA driver is here, but torch can't use it", advice))
    if torch.backends.mps.is_available():
        findings.append(Finding("mps", "ok", "there; taken by name alone, device='mps'"))
    return findings


def _cuda(name: str) -> Finding:
    import torch

    try:
        torch.ones(8, 8, device="cuda").sum().item()
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        return Finding(
            "cuda", "problem", f"{name}: {reason}", "name device='cpu', or update the driver and torch"
        )
    return Finding("cuda", "ok", f"{name}, taken where no device is named")


def memory(free: float | None = None) -> list[Finding]:
    """Free memory in bytes; None = ask the system, within a container's limit."""
    if free is None:
        try:
            import psutil  # ipykernel brings it
        except ImportError:
            return [Finding("memory", "warn", "can't be asked for: psutil is missing", INSTALL)]
        free = psutil.virtual_memory().available
        limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
        if limit.is_file() and used.is_file() and limit.read_text().strip().isdecimal():
            free = min(free, int(limit.read_text()) - int(used.read_text()))
    detail = f"{free / 1e9:.1f} GB free"
    if free < MEMORY_GB * 1e9:
        return [
            Finding("memory", "warn", detail, f"close other programs: a notebook needs {MEMORY_GB:.0f} GB")
        ]
    return [Finding("memory", "ok", detail)]


def disk(folder: Path, free: float | None = None) -> list[Finding]:
    """Free disk in bytes where the folder lies; None = ask the system."""
    free = shutil.disk_usage(folder).free if free is None else free
    detail = f"{free / 1e9:.1f} GB free at {folder}"
    if free < DISK_GB * 1e9:
        advice = f"free some: downloads and checkpoints need {DISK_GB:.0f} GB and more"
        return [Finding("disk", "warn", detail, advice)]
    return [Finding("disk", "ok", detail)]


def data() -> list[Finding]:
    """Which sets lie in the data directory; generated scenes and the digits need none."""
    try:
        from clutils import data as datasets
    except ImportError as error:
        return [Finding("data", "problem", f"can't be looked at: {error}", INSTALL)]
    detail = f"scenes, scenes-hard and digits, always; downloads land in {datasets.directory()}"
    findings = [Finding("data", "ok", detail)]
    for place in datasets.on_disk():
        detail = f"{place.bytes / 1e6:,.0f} MB in {place.path}"
        if place.complete:
            findings.append(Finding(place.name, "ok", detail))
        else:
            advice = f"python -m clutils data {place.name} goes on with it"
            findings.append(Finding(place.name, "warn", f"incomplete: {detail}", advice))
    return findings


# ---- notebooks ---------------------------------------------------------------------------------------------


def widgets(
    extensions: Sequence[Path] | None = None, settings: Sequence[Path] | None = None
) -> list[Finding]:
    """Whether sliders will show: ipywidgets in the kernel and its counterpart in the page, of one generation.

    - extensions: the folders that JupyterLab looks for its extensions in; settings: those for its
      `page_config.json`; None = JupyterLab's own
    """
    versions = {name: _version(name) for name in ("ipywidgets", "jupyterlab_widgets", "jupyterlab")}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        detail = f"no slider will show: {' and '.join(missing)} missing"
        return [Finding("widgets", "problem", detail, INSTALL)]
    if extensions is None or settings is None:
        from jupyter_core.paths import jupyter_config_path, jupyter_path

        extensions = [Path(path) for path in jupyter_path("labextensions")]
        settings = [Path(path, "labconfig") for path in jupyter_config_path()]
    again = f'"{sys.executable}" -m pip install --force-reinstall --no-deps jupyterlab_widgets'
    managers = [Path(folder, MANAGER, "package.json") for folder in extensions]
    manager = next(filter(Path.is_file, managers), None)  # JupyterLab, too, takes the first
    if manager is None:
        return [Finding("widgets", "problem", f"JupyterLab's extension {MANAGER} is not there", again)]
    try:
        version = json.loads(manager.read_text(encoding="utf-8"))["version"]
    except (ValueError, KeyError) as error:
        return [Finding("widgets", "problem", f"{manager} can't be read: {error}", again)]
    detail = f"ipywidgets {versions['ipywidgets']}, {MANAGER} {version}"
    if _numbers(version)[0] != _numbers(versions["ipywidgets"])[0] - 3:  # 5 goes with ipywidgets 8, 4 with 7
        advice = f"another copy is found first, at {manager.parent}: remove it, or {again}"
        return [Finding("widgets", "problem", f"{detail}: of two generations", advice)]
    for path in (Path(folder, "page_config.json") for folder in settings):
        if MANAGER in _disabled(path):
            advice = f'"{sys.executable}" -m jupyter labextension enable {MANAGER}'
            return [Finding("widgets", "problem", f"{detail}: switched off in {path}", advice)]
    return [Finding("widgets", "ok", detail)]


def _disabled(path: Path) -> set[str]:
    """The extensions that a page_config.json switches off."""
    if not path.is_file():
        return set()
    try:
        off = json.loads(path.read_text(encoding="utf-8")).get("disabledExtensions", {})
    except ValueError:
        return set()
    names = off if isinstance(off, list) else [name for name, value in off.items() if value]
    return {name.partition(":")[0] for name in names}


def kernel(command: str | None = None) -> list[Finding]:
    """Whether notebooks run this Python; command: their kernel's program, None = what Jupyter would start."""
    if command is None:
        try:
            from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
        except ImportError as error:
            return [Finding("kernel", "problem", str(error), INSTALL)]
        try:
            command = KernelSpecManager().get_kernel_spec("python3").argv[0]
        except NoSuchKernel:
            return [Finding("kernel", "problem", "Jupyter knows no kernel python3", INSTALL)]
    advice = f'"{sys.executable}" -m ipykernel install --sys-prefix'
    advice += ", and 'jupyter kernelspec remove python3' where another comes first"
    if command in ("python", "python3", f"python3.{sys.version_info[1]}"):
        return [Finding("kernel", "ok", f"python3 runs {sys.executable}")]  # Jupyter puts itself in its place
    if not Path(command).exists():
        return [Finding("kernel", "problem", f"python3 should run {command}, which is not there", advice)]
    if Path(command).absolute().parent != Path(sys.executable).absolute().parent:
        return [Finding("kernel", "problem", f"python3 runs {command}, not {sys.executable}", advice)]
    return [Finding("kernel", "ok", f"python3 runs {command}")]


def browser(names: Sequence[str] = BROWSERS) -> list[Finding]:
    """Whether the tests find a browser; the course itself runs in whichever the reader has."""
    if asked := os.environ.get("CLUTILS_CHROMIUM"):
        names = (asked,)
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        advice = "install Chromium (apt install chromium), or name one in CLUTILS_CHROMIUM"
        return [Finding("browser", "warn", f"no {' or '.join(names)}: the browser tests skip", advice)]
    return [Finding("browser", "ok", f"{path}, for the tests")]
