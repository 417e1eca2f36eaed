"""Book, slides and all that stands beside them, as one folder of static files."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from clutils import explorers
from clutils.course.book import copies, front, pages, slides

HERE = Path(__file__).parent
ICONS = re.compile(r'<script [^>]*src="[^"]*/fontawesome\.js[^"]*"></script>\n?')
INDEX = re.compile(r'<script src="[^"]*searchindex\.js[^"]*"></script>\n?')


def demand_packages() -> None:
    """Raise RuntimeError, with the command that installs it, where a package of the book is missing."""
    missing = [name for name in ("myst_nb", "sphinx_book_theme") if importlib.util.find_spec(name) is None]
    if missing:
        command = f'"{sys.executable}" -m pip install --editable "{pages.ROOT}[book]"'
        raise RuntimeError(f"no module named {missing[0]}: {command}")


def book(out: Path, executed: Path, base_url: str = "", repository: str = "") -> list[str]:
    """Build the book into the folder `out`, which is replaced -> Sphinx's warnings, one a line.

    - executed: the folder of notebooks with outputs, as from `running.executed`
    - base_url: where it is hosted, for the explorers' links and a notebook's images
    - repository: on GitHub, owner/name, whose notebooks Colab opens: see `copies`

    Raises RuntimeError where Sphinx is missing or fails, FileExistsError where `out` holds something else.
    """
    demand_packages()
    replace(out)
    with tempfile.TemporaryDirectory() as work:
        source, html = Path(work, "source"), Path(work, "html")  # myst-nb writes beside its target, too
        source.mkdir()
        pages.write(source, executed, lambda stem: copies.links(stem, repository))
        command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-c", str(HERE), "-d", f"{work}/read"]
        done = subprocess.run([*command, str(source), str(html)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the book could not be built: {done.stderr.strip()[-500:]}")
        shutil.copytree(html, out, dirs_exist_ok=True)
        if (source / "pictures").exists():
            shutil.copytree(source / "pictures", out / "pictures", dirs_exist_ok=True)
        said = re.sub(re.escape(f"{source}/"), "", done.stderr)
    codes = base_url and importlib.util.find_spec("segno")  # what makes QR codes
    hosted = f"{base_url.rstrip('/')}/explorers" if codes else ""
    for name in explorers.NAMES:
        explorers.write(out / "explorers" / f"{name}.html", name, base_url=hosted)
    front.write(out / "explorers" / "index.html")
    lighten(out)
    shutil.rmtree(out / "_sources", ignore_errors=True)
    for left in (out / ".buildinfo", out / "objects.inv", *(out / "_static").glob("*macros.html")):
        left.unlink(missing_ok=True)
    return [line for line in said.splitlines() if "WARNING" in line or "ERROR" in line]


def whole(out: Path, executed: Path, base_url: str = "", repository: str = "") -> list[str]:
    """The book, and the slides in its folder `slides`, as any static host serves them -> Sphinx's warnings.

    Links inside are relative. With a `base_url` each page says its own address, for search engines; with a
    `repository`, owner/name on GitHub, it has its notebook to download, which opens in Colab, too.
    """
    copies.checked(base_url, repository)
    warnings = book(out, executed, base_url, repository)
    slides.write(out / "slides", executed, pictures="../pictures", base_url=base_url)
    for name, words in {"index": "slides and speaker notes", "lecturer": "<strong>Slides</strong>"}.items():
        page = out / f"{name}.html"  # links to what a book without slides has not
        linked = page.read_text("utf-8").replace(words, f'<a href="slides/index.html">{words}</a>')
        page.write_text(linked, "utf-8")
    (out / ".nojekyll").touch()  # GitHub Pages then serves folders whose names begin with _
    if base_url:
        if repository:
            copies.write(out, base_url, repository)
            pictures = pages.ROOT / "notebooks" / "pictures"
            shutil.copytree(pictures, out / "notebooks" / "pictures", dirs_exist_ok=True)
        for page in sorted(out.rglob("*.html")):
            address = f"{base_url.rstrip('/')}/{page.relative_to(out).as_posix()}"
            text = page.read_text("utf-8")
            page.write_text(
                text.replace("</head>", f'<link rel="canonical" href="{address}"></head>', 1), "utf-8"
            )
    return warnings


def lighten(out: Path) -> None:
    """Leave out the theme's script that draws icons, 1.6 MB, and the search index where nothing is searched.

    The theme's style sheet has a font of 0.1 MB for the icons.
    """
    for page in out.rglob("*.html"):
        text = ICONS.sub("", page.read_text("utf-8"))
        page.write_text(text if page.name == "search.html" else INDEX.sub("", text), "utf-8")
    (out / "_static" / "scripts" / "fontawesome.js").unlink()


def replace(out: Path) -> None:
    """Empty a folder that a build wrote before; FileExistsError where it holds something else."""
    if out.exists() and any(out.iterdir()):
        hidden = any(file.name[0] == "." and file.name != ".nojekyll" for file in out.iterdir())
        ours = all((out / name).exists() for name in ("searchindex.js", "explorers/index.html"))
        if hidden or not ours:
            raise FileExistsError(f"{out} is not empty and no book: name another folder with --out")
        shutil.rmtree(out)
    out.mkdir(parents=True, exist_ok=True)
