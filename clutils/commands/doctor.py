"""`python -m clutils doctor`: what is here, what is missing, and for each problem what to do about it.

Each examination returns findings; one function prints them. It asks nothing of the network, and answers also
where packages are missing: finding that out is what it is for.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clutils.commands.arguments import Add

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (3, 11)
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


def ok(name: str, detail: str) -> Finding:
    return Finding(name, "ok", detail)


def problem(name: str, detail: str, advice: str = INSTALL) -> Finding:
    return Finding(name, "problem", detail, advice)


def judged(name: str, fine: bool, detail: str, advice: str = INSTALL, status: str = "problem") -> Finding:
    """'ok' where it is fine, else of this status."""
    return ok(name, detail) if fine else Finding(name, status, detail, advice)


def add_to(add: Add) -> None:
    add("doctor", doctor, "examine this installation: versions, device, data, widgets, and what to do")


def doctor(options: argparse.Namespace) -> int:
    """Look at everything and print it; 1 where something is a problem, else 0."""
    findings = [*python(), *packages(), *device(), *memory(), *disk(ROOT), *data()]
    findings += [widgets(), kernel(), browser()]
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


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Iterator[Finding]:
    """Whether this Python is new enough, and whether notebooks, which run elsewhere, will find clutils."""
    detail = f"{'.'.join(map(str, version))} at {sys.executable}, {platform.platform()}"
    needed = ".".join(map(str, PYTHON))
    advice = f"install Python {needed} or newer, and make the environment anew"
    yield judged("python", version[:2] >= PYTHON, detail, advice)
    installed = _version("clutils")
    yield judged("clutils", installed is not None, f"{installed or 'not installed, but'} at {ROOT}")


def packages(requirements: Sequence[str] | None = None) -> Iterator[Finding]:
    """Each requirement, as in 'torch>=2.4', with the version that is here; None = the project's own."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        yield problem("packages", "can't be looked at: packaging is missing")
        return
    for needed in map(Requirement, _requirements() if requirements is None else requirements):
        if needed.marker and not needed.marker.evaluate({"extra": ""}):
            continue
        found = _version(needed.name)
        fits = found is not None and needed.specifier.contains(found, prereleases=True)
        lacking = f"{found or 'missing'}, {needed.specifier} is needed"
        yield judged(needed.name, fits, str(found) if fits else lacking)


def _requirements() -> list[str]:
    """requirements.txt beside the package; else what the package was installed with."""
    file = ROOT / "requirements.txt"
    if file.is_file():
        lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line]
    try:
        return importlib.metadata.requires("clutils") or []
    except importlib.metadata.PackageNotFoundError:
        return []


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


# ---- machine -----------------------------------------------------------------------------------------------


def device() -> Iterator[Finding]:
    """What training will run on."""
    try:
        import torch

        from clutils import encoders
    except (ImportError, OSError) as error:  # OSError: a library that torch loads is missing or broken
        yield problem("device", f"torch does not load: {error}")
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = "bfloat16" if encoders.computes_bfloat16("cpu") else "float32 (no bfloat16 instructions)"
    yield ok("cpu", f"{torch.get_num_threads()} threads on {cores} cores, trains in {kind}")
    if torch.cuda.is_available():
        name = torch.cuda.get_device_name()
        try:
            torch.ones(8, 8, device="cuda").sum().item()
            yield ok("cuda", f"{name}, taken where no device is named")
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            yield problem("cuda", f"{name}: {reason}", "name device='cpu', or update the driver and torch")
    elif shutil.which("nvidia-smi"):
        advice = "this torch is built without CUDA: install one with it to train on the GPU; the CPU serves"
        if built := torch.version.cuda:
            advice = f"update NVIDIA's driver: this torch is built for CUDA {built}; the CPU serves"
        yield Finding("cuda", "warn", "an NVIDIA driver is here, but torch can't use it", advice)
    if torch.backends.mps.is_available():
        yield ok("mps", "there; taken by name alone, device='mps'")


def memory(free: float | None = None) -> Iterator[Finding]:
    """Free memory in bytes; None = ask the system, within a container's limit."""
    if free is None:
        try:
            import psutil  # ipykernel brings it
        except ImportError:
            yield Finding("memory", "warn", "can't be asked for: psutil is missing", INSTALL)
            return
        free = psutil.virtual_memory().available
        limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
        if limit.is_file() and used.is_file() and limit.read_text().strip().isdecimal():
            free = min(free, int(limit.read_text()) - int(used.read_text()))
    advice = f"close other programs: a notebook needs {MEMORY_GB:.0f} GB"
    yield judged("memory", free >= MEMORY_GB * 1e9, f"{free / 1e9:.1f} GB free", advice, "warn")


def disk(folder: Path, free: float | None = None) -> Iterator[Finding]:
    """Free disk in bytes where the folder lies; None = ask the system."""
    free = shutil.disk_usage(folder).free if free is None else free
    advice = f"free some: downloads and checkpoints need at least {DISK_GB:.0f} GB"
    yield judged("disk", free >= DISK_GB * 1e9, f"{free / 1e9:.1f} GB free at {folder}", advice, "warn")


def data() -> Iterator[Finding]:
    """Which sets lie in the data directory; generated scenes and the digits need none."""
    try:
        from clutils import data as datasets

        places = datasets.on_disk()
    except ImportError as error:
        yield problem("data", f"can't be looked at: {error}")
        return
    yield ok("data", f"scenes, scenes-hard and digits, always; downloads land in {datasets.directory()}")
    for place in places:
        detail = f"{'' if place.complete else 'incomplete: '}{place.bytes / 1e6:,.0f} MB in {place.path}"
        advice = f"python -m clutils data {place.name} goes on with it"
        yield judged(place.name, place.complete, detail, advice, "warn")


# ---- notebooks ---------------------------------------------------------------------------------------------


def widgets(extensions: Sequence[Path] | None = None, settings: Sequence[Path] | None = None) -> Finding:
    """Whether sliders will show: ipywidgets in the kernel and its counterpart in the page, of one generation.

    - extensions: the folders that JupyterLab looks for its extensions in; settings: those for its
      `page_config.json`; None = JupyterLab's own
    """
    versions = {name: _version(name) for name in ("ipywidgets", "jupyterlab_widgets", "jupyterlab")}
    missing = [name for name, version in versions.items() if version is None]
    if missing:
        detail = f"no slider will show: {' and '.join(missing)} missing"
        return problem("widgets", detail)
    if extensions is None or settings is None:
        from jupyter_core.paths import jupyter_config_path, jupyter_path

        extensions = [Path(path) for path in jupyter_path("labextensions")]
        settings = [Path(path, "labconfig") for path in jupyter_config_path()]
    again = f'"{sys.executable}" -m pip install --force-reinstall --no-deps jupyterlab_widgets'
    managers = [Path(folder, MANAGER, "package.json") for folder in extensions]
    manager = next(filter(Path.is_file, managers), None)  # JupyterLab, too, takes the first
    if manager is None:
        return problem("widgets", f"JupyterLab's extension {MANAGER} is not there", again)
    try:
        version = json.loads(manager.read_text(encoding="utf-8"))["version"]
    except (ValueError, KeyError) as error:
        return problem("widgets", f"{manager} can't be read: {error}", again)
    detail = f"ipywidgets {versions['ipywidgets']}, {MANAGER} {version}"
    page, kernel = (int(str(text).partition(".")[0]) for text in (version, versions["ipywidgets"]))
    if page != kernel - 3:  # 5 goes with ipywidgets 8, 4 with 7
        advice = f"another copy is found first, at {manager.parent}: remove it, or {again}"
        return problem("widgets", f"{detail}: of two generations", advice)
    for path in (Path(folder, "page_config.json") for folder in settings):
        if MANAGER in _disabled(path):
            advice = f'"{sys.executable}" -m jupyter labextension enable {MANAGER}'
            return problem("widgets", f"{detail}: switched off in {path}", advice)
    return ok("widgets", detail)


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


def kernel(command: str | None = None) -> Finding:
    """Whether notebooks run this Python; command: their kernel's program, None = what Jupyter would start."""
    if command is None:
        try:
            from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel
        except ImportError as error:
            return problem("kernel", str(error))
        try:
            command = KernelSpecManager().get_kernel_spec("python3").argv[0]
        except NoSuchKernel:
            return problem("kernel", "Jupyter knows no kernel python3")
    advice = f'"{sys.executable}" -m ipykernel install --sys-prefix'
    advice += ", and 'jupyter kernelspec remove python3' where another comes first"
    if command in ("python", "python3", f"python3.{sys.version_info[1]}"):
        return ok("kernel", f"python3 runs {sys.executable}")  # Jupyter puts itself in its place
    if not Path(command).exists():
        return problem("kernel", f"python3 should run {command}, which is not there", advice)
    if Path(command).absolute().parent != Path(sys.executable).absolute().parent:
        return problem("kernel", f"python3 runs {command}, not {sys.executable}", advice)
    return ok("kernel", f"python3 runs {command}")


def browser(names: Sequence[str] = BROWSERS) -> Finding:
    """Whether the tests find a browser; the course itself runs in whichever the reader has."""
    if asked := os.environ.get("CLUTILS_CHROMIUM"):
        names = (asked,)
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        advice = "install Chromium (apt install chromium), or name one in CLUTILS_CHROMIUM"
        return Finding("browser", "warn", f"no {' or '.join(names)}: the browser tests skip", advice)
    return ok("browser", f"{path}, for the tests")
