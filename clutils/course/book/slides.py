"""Decks of the stage paths: reveal.js pages that open from the disk, with the speaker's notes in them."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from clutils.course.book import pages, stage
from clutils.course.book.running import NOTEBOOKS, sources

HERE = Path(__file__).parent
VOID = ("img", "br", "hr", "input", "meta", "link", "wbr", "col", "source")  # elements that nothing closes
MOST_ROWS = 12  # of a table on one slide
PARTS = ("Goal", "Timing", "Ask", "What students believe wrongly", "Where to stop")


def notes(stem: str) -> dict[str, str]:
    """A notebook's speaker notes by their headings, from the notes.md of its lesson's folder.

    'At the slides' is split: its items stand under the cells' ids. Raises ValueError where there are none.
    """
    for file in sorted(HERE.parent.glob("*/notes.md")):
        found = re.search(rf"^# {stem}\n(.*?)(?=^# |\Z)", file.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        if found:
            parts = re.split(r"^## (.+)\n", found[1], flags=re.MULTILINE)[1:]
            said = {title: text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
            at = re.findall(r"^- `([\w-]+)`: (.+)$", said.pop("At the slides", ""), re.MULTILINE)
            return said | dict(at)
    raise ValueError(f"no speaker notes for {stem}: a lesson's notes.md has them under '# {stem}'")


def write(out: Path, executed: Path, notebooks: Path = NOTEBOOKS, pictures: str = "pictures") -> list[Path]:
    """Write the decks of all notebooks that have a stage path, two cuts each, and a page that lists them.

    - executed: the folder of notebooks with outputs, as from `running.executed`
    - pictures: the folder of their pictures, as the decks in `out` call it

    Raises ValueError where a notebook has no speaker notes.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("reveal", "mathjax"):
        shutil.copytree(HERE / "static" / name, out / name, dirs_exist_ok=True)
    shutil.copy(HERE / "static" / "slides.css", out)
    written, rows = [], []
    for path in sources(notebooks):
        kept = executed / path.name
        plain = nbformat.read(path, 4)
        if not stage.path(plain):
            continue
        notebook = nbformat.read(kept, 4) if kept.exists() else plain
        for ours, its in zip(notebook.cells, plain.cells, strict=True):
            ours.metadata = its.metadata  # tags may be newer than the outputs
        pages.prepared(notebook, out / pictures, pictures)
        title = HEADING.match(plain.cells[0].source)
        name = title[1] if title else path.stem
        for minutes in stage.CUTS:
            file = out / f"{path.stem}{'' if minutes == 50 else f'-{minutes}'}.html"
            file.write_text(deck(notebook, path.stem, name, minutes), "utf-8")
            written.append(file)
        rows.append(
            f'<li>{html.escape(name)}: <a href="{path.stem}.html">50 minutes</a>, '
            f'<a href="{path.stem}-20.html">20 minutes</a></li>'
        )
    listed = (HERE / "static" / "decks.html").read_text("utf-8").replace("{decks}", "\n".join(rows))
    (out / "index.html").write_text(listed, "utf-8")
    return written


HEADING = re.compile(r"^# (.+)")


def deck(notebook: NotebookNode, stem: str, title: str, minutes: int) -> str:
    """One deck: a slide for each cell on stage, the first with the notes on the whole."""
    said = notes(stem)
    said |= {"Timing": timing(said.get("Timing", ""), minutes)}
    whole = "\n\n".join(f"**{part}**\n\n{said[part]}" for part in PARTS if said.get(part))
    first = f"<h1>{html.escape(title)}</h1><p>{minutes} minutes · press S for the notes, O for all slides</p>"
    sections = [f"<section>{first}{aside(whole)}</section>"]
    for number in stage.path(notebook, minutes):
        cell = notebook.cells[number]
        if number == 0:  # the opening: its title stands on the slide before
            text = re.sub(r"^- \*\*Time\*\*.*\n", "", HEADING.sub("", cell.source), flags=re.MULTILINE)
            cell = nbformat.from_dict({**cell, "source": text})  # and how long it runs is not for a hall
        tell = said.get(cell.get("id", ""), "")
        if section := re.match(r"## (\d+)", cell.source):  # what the speaker has to know here
            tell = "\n\n".join(filter(None, (of_section(section[1], said), tell)))
        if "predict" in cell.metadata.get("tags", []):
            tell = f"Ask, let them write a number down, and wait. {tell}"
        for part in parts(slide(cell)):
            sections.append(f'<section data-cell="{cell.get("id", "")}">{part}{aside(tell)}</section>')
    template = (HERE / "static" / "deck.html").read_text("utf-8")
    return template.replace("{title}", html.escape(title)).replace("{slides}", "\n".join(sections))


def timing(text: str, minutes: int) -> str:
    """Of '50 minutes: ... 20 minutes: ...' the part for a lecture of so many minutes."""
    found = re.search(rf"{minutes} minutes: (.*?)(?=\d\d minutes: |\Z)", text, re.DOTALL)
    return found[1].strip() if found else text


def of_section(number: str, said: dict[str, str]) -> str:
    """Notes of a section's first slide: what students believe wrongly there, the timing, where to stop."""
    wrong = said.get("What students believe wrongly", "")
    here = [line for line in wrong.splitlines() if re.search(rf"\bsection {number}\b", line)]
    parts = {"Believed wrongly here": "\n".join(here), "Timing": said["Timing"]}
    parts["Where to stop"] = said.get("Where to stop", "")
    return "\n\n".join(f"**{part}**\n\n{text}" for part, text in parts.items() if text)


def aside(text: str) -> str:
    return f'<aside class="notes">{markdown(text)}</aside>' if text else ""


def slide(cell: NotebookNode) -> str:
    """A cell as a slide: text as it stands; of code its outputs, the code itself folded beside a picture."""
    if cell.cell_type == "markdown":
        return f'<div class="text">{markdown(cell.source)}</div>'
    shown = [part for output in cell.outputs if (part := of_output(output))]
    drawn = any("<figure" in part or "<table" in part for part in shown)
    code = f'<pre class="code">{coloured(cell.source)}</pre>'
    folded = f"<details><summary>code</summary>{code}</details>" if drawn else code
    return "".join([*shown, folded] if drawn else [folded, *shown])


def parts(page: str, most: int = MOST_ROWS) -> list[str]:
    """A slide; where its table is longer than `most` rows one for every so many, each with the table's head.

    What stands before the table is on the first of them, what stands after it on the last.
    """
    found = re.search(r"(<table.*?<tbody>)(.*?)(</tbody>.*?</table>)", page, re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", found[2], re.DOTALL) if found else []
    if found is None or len(rows) <= most:
        return [page]
    number = -(-len(rows) // most)
    size = -(-len(rows) // number)
    tables = [f"{found[1]}{''.join(rows[k : k + size])}{found[3]}" for k in range(0, len(rows), size)]
    around: list[str] = []  # the elements that the table stands in: each part has them whole
    for closes, name, whole in re.findall(r"<(/?)(\w+)([^>]*)>", page[: found.start()]):
        if closes:
            around.pop()
        elif name not in VOID:
            around.append(f"<{name}{whole}>")
    opened, closed = "".join(around), "".join(f"</{tag[1:-1].split()[0]}>" for tag in reversed(around))
    within = [f"{opened}{table}{closed}" for table in tables[1:-1]]
    return [
        f"{page[: found.start()]}{tables[0]}{closed}",
        *within,
        f"{opened}{tables[-1]}{page[found.end() :]}",
    ]


def of_output(output: NotebookNode) -> str:
    if output.output_type == "stream":
        return f'<pre class="printed">{html.escape(output.text)}</pre>'
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="drawn">{data["text/html"]}</div>'
    if "text/markdown" in data:
        return f'<div class="text">{markdown(data["text/markdown"])}</div>'
    if "text/plain" in data:
        return f'<pre class="printed">{html.escape(data["text/plain"])}</pre>'
    return ""


def markdown(text: str) -> str:
    """Markdown as HTML, formulas left to MathJax; links to notebooks lead to their decks."""
    from nbconvert.filters import markdown2html_mistune

    page = markdown2html_mistune(text)
    page = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", page)
    page = re.sub(r'<a href="(?:\.\./|claims\.ipynb)[^>]*>(.*?)</a>', r"\1", page)  # no deck has these
    return re.sub(r'href="(\d\d_\w+)\.ipynb', r'href="\1.html', page)


def coloured(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=True, style="friendly"))
