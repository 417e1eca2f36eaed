"""Provenance of a run: date, machine, versions, commit."""

import os
import platform
import re
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "torchvision", "scikit-learn", "numpy")


def provenance() -> dict[str, Any]:
    """Where a run happened: date, machine, cores, python, versions, commit ('+' = with changes on top)."""
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": " ".join(f"{p}=={_version(p)}" for p in PACKAGES),
        "commit": commit(),
    }


def machine() -> str:
    """The processor's name and the GPU's, if there is one."""
    import torch

    name = platform.processor() or platform.machine()
    known = Path("/proc/cpuinfo")
    if known.exists() and (found := re.search(r"^model name\s*:(.*)", known.read_text(), re.MULTILINE)):
        name = found[1].strip()
    return f"{name} + {torch.cuda.get_device_name()}" if torch.cuda.is_available() else name


def commit() -> str:
    """The checkout's commit, seven digits, '+' behind it when files differ; '' outside a checkout."""
    command = ["git", "describe", "--always", "--exclude=*", "--abbrev=7", "--dirty=+"]
    here: dict[str, Any] = {"cwd": Path(__file__).parent, "timeout": 10}
    try:
        return subprocess.run(command, **here, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
