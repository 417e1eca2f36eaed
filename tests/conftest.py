"""Fixtures that several test files share, and what keeps the tests repeatable."""

import os
from pathlib import Path

# before torch is first imported: two threads, whatever the machine has, and so the same sums everywhere
os.environ.setdefault("OMP_NUM_THREADS", "2")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as `import clutils` has it
os.environ.setdefault("MPLBACKEND", "Agg")

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def two_threads() -> None:
    """Sums on the CPU are split by thread, so a fixed number of threads fixes their last bits."""
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real pictures beside the project, for tests that want more than the package carries."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real pictures at {folder}")
    return folder
