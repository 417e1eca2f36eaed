"""Copies of the notebooks for where the package is missing: they install it; nothing speaks of no address."""

from pathlib import Path

import nbformat
import pytest

from clutils.course.book import copies, running

HOST, REPOSITORY = "https://example.org/course/", "owner/name"


@pytest.mark.parametrize("path", running.sources(), ids=lambda path: path.stem)
def test_a_copy_is_the_notebook_a_line_and_a_cell(path: Path):
    notebook = nbformat.read(path, 4)
    made = copies.copy(notebook, path.stem, HOST, REPOSITORY)
    nbformat.validate(made)
    assert copies.in_colab(path.stem, REPOSITORY) in made.cells[0].source
    assert made.cells[0].source.startswith(notebook.cells[0].source.splitlines()[0])
    added = [cell for cell in made.cells if cell.source not in {own.source for own in notebook.cells}]
    assert [cell.id for cell in added] == [notebook.cells[0].id, "install-the-package"]
    assert "git+https://github.com/owner/name#egg=clutils" in added[1].source
    assert len(made.cells) == len(notebook.cells) + 1


def test_a_page_says_no_more_than_there_is():
    assert copies.links("04_macl") == ""
    linked = copies.links("04_macl", REPOSITORY)
    assert "github/owner/name/blob/colab/04_macl.ipynb" in linked and 'href="04_macl.ipynb"' in linked


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
