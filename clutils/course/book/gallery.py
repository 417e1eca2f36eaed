"""Images of the book as files, and figures to take: one page that shows them all, by notebook and name."""

import base64
import hashlib
import html
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from nbformat import NotebookNode
from PIL import Image, ImageChops, ImageStat

IMAGE = re.compile(r'<img src="data:image/png;base64,([^"]+)" alt="([^"]*)"')
SVG = "image/svg+xml"
FOLDER = "pictures"  # of the book, for all its images
LONGEST = 40  # letters of a name, after its numbers
OPENING = """# Figures to take

Every figure of the notebooks, in their order: an image of twice the size that the page shows (PNG), and where
there is one a drawing that stays sharp at any size (SVG). Live panels are here as they open. The licence is
the course's: use the figures in your own slides, and say where they are from.
"""


def write(folder: Path, notebooks: Mapping[str, NotebookNode]) -> None:
    """Write `pictures/NN-KK-words-….png`, the SVG beside it, and the page `figures.md` into a folder.

    The pages of the book show the same files: see `smaller`.

    - notebooks: name -> with outputs, before `pages.prepared` moves their images
    """
    pictures, page = folder / FOLDER, [OPENING]
    for stem, notebook in notebooks.items():
        number, rows = stem.partition("_")[0], []
        for order, (png, svg, text) in enumerate(found(notebook), start=1):
            name = f"{number}-{order:02}-{words(text)}"
            file = named(png, name, pictures)
            links = f'<a href="{FOLDER}/{file.name}">PNG</a>'
            if svg:
                (pictures / f"{name}.svg").write_text(svg, "utf-8")
                links += f' · <a href="{FOLDER}/{name}.svg">SVG</a>'
            rows.append(
                f'<figure><a href="{FOLDER}/{file.name}"><img src="{FOLDER}/{file.name}" '
                f'alt="{html.escape(text)}" loading="lazy"></a>'
                f"<figcaption>{name} {links}</figcaption></figure>"
            )
        if rows:
            title = notebook.cells[0].source.splitlines()[0].lstrip("# ")
            grid = "\n".join(['<div class="to-take">', *rows, "</div>\n"])
            page.append(f"## [{title}](notebooks/{stem}.ipynb)\n\n{grid}")
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


def named(png: bytes, name: str, folder: Path) -> Path:
    """The PNG file of a figure, whose name begins with `name` unless an earlier figure is the same."""
    file, *_ = smaller(png, folder)
    if file.suffix == ".png" and file.stem == _digest(png):
        return file.rename(file.with_name(f"{name}-{file.name}"))
    if file.suffix != ".png":  # what slides programs can't place
        file = folder / f"{name}.png"
        file.write_bytes(png)
    return file


def _digest(png: bytes) -> str:
    return hashlib.sha256(png).hexdigest()[:16]


def smaller(png: bytes, folder: Path) -> tuple[Path, int, int]:
    """Write an image with 255 colours, or as WebP where that would show -> file, width, height in pixels.

    The file's name ends with a number for the image; one that is there already is kept.
    """
    image = Image.open(io.BytesIO(png))  # not decoded before its pixels are asked for
    name = folder / _digest(png)
    found = next(folder.glob(f"*{name.name}.*"), None)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        image = image.convert("RGB")
        few = image.quantize(255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        lost = ImageStat.Stat(ImageChops.difference(image, few.convert("RGB"))).mean
        found = name.with_suffix(".png" if max(lost) < 1 else ".webp")
        (few if found.suffix == ".png" else image).save(found, quality=88, method=2)
    return found, *image.size
