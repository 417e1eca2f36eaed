"""Report on an encoder: `check(file, data)` measures it, says what ails it, and writes one page.

`examination` measures `facts`, `diagnosis` judges them, `screen` is what is seen first, `page` the HTML.
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import torch
from matplotlib.figure import Figure
from torch import nn

from clutils import checkpoints, files
from clutils import data as datasets
from clutils.data import ImageSet, kind_called
from clutils.figures import maps as map_figures
from clutils.figures import page as figure_html
from clutils.figures import png
from clutils.report import diagnosis, page, preprocessing, provenance, screen, series, standard
from clutils.report.diagnosis import BROKEN, GOOD, LOOK, UNKNOWN, Diagnosis, Line
from clutils.report.examination import covering, examine
from clutils.report.facts import Examination
from clutils.report.options import LEAST, OF_SEVERAL, SUFFIXES, demand_suffix, validated
from clutils.report.prepared import Unfit, as_taken

__all__ = ["BROKEN", "GOOD", "LOOK", "UNKNOWN", "Diagnosis", "Line", "Report", "Unfit", "as_taken", "check"]
__all__ += ["check_all", "covering", "examine", "load", "validated"]

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
        return as_json([self])

    def html(self) -> str:
        """The page, whole: its figures are inside, it loads nothing."""
        return page.page([self])

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
        write([self], path)
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
    **options: Any,
) -> Report:
    """Measure an encoder and diagnose it.

    - path: a checkpoint, whoever wrote it; an nn.Module; or what `checkpoints.open` gave
    - data: a name for `data.load`, or (gallery, test images), rows in any order; None = generated
      scenes, with a note
    - limit: number of images, 2000 by default, three quarters of them the gallery, whose labels are the
      neighbours'; without any label, all of them are test images and the gallery is empty
    - head: (N, features) -> (N, D), what the loss saw, beside a module: without, no collapse behind it shows;
      or where in the file it lies, see `checkpoints.open`
    - on_stage: called with the name of each stage as it begins; command: what was typed, for the page
    - options: temperature, tsne, numbers, seed, quick: see `examination.examine`; mean, std, size: see
      `preprocessing.fitted`; mean may be a name of `preprocessing.NORMALISATIONS`, which gives std too, or
      "auto" (the default for a file): the one that fits best, with a note; weights: see
      `checkpoints.open`; out: files to write

    For an encoder of grey images the colours of others are averaged.

    The same file, images and options give the same report. Raises Unfit on an option out of its range
    (`options.validated`), before anything is opened; else as `checkpoints.open` and `data.load` do.
    """
    [report] = check_all([path], data, arch=arch, **options)
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
    suffixes = SUFFIXES if len(paths) == 1 else OF_SEVERAL
    options = validated({"limit": 2000} | given, suffixes)
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
    given = (options.pop(name, None) for name in ("mean", "std", "size"))
    opened, shift, said = preprocessing.fitted(opened, judged, *given)
    notes += opened.notes
    if said and shift != preprocessing.NORMALISATIONS["none"]:
        notes.append(said)
    found = examine(opened, gallery, judged, shift, on_stage=on_stage, **options)
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
    shown = data if isinstance(data, str) else judged.source.partition(" (")[0]
    if shown.startswith("folder:"):  # the last two parts of its path
        shown = f"the folder {'/'.join(Path(shown.removeprefix('folder:')).resolve().parts[-2:])}"
    title = files.printable(f"{name} on {shown}")
    found.facts = provenance.facts(opened, found.gallery, judged, shift, options.get("seed", 0), command)
    return Report(
        found, diagnosis.diagnose(own), diagnosis.lines(own, found.unknown), notes, title, opened.epoch
    )


def write(reports: Sequence[Report], out: Path) -> None:
    """Write one report (.html, .json or .png), two side by side, or a series (.html or .json)."""
    if out.suffix == ".png":
        files.write_atomically(out, png(reports[0].screen(), scale=1.0))
    else:
        files.write_atomically(out, page.page(reports) if out.suffix == ".html" else as_json(reports) + "\n")


def as_json(reports: Sequence[Report]) -> str:
    """Every number of one report; of two, and what lies between them, under "beside"; or of a series.

    Of two, each stands under its file's name (of one file twice, the second with " (2)").
    """
    found: Any
    if len(reports) > 2:
        found = series.moments(reports)
    elif len(reports) == 1:
        found = reports[0]._plain()
    else:
        differences = standard.differences(*(report.examination for report in reports))
        names = [report.examination.facts["file"] for report in reports]
        if names[0] == names[1]:
            names[1] += " (2)"
        found = {name: report._plain() for name, report in zip(names, reports, strict=True)}
        says = standard.better(reports, differences)
        found["beside"] = {"says": says, "differences": list(map(asdict, differences))}
    finite = json.loads(json.dumps(found), parse_constant=lambda name: None)
    return json.dumps(finite, indent=1, ensure_ascii=False)


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


def compared(first: Report, second: Report) -> str:
    """Comparison of two reports, as text: which is better, and each difference."""
    found = standard.differences(first.examination, second.examination)
    told = [standard.better([first, second], found)]
    for d in found:
        sure = "" if d.interval is None else " (certain)" if d.certain else " (may be luck)"
        values = f"A {page.shown(d.a, bool(d.better))}, B {page.shown(d.b, bool(d.better))}"
        told.append(f"  {d.name}: {values}, B minus A {page.apart(d.b - d.a, bool(d.better))}{sure}")
    return "\n".join(told)
