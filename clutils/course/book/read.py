"""Markdown pages of the course with its results, for the repository: `docs/read/`, written by `make read`.

Nothing runs in such a page: figures are files, answers and asides are closed until they are clicked, an
explorer is an image with a link. Each page names the SHA-256 of the notebook that it was made from.
"""

import argparse
import base64
import hashlib
import html
import io
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

from clutils import files
from clutils.course.book import running, stage

OUT = running.ROOT / "docs" / "read"
WIDEST, QUALITY = 1_100, 80  # pixels of a figure; of WebP's 100
MADE_FROM = "<!-- made from notebooks/{name}, SHA-256 {digest} -->"
EXPLORERS = "../../notebooks/explorers/index.html"
IMAGE = re.compile(r'<img src="data:image/png;base64,([^"]+)" alt="([^"]*)"(?: width="(\d+)")?[^>]*>')
LINK = re.compile(r"\]\((?!https?:|#)([^)\s]+)\)")
STYLING = re.compile(
    r"<(style|script)\b.*?</\1>|\s(?:style|class|id|border)=(?:\"[^\"]*\"|'[^']*')", re.DOTALL
)


def write(executed: Path, out: Path = OUT, names: Sequence[str] | None = None) -> list[Path]:
    """Write a page for each notebook, and the figures, into the folder `out` -> the pages.

    - executed: the folder of notebooks with outputs, as from `running.executed`
    - names: of these notebooks only; the other pages stay as they are

    Raises FileExistsError where `out` holds a file that this did not write.
    """
    known = {f"{short(path.stem)}.md" for path in running.sources()} | {"figures"}
    if strange := sorted(file.name for file in out.glob("*") if file.name not in known):
        raise FileExistsError(f"{out} holds {strange[0]}, which is no page of the course: move it away")
    if names is None:
        shutil.rmtree(out, ignore_errors=True)
    (out / "figures").mkdir(parents=True, exist_ok=True)
    pages = []
    for source in running.sources():
        if names is not None and source.stem not in names:
            continue
        for figure in (out / "figures").glob(f"{source.stem[:2]}-*"):
            figure.unlink()
        text = page(nbformat.read(executed / source.name, 4), out / "figures", source.stem[:2])
        made = MADE_FROM.format(name=source.name, digest=digest(source))
        pages.append(out / f"{short(source.stem)}.md")
        files.write_atomically(pages[-1], f"{made}\n\n{text}")
    return pages


def short(stem: str) -> str:
    """Name of a notebook's page: its number, or of the ledger its name."""
    return stem.partition("_")[0]


def digest(source: Path) -> str:
    """SHA-256 of a file, as `sha256sum` prints it."""
    return hashlib.sha256(source.read_bytes()).hexdigest()


def older(out: Path = OUT) -> list[str]:
    """Names of the notebooks whose page is missing or was made from another version."""
    found = []
    for source in running.sources():
        file = out / f"{short(source.stem)}.md"
        text = file.read_text("utf-8") if file.exists() else ""
        if not text.startswith(MADE_FROM.format(name=source.name, digest=digest(source))):
            found.append(source.stem)
    return found


def page(notebook: NotebookNode, figures: Path, number: str) -> str:
    """A notebook with outputs as Markdown.

    - figures: folder to write its figures to; number: of the notebook, for their names
    """
    parts, open_folds = [], list[int]()
    for cell in notebook.cells:
        depth = stage.heading_depth(cell)
        while open_folds and depth <= open_folds[-1]:
            open_folds.pop()
            parts.append("</details>")
        source = cell.source.removeprefix(stage.OPENS)
        if cell.metadata.get(stage.FOLDED):
            title = source.lstrip("# ").removeprefix(stage.ASIDE)
            parts.append(f"<details><summary><b>{html.escape(title)}</b></summary>")
            open_folds.append(depth)
        elif cell.cell_type == "markdown":
            parts.append(LINK.sub(_moved, source))
        elif source.strip():
            code = f"```python\n{source}\n```"
            if cell.metadata.get("jupyter", {}).get("source_hidden"):
                code = f"<details><summary>code</summary>\n\n{code}\n\n</details>"
            parts += [code, *_shown(cell.outputs, figures, number)]
    parts += ["</details>"] * len(open_folds)
    return "\n\n".join(parts) + "\n"


def _moved(link: re.Match[str]) -> str:
    """A notebook's link to another notebook or file, as seen from `docs/read`."""
    target = link[1]
    inside = re.fullmatch(r"(\w+)\.ipynb(#.*)?", target)
    if inside:
        return f"]({short(inside[1])}.md{(inside[2] or '').lower()})"
    return f"](../{target.removeprefix('../docs/')})" if target.startswith("../docs/") else _beside(target)


def _beside(target: str) -> str:
    return (
        f"](../../{target.removeprefix('../')})"
        if target.startswith("../")
        else f"](../../notebooks/{target})"
    )


def _shown(outputs: list[NotebookNode], figures: Path, number: str) -> list[str]:
    """Outputs of a cell as they look with no kernel; of a progress bar the last state."""
    parts, printed = [], ""
    for output in outputs:
        data = output.get("data", {})
        page = data.get("text/html", "")
        if output.output_type == "stream":
            printed += output.text
            continue
        parts, printed = parts + _printed(printed), ""
        if "<iframe" in page or (IMAGE.search(page) is None and "image/png" in data):
            if still := data.get("image/png"):
                alt = html.escape(re.sub(r"^<[^>]*?title=\"([^\"]*)\".*", r"\1", page, flags=re.DOTALL)[:200])
                parts.append(_figure(still, alt if "<" not in alt else "explorer", None, figures, number))
            parts.append(f"*An explorer: [open it]({EXPLORERS}) after downloading the repository.*")
        elif page:
            images = IMAGE.sub(lambda found: _figure(found[1], found[2], found[3], figures, number), page)
            parts.append(re.sub(r"\n\s*\n", "\n", STYLING.sub("", images)).strip())
        elif "text/markdown" in data:
            parts.append(data["text/markdown"])
        elif "text/plain" in data:
            parts += _printed(data["text/plain"])
    return parts + _printed(printed)


def _printed(text: str) -> list[str]:
    lines = re.sub(r"[^\n]*\r(?!\n)", "", text).replace("\r", "").strip("\n")
    return [f"```text\n{lines}\n```"] if lines.strip() else []


def _figure(png: str, alt: str, width: str | None, figures: Path, number: str) -> str:
    """Write an image as WebP, once -> its tag."""
    data = base64.b64decode(png)
    image = Image.open(io.BytesIO(data)).convert("RGB")
    shown = int(width or image.width)
    image.thumbnail((min(WIDEST, 2 * shown), 4 * WIDEST))
    file = figures / f"{number}-{hashlib.sha256(data).hexdigest()[:12]}.webp"
    image.save(file, quality=QUALITY, method=6)
    return f'<img src="figures/{file.name}" alt="{alt}" width="{min(shown, WIDEST)}">'


def main() -> int:
    parser = argparse.ArgumentParser(description="Write docs/read: the course with its results.")
    known = [path.stem for path in running.sources()]
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks, as 03_first_run; default: all")
    parser.add_argument("--older", action="store_true", help="only list pages older than their notebook")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"there is no notebook {unknown.pop()!r}: {', '.join(known)}")
    if options.older:
        stale = older()
        print(
            f"docs/read: older than their notebooks: {', '.join(stale)} (make read)"
            if stale
            else "docs/read: all new"
        )
        return 0
    names = options.names or None
    pages = write(running.executed(names), names=names)
    size = sum(file.stat().st_size for file in OUT.rglob("*") if file.is_file())
    print(f"{len(pages)} pages in {OUT}, {size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
