"""First screen of a report: neighbours, similarities in both spaces, map and spectrum, and the table.

A panel is a function of an examination and an Axes; `PANELS` names them in the order of the screen.
"""

from collections.abc import Callable
from textwrap import fill, shorten
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from torch import Tensor, nn

from clutils import anatomy, maps, measures, similarities
from clutils.figures import axes_for, describe, new, pictures, style, training
from clutils.figures import maps as map_figures
from clutils.report import preprocessing
from clutils.report.diagnosis import (
    BROKEN,
    CONSTANT,
    FED,
    GOOD,
    HALF,
    LOOK,
    NEXT,
    TEMPERATURE,
    UNKNOWN,
    Diagnosis,
    fed_wrongly,
    one_point,
)
from clutils.report.examination import COMPARED
from clutils.report.facts import Examination, Facts
from clutils.report.preprocessing import SETTLED, Moments

SIZE = (4.6, 1.75)  # inches of one panel, as wide as its column: its letters can be read at 390 px, too
TALL = (4.6, 2.05)  # of the upper two, so that each photograph can be recognised
NEAR = 4  # neighbours that are shown of each image, by the encoder and by raw pixels
SHOWN = 6  # images whose neighbours are shown
LISTED = 10  # classes that a legend names
USUAL = 0.2  # τ that the push is compared with
CHANNELS = 24  # of a batch normalisation, that are drawn
LEVEL_LOOKS = {  # mark and colour: distinct without colour, too
    GOOD: ("✓", style.GREEN),
    LOOK: ("◐", "#8A5A00"),
    BROKEN: ("✗", "#B00020"),
    UNKNOWN: ("?", style.GREY),
}
Panel = Callable[[Examination, Axes | None], tuple[Axes, str]]


@style.in_course_style
def screen(found: Examination, title: str, diagnosis: Diagnosis) -> Figure:
    """The whole screen as one figure of 1280 x 800: the sentence, the table, and the four panels."""
    figure, spare = new(12.8, 8.0)
    spare.remove()
    figure.set_layout_engine("none")  # places are given, so that a long sentence moves nothing
    mark, color = LEVEL_LOOKS[diagnosis.level]
    put: dict[str, Any] = {"va": "top"}
    figure.text(0.012, 0.985, f"{mark} {diagnosis.badge}", color=color, fontsize=15, weight="bold", **put)
    short = style.literal(shorten(title, 80, placeholder=" …"))
    figure.text(0.19, 0.982, short, fontsize=11, color=style.GREY, **put)
    wide, points = (88, 11.5) if len(diagnosis.says) < 250 else (108, 9.4)
    sentence = fill(diagnosis.says, wide)
    figure.text(0.012, 0.946, style.literal(sentence), fontsize=points, weight="bold", **put)
    below = 0.943 - 0.00213 * points * len(sentence.splitlines())
    figure.text(0.012, below, style.literal(diagnosis.next), fontsize=10, color=style.GREY, **put)
    said = []
    for y, (name, *cells) in enumerate(table(found.found)):
        at: dict[str, Any] = {"fontsize": 10, "color": style.GREY if y else style.INK, "va": "top"}
        figure.text(0.73, 0.982 - 0.024 * y, name, **at)
        for x, cell in enumerate(cells):
            figure.text(0.9 + 0.075 * x, 0.982 - 0.024 * y, cell, ha="right", **at)
    for k, (name, panel) in enumerate(panels(found, diagnosis).items()):
        (bottom, high), left = ((0.455, 0.32), (0.07, 0.255))[k // 2], 0.06 + 0.5 * (k % 2)
        _, reading = panel(found, figure.add_axes((left, bottom, 0.42, high)))
        top = bottom + high + 0.069
        figure.text(left - 0.048, top, name, fontsize=11.5, weight="bold", **put)
        figure.text(left - 0.048, top - 0.024, fill(reading, 92), fontsize=9.5, color=style.GREY, **put)
        said.append(f"{name}: {reading}")
    return describe(figure, f"{diagnosis.badge}: {diagnosis.says} {' '.join(said)}")


def table(f: Facts) -> list[tuple[str, str, str]]:
    """Rows of cells: who, kNN, probe; the first one is the heading. Without labels what needs none."""
    if f.own is None:
        return _unlabelled(f)
    rows = {"this encoder": f.own, "fresh weights": f.untrained, "raw pixels": f.raw}
    found = [(f"by {min(f.gallery, COMPARED[0])} labelled images", "kNN", "probe")]
    for name, row in rows.items():
        if row is not None:
            found.append((name, f"{row.knn:.0%}", f"{row.probe:.0%}"))
    return [*found, ("chance", f"{f.chance:.0%}", f"{f.chance:.0%}")]


def _unlabelled(f: Facts) -> list[tuple[str, str, str]]:
    """How often the two views of an image are nearer than two images."""
    rows = {"this encoder": f.nearer_than, "fresh weights": f.fresh_nearer_than}
    rows |= {"raw pixels": f.raw_nearer_than, "chance": 0.5}
    found = [("", "views nearer than two images", "")]
    return found + [(name, f"{share:.1%}", "") for name, share in rows.items() if share is not None]


# ---- one function a panel ----------------------------------------------------------------------------------


@style.in_course_style
def class_map(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """The test images on a map, by class; ringed where kNN gives another class."""
    ax = axes_for(ax, *SIZE)
    z, labels = found.z[: found.mapped], found.judged.labels[: found.mapped]
    if not found.has_directions:
        return _nothing(ax, "All features are equal or have length 0, so there is no map.")
    name, at = ("PCA", maps.pca(z)) if found.tsne is None else ("t-SNE", found.tsne)
    size = min(26.0, 13_000 / len(z))  # of many, small ones
    colours = torch.zeros_like(labels) if found.found.knn is None else labels
    points = map_figures.Points(ax, colours, found.judged.class_names, size, names=False)
    points.update(at)
    ax.spines[:].set_visible(False)
    wide, high = np.ptp(at, axis=0)
    half = max(0.25, 0.5 * high / max(wide, high, 1e-12)) + 0.05  # a wide map leaves room for its legend
    ax.set(xlim=(-0.05, 1.05), ylim=(0.5 - half, 0.5 + half), anchor="W")
    if found.found.knn is None:
        reading = f"All {len(z):,} images, by {name}: {found.unknown['knn']}."
        return describe(ax, f"Map. {reading}"), reading
    wrong = (found.each["knn"][: found.mapped] == 0).numpy()
    each = zip(points.marks, points.classes, strict=True)
    rings = np.concatenate([np.asarray(marks.get_offsets())[wrong[labels == c]] for marks, c in each])
    looks: dict[str, Any] = {"facecolors": "none", "edgecolors": style.INK, "alpha": 0.6, "clip_on": False}
    ax.scatter(rings[:, 0], rings[:, 1], s=58, linewidth=0.5, zorder=4, **looks)
    _legend(ax, found.judged.class_names, points.classes)
    lent = f"{len(found.gallery):,} labelled images"
    reading = f"By {name}. Ringed ({wrong.mean():.0%}): kNN by {lent} is wrong."
    return describe(ax, f"Map of {len(z)} images by class. {reading}"), reading


@style.in_course_style
def near_pictures(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """Six images and their nearest by the encoder and by raw pixels."""
    ax = axes_for(ax, *TALL)
    if not found.has_directions:
        return _nothing(ax, "All features are equal or have length 0: no image is nearer than another.")
    labels, known = found.judged.labels, found.found.knn is not None
    asked = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))[:SHOWN].tolist()
    k = min(NEAR, len(labels) - 1)
    pictures.neighbours(found.judged, {"this encoder": found.z, "raw pixels": found.raw}, asked, k, True, ax)
    if not known:
        reading = f"Six images, each with its {k} nearest neighbours: do they belong together?"
        return describe(ax, reading), reading
    own, raw = (maps.share_of_class(z, labels, k, "cosine") for z in (found.z, found.raw))
    reading = f"Blue frame: same class. Of all images' {k} nearest: {own:.0%}, by raw pixels {raw:.0%}."
    return describe(ax, f"Six images and their nearest. {reading}"), reading


@style.in_course_style
def similarity(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """Similarities of positives and negatives, in the encoder's space and in the loss's behind the head."""
    ax = axes_for(ax, *TALL)
    spaces: dict[str, tuple[Tensor, Tensor]] = {"before the head": found.views}
    if found.head_views is not None:
        spaces["behind the head, what the loss sees"] = found.head_views
    if not all(bool(z.any(dim=1).all()) for z in found.views):
        return _nothing(ax, "Some features have length 0, so they have no similarity.")
    ax.set_axis_off()
    leads = []
    for k, (name, seen) in enumerate(spaces.items()):
        place = ax.inset_axes((0.0, 1 - (k + 1) / len(spaces), 1.0, 1 / len(spaces) - 0.17))
        training.similarity_spread(*seen, ax=place)
        last = k == len(spaces) - 1
        place.set(ylabel="", yticks=[])
        place.set_xlabel("cosine similarity" if last else "", fontsize=9)
        place.set_title(name if len(spaces) > 1 else "", fontsize=10, loc="left", pad=2)
        place.tick_params(labelsize=8, labelbottom=last)
        place.legend(loc="upper left", fontsize=8.5).set_visible(not k)
        z1, z2 = (nn.functional.normalize(z, dim=1) for z in seen)
        two = similarities.two_views(z1, z2)
        means = [values.mean().item() for values in (two.positives, two.negatives)]
        leads.append((means[0] - means[1]) / max(1 - means[1], 1e-6))
    reading = f"Lead of the positives (0: as similar as negatives, 1: all at similarity 1): {leads[0]:.2f}"
    if len(leads) > 1:
        behind = "all similarities are nearly 1" if one_point(found.found) else f"{leads[1]:.2f}"
        reading += f" before the head, behind it {behind}"
    reading += "."
    if found.found.spread < CONSTANT:
        reading = "Before the head all similarities are near 1: embeddings have nearly one direction."
    return describe(ax, f"Histograms of cosine similarities. {reading}"), reading


@style.in_course_style
def spectra(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """Singular values of the centred features of the same views, by this encoder and by fresh weights."""
    ax = axes_for(ax, *SIZE)
    both = {"this encoder": torch.cat(found.views)}
    both |= {} if found.fresh_views is None else {"fresh weights": torch.cat(found.fresh_views)}
    if not found.found.spread:
        return _nothing(ax, "No dimension is in use: all images have the same features.")
    ranks = {}
    for (name, z), look in zip(both.items(), style.series(2, ordered=False), strict=False):
        values = measures.spectrum(z)
        ranks[name] = measures.effective_rank(z, values)
        color = look["color"] if name == "this encoder" else style.GREY
        shares = (values / values[0]).clamp(min=1e-7)
        ax.plot(range(1, len(shares) + 1), shares, look["linestyle"], color=color, label=name)
    ax.set(yscale="log", ylim=(1e-4, 1.5), xlabel="index of the singular value", ylabel="relative to largest")
    ax.yaxis.set_major_formatter(lambda value, at: f"{value:g}")  # a formula as a label takes half a second
    ax.legend(loc="upper right", fontsize=8.5)
    rows = len(both["this encoder"])
    reading = f"Effective rank of {rows} views of {rows // 2} images: {ranks['this encoder']:.0f}"
    reading += f"; fresh weights {ranks['fresh weights']:.0f}" if "fresh weights" in ranks else ""
    reading += ". A high rank alone proves nothing: noise has one."
    return describe(ax, f"Singular values of {rows} views, largest first. {reading}"), reading


@style.in_course_style
def push(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """Share of the push on the hardest negatives, at its τ and at a usual one."""
    ax = axes_for(ax, *SIZE)
    seen = found.views if found.head_views is None or one_point(found.found) else found.head_views
    first, second = (nn.functional.normalize(z, dim=1) for z in seen)
    negatives = similarities.two_views(first, second).negatives
    tau, tenth = found.found.temperature or USUAL, negatives.shape[1] // 10
    parts = []
    for at, line in ((tau, "-"), (USUAL, "--")):
        shares = anatomy.hardness_weights(negatives, at).sort(dim=1, descending=True).values.mean(dim=0)
        parts.append(shares[:tenth].sum().item())
        rank, sums = range(1, len(shares) + 1), shares.cumsum(dim=0)
        ax.plot(rank, sums, line, marker="", color=style.temperature(at), label=f"τ = {at:g}")
    ax.set(ylim=(0, 1.03), xlabel="negatives, hardest first", ylabel="share of the push")
    ax.legend(loc="lower right", fontsize=8.5)
    reading = f"The hardest tenth of {negatives.shape[1]} negatives receives {parts[0]:.0%} of the push; at "
    reading += f"τ = {USUAL:g} the same similarities would give it {parts[1]:.0%}."
    return describe(ax, f"Cumulative push by rank. {reading}"), reading


@style.in_course_style
def statistics(found: Examination, ax: Axes | None = None) -> tuple[Axes, str]:
    """Mean and standard deviation of each channel: stored by the first batch normalisation, and as fed."""
    ax = axes_for(ax, *SIZE)
    f, wrong = found.found, fed_wrongly(found.found)
    stored = "in training" if wrong else "in the file"
    names = {stored: stored, "as fed": "as fed"}
    if wrong and wrong.mean:
        names[wrong.mean] = f"--mean {wrong.mean}"
    moments = {name: found.statistics[name] for name in names}
    order = moments[stored][0].argsort()
    shown = order[torch.linspace(0, len(order) - 1, min(len(order), CHANNELS)).round().long()]
    for k, (name, color) in enumerate(zip(names, (style.GREY, style.VERMILLION, style.BLUE), strict=False)):
        mean, deviation = moments[name][0][shown], moments[name][1][shown].clamp(min=0).sqrt()
        at = torch.arange(len(shown)) + 0.27 * (k - (len(names) - 1) / 2)
        ax.vlines(at, mean - deviation, mean + deviation, color, linewidth=1.4, alpha=0.7)
        ax.plot(at, mean, "os^"[k], color=color, markersize=2.8, label=names[name])
    ax.set(xticks=[], ylabel="mean ± std")
    part = "" if len(shown) == len(order) else f"{len(shown)} of "
    ax.set_xlabel(f"{part}{len(order)} channels, sorted by the mean {stored}")
    ax.set_xlim(-0.8, 1.3 * len(shown))
    ax.legend(loc="center right", fontsize=8.5, handlelength=0.8, labelcolor="linecolor")
    if not wrong and (f.batches_seen or SETTLED) < SETTLED:
        left = preprocessing.KEPT ** (f.batches_seen or 0)
        reading = f"After {f.batches_seen} batches, {left:.0%} of what the file stores is its start: mean 0, "
        reading += "variance 1."
    else:
        apart, wide = _off(moments["as fed"], moments[stored])
        reading = f"As fed, a channel's mean is {apart} standard deviations from that {stored}, and its "
        reading += f"standard deviation {wide} times as large (medians)"
        for name in [*names][2:]:
            apart, wide = _off(moments[name], moments[stored])
            reading += f"; with {names[name]}, {apart} and {wide}"
        reading += "."
    return describe(ax, f"Mean and standard deviation by channel. {reading}"), reading


def _off(fed: Moments, stored: Moments) -> tuple[str, str]:
    """Distance of the means in stored standard deviations, and ratio of the deviations: medians."""
    (mean, var), (old_mean, old_var) = fed, (stored[0], stored[1].clamp(min=1e-12))
    found = ((mean - old_mean).abs() / old_var.sqrt()).median(), (var / old_var).sqrt().median()
    apart, wide = (f"{value:,.{2 if value < 10 else 0}f}" for value in found)
    return apart, wide


PANELS: dict[str, Panel] = {
    "Nearest neighbours": near_pictures,
    "Positives and negatives": similarity,
    "Map": class_map,
    "Spectrum": spectra,
}


def panels(found: Examination, diagnosis: Diagnosis) -> dict[str, Panel]:
    """Panels by name; the last one shows what is at fault: τ, how images are fed, or too few batches."""
    few = diagnosis.name == HALF and (found.found.batches_seen or SETTLED) < SETTLED
    if diagnosis.name == TEMPERATURE:
        last: dict[str, Panel] = {"Push on the negatives": push}
    elif found.statistics and (diagnosis.name == FED or few or diagnosis.next.startswith(NEXT[FED])):
        last = {"First batch normalisation": statistics}
    else:
        return PANELS
    return {name: panel for name, panel in PANELS.items() if panel is not spectra} | last


def _legend(ax: Axes, names: tuple[str, ...], classes: list[int]) -> None:
    listed = map_figures.handles(
        [(c, fill(map_figures.class_name(names, c), 18)) for c in classes[:LISTED]], 6
    )
    title = f"{len(classes)} classes, the first ten" if len(classes) > LISTED else None
    ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": style.INK, "markersize": 9}
    wrong = Line2D([], [], linestyle="none", marker="o", label="kNN is wrong", **ring)
    style.legend_outside(
        ax, handles=[*listed, wrong], fontsize=8, title=title, title_fontsize=8, labelspacing=0.2
    )


def _nothing(ax: Axes, why: str) -> tuple[Axes, str]:
    ax.set_axis_off()
    ax.text(0.5, 0.5, fill(why, 44), ha="center", va="center", fontsize=12, transform=ax.transAxes)
    return describe(ax, why), why
