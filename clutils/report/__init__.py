"""Is this encoder healthy? `check(file, data)` measures it, judges it, and writes one page that says so.

`examination` measures, `verdicts` judges, `page` is the HTML; the pictures are drawn in `figures`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import nn

from clutils import checkpoints
from clutils import data as datasets
from clutils.data import ImageSet
from clutils.figures import maps, pictures, pinda, png, training
from clutils.figures import page as figure_html
from clutils.figures import report as drawn
from clutils.report import examination, page, verdicts
from clutils.report.examination import Examination, examine
from clutils.report.verdicts import BROKEN, GOOD, LOOK, UNKNOWN, Verdict

__all__ = ["BROKEN", "GOOD", "LOOK", "UNKNOWN", "Report", "Verdict", "beside", "check", "examine", "load"]

SUFFIXES = (".html", ".json", ".pdf", ".png")
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

    def __str__(self) -> str:
        lines = [f"{page.MARKS[self.level]} {self.level}: {self.title}"]
        lines += [f"  {page.MARKS[v.level]} {v.name}: {v.value}. {v.says}" for v in self.verdicts]
        return "\n".join(lines)

    def json(self) -> str:
        """Every number, verdict and fact, for programs; what is not finite is null."""
        return json.dumps(self._plain(), indent=1, ensure_ascii=False, allow_nan=False)

    def html(self) -> str:
        """The page, whole: its pictures are inside, it loads nothing."""
        found = {name: figure_html(figure) for name, figure in self.figures().items()}
        facts = self.examination.facts
        return page.page(self.title, self.level, facts, self.verdicts, found, self.notes, self.json())

    def figures(self) -> dict[str, Figure]:
        """Heading -> figure: all that the page shows."""
        return _figures([self.examination])

    def summary(self) -> Figure:
        """The verdicts as one figure, for a slide or a PDF."""
        lines = [(v.name, v.level, v.value) for v in self.verdicts]
        return drawn.summary(f"{self.title}: {self.level}", lines)

    def write(self, path: str | Path) -> Path:
        """By its ending: .html the page, .json every number, .pdf or .png the summary.

        Raises ValueError on another ending.
        """
        path = Path(path)
        if path.suffix not in SUFFIXES:
            raise ValueError(f"report: {path} ends in {path.suffix!r}, but must end in {', '.join(SUFFIXES)}")
        if path.suffix in (".html", ".json"):
            text = self.html() if path.suffix == ".html" else self.json() + "\n"
            return _kept(path, text.encode())
        if path.suffix == ".png":
            return _kept(path, png(self.summary()))
        path.parent.mkdir(parents=True, exist_ok=True)
        self.summary().savefig(path, metadata={"CreationDate": None})
        return path

    def _plain(self) -> dict[str, Any]:
        found = self.examination
        numbers = {k: v if math.isfinite(v) else None for k, v in found.numbers.items()}
        judged = [vars(v) | {"causes": list(v.causes)} for v in self.verdicts]
        return {
            "title": self.title,
            "level": self.level,
            "facts": found.facts,
            "verdicts": judged,
            "numbers": numbers,
            "not_measured": found.unknown,
            "notes": self.notes,
        }


def check(
    path: str | Path | nn.Module | checkpoints.Opened,
    data: str | tuple[ImageSet, ImageSet] = "scenes",
    arch: str | None = None,
    limit: int = 2000,
    on_stage: Callable[[str], object] = lambda name: None,
    **options: Any,
) -> Report:
    """Open an encoder, measure it on these pictures and judge it.

    - path: a checkpoint, whoever wrote it; an nn.Module; or what `checkpoints.open` gave
    - data: a name for `data.load`, or (gallery, judged) of your own
    - limit: how many pictures in all, three quarters of them the gallery
    - options: temperature, mean, std, size, layer, map_names, seed: see `examination.examine`

    The same file, pictures and options give the same report. Raises as `checkpoints.open`, `data.load` and
    `examine` do.
    """
    on_stage("opening")
    opened = path if isinstance(path, checkpoints.Opened) else checkpoints.open(path, arch)
    gallery, judged = load(data, limit) if isinstance(data, str) else data
    found = examine(opened, gallery, judged, on_stage=on_stage, **options)
    layer = options.get("layer", "encoder")
    # with its folder: every run's file may be called checkpoint.pt
    name = "/".join(Path(opened.path).parts[-2:]) if opened.path else opened.arch
    found.title = f"{name} on {data if isinstance(data, str) else judged.source.partition(' (')[0]}"
    found.facts = _facts(opened, gallery, judged, layer, options)
    return Report(found, verdicts.judge(found.numbers, found.unknown, layer), list(opened.notes))


def load(name: str, limit: int) -> tuple[ImageSet, ImageSet]:
    """Gallery and judged pictures of a set, three to one; a folder without a test split is split.

    Raises ValueError on a limit below 80, and as `data.load` does.
    """
    if limit < 80:
        raise ValueError(f"check: {limit} pictures are too few, at least 80 are needed")
    few = limit // 4
    try:
        judged = datasets.load(name, split="test", limit=few)
    except (ValueError, datasets.Unavailable):
        if not name.startswith("folder:"):
            raise
        whole = datasets.load(name, limit=limit)
        if len(whole) < 80:
            raise ValueError(f"check: {name} has {len(whole)} pictures, at least 80 are needed") from None
        fourth = torch.arange(len(whole)) // max(1, len(whole.class_names)) % 4 == 3
        return whole.subset(~fourth), whole.subset(fourth)
    return datasets.load(name, limit=limit - few), judged


def beside(first: Report, second: Report) -> str:
    """Two reports on one page: a line for each thing that was looked at, and shared pictures."""
    both = (first, second)
    titles = [f"{letter}: {r.title}" for letter, r in zip("AB", both, strict=True)]
    found = {k: figure_html(v) for k, v in _figures([r.examination for r in both]).items()}
    levels, facts = [r.level for r in both], [r.examination.facts for r in both]
    numbers = json.dumps([r._plain() for r in both], ensure_ascii=False, allow_nan=False)
    return page.beside(titles, levels, facts, [r.verdicts for r in both], found, numbers)


# ---- inside ------------------------------------------------------------------------------------------------


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
    facts["fed as"] = fed + (f", resized to {side}x{side}" if side else "")
    facts["read at"] = {"encoder": "the encoder's output, before the head", "head": "after the head"}.get(
        layer, f"the module {layer}, averaged over space"
    )
    left = [f"{name} ({count})" for name, count in opened.dropped.items()]
    if opened.unexpected or left:
        named = [f"{len(opened.unexpected)} beside the encoder"] if opened.unexpected else []
        facts["left out"] = ", ".join([*named, *left[:8]]) + " tensors"
    if opened.missing:
        facts["missing"] = f"{len(opened.missing)} counters, which nothing depends on"
    return facts


def _figures(found: Sequence[Examination]) -> dict[str, Figure]:
    """Of one examination, or of two side by side."""
    names = ["this encoder"] if len(found) == 1 else ["A", "B"]
    named = dict(zip(names, found, strict=True))
    figures: dict[str, Figure] = {}
    spots = {
        k: (e.numbers["alignment"], e.numbers["uniformity"])
        for k, e in named.items()
        if "uniformity" in e.numbers
    }
    if spots:
        figures["Alignment and uniformity"] = drawn.plane(spots).figure
    for name, e in named.items():
        of = "" if len(named) == 1 else f", {name}"
        if e.numbers["spread"] > 0 and not e.numbers["zero_norms"]:
            figures[f"Similarities of views{of}"] = training.similarity_spread(*e.views).figure
        if e.pull is not None:
            tau = e.numbers["temperature"]
            figures[f"W and the weight of hard negatives at τ = {tau:g}{of}"] = drawn.weights(
                e.pull, e.hardness, tau
            )
    spectra = {name: e.spectrum for name, e in named.items() if e.spectrum is not None}
    if len(named) == 1 and found[0].untrained_spectrum is not None:
        spectra["fresh weights"] = found[0].untrained_spectrum
    if spectra:
        figures["Dimensions in use"] = drawn.spectrum(spectra).figure
    figures["What a change leaves"] = drawn.robustness(
        {name: e.robustness for name, e in named.items()}
    ).figure
    if len(named) == 1:
        figures |= _of_one(found[0])
        if found[0].noise is not None:
            images, scale, sample, mean = found[0].noise
            mean = mean if bool(mean.any()) else None  # none was learned
            figures["The noise that it learned"] = pinda.noise(images, scale, sample, mean)
    elif "knn" in found[0].numbers or "knn" in found[1].numbers:
        rows = {f"kNN, {name}": [e.numbers["knn"]] for name, e in named.items() if "knn" in e.numbers}
        rows["kNN, raw pixels"] = [max(e.numbers.get("knn_raw", 0.0) for e in found)]
        figures["Classes"] = training.accuracies(rows, chance=found[0].numbers.get("chance")).figure
    for name, e in named.items():
        of = "" if len(named) == 1 else f", {name}"
        figures |= {f"{title}{of}": figure for title, figure in _maps(e).items()}
    return figures


def _of_one(e: Examination) -> dict[str, Figure]:
    figures, n = {"Lengths": drawn.lengths(e.z).figure}, e.numbers
    if e.predicted is not None:
        rows = {"kNN": [n["knn"]], "linear probe": [n["probe"]], "kNN, raw pixels": [n["knn_raw"]]}
        if "knn_untrained" in n:
            rows["kNN, fresh weights"] = [n["knn_untrained"]]
        figures["Classes"] = training.accuracies(rows, chance=n["chance"]).figure
        names = e.judged.class_names
        figures["Who is taken for whom"] = drawn.confusion(e.judged.labels, e.predicted, names).figure
        queries = _queries(e)
        spaces = {"this encoder": e.z, "raw pixels": e.raw}
        title = "Nearest neighbours among the judged (framed: the same class; the last rows are the worst)"
        figures[title] = pictures.neighbours(e.judged, spaces, queries, k=5)
    return figures


def _queries(e: Examination) -> list[int]:
    """Half ordinary pictures, half those whose neighbours share their class the least."""
    unit = nn.functional.normalize(e.z, dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2).topk(5, dim=1).indices
    share = (e.judged.labels[nearest] == e.judged.labels[:, None]).double().mean(dim=1)
    ordinary = torch.arange(SHOWN // 2) * (len(share) // SHOWN)
    worst = [i for i in share.argsort(stable=True).tolist() if i not in ordinary.tolist()]
    return [*ordinary.tolist(), *worst[: SHOWN - SHOWN // 2]]


def _maps(e: Examination) -> dict[str, Figure]:
    labels = e.judged.labels[: examination.MAPPED]
    found = {}
    for name in dict.fromkeys(name for name, _ in e.maps):
        trust = {seed: e.numbers[f"trustworthiness_{name}_{seed}"] for seed in examination.SEEDS}
        drawn_maps = {
            f"seed {s}, trust {trust[s]:.2f}, neighbours": e.maps[name, s] for s in examination.SEEDS
        }
        found[f"Map by {name}"] = maps.side_by_side(drawn_maps, labels, e.judged.class_names)
    return found


def _kept(path: Path, content: bytes) -> Path:
    """Replace a file at once and whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path
