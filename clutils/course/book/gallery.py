"""Figures to take: every figure of the notebooks as a file with a name, and one page that shows them all."""

import base64
import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode

IMAGE = re.compile(r'<img src="data:image/png;base64,([^"]+)" alt="([^"]*)"')
SVG = "image/svg+xml"
LONGEST = 40  # letters of a name, after its numbers
OPENING = """# Figures to take

Every figure of the notebooks, in their order: an image of twice the size that the page shows (PNG), and where
there is one a drawing that stays sharp at any size (SVG). Live panels are here as they open. The licence is
the course's: use the figures in your own slides, and say where they are from.
"""


def write(folder: Path, notebooks: Mapping[str, NotebookNode]) -> None:
    """Write `figures/NN-KK-words.png`, the SVG beside it, and the page `figures.md` into a folder.

    - notebooks: name -> with outputs, before `pages.prepared` moves their images
    """
    (folder / "figures").mkdir(parents=True)
    page = [OPENING]
    for stem, notebook in notebooks.items():
        number, rows = stem.partition("_")[0], []
        for order, (png, svg, text) in enumerate(found(notebook), start=1):
            name = f"{number}-{order:02}-{words(text)}"
            (folder / "figures" / f"{name}.png").write_bytes(png)
            links = f'<a href="figures/{name}.png">PNG</a>'
            if svg:
                (folder / "figures" / f"{name}.svg").write_text(svg, "utf-8")
                links += f' · <a href="figures/{name}.svg">SVG</a>'
            alt = html.escape(text)
            rows.append(
                f'<figure><a href="figures/{name}.png"><img src="figures/{name}.png" alt="{alt}" '
                f'loading="lazy"></a><figcaption>{name} {links}</figcaption></figure>'
            )
        if rows:
            title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
            page.append(f"## [{title}](notebooks/{stem}.ipynb)\n\n" + _grid(rows))
    (folder / "figures.md").write_text("\n".join(page), "utf-8")


def found(notebook: NotebookNode) -> Iterator[tuple[bytes, str, str]]:
    """The figures of a notebook's outputs, stills of panels too: PNG, SVG or "", and the alt text."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for coded, alt in IMAGE.findall(data.get("text/html", "")):
                yield base64.b64decode(coded), data.get(SVG, ""), html.unescape(alt)


def words(text: str) -> str:
    """The first words of an alt text, as a file's name: whole words, small letters and numbers."""
    said = re.findall(r"[a-z0-9]+", text.lower())
    while len("-".join(said)) > LONGEST:
        said.pop()
    return "-".join(said) or "figure"


def _grid(rows: list[str]) -> str:
    return '<div class="to-take">\n' + "\n".join(rows) + "\n</div>\n"
