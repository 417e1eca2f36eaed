"""Copies of the notebooks for where the package is missing: they fetch it; nothing speaks of no address."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import nbformat
import pytest

from clutils.course.book import copies, running

HOST, REPOSITORY = "https://example.org/course/", "owner/name"
# As in Colab: the libraries are there, the package is not; a cell is run as a notebook runs it
BARE = """import sys
sys.path += {libraries}
from IPython.core.interactiveshell import InteractiveShell
for cell in {cells}:
    InteractiveShell.instance().run_cell(cell, silent=True).raise_error()
"""


def run(folder: Path, *cells: str) -> subprocess.CompletedProcess:
    """Run cells in this folder by a Python that knows the libraries, and of the package nothing."""
    libraries = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
    code = BARE.format(libraries=libraries, cells=list(cells))
    command = [sys.executable, "-I", "-S", "-c", code]
    offline = {"PIP_NO_INDEX": "1", "PATH": "/usr/bin:/bin", "HOME": str(folder), "IPYTHONDIR": str(folder)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=offline, timeout=300)


def first(site: Path) -> list[str]:
    """The code cells of notebook 04's copy that a site at this place offers, up to its imports."""
    made = copies.copy(nbformat.read(running.NOTEBOOKS / "04_macl.ipynb", 4), "04_macl", site.as_uri())
    return [cell.source for cell in made.cells if cell.cell_type == "code"][:2]


@pytest.mark.sweep  # pip builds the package and sets it up: once a release is enough
def test_a_copy_fetches_the_package_where_it_is_missing_and_its_imports_and_records_then_work(tmp_path: Path):
    site, reader = tmp_path / "site", tmp_path / "reader"
    site.mkdir(), reader.mkdir()
    copies.pack(site / copies.PACKED)
    whence = "import clutils; print(clutils.__file__); print(len(records.read('first_run')), 'rows')"
    done = run(reader, *first(site), whence)
    assert done.returncode == 0, done.stderr
    assert f"{reader}/course/clutils/__init__.py" in done.stdout and "rows" in done.stdout
    (site / copies.PACKED).unlink()
    assert run(reader, first(site)[0]).returncode == 0, "it fetches what it has"


def test_where_it_is_missing_and_nothing_comes_it_says_in_one_line_what_to_do(tmp_path: Path):
    for comes in (None, b"<!doctype html>", b"PK"):  # nothing; a page in its place; a zip cut off
        if comes is not None:
            (tmp_path / copies.PACKED).write_bytes(comes)
        said = run(tmp_path, first(tmp_path)[0]).stderr.strip().splitlines()[-1]
        assert said.startswith("ModuleNotFoundError: no clutils here, and file://") and "by hand" in said
        assert not (tmp_path / "course").exists()


@pytest.mark.parametrize("path", running.sources(), ids=lambda path: path.stem)
def test_a_copy_is_the_notebook_a_line_and_a_cell(path: Path):
    notebook = nbformat.read(path, 4)
    made = copies.copy(notebook, path.stem, HOST, REPOSITORY)
    nbformat.validate(made)
    assert copies.in_colab(path.stem, REPOSITORY) in made.cells[0].source
    assert made.cells[0].source.startswith(notebook.cells[0].source.splitlines()[0])
    added = [cell for cell in made.cells if cell.source not in {own.source for own in notebook.cells}]
    assert [cell.id for cell in added] == [notebook.cells[0].id, "fetch-the-package"]
    assert f'"{HOST}course.zip"' in added[1].source and len(made.cells) == len(notebook.cells) + 1


def test_a_page_says_no_more_than_there_is():
    assert copies.links("04_macl") == ""
    hosted = copies.links("04_macl", HOST)
    assert "Colab" not in hosted and 'href="04_macl.ipynb"' in hosted
    assert "github/owner/name/blob/colab/04_macl.ipynb" in copies.links("04_macl", HOST, REPOSITORY)


@pytest.mark.parametrize(
    ("base_url", "repository", "match"),
    [
        ("my site", "", "base_url is 'my site'"),
        ('https://x.org/"', "", "base_url is"),
        (HOST, "https://github.com/owner/name", "owner/name"),
        ("", REPOSITORY, "no base_url"),
    ],
)
def test_what_is_no_address_is_refused(base_url: str, repository: str, match: str):
    with pytest.raises(ValueError, match=match):
        copies.checked(base_url, repository)
