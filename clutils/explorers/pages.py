"""HTML pages of explorers: sources put together, settings checked, values of the package beside them."""

import html
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jinja2
import torch

import clutils
from clutils import anatomy, figures, files, losses
from clutils.explorers import controls, replay, still
from clutils.explorers.controls import EXPLORERS, SOURCES
from clutils.figures import style
from clutils.training import Run, Watcher

REPLAY = "replay.html"
STILL = "The explorer as it opens. Its controls work once the cell is run or the notebook is trusted."
IMPORT = re.compile(r'^import \{[^}]*\} from "[./\w]*/(\w+\.js)";\n', re.MULTILINE)
# what a page needs no byte of: indents, comments (one at a line's end, if it has no quotation mark)
ASIDE = re.compile(r"""^ +(?://.*\n)?|^//.*\n| +// [^"`\n]*$""", re.MULTILINE)
BEGIN = """
explorer(new PageModel(JSON.parse(document.getElementById("data").textContent), "%s"),
  document.getElementById("explorer"));
"""


def module(name: str, folder: Traversable = SOURCES) -> str:
    """The ES module of an explorer, with what it imports.

    - folder: where its own file lies; what it imports is the explorers'
    """
    texts: dict[str, str] = {}

    def add(file: str, folder: Traversable = SOURCES) -> None:
        if file in texts:
            return
        text = (folder / file).read_text(encoding="utf-8")
        for needed in IMPORT.findall(text):
            add(needed)
        texts[file] = IMPORT.sub("", text)

    add(f"{name}.js", folder)
    whole = re.sub(r"^export (?!default)", "", "".join(texts.values()), flags=re.MULTILINE)
    return ASIDE.sub("", whole)


def page(
    name: str,
    settings: Mapping[str, Any] | None = None,
    base_url: str = "",
    run: Mapping[str, Any] | None = None,
) -> str:
    """The page of an explorer, HTML.

    - name: "W", "circle", "matrix" or "run"
    - settings: where its controls start, by name; those of the losses as in Python, of the second loss with
      "beside_" before them; "hide" names controls, with commas, that are left out
    - base_url: where the pages are hosted: links lead there, and the page has a QR code (needs segno)
    - run: of "run", from `of_run`; None = the one that the package carries

    Raises ValueError on a name or setting that can't be.
    """
    given, plain = (_plain(controls.settings(name, of)) for of in (settings or {}, {}))
    if base_url and not re.match(r"https?://[^/\s]", base_url):
        raise ValueError(
            f"explore: base_url is {base_url!r}, but must be an address as in https://example.org"
        )
    explorer, link = EXPLORERS[name], base_url and f"{base_url.rstrip('/')}/{name}.html"
    data: dict[str, Any] = {"name": name, "title": explorer.title, "lead": explorer.lead, "base": link}
    data |= {"settings": [of.described() for of in explorer.controls], "defaults": given, "plain": plain}
    data |= {"source": f"clutils {clutils.__version__}."}
    data |= {
        "qr": qr_code(link, {key: of for key, of in given.items() if of != plain.get(key)}) if link else ""
    }
    if name == "run":
        data |= {"run": dict(run) if run is not None else replay.recorded()}
        data["source"] += f" {data['run']['source']}"
    else:
        data |= {"losses": {known: _described(known) for known in controls.FAMILY}, "check": _references()}
        out = {loss: why for loss, why in controls.LEFT_OUT[name].items() if controls.of_the_family(loss)}
        if out and "loss" not in given.get("hide", "").split(","):  # else there is no menu that lacks them
            said = "; ".join(f"{style.title(loss)} {why}" for loss, why in out.items())
            data["source"] += f" Left out: {said}."
    if name == "matrix":
        data |= {"pairs": json.loads((SOURCES / "pairs.json").read_text(encoding="utf-8"))}
        data |= {"near": anatomy.NEAR, "past": anatomy.PAST, "scales": anatomy.SCALES}
    script = module(name).replace("export default", "const explorer =") + BEGIN % name
    return template("page.html").render(
        title=html.escape(f"{explorer.title} · clutils"),
        lead=html.escape(explorer.lead),
        style=re.sub(
            r"(?:;\s*)?(})\s*|\s*([{;,>])\s*|(:)\s+",
            r"\1\2\3",
            (SOURCES / "style.css").read_text(encoding="utf-8"),
        ),
        data=embedded(data),
        script=script,
    )


def template(name: str, package: str = "clutils.explorers") -> jinja2.Template:
    """A page of a package's folder, to be filled; what is not given raises jinja2.UndefinedError."""
    loader = jinja2.PackageLoader(package, "")
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined).get_template(name)


def embedded(data: Any) -> str:
    """JSON that can stand in a page's script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def write(path: str | Path, name: str, settings: Mapping[str, Any] | None = None, **further: Any) -> None:
    """Write `page(name, settings, ...)` into a file; errors as there, and OSError."""
    files.write_atomically(path, page(name, settings, **further))


class Replay:
    """A callback that writes replay.html at the end of a run: the run as this watcher saw it.

    Its `write` is for `training.save_run`.

    - folder: where it is written; None = nowhere but by `write`
    - title: None = the method and its loss; source: what the data really is, "" = as the data itself says
    """

    def __init__(
        self, watcher: Watcher, folder: str | Path | None = None, title: str | None = None, source: str = ""
    ) -> None:
        self.watcher, self.folder, self.title, self.source = watcher, folder, title, source

    def after_run(self, run: Run) -> None:
        if self.folder is not None and run.steps_done:
            self.write(run, Path(self.folder))

    def write(self, run: Run, folder: Path) -> None:
        what = f"{run.configuration['method']} with {run.loss}" if self.title is None else self.title
        said = self.source or getattr(run.data, "source", "")
        shown = replay.of_run(run.history, self.watcher.looks, self.watcher.pictures, what, said)
        write(folder / REPLAY, "run", run=shown)


@dataclass(frozen=True, repr=False)
class Frame:
    """A page inside a page, which a notebook's cell, a book or a slide shows; `str` of it is the HTML.

    Where no script runs, as in an untrusted notebook or on paper, its still stands there instead.

    - height: pixels, until the page inside has been laid out and says its own
    - picture: the still, PNG, of a page that has one; alt: what it shows, in words
    """

    inside: str
    title: str
    height: int
    still: str = ""
    picture: bytes = b""
    alt: str = ""

    def __str__(self) -> str:
        source, title = html.escape(self.inside), html.escape(self.title)
        high = 0 if self.still else self.height  # a page that opens takes its room, and the still's
        look = f'title="{title}" style="width: 100%; height: {high}px; border: 0"'
        still = f'<div class="still">{self.still}</div>' if self.still else ""
        return f'<iframe class="explorer" {look} data-state="" srcdoc="{source}"></iframe>{still}'

    def __repr__(self) -> str:
        return f"{self.title}. {self.alt}".strip()

    def _repr_html_(self) -> str:
        return str(self)

    def _repr_png_(self) -> bytes | None:
        return self.picture or None


def frame(name: str, height: int = 620, run: Mapping[str, Any] | None = None, **settings: Any) -> Frame:
    """An explorer as an <iframe> that needs no file beside it; settings, run and errors as in `page`."""
    inside, title = page(name, settings, run=run), EXPLORERS[name].title
    drawn = still.still(name, controls.settings(name, settings))
    if drawn is None:
        return Frame(inside, title, height)
    picture = figures.png(drawn)
    below = figures.page(drawn, STILL, picture)
    return Frame(inside, title, height, below, picture, figures.alt(drawn))


def _described(name: str) -> dict[str, Any]:
    """A loss for the page: source, whom it compares, settings."""
    entry = losses.catalogue()[name]
    settings = [_plain(control.described()) for control in controls.of_loss(name)]
    return {
        "title": style.title(name),
        "source": f"{entry.paper}, {entry.year}, {entry.equation}",
        "opposite": entry.cls.comparison in ("other view", "one way"),
        "unbounded": entry.cls.unbounded,
        "labels": "labels" in entry.cls.accepts,
        "queue": "queue" in entry.cls.accepts,
        "settings": settings,
    }


def _references() -> list[dict[str, Any]]:
    """Value and forces of every loss on two anchors, by the package: what the page compares itself with."""
    draw = torch.Generator().manual_seed(0)
    drawn = 2 * torch.rand(2, 8, generator=draw, dtype=torch.float64) - 1
    positives, negatives = drawn.round(decimals=3).split((2, 6), dim=1)  # short, as each page carries them
    found = []
    for name in controls.FAMILY:
        loss = losses.catalogue()[name].cls()
        pull, push = anatomy.forces(loss, positives, negatives)
        value = loss.per_anchor(positives, negatives)
        given = _plain({control.name: control.default for control in controls.of_loss(name)})
        tables = (("s", positives), ("n", negatives), ("value", value), ("pull", pull), ("push", push))
        found.append({"loss": name, "p": given, **{key: table.tolist() for key, table in tables}})
    return found


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """For JSON, which has no infinity."""
    return {key: "inf" if value == math.inf else value for key, value in values.items()}


def qr_code(link: str, settings: Mapping[str, Any]) -> str:
    """A QR code of a link with settings in its hash, as SVG.

    Raises ImportError, with what to install, where segno is missing.
    """
    try:
        import segno
    except ImportError as error:
        raise ImportError(f"a QR code needs the package segno (pip install segno): {error}") from error
    said = {key: {None: "none", True: "true", False: "false"}.get(of, of) for key, of in settings.items()}
    link += f"#{urlencode(said, safe=',')}" if said else ""
    return str(segno.make(link, micro=False).svg_inline(scale=4, border=2, light="#fff"))
