"""Copies of the notebooks that run where the course's package is not installed, as in Colab.

Beside them the site has the package, course.zip; a copy's first code cell fetches it from there. So all of it
needs the address of the site; a link that opens a copy in Colab also needs the GitHub repository whose branch
`colab` has the copies, for Colab opens notebooks from there. Where one is not given, nothing speaks of it.
"""

import re
import shutil
import zipfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from clutils.course.book.running import NOTEBOOKS, ROOT, sources

BRANCH = "colab"
PACKED = "course.zip"
IN_COLAB = ("jupyterlab", "ipywidgets")  # Colab brings its own, and others would be in their way
FIRST = """# Where the course's package is missing, as in Colab, it is fetched: a minute, once
import importlib.util, io, pathlib, sys, urllib.request, zipfile

if importlib.util.find_spec("clutils") is None:
    course, address = pathlib.Path("course").resolve(), "{address}"
    if not (course / "clutils").exists():
        try:
            part = course.with_name("course.part")  # so that none is left half unpacked
            zipfile.ZipFile(io.BytesIO(urllib.request.urlopen(address).read())).extractall(part)
            part.rename(course)
        except (OSError, zipfile.BadZipFile) as error:
            by_hand = f"unpack it by hand into {{course}}, and run this cell again"
            none = f"no clutils here, and {{address}} did not come whole ({{error}}): {{by_hand}}"
            raise ModuleNotFoundError(none) from None
    sys.path.insert(0, str(course))
    %pip install --quiet --requirement course/requirements.txt"""


def checked(base_url: str, repository: str) -> None:
    """Raise ValueError, quoting what came in, where these are no addresses."""
    if base_url and not re.fullmatch(r"https?://[^/\s\"]+[^\s\"]*", base_url):
        raise ValueError(
            f"base_url is {base_url!r}, but must be an address as in https://example.org/course/"
        )
    if repository and not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise ValueError(f"repository is {repository!r}, but must be one of GitHub's, as in owner/name")
    if repository and not base_url:
        raise ValueError(f"repository is {repository!r}, but there is no base_url to fetch the package from")


def links(stem: str, base_url: str = "", repository: str = "") -> str:
    """HTML under a notebook's title in the book; "" where the site has no address."""
    if not base_url:
        return ""
    download = f'<a href="{stem}.ipynb" download>Download this notebook</a>'
    opens = f'<a href="{in_colab(stem, repository)}">Open in Colab</a> · ' if repository else ""
    return f'<p class="open-in">{opens}{download}: it fetches the package by itself where that is missing</p>'


def in_colab(stem: str, repository: str) -> str:
    """The address under which Colab opens a copy."""
    return f"https://colab.research.google.com/github/{repository}/blob/{BRANCH}/{stem}.ipynb"


def copy(notebook: NotebookNode, stem: str, base_url: str, repository: str = "") -> NotebookNode:
    """The notebook, with a link to Colab under its title and a cell before its code that fetches the package.

    Its images come from the site. The notebook itself is not changed.
    """
    cells = [nbformat.from_dict(cell) for cell in notebook.cells]
    images = f"]({base_url.rstrip('/')}/notebooks/pictures/"
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace("](pictures/", images)
    if repository:
        cells[0].source = titled(cells[0].source, f"[Open in Colab]({in_colab(stem, repository)})")
    code = next(n for n, cell in enumerate(cells) if cell.cell_type == "code")
    address = f"{base_url.rstrip('/')}/{PACKED}"
    cells.insert(code, new_code_cell(FIRST.format(address=address), id="fetch-the-package"))
    return nbformat.from_dict({**notebook, "cells": cells})


def titled(source: str, line: str) -> str:
    """The Markdown of an opening cell with this line under its title."""
    title, _, rest = source.partition("\n")
    return f"{title}\n\n{line}\n\n{rest.lstrip()}"


def write(out: Path, base_url: str, repository: str) -> None:
    """Write the copies into the folder `notebooks` of a site, and the package beside it."""
    for path in sources():
        made = copy(nbformat.read(path, 4), path.stem, base_url, repository)
        nbformat.write(made, out / "notebooks" / path.name)
    shutil.copytree(NOTEBOOKS / "pictures", out / "notebooks" / "pictures", dirs_exist_ok=True)
    pack(out / PACKED)


def pack(file: Path) -> None:
    """What the notebooks run on, as a zip: package, records, notebooks, and what the package needs."""
    needed = (ROOT / "requirements.txt").read_text("utf-8").splitlines(keepends=True)
    folders = (ROOT / "clutils", ROOT / "benchmarks" / "records")
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("requirements.txt", "".join(n for n in needed if not n.startswith(IN_COLAB)))
        for path in [*sources(), *(path for folder in folders for path in sorted(folder.rglob("*")))]:
            inside = path.relative_to(ROOT).as_posix()
            if path.is_file() and "__pycache__" not in inside and "book/static" not in inside:
                packed.write(path, inside)
