"""Contrastive losses, derived, checked and trained: the package behind the course's notebooks.

Modules load when they are first named, so `import clutils` costs next to nothing and
`from clutils import losses, anatomy` loads those two alone.
"""

import ctypes
import importlib
import os
import pkgutil
from types import ModuleType

__version__ = "0.1.0"

# Torch's threads spin while they wait for one another. On a machine that does anything else besides, the one
# they wait for isn't running, and a training step takes five times as long or more: let them sleep instead.
# It works for what is started from here on (JupyterLab's kernels, a command), not for a torch already loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# glibc hands the memory of a step back to the system at once, and the next step gets it again page by page:
# on a CPU up to half of its time. Blocks of up to 128 MiB now stay here, 512 MiB in a row at most.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # malloc.h


def _keep_freed_memory() -> bool:
    """Whether it stays: not without glibc, nor where the user has settings of their own for it."""
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # macOS or another C library; Windows
        return False
    # the second alone would fix the first at 128 KiB
    return mallopt(M_MMAP_THRESHOLD, 128 * 2**20) == 1 and mallopt(M_TRIM_THRESHOLD, 512 * 2**20) == 1


_keep_freed_memory()


def _modules() -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))


def __getattr__(name: str) -> ModuleType:
    if not name.startswith("_") and name in _modules():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'clutils' has no attribute {name!r}; it has {', '.join(_modules())}")


def __dir__() -> list[str]:
    return sorted([*_modules(), "__version__"])
