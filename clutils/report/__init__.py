"""Report on an encoder: `check(file, data)` measures it, judges it, and writes one page that says so.

`examination` measures, `verdicts` judges, `screen` is what is seen first, `page` the HTML; the other pictures
are drawn in `figures`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np
import torch
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure
from torch import nn

from clutils import checkpoints, files, measures, views
from clutils import data as datasets
from clutils.checkpoints.layouts import with_prefix
from clutils.data import ImageSet, kind_called, kind_of
from clutils.figures import maps, noise, pictures, png, style, training
from clutils.figures import page as figure_html
from clutils.report import examination, feeding, page, provenance, screen, series, standard, verdicts
from clutils.report import figures as drawn
from clutils.report.examination import Examination, covering, examine
from clutils.report.examined import as_json
from clutils.report.prepared import Unfit
from clutils.report.verdicts import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

__all__ = ["BROKEN", "GOOD", "LOOK", "UNKNOWN", "Report", "Unfit", "Verdict", "beside", "beside_json"]
__all__ += ["check", "covering", "examine", "in_series", "in_series_json", "load"]

SUFFIXES = (".html", ".json", ".pdf", ".png")
DEFAULTED = (
    "no pictures were named (--data), so generated scenes were taken: judge an encoder on pictures of the "
    "kind that it was trained on"
)
LEAST = 16  # images, of which a quarter is the test set
FEW = 400  # pictures below which what is said of classes is uncertain
Made = TypeVar("Made")


@dataclass
class Report:
    """What a check found: `.level`, `.verdicts`, `.examination.numbers`; `.write(path)` keeps it."""

    examination: Examination
    verdicts: list[Verdict]
    notes: list[str]
    epoch: float | None = None

    @property
    def title(self) -> str:
        return self.examination.title

    @property
    def level(self) -> str:
        """The worst of all verdicts."""
        return verdicts.worst(self.verdicts)

    @property
    def summary_text(self) -> str:
        """All of it in a sentence or three."""
        return verdicts.summary(self.verdicts)

    def __str__(self) -> str:
        lines = [f"{page.MARKS[self.level]} {self.level}: {self.title}", f"  {self.summary_text}"]
        for v in self.verdicts:
            remark = f" ({v.remark})" if v.remark else ""
            lines.append(f"  {page.MARKS[v.level]} {v.name}{remark}: {v.value}. {v.says}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def json(self) -> str:
        """Every number, verdict and fact, for programs; what is not finite is null."""
        return as_json(self._plain())

    def html(self) -> str:
        """The page, whole: its pictures are inside, it loads nothing."""
        return page.page([self], _drawn(self.figures()), self.json(), _panels(self.examination))

    def screen(self) -> Figure:
        """The first screen, 1280 x 800: the verdict in a sentence, and four pictures."""
        return screen.screen(self.examination, self.title, self.level, self.summary_text)

    def _repr_html_(self) -> str:
        """What a notebook shows: the first screen."""
        return figure_html(self.screen())

    def figures(self) -> dict[str, Figure]:
        """Heading -> figure: all that the page shows below its first screen, where a quick look ends."""
        return {} if self.examination.quick else _figures([self.examination])

    def summary(self) -> Figure:
        """The verdicts as one figure, for a slide or a PDF."""
        count = self.examination.numbers["pictures"]
        how = (
            f"Each line is one thing measured on {count:,} judged pictures, beside "
            "what encoders show that are well; what the words mean is on the page (--out report.html)."
        )
        return drawn.summary(
            f"{self.title}: {self.level}", page.ordered(self.verdicts), self.summary_text, how
        )

    def write(self, path: str | Path) -> Path:
        """By its ending: .html the page, .json every number, .png the first screen, .pdf that and the lines.

        Raises ValueError on another ending.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ValueError(f"report: {path} ends in {path.suffix!r}, but must end in {', '.join(SUFFIXES)}")
        if path.suffix in (".html", ".json"):
            files.write_atomically(path, self.html() if path.suffix == ".html" else self.json() + "\n")
        elif path.suffix == ".png":
            files.write_atomically(path, png(self.screen(), scale=1.0))
        else:
            files.write_atomically(path, self._write_pdf)
        return path

    def _write_pdf(self, file: IO[bytes]) -> None:
        with PdfPages(file, metadata={"CreationDate": None}) as pages:
            for figure in (self.screen(), self.summary()):
                pages.savefig(figure)

    def _plain(self) -> dict[str, Any]:
        found = self.examination
        return {
            "title": self.title,
            "level": self.level,
            "summary": self.summary_text,
            "facts": found.facts,
            "verdicts": [vars(v) for v in self.verdicts],
            "numbers": found.numbers,
            "intervals": {m.key: m.interval for m in standard.numbers(found) if m.interval},
            "layers": [vars(layer) for layer in found.layers],
            "not_measured": found.unknown,
            "notes": self.notes,
        }


def check(
    path: str | Path | nn.Module | checkpoints.Opened,
    data: str | tuple[ImageSet, ImageSet] | None = None,
    arch: str | None = None,
    limit: int = 2000,
    grey: bool = False,
    on_stage: Callable[[str], object] = lambda name: None,
    command: str = "report.check, in Python",
    **options: Any,
) -> Report:
    """Open an encoder, measure it on these pictures and judge it.

    - path: a checkpoint, whoever wrote it; an nn.Module; or what `checkpoints.open` gave
    - data: a name for `data.load`, or (gallery, judged) of your own; None = generated scenes, with a note
    - limit: how many pictures in all, three quarters of them the gallery
    - grey: the pictures' colours are averaged, for an encoder of grey pictures
    - command: what was typed, which the page repeats
    - options: temperature, mean, std, size, layer, map_names, seed, quick: see `examination.examine`; mean
      may be a name of `feeding.NORMALISATIONS`, which gives std too, or "auto": the one that fits best, with
      a note

    The same file, pictures and options give the same report. Raises as `checkpoints.open`, `data.load` and
    `examine` do.
    """
    if not (data is None or isinstance(data, str) or (isinstance(data, tuple) and len(data) == 2)):
        raise ValueError(
            f"report.check: data is {_described(data)}, but must be a name, or a pair of sets: those to take "
            "neighbours from, and those to judge"
        )
    on_stage("opening")
    opened = path if isinstance(path, checkpoints.Opened) else checkpoints.open(path, arch)
    notes = [] if data is not None else [DEFAULTED]
    data = data or "scenes"
    for kind in [kind_called(data)] if isinstance(data, str) else [kind_of(part.inputs) for part in data]:
        if kind.name != "pictures":
            given = data if isinstance(data, str) else kind.name
            raise ValueError(
                f"report.check: data is {given!r}, but must be pictures; of other samples `measures` and "
                "`maps` take the embeddings"
            )
    gallery, judged = load(data, limit) if isinstance(data, str) else data
    if grey:
        gallery, judged = _grey(gallery), _grey(judged)
    count = len(gallery) + len(judged)
    if count < FEW:
        notes.append(f"{count} pictures are few: below about {FEW}, what is said of classes is uncertain")
    seen = torch.cat(views.pair(judged.subset(slice(0, feeding.VIEWED)).images, 0))
    side = options.get("size") or opened.side
    opened = feeding.with_decided_stem(opened, seen, side)
    notes += opened.notes
    if options.get("mean") == "auto":
        chosen, said = feeding.fitting(opened, seen, side)
        notes.append(said)
        options["mean"], options["std"] = chosen or (None, None)
    elif isinstance(options.get("mean"), str):
        mean, std = feeding.normalisation(options["mean"])
        options |= {"mean": mean, "std": options.get("std") or std}
    found = examine(opened, gallery, judged, on_stage=on_stage, **options)
    lent = covering(gallery, judged, found.quick)
    if asked := int((~torch.isin(judged.labels, lent.labels)).sum()) if "knn" in found.numbers else 0:
        notes.append(
            f"{asked} of {len(judged)} test images are of classes without a labelled image, "
            "so no vote is right there"
        )
    if options.get("temperature") and "temperature" not in found.numbers:
        notes.append(f"the τ that was given, {options['temperature']:g}, is not used: {found.unknown['W']}")
    if said := maps.numbered(judged.class_names):
        notes.append(said)
    layer = options.get("layer", "encoder")
    # with its folder: every run's file may be called checkpoint.pt
    name = "/".join(Path(opened.path).parts[-2:]) if opened.path else opened.arch
    found.title = f"{files.printable(name)} on {_short(data if isinstance(data, str) else judged.source)}"
    if found.quick:
        notes.append(f"a quick look, by {len(lent)} labels and no probe: the whole page may judge otherwise")
    found.facts = provenance.facts(opened, lent, judged, options, command)
    return Report(found, verdicts.judge(found.numbers, found.unknown, layer), notes, opened.epoch)


def load(name: str, limit: int) -> tuple[ImageSet, ImageSet]:
    """Labelled neighbours and test images of a set, three to one; a folder without a test split is split.

    So is a test split of which no class is in the training split, as sets for retrieval have it.

    Raises ValueError on fewer than 16 images, and as `data.load` does.
    """
    if limit < LEAST:
        raise ValueError(f"check: at least {LEAST} images are needed, but only {limit} asked for")
    few = limit // 4
    try:
        judged = cast(ImageSet, datasets.load(name, split="test", limit=few))
    except ValueError as error:
        if not name.startswith("folder:") or "has no split" not in str(error):
            raise
        return _parted(cast(ImageSet, datasets.load(name, limit=limit)), name)
    gallery = cast(ImageSet, datasets.load(name, limit=limit - few))
    known = judged.labels[judged.labels >= 0]
    if len(known) and not torch.isin(known, gallery.labels).any():
        return _parted(cast(ImageSet, datasets.load(name, split="test", limit=limit)), name)
    return gallery, judged


def _parted(whole: ImageSet, name: str) -> tuple[ImageSet, ImageSet]:
    """Three quarters and one, of large classes and small: a class of the test images is left in the gallery.

    Where hardly a class has two images, every fourth image of all, so that all but the classes is measured.
    """
    if len(whole) < LEAST:
        raise ValueError(f"check: at least {LEAST} images are needed, {name} has {len(whole)}")
    by_class = whole.labels.argsort(stable=True)
    _, code, sizes = whole.labels.unique(return_inverse=True, return_counts=True)
    shared = by_class[sizes[code][by_class] > 1]
    if 2 * len(shared) < len(whole):
        shared = by_class
    fourth = torch.zeros(len(whole), dtype=torch.bool)
    fourth[shared[3::4]] = True
    return whole.subset(~fourth), whole.subset(fourth)


def beside(first: Report, second: Report) -> str:
    """Two reports on one page: what differs and by how much, a line for each thing, and shared pictures.

    Raises ValueError where they did not judge the same pictures in the same order.
    """
    held = beside_json(first, second)
    pictures = _drawn(_figures([first.examination, second.examination]))
    return page.page([first, second], pictures, held)


def beside_json(first: Report, second: Report) -> str:
    """Every number of two reports, and what lies between them, under "beside".

    Each report stands under its file's name (of one file twice, the second with " (2)").
    """
    both = first.examination, second.examination
    found = standard.differences(*both)
    names = [r.examination.facts["file"] for r in (first, second)]
    if names[0] == names[1]:
        names[1] += " (2)"
    held: dict[str, Any] = {name: r._plain() for name, r in zip(names, (first, second), strict=True)}
    between = {"says": page.better([first, second], found), "likeness": standard.likeness(*both)}
    return as_json(held | {"beside": between | {"differences": [asdict(each) for each in found]}})


def in_series(reports: Sequence[Report]) -> str:
    """Checkpoints of one run on one page: every number against the epoch, a line for each."""
    found = series.moments(reports)
    curves = {"Every number": series.curves(found)}
    if any(moment.layers for moment in found):
        curves["Layer by layer"] = series.layer_curves(found)
    return page.page([], _drawn(curves), series.held(found), moments=found)


def in_series_json(reports: Sequence[Report]) -> str:
    """Every number of every checkpoint."""
    return series.held(series.moments(reports))


# ---- inside ------------------------------------------------------------------------------------------------


def _described(data: Any) -> str:
    return f"a {type(data).__name__}" + (f" of {len(data)}" if hasattr(data, "__len__") else "")


def _short(source: str) -> str:
    """A set's name or source without its folder's path, and without what stands in brackets."""
    said = re.sub(r"(\S*[/\\])(?=[^/\\\s])", "", source.partition(" (")[0])
    return said.removeprefix("folder:")


def _grey(pictures: ImageSet) -> ImageSet:
    """The mean of the colours, (N, 1, H, W) uint8."""
    if pictures.images.shape[1] == 1:
        return pictures
    images = pictures.images.float().mean(dim=1, keepdim=True).round().to(torch.uint8)
    return replace(pictures, images=images, source=f"{pictures.source}, colours averaged")


def _tried(name: str, make: Callable[[], Made], instead: Callable[[Figure], Made]) -> Made:
    """What is made; or, where that fails, a line that says so: no picture loses what was measured."""
    try:
        return make()
    except Exception as error:  # whatever it is
        return instead(drawn.missing(name, error))


def _drawn(figures: Mapping[str, Figure]) -> dict[str, str]:
    """Heading -> the figure's HTML."""
    return {name: _tried(name, partial(_on_any_page, one), figure_html) for name, one in figures.items()}


def _panels(found: Examination) -> dict[str, tuple[str, str]]:
    """Heading of each panel of the first screen -> its HTML, and the sentence that reads it."""

    def made(panel: screen.Panel) -> tuple[str, str]:
        ax, reading = panel(found, None)
        return _on_any_page(cast(Figure, ax.figure)), reading

    def missing(figure: Figure) -> tuple[str, str]:
        return figure_html(figure), "It could not be drawn."

    return {name: _tried(name, partial(made, panel), missing) for name, panel in screen.PANELS.items()}


def _on_any_page(figure: Figure) -> str:
    """HTML of a figure that a dark page may invert; one with photographs is made transparent instead."""
    photographs = [
        ax for ax in figure.axes if any(np.ndim(np.asarray(image.get_array())) == 3 for image in ax.images)
    ]
    if not photographs:
        return figure_html(figure).replace("<img ", '<img class="plot" ', 1)
    figure.patch.set_alpha(0)
    for ax in photographs:
        ax.patch.set_alpha(0)
        for text in ax.texts:
            text.set_color(style.GREY)
        for frame in ax.patches:
            frame.set_edgecolor(style.BLUE)
    return figure_html(figure).replace("background: white", "", 1)


class _Figures(dict[str, Figure]):
    """Heading -> figure, each drawn as it is added; what fails leaves a line in its place that says why."""

    def add(self, name: str, draw: Callable[..., Any], *given: Any, **options: Any) -> None:
        self[name] = _tried(name, lambda: cast(Figure, draw(*given, **options).figure), lambda line: line)


def _figures(found: Sequence[Examination]) -> dict[str, Figure]:
    """Of one examination, or of two side by side."""
    named = dict(zip(["this encoder"] if len(found) == 1 else ["A", "B"], found, strict=True))
    figures, spots = _Figures(), {}
    for name, e in named.items():
        if "uniformity" in e.numbers:
            spots[name] = e.numbers["alignment"], e.numbers["uniformity"]
    for name, e in named.items():
        if "head_uniformity" in e.numbers:
            spots[name + drawn.AFTER] = e.numbers["head_alignment"], e.numbers["head_uniformity"]
        if e.fresh_views is not None and name in spots:
            first, second = e.fresh_views
            spots[name + drawn.FRESH] = measures.alignment(first, second), measures.uniformity(first)
    if spots:
        figures.add("Alignment and uniformity", drawn.plane, spots)
    for name, e in named.items():
        of = "" if len(named) == 1 else f", {name}"
        if of and e.has_directions:  # of one alone, the first screen has them
            figures.add(f"Similarities of views{of}", training.similarity_spread, *e.views)
        if e.pull is not None:
            tau = e.numbers["temperature"]
            title = f"W and the weight of hard negatives at τ = {tau:g}{of}"
            figures.add(title, drawn.weights, e.pull, e.hardness, tau)
    spectra = {name: e.spectrum for name, e in named.items() if e.spectrum is not None}
    if len(spectra) > 1:
        figures.add("Dimensions in use", drawn.spectrum, spectra)
    kept = {name: with_prefix("kept_", e.numbers) for name, e in named.items() if "kept_crop" in e.numbers}
    if kept:
        figures.add("What a change leaves", drawn.robustness, kept)
    if len(named) == 1:
        _of_one(found[0], figures)
        if found[0].noise is not None:
            images, scale, sample, mean = found[0].noise
            learned = mean if bool(mean.any()) else None
            figures.add("The noise that it learned", noise.noise, images, scale, sample, learned)
    elif "knn" in found[0].numbers or "knn" in found[1].numbers:
        rows = {f"kNN, {name}": [e.numbers["knn"]] for name, e in named.items() if "knn" in e.numbers}
        rows["kNN, raw pixels"] = [max(e.numbers.get("knn_raw", 0.0) for e in found)]
        figures.add("Classes", training.accuracies, rows, chance=found[0].numbers.get("chance"))
    for name, e in named.items():
        _maps(e, "" if len(named) == 1 else f", {name}", figures)
    return figures


def _of_one(e: Examination, figures: _Figures) -> None:
    if e.layers:
        figures.add("Layer by layer", drawn.by_layer, e.layers)
    figures.add("Lengths", drawn.lengths, e.z)
    if e.predicted is not None:
        n, of = e.numbers, {"": "this encoder", "_raw": "raw pixels", "_untrained": "fresh weights"}
        rows = {
            f"{how}, {whose}": [n[key + suffix]]
            for key, how in (("knn", "kNN"), ("probe", "probe"))
            for suffix, whose in of.items()
            if key + suffix in n
        }
        if "knn_untrained" in n:  # fewer labels and pictures lend and are judged there
            fewer = int(n["gallery_compared"])
            rows[f"kNN, this encoder, {fewer} labels"] = [n["knn_beside_untrained"]]
            rows[f"kNN, fresh weights, {fewer} labels"] = rows.pop("kNN, fresh weights")
        figures.add("Classes", training.accuracies, rows, chance=n["chance"])
        names = e.judged.class_names
        figures.add("Who is taken for whom", drawn.confusion, e.judged.labels, e.predicted, names)
        spaces = {"this encoder": e.z, "raw pixels": e.raw}
        title = "Nearest neighbours among the judged (framed: the same class; the last rows are the worst)"
        figures.add(
            title, pictures.neighbours, e.judged, spaces, screen.queries(e, True), k=min(5, len(e.z) - 1)
        )


def _maps(e: Examination, of: str, figures: _Figures) -> None:
    labels = e.judged.labels[: examination.MAPPED]
    for name in dict.fromkeys(name for name, _ in e.maps):
        trust = {seed: e.numbers[f"trustworthiness_{name}_{seed}"] for of, seed in e.maps if of == name}
        sides = {f"seed {s}, trust {trust[s]:.2f}, neighbours": e.maps[name, s] for s in trust}
        figures.add(f"Map by {name}{of}", maps.side_by_side, sides, labels, e.judged.class_names)
        at = {f"seed {seed}, kNN recall": e.maps[name, seed] for seed in trust}
        kept = {f"seed {seed}, kNN recall": e.kept[name, seed] for seed in trust}
        figures.add(f"How far the map by {name}{of} can be trusted, point by point", maps.trusted, at, kept)
