"""One JupyterLab and one browser for all browser tests; `lab` is a fresh page and kernel."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from jupyterlab_driver import Notebook, Server


@pytest.fixture(scope="session")
def server(chromium, root: Path, tmp_path_factory) -> Iterator[Server]:
    """JupyterLab over a copy of the project's notebooks, with training shortened."""
    running = Server(root / "notebooks", tmp_path_factory.mktemp("lab"), environment={"CLUTILS_FAST": "1"})
    yield running
    running.close()


@pytest.fixture(scope="session")
def context(chromium) -> Iterator:
    """One for all pages: what JupyterLab's first loads, the others find in its cache."""
    opened = chromium.new_context(viewport={"width": 1400, "height": 1000})
    yield opened
    opened.close()


@contextmanager
def page_of(server: Server, context) -> Iterator[Notebook]:
    page = context.new_page()
    page.set_default_timeout(60_000)  # on two busy cores
    yield Notebook(page, server)
    page.evaluate("() => window.jupyterapp && window.jupyterapp.serviceManager.sessions.shutdownAll()")
    page.close()


@pytest.fixture
def lab(server: Server, context) -> Iterator[Notebook]:
    with page_of(server, context) as notebook:
        yield notebook


@pytest.fixture(scope="module")
def shared_lab(server: Server, context) -> Iterator[Notebook]:
    """One page and kernel for all tests of a file."""
    with page_of(server, context) as notebook:
        yield notebook


@pytest.fixture(scope="session")
def notebook_of(server: Server):
    """Write a notebook of these code cells where the server finds it -> its name."""

    def write(name: str, *cells: str) -> str:
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
        notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
        nbformat.write(notebook, server.root / name)
        return name

    return write
