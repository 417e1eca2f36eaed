"""Decks of the stage paths: reveal.js pages that open from the disk, with the speaker's notes in them."""

import html
import re
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from clutils.course.book import pages, stage
from clutils.course.book.running import sources

HERE = Path(__file__).parent
VOID = ("img", "br", "hr", "input", "meta", "link", "wbr", "col", "source")  # elements that nothing closes
MOST_ROWS, MOST_LINES = 12, 24  # of a table, and of what is printed, on one slide
WIDE, HIGH = 1232, 660  # of a slide in pixels, within its padding
BLOCK = re.compile(r"<(figure|iframe|table|pre|details)\b.*?</\1>", re.DOTALL)
ROW = {"table": re.compile("<tr.*?</tr>", re.DOTALL), "pre": re.compile("[^\n]+\n?")}
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


def write(out: Path, executed: Path, pictures: str = "pictures") -> None:
    """Write the decks of all notebooks that have a stage path, two cuts each, and a page that lists them.

    - executed: the folder of notebooks with outputs, as from `running.executed`
    - pictures: the folder of their images, as the decks in `out` call it

    Raises ValueError where a notebook has no speaker notes.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name in ("reveal", "mathjax"):
        shutil.copytree(HERE / "static" / name, out / name, dirs_exist_ok=True)
    shutil.copy(HERE / "static" / "slides.css", out)
    rows = []
    for path in sources():
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
        rows.append(
            f'<li>{html.escape(name)}: <a href="{path.stem}.html">50 minutes</a>, '
            f'<a href="{path.stem}-20.html">20 minutes</a></li>'
        )
    listed = (HERE / "static" / "decks.html").read_text("utf-8").replace("{pictures}", pictures)
    (out / "index.html").write_text(listed.replace("{decks}", "\n".join(rows)), "utf-8")


HEADING = re.compile(r"^# (.+)")


def deck(notebook: NotebookNode, stem: str, title: str, minutes: int) -> str:
    """One deck: a slide for each cell on stage, the first with the notes on the whole."""
    said = notes(stem)
    said |= {"Timing": timing(said.get("Timing", ""), minutes)}
    whole = "\n\n".join(f"**{part}**\n\n{said[part]}" for part in PARTS if said.get(part))
    keys = "arrow keys turn the slides, S opens the notes, O shows all"
    first = f"<h1>{html.escape(title)}</h1><p>{minutes} minutes · {keys}</p>"
    sections = [f"<section>{first}{aside(whole)}</section>"]
    heading, before = "", []  # at a cell's foot: of the next slide
    for number in stage.path(notebook, minutes):
        cell = notebook.cells[number]
        if number == 0:  # the opening: its title stands on the slide before
            text = re.sub(r"^- \*\*Time\*\*.*\n", "", HEADING.sub("", cell.source), flags=re.MULTILINE)
            cell = nbformat.from_dict({**cell, "source": text})  # and how long it runs is not for a hall
        tags, tell = cell.metadata.get("tags", []), said.get(cell.get("id", ""), "")
        if "predict" in tags:
            tell = f"Ask, let them write a number down, and wait. {tell}"
        if cell.cell_type == "code" and not cell.outputs and stage.CUTS[minutes] not in tags:
            continue  # it came along, and has nothing to show
        for page in of_cell(cell):
            if section := re.search(r'<h2 id="(\d+)', page):  # what the speaker has to know here
                before.append(of_section(section[1], said))
            if "<h2" in page and not re.sub(r"<h2.*?</h2>|<[^>]+>", "", page, flags=re.DOTALL).strip():
                heading = page
                continue
            notes_ = aside("\n\n".join(filter(None, [*before, tell])))
            sections.append(f'<section data-cell="{cell.get("id", "")}">{heading}{page}{notes_}</section>')
            heading, before = "", []
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


def of_cell(cell: NotebookNode) -> list[str]:
    """A cell as slides: text by its sections; of code its outputs, itself folded beside images."""
    if cell.cell_type == "markdown":
        texts = filter(str.strip, re.split(r"^(?=## \d)", cell.source, flags=re.MULTILINE))
        return [part for text in texts for part in parts(f'<div class="text">{markdown(text)}</div>', 1e6)]
    shown = "".join(map(of_output, cell.outputs))
    code = f'<pre class="code">{coloured(cell.source)}</pre>'
    if "<iframe" in shown:  # an explorer stands alone
        shown = re.sub(r'<p class="live-note">[^<]*</p>(?=<iframe)|<div class="still">.*?</div>', "", shown)
        return parts(shown)
    full = sum(high for _, high, _ in pieces(code + shown)) > HIGH
    if shown and (full or re.search("<figure|<table", shown)):
        return parts(f"{shown}<details><summary>code</summary>{code}</details>")
    return parts(code + shown)


def parts(page: str, room: float = HIGH) -> list[str]:
    """A slide; what is too tall for the room as several, each begins with a figure, a table, a row or a line.

    What is open at a cut is closed before it and opened again after it, a table with its head.
    """
    cuts, filled = [], 0.0
    for start, high, goes_on in pieces(page):
        if filled and (goes_on or (high and filled + high > room)):
            cuts.append(start)
            filled = 0.0
        filled += high
    made, again, start = [], "", 0
    for place in (*cuts, len(page)) if cuts else ():
        around: list[tuple[str, str]] = []
        for closes, name, rest in re.findall(r"<(/?)(\w+)([^>]*)>", page[:place]):
            if closes:
                around.pop()
            elif name not in VOID:
                head = re.findall("<thead.*?</thead>", page[:place], re.DOTALL)[-1:] * (name == "tbody")
                around.append((name, f"{''.join(head)}<{name}{rest}>"))
        made.append(again + page[start:place] + "".join(f"</{name}>" for name, _ in reversed(around)))
        again, start = "".join(whole for _, whole in around), place
    return made or [page]


def pieces(page: str) -> list[tuple[int, float, bool]]:
    """Where a page can be cut, how tall about it is from there on, in pixels, and whether it goes on there.

    It goes on in a long table, and in much that is printed. A figure may lose a tenth.
    """
    found, start = [], 0
    for block in BLOCK.finditer(page):
        kind, text = block[1], block[0]
        high = {"iframe": HIGH, "table": 41}.get(kind, 0.0)  # of a table its head
        for image in re.findall("<img[^>]*>", text):
            wide, tall = (int(re.findall(rf'{name}="(\d+)"', image)[0]) for name in ("width", "height"))
            high += min(0.9, WIDE / wide) * tall + 30 * text.count("<figcaption")
        rows = list(ROW[kind].finditer(text, max(text.find("<tbody"), 0))) if kind in ROW else []
        printed = text.startswith('<pre class="printed"')
        most = MOST_ROWS if kind == "table" else MOST_LINES if printed else 1000
        size = -(-len(rows) // max(-(-len(rows) // most), 1)) or 1
        for k in range(0, max(len(rows), 1), size):
            for row in rows[k : k + size]:
                wraps = -(-len(row[0]) // 88) if printed else 1 + row[0].count("<t") // 10  # or many columns
                high += wraps * (41 if kind == "table" else 30 if printed else 24.3)
            found.append((block.start() + rows[k].start() if k else start, high, k > 0))
            high = 0.0
        start = block.end()
    return found


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
