"""HTML page of a report, style and images inside: `page.html` filled in."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import jinja2
from matplotlib.figure import Figure

from clutils.figures import page as figure_html
from clutils.measures import BY_NAME, NEIGHBOURS
from clutils.report import screen, series, standard

MARKS = {level: mark for level, (mark, _) in screen.LEVEL_LOOKS.items()}
TRUST = Path(__file__).with_name("calibration.json")  # of the foot: benchmarks/calibration.py writes it
GLOSSARY = {
    "kNN": f"each test image gets the class of its nearest labelled images ({NEIGHBOURS}, or as many as a "
    "class has of them), by cosine s and weights exp(s / 0.1); the number is the share of right answers",
    "linear probe": "a logistic regression on the features of labelled images, tested on the test images, "
    "with one fixed penalty: a quick measurement, not the papers' linear evaluation",
    "fresh weights": "the same network before any training, measured twice, as initialised and with batch "
    "statistics of these images; the better result counts",
    "raw pixels": "the images' own values (for the probe their principal directions)",
    "chance": "the share of the largest class: the accuracy of always answering that class",
    "nats": "the unit of the divergence between two distributions, both taken as normal; 0 = equal",
    "effective rank": "how many directions are in use: the exponential of the entropy of the singular "
    "values' shares (Roy & Vetterli 2007; of the values, not of their squares)",
    "view": "a random crop, mirrored, with other colours: what training compares",
    "alignment, uniformity": "the mean squared distance of an image's two views (0 = they coincide); the "
    "logarithm of how crowded images are on the sphere, at t = 2 (0 = all are one point, -4 = evenly spread)",
    "lead": "how much more similar two views of one image are than two images: 1 = the views "
    "coincide, 0 = no more similar",
    "head": "the small network between features and loss, discarded after training",
    "share of the push": "the share of an anchor's negatives that receive the loss's push, at its τ",
}


def page(reports: Sequence[Any]) -> str:
    """One encoder's report; two, with what differs and by how much; or a series, by its epochs.

    Raises ValueError where two did not judge the same images in the same order.
    """
    found = [report.examination for report in reports]
    moments = series.moments(reports) if len(reports) > 2 else []
    panels = []  # heading, a figure's HTML and the sentence that reads it
    if moments:
        panels = [("Numbers", plot(series.curves(moments)), "")]
    elif len(reports) == 1:
        for name, panel in screen.panels(found[0], reports[0].diagnosis).items():
            ax, reading = panel(found[0], None)
            panels.append((name, plot(cast(Figure, ax.figure)), reading))
    differences = standard.differences(*found) if len(found) == 2 else []
    titles = [report.title for report in reports]
    if len(reports) == 2:
        titles = [f"{letter}: {title}" for letter, title in zip(standard.LETTERS, titles, strict=True)]
    if moments:
        titles = [f"{len(moments)} checkpoints, {moments[0]['name']} to {moments[-1]['name']}"]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("clutils.report", ""), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html").render(
        title=" and ".join(titles),
        moments=moments,
        counted=series.counted(moments),
        columns=series.columns(moments),
        provenance=series.provenance(moments) if moments else found[0].facts if len(found) == 1 else {},
        reports=reports,
        letters=standard.LETTERS,
        panels=panels,
        table=screen.table(found[0].found) if len(found) == 1 else [],
        measured=standard.measured(found[0]) if len(found) == 1 and not found[0].quick else [],
        intervals=standard.intervals(found[0]) if len(found) == 1 else {},
        metrics=BY_NAME,
        differences=differences,
        better=standard.better(reports, differences) if differences else "",
        trust=json.loads(TRUST.read_text(encoding="utf-8")),
        shown=shown,
        apart=apart,
        glossary=GLOSSARY,
        marks=MARKS,
    )


def plot(figure: Figure) -> str:
    """HTML of a figure that a dark page may invert, unless photographs are on it."""
    look = "" if any(ax.images for ax in figure.axes) else 'class="plot" '
    return figure_html(figure).replace("<img ", f"<img {look}", 1)


def shown(value: float, share: bool) -> str:
    """A share in per cent, any other number in three digits."""
    return f"{value:.1%}" if share else f"{value:.3g}"


def apart(difference: float, share: bool) -> str:
    """A difference of shares in points, any other in three digits."""
    return f"{100 * difference:+.1f} points" if share else f"{difference:+.3g}"
