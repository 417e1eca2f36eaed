"""Install PyTorch, the largest part of the environment, in the builds that suit this machine.

python .ci/install_torch.py [auto|cpu|default] [--wheels DIR] [PIP OPTION ...]

auto takes PyTorch's builds for the CPU where no NVIDIA driver is found and its own index of them can be
reached; default takes what pip's configured index gives. What is installed already stays. --wheels writes the
wheels into a folder instead of installing them.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

CPU_INDEX = os.environ.get("CPU_INDEX", "https://download.pytorch.org/whl/cpu")
NAMES = ("torch", "torchvision")
SECONDS = 10  # to wait for an answer of the index


def driver() -> bool:
    """Whether an NVIDIA driver is here."""
    known = (
        Path("/proc/driver/nvidia/version"),
        Path(os.environ.get("SYSTEMROOT", "/"), "System32/nvcuda.dll"),
    )
    return shutil.which("nvidia-smi") is not None or any(path.exists() for path in known)


def reachable(index: str) -> bool:
    """Whether a package index answers; a folder with one is named file://..."""
    page = f"{index.rstrip('/')}/torch/{'index.html' if index.startswith('file:') else ''}"
    try:
        with urllib.request.urlopen(page, timeout=SECONDS):
            return True
    except (OSError, ValueError):
        return False


def choose(asked: str, has_driver: bool, index: str) -> tuple[list[str], str]:
    """pip's options for where to take PyTorch from, and a line that says why and how to change it."""
    if asked not in ("auto", "cpu", "default"):
        raise SystemExit(f"TORCH is {asked}, but must be auto, cpu or default")
    if sys.platform == "darwin":
        return [], "PyTorch: the one build that there is for macOS"
    if asked == "default" or (asked == "auto" and has_driver):
        why = "as asked" if asked == "default" else "an NVIDIA driver is here"
        return (
            [],
            f"PyTorch: from the configured index ({why}; TORCH=cpu takes the smaller builds for the CPU)",
        )
    if reachable(index):
        why = "as asked" if asked == "cpu" else "no NVIDIA driver is here"
        return ["--index-url", index], f"PyTorch: builds for the CPU ({why}; TORCH=default takes the others)"
    return (
        [],
        f"PyTorch: from the configured index, since {index} can't be reached (CPU_INDEX=... names another)",
    )


def main(asked: str = "auto", *rest: str) -> int:
    wanted = [line.split("#")[0].strip() for line in Path("requirements.txt").read_text("utf-8").splitlines()]
    wanted = [line for line in wanted if line.split(">=")[0] in NAMES]
    into = list(rest)
    if "--wheels" in into:
        at = into.index("--wheels")
        command = ["wheel", "--wheel-dir", into[at + 1], *into[:at], *into[at + 2 :]]
    elif all(importlib.util.find_spec(name) for name in NAMES):
        return 0
    else:
        command = ["install", *into]
    if "--no-index" in into:
        where, said = [], "PyTorch: from the folder of wheels"
    else:
        where, said = choose(asked, driver(), CPU_INDEX)
    print(said, flush=True)
    pip = [sys.executable, "-m", "pip", *command[:1], "--disable-pip-version-check", *command[1:]]
    return subprocess.run([*pip, *where, *wanted]).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
