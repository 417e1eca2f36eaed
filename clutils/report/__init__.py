"""Report on an encoder: `check(file, data)` measures it, says what ails it, and writes one page.

`examination` measures `facts`, `diagnosis` judges them, `screen` is what is seen first, `page` the HTML.
"""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from matplotlib.figure import Figure
from torch import nn

from clutils import checkpoints, files, views
from clutils import data as datasets
from clutils.data import ImageSet, kind_called
from clutils.figures import maps as map_figures
from clutils.figures import page as figure_html
from clutils.figures import png
from clutils.report import diagnosis, page, preprocessing, provenance, screen, series, standard
from clutils.report.diagnosis import BROKEN, GOOD, LOOK, UNKNOWN, Diagnosis, Line
from clutils.report.examination import covering, examine
from clutils.report.facts import Examination, as_json
from clutils.report.options import LEAST, demand_suffix, validated
from clutils.report.prepared import Unfit, as_taken

__all__ = ["BROKEN", "GOOD", "LOOK", "UNKNOWN", "Diagnosis", "Line", "Report", "Unfit", "as_taken", "beside"]
__all__ += ["beside_json", "check", "check_all", "covering", "examine", "in_series", "in_series_json", "load"]
__all__ += ["validated"]

DEFAULTED = "no images were named (--data), so generated scenes were used: name images of its own kind"
FEW = 400  # images below which statements on classes are uncertain
UNLABELLED = (
    "without labels, these cannot be known: the accuracy of kNN and probe, whether neighbours share a class, "
    "and whether the encoder is better than fresh weights at telling classes from each other. Effective "
    "rank and uniformity recognise a collapse, but they order healthy encoders poorly: notebook 13"
)


@dataclass
class Report:
    """Result of a check: `.diagnosis`, `.level`, `.verdicts` (a `Line` each); `.write(path)` saves it."""

    examination: Examination
    diagnosis: Diagnosis
    verdicts: list[Line]
    notes: list[str]
    title: str
    epoch: float | None = None

    @property
    def level(self) -> str:
        """The diagnosis's: good, worth a look, broken or not known."""
        return self.diagnosis.level

    def __str__(self) -> str:
        told = [f"{page.MARKS[self.level]} {self.diagnosis.badge}: {self.title}", f"  {self.diagnosis.says}"]
        told.append(f"  next: {self.diagnosis.next}")
        for line in self.verdicts:
            told.append(f"  {page.MARKS[line.level]} {line.name}: {line.value}. {line.says}".rstrip())
        return "\n".join([*told, *(f"  note: {note}" for note in self.notes)])

    def json(self) -> str:
        """Every number, line and fact, for programs; what is not finite is null."""
        return as_json(self._plain())

    def html(self) -> str:
        """The page, whole: its figures are inside, it loads nothing."""
        panels = screen.panels(self.examination, self.diagnosis)
        return page.page([self], [_panel(*of, self.examination) for of in panels.items()])

    def screen(self) -> Figure:
        """The first screen, 1280 x 800: the sentence, the table, and four panels."""
        return screen.screen(self.examination, self.title, self.diagnosis)

    def _repr_html_(self) -> str:
        """HTML for a notebook: the first screen."""
        return figure_html(self.screen())

    def write(self, path: str | Path) -> Path:
        """By its ending: .html the page, .json every number, .png the first screen.

        Raises ValueError on another ending.
        """
        path = Path(path)
        demand_suffix(path)
        if path.suffix == ".png":
            files.write_atomically(path, png(self.screen(), scale=1.0))
        else:
            files.write_atomically(path, self.html() if path.suffix == ".html" else self.json() + "\n")
        return path

    def _plain(self) -> dict[str, Any]:
        found = self.examination
        return {
            "title": self.title,
            "level": self.level,
            "diagnosis": self.diagnosis.name,
            "summary": self.diagnosis.says,
            "next": self.diagnosis.next,
            "facts": found.facts,
            "verdicts": [vars(line) for line in self.verdicts],
            "numbers": found.numbers,
            "intervals": standard.intervals(found),
            "not_measured": found.unknown,
            "notes": self.notes,
        }


def check(
    path: str | Path | nn.Module | checkpoints.Opened,
    data: str | tuple[ImageSet, ImageSet] | None = None,
    arch: str | None = None,
    limit: int = 2000,
    head: nn.Module | str | None = None,
    on_stage: Callable[[str], object] = lambda name: None,
    command: str = "",
    **options: Any,
) -> Report:
    """Measure an encoder and diagnose it.

    - path: a checkpoint, whoever wrote it; an nn.Module; or what `checkpoints.open` gave
    - data: a name for `data.load`, or (gallery, test images), rows in any order; None = generated
      scenes, with a note
    - limit: number of images, three quarters of them the gallery, whose labels are the neighbours'; without
      any label, all of them are test images and the gallery is empty
    - head: (N, features) -> (N, D), what the loss saw, beside a module: without, no collapse behind it shows;
      or where in the file it lies, see `checkpoints.open`
    - command: what was typed, which the page repeats
    - options: temperature, mean, std, size, tsne, numbers, seed, quick: see `examination.examine`; mean
      may be a name of `preprocessing.NORMALISATIONS`, which gives std too, or "auto" (the default for a
      file): the one that fits best, with a note; weights: see `checkpoints.open`; out: files to write

    For an encoder of grey images the colours of others are averaged.

    The same file, images and options give the same report. Raises Unfit on an option out of its range
    (`options.validated`), before anything is opened; else as `checkpoints.open` and `data.load` do.
    """
    [report] = check_all([path], data, head, on_stage, command, arch=arch, limit=limit, **options)
    return report


def check_all(
    paths: Sequence[str | Path | nn.Module | checkpoints.Opened],
    data: str | tuple[ImageSet, ImageSet] | None = None,
    head: nn.Module | str | None = None,
    on_stage: Callable[[str], object] = lambda name: None,
    command: str = "",
    facts: Mapping[str, str] | None = None,
    **given: Any,
) -> list[Report]:
    """Check one file, two side by side, or a series (without maps), all on the same images.

    Arguments and errors as of `check`; facts: what a page also says of where it comes from. The first two
    files are opened before the images are loaded; of a series, one at a time is in memory.
    """
    options = validated({"limit": 2000} | given, len(paths))
    limit, outs = options.pop("limit"), options.pop("out", ())
    opening = {"arch": options.pop("arch", None), "weights": options.pop("weights", None)}
    if len(paths) > 2:
        options["tsne"] = False
    pair = isinstance(data, tuple) and [*map(type, data)] == [ImageSet, ImageSet]
    if not pair and not (isinstance(data, str | None) and kind_called(data or "scenes").name == "pictures"):
        shown = repr(data) if isinstance(data, str) else f"a {type(data).__name__}"
        raise Unfit(
            f"report.check: data is {shown}, but must be images: a name, or a pair of sets, those to take "
            "neighbours from, and those to judge; of other samples `measures` and `maps` take the embeddings",
            "data",
        )
    on_stage("opening")
    early = [_opened(path, head, opening) for path in paths[:2]]  # which may be refused
    try:
        images = data if isinstance(data, tuple) else load(data or "scenes", limit)
    except ValueError as error:
        if isinstance(data, str) and data.startswith("folder:"):  # what lies there is not an option's fault
            raise
        raise Unfit(str(error), "data") from error
    images, reports = (images[0].mixed(), images[1].mixed()), []
    for place, path in enumerate(paths):
        if place:
            on_stage("opening")
        opened = early[place] if place < 2 else _opened(path, head, opening)
        own = dict(options)
        if not isinstance(path, nn.Module) and own.get("mean") is None and own.get("std") is None:
            own["mean"] = "auto"  # a module may normalise by itself
        reports.append(_report(opened, images, data, on_stage, command, own))
        reports[-1].examination.facts |= facts or {}
        if opened.path and not isinstance(path, checkpoints.Opened) and Path(opened.path) != Path(str(path)):
            reports[-1].notes.insert(0, f"in the folder {path}, {Path(opened.path).name} was opened")
    for out in outs:
        write(reports, out)
    return reports


def _opened(
    path: str | Path | nn.Module | checkpoints.Opened, head: nn.Module | str | None, opening: dict[str, Any]
) -> checkpoints.Opened:
    if isinstance(head, str):
        opening, head = opening | {"head": head}, None
    opened = path if isinstance(path, checkpoints.Opened) else checkpoints.open(path, **opening)
    return opened if head is None else replace(opened, head=copy.deepcopy(head).eval())


def _report(
    opened: checkpoints.Opened,
    images: tuple[ImageSet, ImageSet],
    data: str | tuple[ImageSet, ImageSet] | None,
    on_stage: Callable[[str], object],
    command: str,
    options: dict[str, Any],
) -> Report:
    notes = [] if data is not None else [DEFAULTED]
    gallery, judged = (as_taken(part, opened.channels) for part in images)
    if not bool((judged.labels >= 0).any()):
        notes.append(UNLABELLED)
    elif (count := len(gallery) + len(judged)) < FEW:
        notes.append(f"{count} images are few: below about {FEW}, statements on classes are uncertain")
    seen = torch.cat(views.pair(judged.subset(slice(0, preprocessing.VIEWED)).images, 0))
    side = options.get("size") or opened.side
    opened = preprocessing.with_decided_stem(opened, seen, side)
    notes += opened.notes
    mean, std = options.get("mean"), options.get("std")
    mean, std, said = preprocessing.from_options(mean, std, opened, seen, side)
    if said and (mean, std) != preprocessing.NORMALISATIONS["none"]:
        notes.append(said)
    found = examine(opened, gallery, judged, on_stage=on_stage, **options | {"mean": mean, "std": std})
    own = found.found
    if asked := int((~torch.isin(judged.labels, gallery.labels)).sum()) if own.knn is not None else 0:
        notes.append(
            f"{asked} of {len(judged)} test images are of classes without a labelled image, "
            "so no vote is right there"
        )
    tau = options.get("temperature")
    if tau not in (None, own.temperature):
        why = found.unknown.get("share_of_negatives") or f"the file says {own.temperature:g}"
        notes.append(f"the τ that was given, {tau:g}, is not used: {why}")
    if said := map_figures.numbered(judged.class_names):
        notes.append(said)
    # with its folder: every run's file may be called checkpoint.pt
    name = "/".join(Path(opened.path).parts[-2:]) if opened.path else opened.arch
    named = isinstance(data, str) and not data.startswith("folder:")  # a folder's source says how many images
    title = f"{files.printable(name)} on {_short(str(data) if named else judged.source)}"
    found.facts = provenance.facts(
        opened, found.gallery, judged, options | {"mean": mean, "std": std}, command
    )
    return Report(
        found, diagnosis.diagnose(own), diagnosis.lines(own, found.unknown), notes, title, opened.epoch
    )


def write(reports: Sequence[Report], out: Path) -> None:
    """Write one report (.html, .json or .png), two side by side, or a series (.html or .json)."""
    page = out.suffix == ".html"
    if len(reports) > 2:
        files.write_atomically(out, (in_series if page else in_series_json)(reports))
    elif len(reports) == 2:
        files.write_atomically(out, (beside if page else beside_json)(*reports))
    else:
        reports[0].write(out)


def load(name: str, limit: int) -> tuple[ImageSet, ImageSet]:
    """Labelled neighbours and test images of a set, three to one; a folder without a test split is split.

    So is a test split of which no class is in the training split, as sets for retrieval have it. Where no
    image has a label, all are test images, and there are no labelled neighbours.

    Raises ValueError on fewer than 16 images, and as `data.load` does.
    """
    few = validated({"limit": limit})["limit"] // 4
    try:
        judged = cast(ImageSet, datasets.load(name, split="test", limit=few))
    except ValueError as error:
        if not name.startswith("folder:") or "has no split" not in str(error):
            raise
        return _parted(cast(ImageSet, datasets.load(name, limit=limit)), name)
    gallery = cast(ImageSet, datasets.load(name, limit=limit - few))
    known = judged.labels[judged.labels >= 0]
    if torch.isin(known, gallery.labels).any():
        return gallery, judged
    # of a competition the training split alone may have labels
    split = "train" if not len(known) and bool((gallery.labels >= 0).any()) else "test"
    return _parted(cast(ImageSet, datasets.load(name, split=split, limit=limit)), name)


def _parted(whole: ImageSet, name: str) -> tuple[ImageSet, ImageSet]:
    """Three quarters and one, of large classes and small: a class of the test images is left in the gallery.

    Where hardly a class has two images, every fourth image of all, so that all but the classes is measured.
    Without labels, none and all.
    """
    if len(whole) < LEAST:
        raise ValueError(f"check: at least {LEAST} images are needed, {name} has {len(whole)}")
    if not bool((whole.labels >= 0).any()):
        return whole.subset(slice(0, 0)), whole
    by_class = whole.labels.argsort(stable=True)
    _, code, sizes = whole.labels.unique(return_inverse=True, return_counts=True)
    shared = by_class[sizes[code][by_class] > 1]
    if 2 * len(shared) < len(whole):
        shared = by_class
    fourth = torch.zeros(len(whole), dtype=torch.bool)
    fourth[shared[3::4]] = True
    return whole.subset(~fourth), whole.subset(fourth)


def beside(first: Report, second: Report) -> str:
    """Two reports on one page: what differs and by how much, a line for each thing.

    Raises ValueError where they did not judge the same images in the same order.
    """
    return page.page([first, second])


def compared(first: Report, second: Report) -> str:
    """Comparison of two reports, as text: which is better, and each difference."""
    found = standard.differences(first.examination, second.examination)
    told = [standard.better([first, second], found)]
    for d in found:
        sure = "" if d.interval is None else " (certain)" if d.certain else " (may be luck)"
        values = f"A {page.shown(d.a, bool(d.better))}, B {page.shown(d.b, bool(d.better))}"
        told.append(f"  {d.name}: {values}, B minus A {page.apart(d.b - d.a, bool(d.better))}{sure}")
    return "\n".join(told)


def beside_json(first: Report, second: Report) -> str:
    """Every number of two reports, and what lies between them, under "beside".

    Each report stands under its file's name (of one file twice, the second with " (2)").
    """
    found = standard.differences(first.examination, second.examination)
    names = [r.examination.facts["file"] for r in (first, second)]
    if names[0] == names[1]:
        names[1] += " (2)"
    held: dict[str, Any] = {name: r._plain() for name, r in zip(names, (first, second), strict=True)}
    between = {"says": standard.better([first, second], found), "differences": list(map(asdict, found))}
    return as_json(held | {"beside": between})


def in_series(reports: Sequence[Report]) -> str:
    """Checkpoints of one run on one page: the main numbers against the epoch, a line for each."""
    found = series.moments(reports)
    drawn = [("Numbers", _on_any_page(series.curves(found)), "")]
    return page.page([], drawn, found)


def in_series_json(reports: Sequence[Report]) -> str:
    """Every number of every checkpoint."""
    return as_json(series.moments(reports))


# ---- inside ------------------------------------------------------------------------------------------------


def _short(source: str) -> str:
    """A set's name or source without its folder's path, its images' size, and what stands in brackets."""
    said = source.partition(" (")[0].partition(", scaled and cut")[0].partition(";")[0]
    said = re.sub(r"(\S*[/\\])(?=[^/\\\s])", "", said)
    folder = re.search(r"\).* from the folder ([^\s,;]+)", source)
    said += f" from {'/'.join(Path(folder[1]).parts[-2:])}" if folder else ""
    return said.removeprefix("folder:")


def _panel(name: str, panel: screen.Panel, found: Examination) -> tuple[str, str, str]:
    """A panel of the first screen: its heading, its HTML, and the sentence that reads it."""
    ax, reading = panel(found, None)
    return name, _on_any_page(cast(Figure, ax.figure)), reading


def _on_any_page(figure: Figure) -> str:
    """HTML of a figure that a dark page may invert, unless photographs are on it."""
    look = "" if any(ax.images for ax in figure.axes) else 'class="plot" '
    return figure_html(figure).replace("<img ", f"<img {look}", 1)
