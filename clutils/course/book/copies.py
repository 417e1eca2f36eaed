"""Copies of the notebooks that install the course's package where it is missing, as in Colab.

A copy's first code cell clones the repository by pip. A link opens a copy in Colab from the branch `colab`.
Without a repository nothing speaks of it.
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from clutils.course.book.running import sources

BRANCH = "colab"
FIRST = """# Where the course's package is missing, as in Colab, it is installed: a minute, once
import importlib.util, sys

if importlib.util.find_spec("clutils") is None:
    %pip install --quiet --src . --editable git+{address}#egg=clutils
    sys.path.insert(0, "clutils")
    %pip install --quiet umap-learn seaborn safetensors"""


def checked(base_url: str, repository: str) -> None:
    """Raise ValueError, quoting what came in, where these are no addresses."""
    if base_url and not re.fullmatch(r"https?://[^/\s\"]+[^\s\"]*", base_url):
        raise ValueError(
            f"base_url is {base_url!r}, but must be an address as in https://example.org/course/"
        )
    if repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(f"repository is {repository!r}, but must be one of GitHub's, as in owner/name")
    if repository and not base_url:
        raise ValueError(f"repository is {repository!r}, but there is no base_url to show the images from")


def links(stem: str, repository: str = "") -> str:
    """HTML under a notebook's title in the book; "" where the site has no repository."""
    if not repository:
        return ""
    download = f'<a href="{stem}.ipynb" download>Download this notebook</a>'
    opens = f'<a href="{in_colab(stem, repository)}">Open in Colab</a>'
    return f'<p class="open-in">{opens} · {download}: it installs the package where that is missing</p>'


def in_colab(stem: str, repository: str) -> str:
    """The address under which Colab opens a copy."""
    return f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/{stem}.ipynb"


def copy(notebook: NotebookNode, stem: str, base_url: str, repository: str) -> NotebookNode:
    """The notebook, with a link to Colab under its title and a first cell that installs the package.

    Its images come from the site. The notebook itself is not changed.
    """
    cells = [nbformat.from_dict(cell) for cell in notebook.cells]
    images = f"]({base_url.rstrip('/')}/notebooks/pictures/"
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](pictures/", images)
    cells[0].source = titled(cells[0].source, f"[Open in Colab]({in_colab(stem, repository)})")
    code = next(n for n, cell in enumerate(cells) if cell.cell_type == "code")
    address = f"https://github.com/{repository}"
    cells.insert(code, new_code_cell(FIRST.format(address=address), id="install-the-package"))
    return nbformat.from_dict({**notebook, "cells": cells})


def titled(source: str, line: str) -> str:
    """The Markdown of an opening cell with this line under its title."""
    title, _, rest = source.partition("\n")
    return f"{title}\n\n{line}\n\n{rest.lstrip()}"


def write(out: Path, base_url: str, repository: str) -> None:
    """Write the copies into the folder `notebooks` of a site."""
    for path in sources():
        made = copy(nbformat.read(path, 4), path.stem, base_url, repository)
        nbformat.write(made, out / "notebooks" / path.name)
