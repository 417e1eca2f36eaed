"""Is this encoder healthy? `check(file, data)` measures it, judges it, and writes one page that says so.

`examination` measures, `verdicts` judges, `page` is the HTML; the pictures are drawn in `figures`.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

from clutils import checkpoints, files
from clutils import data as datasets
from clutils.data import ImageSet
from clutils.figures import maps, noise, pictures, png, training
from clutils.figures import page as figure_html
from clutils.report import examination, page, verdicts
from clutils.report import figures as drawn
from clutils.report.examination import Examination, examine
from clutils.report.prepared import Unfit
from clutils.report.verdicts import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

__all__ = ["BROKEN", "GOOD", "LOOK", "UNKNOWN", "Report", "Unfit", "Verdict", "beside", "beside_json"]
__all__ += ["check", "examine", "load"]

SUFFIXES = (".html", ".json", ".pdf", ".png")
DEFAULTED = (
    "no pictures were named (--data), so generated scenes were taken: judge an encoder on pictures of the "
    "kind that it was trained on"
)
LEAST = 80  # pictures, of which a quarter is judged
FEW = 400  # pictures below which what is said of classes is uncertain
SHOWN = 6  # pictures whose neighbours are shown: half of them the worst


@dataclass
class Report:
    """What a check found: `.level`, `.verdicts`, `.examination.numbers`; `.write(path)` keeps it."""

    examination: Examination
    verdicts: list[Verdict]
    notes: list[str]

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
        return json.dumps(self._plain(), indent=1, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """The page, whole: its pictures are inside, it loads nothing."""
        found = _drawn(self.figures())
        head = page.Head(self.title, self.level, self.summary_text, self.examination.facts, self.notes)
        return page.page(head, self.verdicts, found, self.json())

    def figures(self) -> dict[str, Figure]:
        """Heading -> figure: all that the page shows."""
        return _figures([self.examination])

    def summary(self) -> Figure:
        """The verdicts as one figure, for a slide or a PDF."""
        lines = [
            (
                v.name,
                v.level,
                v.value + (f" ({v.remark})" if v.remark else ""),
                v.expected,
                v.causes[0] if v.level == BROKEN and v.causes else "",
            )
            for v in page.ordered(self.verdicts)
        ]
        count = self.examination.numbers["pictures"]
        how = (
            f"Each line is one thing measured on {count:,} judged pictures, beside "
            "what encoders show that are well; what the words mean is on the page (--out report.html)."
        )
        return drawn.summary(f"{self.title}: {self.level}", lines, self.summary_text, how)

    def write(self, path: str | Path) -> Path:
        """By its ending: .html the page, .json every number, .pdf or .png the summary.

        Raises ValueError on another ending.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ValueError(f"report: {path} ends in {path.suffix!r}, but must end in {', '.join(SUFFIXES)}")
        if path.suffix in (".html", ".json"):
            files.replace(path, self.html() if path.suffix == ".html" else self.json() + "\n")
        elif path.suffix == ".png":
            files.replace(path, png(self.summary()))
        else:
            written = io.BytesIO()
            self.summary().savefig(written, format="pdf", metadata={"CreationDate": None})
            files.replace(path, written.getbuffer())
        return path

    def _plain(self) -> dict[str, Any]:
        found = self.examination
        numbers = {k: v if math.isfinite(v) else None for k, v in found.numbers.items()}
        judged = [vars(v) | {"causes": list(v.causes)} for v in self.verdicts]
        return {
            "title": self.title,
            "level": self.level,
            "summary": self.summary_text,
            "facts": found.facts,
            "verdicts": judged,
            "numbers": numbers,
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
    **options: Any,
) -> Report:
    """Open an encoder, measure it on these pictures and judge it.

    - path: a checkpoint, whoever wrote it; an nn.Module; or what `checkpoints.open` gave
    - data: a name for `data.load`, or (gallery, judged) of your own; None = generated scenes, with a note
    - limit: how many pictures in all, three quarters of them the gallery
    - grey: the pictures' colours are averaged, for an encoder of grey pictures
    - options: temperature, mean, std, size, layer, map_names, seed: see `examination.examine`

    The same file, pictures and options give the same report. Raises as `checkpoints.open`, `data.load` and
    `examine` do.
    """
    on_stage("opening")
    opened = path if isinstance(path, checkpoints.Opened) else checkpoints.open(path, arch)
    notes = list(opened.notes) if data is not None else [DEFAULTED, *opened.notes]
    data = data or "scenes"
    gallery, judged = load(data, limit) if isinstance(data, str) else data
    if grey:
        gallery, judged = _grey(gallery), _grey(judged)
    count = len(gallery) + len(judged)
    if count < FEW:
        notes.append(f"{count} pictures are few: below about {FEW}, what is said of classes is uncertain")
    found = examine(opened, gallery, judged, on_stage=on_stage, **options)
    layer = options.get("layer", "encoder")
    # with its folder: every run's file may be called checkpoint.pt
    name = "/".join(Path(opened.path).parts[-2:]) if opened.path else opened.arch
    found.title = f"{name} on {data if isinstance(data, str) else judged.source.partition(' (')[0]}"
    found.facts = _facts(opened, gallery, judged, layer, options)
    return Report(found, verdicts.judge(found.numbers, found.unknown, layer), notes)


def load(name: str, limit: int) -> tuple[ImageSet, ImageSet]:
    """Gallery and judged pictures of a set, three to one; a folder without a test split is split.

    Raises ValueError on a limit below 80, and as `data.load` does.
    """
    if limit < LEAST:
        raise ValueError(f"check: at least {LEAST} pictures are needed, but only {limit} asked for")
    few = limit // 4
    try:
        judged = datasets.load(name, split="test", limit=few)
    except ValueError as error:
        if not name.startswith("folder:") or "has no split" not in str(error):
            raise
        whole = datasets.load(name, limit=limit)
        if len(whole) < LEAST:
            raise ValueError(
                f"check: at least {LEAST} pictures are needed, {name} has {len(whole)}"
            ) from None
        fourth = torch.arange(len(whole)) // max(1, len(whole.class_names)) % 4 == 3
        return whole.subset(~fourth), whole.subset(fourth)
    return datasets.load(name, limit=limit - few), judged


def beside(first: Report, second: Report) -> str:
    """Two reports on one page: a line for each thing that was looked at, and shared pictures."""
    both = (first, second)
    heads = [
        page.Head(f"{letter}: {r.title}", r.level, r.summary_text, r.examination.facts, r.notes)
        for letter, r in zip(page.LETTERS, both, strict=True)
    ]
    found = _drawn(_figures([r.examination for r in both]))
    return page.beside(heads, [r.verdicts for r in both], found, beside_json(first, second))


def beside_json(first: Report, second: Report) -> str:
    """Every number of two reports, each under its file's name (of one file twice, the second with " (2)")."""
    names = [r.examination.facts["file"] for r in (first, second)]
    if names[0] == names[1]:
        names[1] += " (2)"
    held = {name: r._plain() for name, r in zip(names, (first, second), strict=True)}
    return json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False)


# ---- inside ------------------------------------------------------------------------------------------------


def _grey(pictures: ImageSet) -> ImageSet:
    """The mean of the colours, (N, 1, H, W) uint8."""
    if pictures.images.shape[1] == 1:
        return pictures
    images = pictures.images.float().mean(dim=1, keepdim=True).round().to(torch.uint8)
    return replace(pictures, images=images, source=f"{pictures.source}, colours averaged")


def _facts(
    opened: checkpoints.Opened, gallery: ImageSet, judged: ImageSet, layer: str, options: dict[str, Any]
) -> dict[str, str]:
    facts = {"file": opened.path or "none: a module handed over", "encoder": str(opened)}
    if opened.size:
        facts["read as"] = f"{opened.kind}, {opened.size / 1e6:.1f} MB; nothing in it was run"
    facts["pictures"] = f"{len(gallery):,} lend their labels, {len(judged):,} are judged: {judged.source}"
    mean, std = options.get("mean"), options.get("std")
    fed = "pictures in [0, 1] as they are" if mean is None and std is None else f"mean {mean}, std {std}"
    side = options.get("size") or opened.side
    fed += f", resized to {side}x{side}" if side else ""
    copied = judged.images.shape[1] == 1 and opened.channels == 3
    facts["fed as"] = fed + (", grey copied to 3 channels" if copied else "")
    facts["read at"] = {"encoder": "the encoder's output, before the head", "head": "after the head"}.get(
        layer, f"the module {layer}, averaged over space"
    )
    left = [f"{name} ({count})" for name, count in opened.dropped.items()]
    if opened.unexpected or left:
        named = [f"{len(opened.unexpected)} beside the encoder"] if opened.unexpected else []
        facts["not used"] = ", ".join([*named, *left[:8]]) + " tensors"
    if opened.missing:
        counters = "counter" if len(opened.missing) == 1 else "counters"
        facts["missing"] = f"{len(opened.missing)} {counters}, on which nothing depends"
    return facts


def _drawn(figures: Mapping[str, Figure]) -> dict[str, str]:
    """Heading -> the figure's HTML; one that can't be drawn is a line that says so, and the page stays."""
    found = {}
    for name, figure in figures.items():
        try:
            found[name] = figure_html(figure)
        except Exception as error:  # whatever: a picture is no reason to lose what was measured
            found[name] = figure_html(drawn.missing(name, error))
    return found


class _Figures(dict[str, Figure]):
    """Heading -> figure, each drawn as it is added; what fails leaves a line in its place that says why."""

    def add(self, name: str, draw: Callable[..., Figure | Axes], *given: Any, **options: Any) -> None:
        try:
            self[name] = draw(*given, **options).figure
        except Exception as error:  # as above
            self[name] = drawn.missing(name, error)


def _figures(found: Sequence[Examination]) -> dict[str, Figure]:
    """Of one examination, or of two side by side."""
    names = ["this encoder"] if len(found) == 1 else ["A", "B"]
    named = dict(zip(names, found, strict=True))
    figures = _Figures()
    spots = {
        k: (e.numbers["alignment"], e.numbers["uniformity"])
        for k, e in named.items()
        if "uniformity" in e.numbers
    }
    if spots:
        figures.add("Alignment and uniformity", drawn.plane, spots)
    for name, e in named.items():
        of = "" if len(named) == 1 else f", {name}"
        if e.numbers["spread"] > 0 and not e.numbers["zero_norms"]:
            figures.add(f"Similarities of views{of}", training.similarity_spread, *e.views)
        if e.pull is not None:
            tau = e.numbers["temperature"]
            title = f"W and the weight of hard negatives at τ = {tau:g}{of}"
            figures.add(title, drawn.weights, e.pull, e.hardness, tau)
    spectra = {name: e.spectrum for name, e in named.items() if e.spectrum is not None}
    if len(named) == 1 and found[0].untrained_spectrum is not None:
        spectra["fresh weights"] = found[0].untrained_spectrum
    if spectra:
        figures.add("Dimensions in use", drawn.spectrum, spectra)
    kept = {name: e.robustness for name, e in named.items()}
    figures.add("What a change leaves", drawn.robustness, kept)
    if len(named) == 1:
        _of_one(found[0], figures)
        if found[0].noise is not None:
            images, scale, sample, mean = found[0].noise
            mean = mean if bool(mean.any()) else None  # none was learned
            figures.add("The noise that it learned", noise.noise, images, scale, sample, mean)
    elif "knn" in found[0].numbers or "knn" in found[1].numbers:
        rows = {f"kNN, {name}": [e.numbers["knn"]] for name, e in named.items() if "knn" in e.numbers}
        rows["kNN, raw pixels"] = [max(e.numbers.get("knn_raw", 0.0) for e in found)]
        figures.add("Classes", training.accuracies, rows, chance=found[0].numbers.get("chance"))
    for name, e in named.items():
        _maps(e, "" if len(named) == 1 else f", {name}", figures)
    return figures


def _of_one(e: Examination, figures: _Figures) -> None:
    figures.add("Lengths", drawn.lengths, e.z)
    if e.predicted is not None:
        n, of = e.numbers, {"": "this encoder", "_raw": "raw pixels", "_untrained": "fresh weights"}
        rows = {
            f"{how}, {whose}": [n[key + suffix]]
            for key, how in (("knn", "kNN"), ("probe", "probe"))
            for suffix, whose in of.items()
            if key + suffix in n
        }
        figures.add("Classes", training.accuracies, rows, chance=n["chance"])
        names = e.judged.class_names
        figures.add("Who is taken for whom", drawn.confusion, e.judged.labels, e.predicted, names)
        spaces = {"this encoder": e.z, "raw pixels": e.raw}
        title = "Nearest neighbours among the judged (framed: the same class; the last rows are the worst)"
        figures.add(title, pictures.neighbours, e.judged, spaces, _queries(e), k=5)


def _queries(e: Examination) -> list[int]:
    """Half ordinary pictures, half those whose neighbours share their class the least."""
    unit = nn.functional.normalize(e.z, dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).topk(5, dim=1).indices
    share = (e.judged.labels[nearest] == e.judged.labels[:, None]).double().mean(dim=1)
    ordinary = torch.arange(SHOWN // 2) * (len(share) // SHOWN)
    worst = [i for i in share.argsort(stable=True).tolist() if i not in ordinary.tolist()]
    return [*ordinary.tolist(), *worst[: SHOWN - SHOWN // 2]]


def _maps(e: Examination, of: str, figures: _Figures) -> None:
    labels = e.judged.labels[: examination.MAPPED]
    for name in dict.fromkeys(name for name, _ in e.maps):
        trust = {seed: e.numbers[f"trustworthiness_{name}_{seed}"] for seed in examination.SEEDS}
        sides = {f"seed {s}, trust {trust[s]:.2f}, neighbours": e.maps[name, s] for s in examination.SEEDS}
        figures.add(f"Map by {name}{of}", maps.side_by_side, sides, labels, e.judged.class_names)
