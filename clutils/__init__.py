"""Contrastive losses, derived, checked and trained: the package behind the course's notebooks.

Modules load when they are first named, so `import clutils` costs next to nothing and
`from clutils import losses, anatomy` loads those two alone.
"""

import importlib
import os
import pkgutil
from types import ModuleType

__version__ = "0.1.0"

# Torch's threads spin while they wait for one another. On a machine that does anything else besides, the one
# they wait for isn't running, and a training step takes five times as long or more: let them sleep instead.
# It works for what is started from here on (JupyterLab's kernels, a command), not for a torch already loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _modules() -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))


def __getattr__(name: str) -> ModuleType:
    if not name.startswith("_") and name in _modules():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'clutils' has no attribute {name!r}; it has {', '.join(_modules())}")


def __dir__() -> list[str]:
    return sorted([*_modules(), "__version__"])
