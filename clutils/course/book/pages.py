"""Pages of the book: notebooks with their outputs."""

import ast
import base64
import functools
import html
import importlib
import inspect
import pkgutil
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output

import clutils
from clutils import explorers
from clutils.course import claims
from clutils.course.book import copies, gallery, questions, stage
from clutils.course.book.running import ROOT, sources

HERE = Path(__file__).parent
WIDGET = "application/vnd.jupyter.widget-view+json"
ABOVE_THE_LIBRARY = ("course", "commands")
PICTURE = re.compile(r'<img src="data:image/png;base64,([^"]+)"([^>]*)>')
STANDS_FOR = {"dilemma": "circle", "training_lab": "run"}  # a panel's function -> the explorer in its place
KERNEL_FREE = "A live panel stands here in JupyterLab. This explorer needs no kernel: move its controls."
TO_NOTEBOOK = re.compile(r'href="(\w+)\.ipynb(#[^"]*)?"')
LIVE = "A live panel: in JupyterLab, where a kernel runs, you move its controls and it follows."


# ---- notebooks ---------------------------------------------------------------------------------------------


def write(folder: Path, executed: Path, under_title: Callable[[str], str]) -> None:
    """Write all that Sphinx reads into `folder`; a notebook that `executed` lacks comes without outputs.

    - under_title: a notebook's name -> HTML under its title
    """
    for name in ("index.md", "lecturer.md"):
        text = (HERE / name).read_text("utf-8").replace("](../../../notebooks/", "](notebooks/")
        (folder / name).write_text(text, "utf-8")
    _cards.cache_clear()
    (folder / "notebooks").mkdir(parents=True)
    shutil.copytree(ROOT / "notebooks" / "pictures", folder / "notebooks" / "pictures")
    shutil.copy(ROOT / "notebooks" / "simclr.py", folder / "notebooks")  # pages link to it
    for path in (ROOT / "CONTRIBUTING.md", ROOT / "data" / "README.md", *(ROOT / "docs").glob("*.md")):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(path.read_text("utf-8").replace("](../clutils/course/book/", "](../"), "utf-8")
    kept = {path.stem: executed / path.name for path in sources()}
    notebooks = {
        path.stem: nbformat.read(kept[path.stem] if kept[path.stem].exists() else path, 4)
        for path in sources()
    }
    gallery.write(folder, notebooks)
    for stem, notebook in notebooks.items():
        prepared(notebook, folder / "pictures")
        questions.put_in(notebook)
        if line := under_title(stem):
            notebook.cells[0].source = copies.titled(notebook.cells[0].source, line)
        nbformat.write(notebook, folder / "notebooks" / f"{stem}.ipynb")
    (folder / "api").mkdir()
    rooms = [name for name in dir(clutils) if not name.startswith("_") and name not in ABOVE_THE_LIBRARY]
    for name in rooms:
        (folder / "api" / f"{name}.md").write_text(api_page(name), "utf-8")
    listed = "\n".join(rooms)
    (folder / "api" / "index.md").write_text(
        f"# The library\n\n{inspect.getdoc(clutils)}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n",
        "utf-8",
    )


def prepared(notebook: NotebookNode, pictures: Path, at: str = "../pictures") -> NotebookNode:
    """The notebook for a page with no kernel: panels as stills, images as files, cells and answers folded.

    Cells of comments alone, which a reader would take the # from, are left out.

    - pictures: the folder of those files; at: what a page calls it
    """
    from nbconvert.preprocessors.coalescestreams import CoalesceStreamsPreprocessor

    notebook.metadata.pop("widgets", None)
    for number in set().union(*stage.answers(notebook).values()):
        notebook.cells[number].metadata.setdefault("tags", []).append("hide-output")
    notebook.cells = [cell for cell in notebook.cells if not _mute(cell)]
    for cell in notebook.cells:
        if cell.metadata.get("jupyter", {}).get("source_hidden"):
            cell.metadata.setdefault("tags", []).append("hide-input")
        if cell.cell_type == "code":
            cell, _ = CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, 0)  # a bar comes in hundreds
            cell.outputs = [still(output, cell.source, pictures, at) for output in cell.outputs]
    return notebook


def _mute(cell: NotebookNode) -> bool:
    lines = [line for line in cell.source.splitlines() if line.strip()]
    return cell.cell_type == "code" and bool(lines) and all(line.startswith("#") for line in lines)


def still(output: NotebookNode, source: str, pictures: Path, at: str = "../pictures") -> NotebookNode:
    """An output that needs no kernel: of a panel its image, of a progress bar its last state.

    - source: the code of its cell
    """
    if output.output_type == "stream":
        output.text = re.sub(r"[^\n]*\r(?!\n)", "", output.text)
    if "data" not in output:
        return output
    page = output.data.get("text/html")
    if WIDGET in output.data:
        return new_output("display_data", {"text/html": with_files(panel(source, page or ""), pictures, at)})
    if page:
        output.data["text/html"] = with_files(TO_NOTEBOOK.sub(to_page, page), pictures, at)
        for same in ("image/png", gallery.SVG):  # for what shows no HTML, and to take
            output.data.pop(same, None)
    return output


def to_page(link: re.Match[str]) -> str:
    """A link of an output to a notebook's section, or to the cell of a claim, as a link into its page."""
    from docutils.nodes import make_id  # comes with Sphinx

    place = unquote(link[2][1:]) if link[2] else ""
    cell = place.removeprefix("cell-id=")
    section = f"#{_cards().get(cell, '') if cell != place else make_id(place)}" if place else ""
    return f'href="{link[1]}.html{section}"'


@functools.cache  # read out of all notebooks
def _cards() -> dict[str, str]:
    return claims.anchors()


def panel(source: str, page: str) -> str:
    """HTML in place of a live panel that a cell with this code shows; `page`: its still image, if any.

    An explorer in its place where one does what the panel does.
    """
    for called, name in STANDS_FOR.items():
        if f"{called}(" in source:
            note = f'<p class="live-note">{KERNEL_FREE}</p>'
            return f'<div class="live-panel">{note}{explorers.frame(name)}</div>'
    asked = html.escape(source.strip().splitlines()[-1])
    shown = "Here it stands as it opens." if page else f"It opens by <code>{asked}</code>."
    return f'<div class="live-panel"><p class="live-note">{LIVE} {shown}</p>{page}</div>'


def with_files(page: str, pictures: Path, at: str) -> str:
    """HTML whose images stand in files beside it, once each, and are loaded when they come into sight."""

    def moved(match: re.Match[str]) -> str:
        data = base64.b64decode(match[1])
        file, wide, high = gallery.smaller(data, pictures)
        width = int(found[1]) if (found := re.search(r'width="(\d+)"', match[2])) else wide
        size = f'height="{round(width * high / wide)}" loading="lazy"'
        own = match[2].replace('style="', f'style="--wide: {width}px; ', 1)  # on a telephone: see book.css
        return f'<img src="{at}/{file.name}" {size}{own}>'

    return PICTURE.sub(moved, page)


# ---- the library -------------------------------------------------------------------------------------------


def api_page(room: str) -> str:
    """Markdown of a room of the library: each of its public modules by `sphinx.ext.autodoc`."""
    module = importlib.import_module(f"clutils.{room}")
    inner = sorted(each.name for each in pkgutil.iter_modules(getattr(module, "__path__", [])))
    parts = [f"# clutils.{room}"]
    for name in ("", *(each for each in inner if not each.startswith("_"))):
        full = f"clutils.{room}.{name}".rstrip(".")
        heading = [f"## {name}"] if name else []
        parts += [*heading, f"```{{eval-rst}}\n.. automodule:: {full}\n```"]
    return "\n\n".join(parts) + "\n"


def restructured(app: Any, what: str, name: str, member: Any, options: Any, lines: list[str]) -> None:
    """Rewrite a docstring's Markdown as reStructuredText (event `autodoc-process-docstring`)."""
    found = []
    parts = r"(\$\$[\s\S]+?\$\$|`[^`]+`|(?<=\n\n) {4}.*(?:\n(?: {4}.*)?)*)"  # formulas, code, examples
    for part in re.split(parts, "\n".join(lines)):
        if part.startswith("$$"):
            inside = "\n".join(f"   {line.strip()}" for line in part.strip("$").splitlines())
            found.append(f"\n.. math::\n\n{inside}\n\n")
        elif part.startswith("`"):
            found.append(f"``{part.strip('`')}``")
        elif part.startswith("    "):
            found.append(f".. code-block:: python\n\n{part.rstrip()}\n\n")
        else:
            found.append(re.sub(r"[*|]|(?<=\w)_(?!\w)", r"\\\g<0>", part))
    lines[:] = "".join(found).splitlines()


def documented_at(member: Any) -> str:
    """The address of a public class or function of the library in the book; else ''."""
    if not (inspect.isclass(member) or inspect.isfunction(member)) or not member.__doc__:
        return ""
    package, _, rest = member.__module__.partition(".")
    room = rest.partition(".")[0]
    if package != "clutils" or room in ABOVE_THE_LIBRARY or member.__name__.startswith("_"):
        return ""
    return f"api/{room}.html#{member.__module__}.{member.__qualname__}"


def imported(notebook: NotebookNode) -> dict[str, Any]:
    """Modules, classes and functions that a notebook imports from the package, by the names in its cells."""
    found: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or "clutils" not in cell.source:
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:  # a cell with `%` or `!`
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clutils"):
                module = importlib.import_module(str(node.module))
                for name in node.names:
                    if not hasattr(module, name.name):  # a module of its folder that nobody has imported yet
                        importlib.import_module(f"{node.module}.{name.name}")
                    found[name.asname or name.name] = getattr(module, name.name)
    return found


CALLED = re.compile(r'<span class="n">(\w+)</span>((?:<span class="o">\.</span><span class="n">\w+</span>)*)')


def link_code(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Link names of the library in a notebook's cells to their docs (event `html-page-context`)."""
    file = Path(app.srcdir) / f"{page}.ipynb"
    if not file.exists():
        return
    names = imported(nbformat.read(file, 4))

    def linked(match: re.Match[str]) -> str:
        member, where = names.get(match[1]), ""
        if member is None:
            return match[0]
        where = documented_at(member)
        for part in re.findall(r'<span class="n">(\w+)</span>', match[2]):
            member = getattr(member, part, None)
            where = documented_at(member) or where
        return f'<a class="to-source" href="../{html.escape(where)}">{match[0]}</a>' if where else match[0]

    context["body"] = CALLED.sub(linked, context["body"])
