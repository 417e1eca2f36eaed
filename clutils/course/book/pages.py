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
from types import ModuleType
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
    """A room of the library as a page: its modules' public classes and functions with their docstrings."""
    module = importlib.import_module(f"clutils.{room}")
    modules = [module]
    if hasattr(module, "__path__"):
        found = sorted(pkgutil.iter_modules(module.__path__), key=lambda each: each.name)
        modules += [
            importlib.import_module(f"clutils.{room}.{each.name}")
            for each in found
            if not each.name.startswith("_")
        ]
    parts = [f"# {module.__name__}", markdown(module.__doc__)]
    for each in modules:
        members = public(each)
        if each is not module and members:
            parts += [f"## {each.__name__.removeprefix(f'clutils.{room}.')}", markdown(each.__doc__)]
        parts += [described(each, name, member) for name, member in members]
    return "\n\n".join(parts) + "\n"


def public(module: ModuleType) -> list[tuple[str, Any]]:
    """The classes and functions that a module itself defines and documents, in the order of its file."""
    found = [
        (name, member)
        for name, member in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(member) or inspect.isfunction(member))
        and member.__module__ == module.__name__
        and member.__doc__
    ]
    return sorted(found, key=lambda pair: line_of(pair[1]))


def described(module: ModuleType, name: str, member: Any) -> str:
    """A class with its methods, or a function, as a directive of Sphinx's Python domain."""
    kind = "class" if inspect.isclass(member) else "function"
    body = [markdown(member.__doc__)]
    if kind == "class":
        for method, function in vars(member).items():
            function = getattr(function, "__func__", function)
            if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                inner = markdown(function.__doc__)
                body.append(f"::::{{py:method}} {method}{signature(function)}\n\n{inner}\n::::")
    where = source_of(member)
    link = f'\n\n<a class="to-source" href="../{where}">source</a>' if where else ""
    inside = "\n\n".join(body)
    return (
        f":::::{{py:{kind}}} {name}{signature(member)}\n:module: {module.__name__}\n\n{inside}{link}\n:::::"
    )


def signature(member: Any) -> str:
    try:
        said = str(inspect.signature(member)).replace(" -> 'None'", "").removesuffix(" -> None")
        said = re.sub(r"= <[^=]+ at 0x[0-9a-f]+>|= <factory>", "= ...", said)  # no text of its own
        return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", re.sub(r"'([^']*)'", r"\1", said))  # no modules
    except (TypeError, ValueError):
        return ""


def markdown(docstring: str | None) -> str:
    """A docstring as MyST Markdown: examples fenced, lists of arguments and bullets set off."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r"^((?:>>>|\.\.\.).*(?:\n(?!\n).+)*)", r"```python\n\1\n```", text, flags=re.MULTILINE)

    def listed(match: re.Match[str]) -> str:
        lines = inspect.cleandoc(match[2]).splitlines()
        items = [line if line.startswith(" ") else f"- {line}" for line in lines]
        return f"**{match[1]}**\n\n" + "\n".join(items) + "\n"

    return re.sub(r"^(Args|Returns|Raises|Attributes):\n((?:[ ]{2,}.*(?:\n|$))+)", listed, text, flags=re.M)


# ---- source ------------------------------------------------------------------------------------------------


def source_of(member: Any) -> str:
    """The address of the line where a class, function or module of the package is defined; else ''."""
    if not (inspect.ismodule(member) or inspect.isclass(member) or inspect.isfunction(member)):
        return ""
    name = member.__name__ if inspect.ismodule(member) else member.__module__
    if not name.startswith("clutils"):
        return ""
    try:
        return f"source/{name}.html#line-{line_of(member)}"
    except (OSError, TypeError):
        return ""


@functools.cache  # for a class Python parses the whole file
def line_of(member: Any) -> int:
    """The number of the line where a class, function or module is defined."""
    return 1 if inspect.ismodule(member) else inspect.getsourcelines(inspect.unwrap(member))[1]


SOURCE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><link rel="stylesheet" href="../_static/pygments.css">
<script>
const theme = localStorage.getItem("theme") || "light";
document.documentElement.dataset.theme = theme;
</script>
<link rel="stylesheet" href="../_static/source.css"></head>
<body><p><a href="../index.html">Contrastive learning</a> · <a href="../api/index.html">the library</a></p>
<h1>{title}</h1>{body}</body></html>
"""


def write_source(out: Path) -> None:
    """Every file of the package as a page with numbered lines, in the folder `source` of a book."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    shown = HtmlFormatter(cssclass="highlight", linenos="inline", lineanchors="line", anchorlinenos=True)
    (out / "source").mkdir(exist_ok=True)
    for file in sorted((ROOT / "clutils").rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        body = highlight(file.read_text("utf-8"), PythonLexer(), shown)
        title = file.relative_to(ROOT).as_posix()
        (out / "source" / f"{name}.html").write_text(SOURCE.format(title=title, body=body), "utf-8")


def imported(notebook: NotebookNode) -> dict[str, Any]:
    """What a notebook's cells import from the package, by the names that they use."""
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
    """In a notebook's cells, link what comes from the package to its source (event `html-page-context`)."""
    file = Path(app.srcdir) / f"{page}.ipynb"
    if not file.exists():
        return
    names = imported(nbformat.read(file, 4))

    def linked(match: re.Match[str]) -> str:
        member, where = names.get(match[1]), ""
        if member is None:
            return match[0]
        where = source_of(member)
        for part in re.findall(r'<span class="n">(\w+)</span>', match[2]):
            member = getattr(member, part, None)
            where = source_of(member) or where
        return f'<a class="to-source" href="../{html.escape(where)}">{match[0]}</a>' if where else match[0]

    context["body"] = CALLED.sub(linked, context["body"])
