"""Fixtures that several test files share, and what keeps the tests repeatable."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# before torch is first imported: one thread, whatever the machine has, and so the same sums everywhere. With
# two in each of two workers on two cores, a thread spins while it waits for one that the other worker keeps
# from running: 200 steps took 66 s in place of 2
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# the expected numbers are a CPU's; tests/on_a_gpu has a pretend GPU
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]


BOOK = "test_book"
SHARED = {
    "browser": "one JupyterLab",
    "explorers": "pages that stay open",
    "report": "the encoders that are trained once",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The notebooks come first, and the book, made of what they left, when they are long done."""

    def place(item: pytest.Item) -> int:
        if item.get_closest_marker("notebook"):
            return 0
        if item.path.stem == BOOK:
            return 2
        return 1 if item.path.relative_to(ROOT / "tests").parts[0] < "report" else 3

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What was imported by now stays: the garbage collector need not look through it each time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Which tests stay together on one worker: those of a file, and of a folder that shares what is dear.

    Each notebook is for itself, so that no worker waits long for another. (Groups by xdist's own mark are
    passed over without a word by xdist 3.8 with pytest 9.2.)
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = Path(nodeid.partition("::")[0])
            if path.stem == "test_notebooks":
                return nodeid
            return path.parent.name if path.parent.name in SHARED and path.stem != BOOK else str(path)

    return Together(config, log)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    """Sums on the CPU are split by thread, so a fixed number of threads fixes their last bits."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the notebooks' tests of all workers leave the notebooks that they ran."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "executed_notebooks"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real images beside the project, for tests that want more than the package carries."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real images at {folder}")
    return folder


@pytest.fixture(scope="session")
def world() -> tuple[torch.Tensor, np.ndarray, torch.Tensor]:
    """Ten classes around ten centres: embeddings, a map that keeps them, labels."""
    from clutils import maps

    draw = torch.Generator().manual_seed(0)
    labels = torch.arange(120) % 10
    z = torch.randn(10, 20, generator=draw)[labels] + 0.2 * torch.randn(120, 20, generator=draw)
    return z, maps.pca(z), labels


@pytest.fixture(scope="session")
def chromium() -> Iterator:
    """One headless Chromium for all that drives a browser: playwright has room for one in a process."""
    sys.path.insert(0, str(ROOT / "tests" / "browser"))
    from jupyterlab_driver import browser, find_chromium

    if find_chromium() is None:
        pytest.skip("no Chromium found: install one, or set CLUTILS_CHROMIUM to its path")
    with browser() as running:
        yield running
