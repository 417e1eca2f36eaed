"""Decks: reveal.js pages that open from the disk, from the lists of slides in the lessons' notes.md.

A slide is a title, what a cell of the notebook shows, and the sentence that reads it, as in the line

    - 20 `cell-011` **The gate is a sigmoid**: When the positive wins, the gate is shut. // $$W = \\sigma(c)$$

- `20`: the slide is in the deck of 20 minutes as well as in the one of 50
- the cells that it shows, by their ids, if any; `cell-063.2` is the second figure of a cell,
  `cell-028?count,temperature` an explorer with these controls alone. Then `code` where their code is shown,
  too
- the title, and after a colon the text; `//` begins a paragraph

A number in the place of an id, as in `17`, is the image under that notebook's title. A line `> ...` below a
slide is what the speaker says first.

`### The name [8, 4]` before a group of slides is its name in the outline, and its minutes in the deck of 50
and in that of 20; the speaker's times come from them. The line before all of them is the question of the
hour, with the cell that illustrates it. Of a cell of text a slide shows its table, or else its image.
As many cells as paragraphs, two or more, stand in rows, each beside its sentence. The speaker's notes are
those of a slide's first cell, told once: a figure may come back, as beside a formula or at the end.
"""

import base64
import functools
import html
import json
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from PIL import Image

from clutils import explorers
from clutils.course.book import pages, stage
from clutils.course.book.running import NOTEBOOKS, sources
from clutils.figures import style

HERE = Path(__file__).parent
PARTS = ("Goal", "Ask", "What students believe wrongly", "Where to stop")
CELL = r"`([\w-]+)(?:\.(\d))?(?:\?([\w,]+))?`"
SECTION = re.compile(r"### (.+) \[(\d+)(?:, (\d+))?\]")
LINE = re.compile(
    rf"- (?P<short>20 )?(?P<cells>(?:{CELL} )*)(?P<code>code )?\*\*(?P<title>.+?)\*\*(?:: (?P<text>.+))?"
)
QUESTION = re.compile(rf"(?:{CELL} )?(?P<text>.+\?)")
KEYS = "Keys: arrows turn the slides, S opens these notes, O shows all slides, F the full screen."
WIDE = 1.6  # width through height from which on a figure stands over its text, and not beside it
LETTERS = {  # of displayed formulas, in the colours of the figures: positive, gate, shares of the push
    r"(?<![\\\w])p(?=\^\+)": style.BLUE,
    r"(?<![\\\w])W(?!\w)": style.VERMILLION,
    r"(?<=\\hat )p": style.readable(style.ORANGE),
}
IMAGE = re.compile(r"!\[(.*?)\]\((pictures/[\w-]+\.png)\)")
TITLE = re.compile(r"\d\d")  # a notebook's number, for the image under its title
HEADING = re.compile(r"^# (?:\d\d · )?(.+)")


@dataclass(frozen=True)
class Slide:
    """One line of a list of slides.

    - section: name of its group, for the outline
    - minutes: of its whole group, in the deck of 50 and in that of 20
    - cells: (id, number of the figure or 0 for all) of each cell that it shows
    - controls: names of those that an explorer keeps, with commas; "" = all
    - code: whether the code of these cells is shown, too
    - short: whether it is in the deck of 20 minutes
    - say: the sentence that opens it aloud
    """

    title: str
    text: str
    section: str
    minutes: tuple[int, int] = (0, 0)
    cells: tuple[tuple[str, int], ...] = ()
    code: bool = False
    short: bool = False
    controls: str = ""
    say: str = ""


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


def listed(stem: str) -> list[Slide]:
    """The slides of a notebook's deck of 50 minutes, the first with the question of the hour as its text.

    Raises ValueError where its notes have no list of slides, or a line that is not one.
    """
    lines = notes(stem).get("Slides", "").splitlines()
    asked = QUESTION.fullmatch(lines[0]) if lines else None
    if asked is None:
        raise ValueError(
            f"no slides for {stem}: its notes need '## Slides', and a question as the first line"
        )
    shown = ((asked[1], int(asked[2] or 0)),) if asked[1] else ()
    found = [Slide("", asked["text"], "", cells=shown, short=True)]
    section, minutes = "", (0, 0)
    for line in filter(None, map(str.strip, lines[1:])):
        if line.startswith("### "):
            named = SECTION.fullmatch(line)
            if named is None:
                raise ValueError(f"slides of {stem}: {line!r} has no minutes, as in '### Name [8, 4]'")
            section, minutes = named[1], (int(named[2]), int(named[3] or 0))
            continue
        if line.startswith("> ") and len(found) > 1 and not found[-1].say:
            found[-1] = replace(found[-1], say=line[2:])
            continue
        one = LINE.fullmatch(line)
        if one is None:
            raise ValueError(
                f"slides of {stem}: {line!r} is no slide, as in '- 20 `cell-011` **Title**: text'"
            )
        shows = re.findall(CELL, one["cells"])
        cells = tuple((cell, int(number or 0)) for cell, number, _ in shows)
        controls = "".join(of for *_, of in shows)
        text, code, short = one["text"] or "", bool(one["code"]), bool(one["short"])
        found.append(Slide(one["title"], text, section, minutes, cells, code, short, controls))
    return found


def write(out: Path, executed: Path, pictures: str = "pictures", base_url: str = "") -> None:
    """Write the decks of all notebooks that have a stage path, two cuts each, and a page that lists them.

    - executed: the folder of notebooks with outputs, as from `running.executed`
    - pictures: the folder of their images, as the decks in `out` call it
    - base_url: host of the folder `explorers`, for a QR code beside each explorer (needs segno)

    Raises ValueError where a notebook has no speaker notes or no slides, or a slide shows nothing;
    FileExistsError where `out` holds something else.
    """
    if out.exists() and any(out.iterdir()) and not (out / "slides.css").exists():
        raise FileExistsError(f"{out} is not empty and has no slides: name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("reveal", "mathjax"):
        shutil.copytree(HERE / "static" / name, out / name, dirs_exist_ok=True)
    shutil.copy(HERE / "static" / "slides.css", out)
    rows = []
    for path in sources():
        plain = nbformat.read(path, 4)
        if not stage.path(plain):
            continue
        kept = executed / path.name
        notebook = nbformat.read(kept, 4) if kept.exists() else plain
        pages.prepared(notebook, out / pictures, pictures)
        title = HEADING.match(plain.cells[0].source)
        name = title[1] if title else path.stem
        for minutes in stage.CUTS:
            file = out / f"{path.stem}{'' if minutes == 50 else f'-{minutes}'}.html"
            file.write_text(deck(notebook, path.stem, name, minutes, base_url), "utf-8")
        rows.append(
            f"<li>{html.escape(name)}: "
            + ", ".join(
                f'<a href="{path.stem}{cut}.html">{minutes} minutes</a> '
                f'(<a href="{path.stem}{cut}.html?handout">hand-out</a>)'
                for minutes, cut in ((50, ""), (20, "-20"))
            )
            + "</li>"
        )
    found = (HERE / "static" / "decks.html").read_text("utf-8").replace("{pictures}", pictures)
    (out / "index.html").write_text(found.replace("{decks}", "\n".join(rows)), "utf-8")


def deck(notebook: NotebookNode, stem: str, title: str, minutes: int, base_url: str = "") -> str:
    """One deck, HTML: title and question, outline, the slides; errors and base_url as in `write`."""
    said, (opening, *rest) = notes(stem), listed(stem)
    slides = [slide for slide in rest if minutes == 50 or slide.short]
    times = timing(slides, minutes)
    said["Timing"] = "\n".join(f"- {start:.0f} to {end:.0f}: {name}" for name, (start, end) in times.items())
    places = {cell.get("id", ""): number for number, cell in enumerate(notebook.cells)}
    for cell, _ in (cell for slide in (opening, *slides) for cell in slide.cells):
        if cell not in places and not TITLE.fullmatch(cell):
            raise ValueError(f"slides of {stem}: {cell!r} is no cell of the notebook")
    whole = "\n\n".join(
        [KEYS, *(f"**{part}**\n\n{said[part]}" for part in (*PARTS, "Timing") if said.get(part))]
    )
    first = f'<h1>{html.escape(title)}</h1><p class="asked">{inline(opening.text)}</p>'
    shown = "".join(drawn(opening, notebook, places, base_url))
    sections = [
        f'<section class="first"><div>{first}</div><div class="shown">{shown}</div>{aside(whole)}</section>'
    ]
    outline = "".join(f"<li>{inline(name)}</li>" for name in times)
    sections.append(f"<section><h2>In this lecture</h2><ol>{outline}</ol>{aside(said['Timing'])}</section>")
    taken = {places[cell] for slide in slides for cell, _ in slide.cells if cell in places}
    before, told = "", set[str]()
    for number, slide in enumerate(slides):
        group = [n for n, other in enumerate(slides) if other.section == slide.section]
        start, end = times[slide.section]
        each = (end - start) / len(group)
        begin = start + group.index(number) * each
        tell = [f"**Minutes {begin:.0f} to {begin + each:.0f} of {minutes}**", slide.say]
        new = {cell for cell, _ in slide.cells[:1]} - told
        tell += [said.get(cell, "") for cell in new]
        tell += [of_section(slide.section, said)] if slide.section != before else []
        tell += around(slide, taken, notebook, places) if new else []
        sections.append(
            of_slide(slide, drawn(slide, notebook, places, base_url), "\n\n".join(filter(None, tell)))
        )
        before, told = slide.section, told | new
    template = (HERE / "static" / "deck.html").read_text("utf-8")
    return template.replace("{title}", html.escape(title)).replace("{slides}", "\n".join(sections))


def of_slide(slide: Slide, drawings: list[str], tell: str) -> str:
    """A slide, HTML: where we are, its title, what it shows, the text; `tell` is Markdown for the speaker."""
    cell = slide.cells[0][0] if slide.cells else ""
    head = f'<p class="where">{inline(slide.section)}</p><h2>{inline(slide.title)}</h2>'
    first, *later = slide.text.split(" // ")
    drawings = list(filter(None, drawings))
    if len(drawings) == 1 + len(later) > 1:
        rows = "".join(
            f'<div class="row{" fragment" * bool(number)}"><div class="shown">{shown}</div>'
            f'<div class="text">{markdown(text)}</div></div>'
            for number, (shown, text) in enumerate(zip(drawings, (first, *later), strict=True))
        )
        inside = f'<div class="body rows">{rows}</div>'
        return f'<section data-cell="{cell}">{head}{inside}{aside(tell)}</section>'
    shown = "".join(drawings)
    texts = markdown(first) + "".join(f'<div class="fragment">{markdown(part)}</div>' for part in later)
    texts = texts if slide.text else ""
    sizes = [
        [int(n) for n in re.findall(r'(?:width|height)="(\d+)"', tag)]
        for tag in re.findall("<img[^>]*>", shown)
    ]
    wide = not sizes or any(len(size) == 2 and max(size) >= WIDE * min(size) for size in sizes)
    kind = "live" if "<iframe" in shown else "alone" if not shown else "over" if wide else "beside"
    inside = f'<div class="shown">{shown}</div>' * bool(shown) + f'<div class="text">{texts}</div>' * bool(
        texts
    )
    return f'<section data-cell="{cell}">{head}<div class="body {kind}">{inside}</div>{aside(tell)}</section>'


def drawn(slide: Slide, notebook: NotebookNode, places: dict[str, int], base_url: str = "") -> list[str]:
    """HTML of each of a slide's cells: explorers, figures and tables; without any, what it printed.

    Of a cell of text it is its table or image. Raises ValueError where a cell that ran shows nothing.
    """
    ran = any(cell.get("outputs") for cell in notebook.cells)
    parts = []
    for name, number in slide.cells:
        if TITLE.fullmatch(name):
            source = nbformat.read(stage.find(name), 4).cells[0].source
            parts.append("".join(map(of_image, IMAGE.findall(source))))
            continue
        cell = notebook.cells[places[name]]
        if cell.cell_type == "markdown":
            rows = re.findall(r"^\|.*$", cell.source, re.MULTILINE)
            parts.append(
                markdown("\n".join(rows)) if rows else "".join(map(of_image, IMAGE.findall(cell.source)))
            )
            continue
        page = "".join(map(of_output, cell.outputs))
        found = re.findall(r"<iframe.*?</iframe>", page, re.DOTALL)
        if found:
            found = [f'<iframe data-controls="{slide.controls}"{of.removeprefix("<iframe")}' for of in found]
            codes = "".join(qr_code(frame, base_url) for frame in found) if base_url else ""
            found += [codes, *re.findall(r'<div class="still">.*?</div>', page, re.DOTALL)]
        for kind in ("figure", "table"):
            found = found or re.findall(rf"<{kind}\b.*?</{kind}>", page, re.DOTALL)
        found = found[number - 1 : number] if number else found
        code = f'<pre class="code">{coloured(cell.source)}</pre>' if slide.code else ""
        parts.append(code + ("".join(found) or page))
        if ran and not parts[-1]:
            raise ValueError(
                f"slide {slide.title or slide.text!r} shows the cell {name!r}, which has no output"
            )
    return parts


def around(slide: Slide, taken: set[int], notebook: NotebookNode, places: dict[str, int]) -> list[str]:
    """Text of the notebook that belongs to a slide's cells, for the speaker.

    That is the cell's own text, what leads to a figure and what reads it: up to the next cell that another
    slide shows (`taken`), the next question, section or figure.
    """
    if not slide.cells or TITLE.fullmatch(slide.cells[0][0]):
        return []
    cells, own = notebook.cells, places[slide.cells[0][0]]
    on_stage = set(stage.path(notebook))
    found = [own]
    if (
        cells[own].cell_type == "code"
        and own - 1 not in taken
        and (_leads(cells[own - 1]) or "answer" in _tags(cells[own - 1]))
    ):
        found.insert(0, own - 1)
    for number in range(own + 1, min(own + 6, len(cells))):
        asked = "predict" in _tags(cells[own])
        if number in taken or _leads(cells[number]) or (cells[number].cell_type == "code" and not asked):
            break
        found.append(number)
        if "answer" in _tags(cells[number]):
            break
    texts = [
        re.sub(r"</?details>|<summary>.*?</summary>|<h6 hidden></h6>|!\[.*?\]\(.*?\)", "", cells[n].source)
        for n in found
        if n and n in on_stage and cells[n].cell_type == "markdown"
    ]
    headed = [re.sub(r"^#+ (.+)", r"*\1*", text, flags=re.MULTILINE) for text in texts]
    return ["**In the notebook**", *headed] if headed else []


def _tags(cell: NotebookNode) -> list[str]:
    return cell.metadata.get("tags", []) if cell.cell_type == "markdown" else []


def _leads(cell: NotebookNode) -> bool:
    """True of a text that speaks of what comes after it: a question, a heading, a colon at its end."""
    heading = stage.heading_depth(cell) <= 6 and "<h6 hidden" not in cell.source
    return cell.cell_type == "markdown" and (
        heading or "predict" in _tags(cell) or cell.source.rstrip().endswith(":")
    )


def qr_code(frame: str, base_url: str) -> str:
    """A QR code of the explorer in this <iframe> as it stands there, with a link; "" without segno."""
    inside = html.unescape(re.findall(r'srcdoc="([^"]*)"', frame)[0])
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', inside, re.DOTALL)
    if found is None:
        return ""
    data = json.loads(found[1])
    changed = {name: of for name, of in data["defaults"].items() if of != data["plain"].get(name)}
    link = f"{base_url.rstrip('/')}/explorers/{data['name']}.html"
    try:
        return f'<a class="qr" href="{link}">{explorers.qr_code(link, changed)}</a>'
    except ImportError:
        return ""


def timing(slides: list[Slide], minutes: int) -> dict[str, tuple[int, int]]:
    """Where each section begins and ends, in minutes, from the minutes beside the sections' names."""
    found, now = {}, 0
    for name, given in {slide.section: slide.minutes for slide in slides}.items():
        found[name] = (now, now + given[minutes == 20])
        now = found[name][1]
    return found


def of_section(name: str, said: dict[str, str]) -> str:
    """Notes of a section's first slide: what students believe wrongly there."""
    number, wrong = re.match(r"\d+", name), said.get("What students believe wrongly", "")
    here = [line for line in wrong.splitlines() if number and re.search(rf"\bsection {number[0]}\b", line)]
    return "**Believed wrongly here**\n\n" + "\n".join(here) if here else ""


def of_image(found: tuple[str, str]) -> str:
    """An image of the notebooks' folder, inside the page."""
    alt, file = found[0], NOTEBOOKS / found[1]
    with Image.open(file) as image:
        width, height = image.size
    data = base64.b64encode(file.read_bytes()).decode()
    size = f'width="{width}" height="{height}"'
    return f'<figure><img src="data:image/png;base64,{data}" {size} alt="{html.escape(alt)}"></figure>'


def aside(text: str) -> str:
    return f'<aside class="notes">{markdown(text)}</aside>' if text else ""


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


@functools.cache  # the short deck has slides of the long one
def markdown(text: str) -> str:
    """Markdown as HTML, formulas left to MathJax; links to notebooks lead to their decks."""
    from nbconvert.filters import markdown2html_mistune

    page = markdown2html_mistune(text)
    page = re.sub(r"\$\$.+?\$\$", _in_colours, page, flags=re.DOTALL)
    page = re.sub(r'<a class="anchor-link"[^>]*>.*?</a>', "", page)
    page = re.sub(r'<a href="(?:\.\./|claims\.ipynb|simclr\.py)[^>]*>(.*?)</a>', r"\1", page)  # not in a deck
    return re.sub(r'href="(\d\d_\w+)\.ipynb', r'href="\1.html', page)


def _in_colours(formula: re.Match[str]) -> str:
    found = formula[0]
    for letter, colour in LETTERS.items():
        found = re.sub(letter, rf'{{\\mmlToken{{mi}}[mathcolor="{colour}"]{{\g<0>}}}}', found)
    return found


def inline(text: str) -> str:
    """A line of Markdown as HTML, without the paragraph around it."""
    return re.sub(r"^<p>(.*)</p>$", r"\1", markdown(text).strip(), flags=re.DOTALL)


def coloured(source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=True, style="friendly"))
