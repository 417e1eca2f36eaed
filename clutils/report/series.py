"""Series of checkpoints of one run: every number against the epoch, on one page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from clutils.figures import describe, new, style
from clutils.measures import BY_NAME
from clutils.report.facts import as_json

ACROSS = 3  # panels in a row
DRAWN: dict[str, tuple[str, ...]] = {  # title of a panel -> the numbers in it
    "kNN": ("knn_beside_untrained", "knn_untrained", "knn_raw", "chance"),
    "linear probe": ("probe_beside_untrained", "probe_untrained", "probe_raw"),
    "cosine similarity, means": ("positive_similarity", "negative_similarity"),
    "ranks": ("effective_rank", "rankme"),
    "alignment": ("alignment", "head_alignment"),
    "uniformity": ("uniformity", "head_uniformity"),
    "spread and dead features": ("spread", "dead"),
    "share of the negatives with the push": ("share_of_negatives",),
    "kept under a change": ("kept_crop", "kept_flip", "kept_jitter", "kept_grey", "kept_blur"),
    "input (nats)": ("input_gap",),
}
CALLED = {key: number.label for key, number in BY_NAME.items()} | {
    **{f"{how}_beside_untrained": "this encoder" for how in ("knn", "probe")},
    **{f"{how}_untrained": "fresh weights" for how in ("knn", "probe")},
    **{f"{how}_raw": "raw pixels" for how in ("knn", "probe")},
    "positive_similarity": "positives",
    "negative_similarity": "negatives",
    "alignment": "encoder",
    "head_alignment": "after the head",
    "uniformity": "encoder",
    "head_uniformity": "after the head",
    "dead": "dead features",
    "share_of_negatives": "share",
    "input_gap": "nats from training",
}
OF_A_FILE = ("file", "read as", "SHA-256", "epoch or step")


@dataclass(frozen=True)
class Moment:
    """One checkpoint of a series: where it stands, and what its report says and measured.

    facts: where it comes from, as `provenance.facts` has it
    """

    at: float
    name: str
    level: str
    sentence: str
    numbers: Mapping[str, float]
    facts: Mapping[str, str] = field(default_factory=dict)
    epoch: float | None = None


def moments(reports: Sequence[Any]) -> list[Moment]:
    """Of reports, by their epochs; by their places where a file has none, or two have the same."""
    epochs = [r.epoch for r in reports]
    known = None not in epochs and len(set(epochs)) == len(epochs)
    places = [float(e or 0) for e in epochs] if known else [float(k) for k in range(1, len(reports) + 1)]
    found = []
    for at, r in zip(places, reports, strict=True):
        e, name = r.examination, r.title.partition(" on ")[0]
        found.append(Moment(at, name, r.level, r.summary_text, e.numbers, e.facts, r.epoch))
    return sorted(found, key=lambda moment: moment.at)


def provenance(found: Sequence[Moment]) -> dict[str, str]:
    """Where the series comes from: what is a file's own stands with it, what differs has "or" between."""
    names = dict.fromkeys(name for m in found for name in m.facts if name not in OF_A_FILE)
    return {
        name: " or ".join(dict.fromkeys(m.facts[name] for m in found if name in m.facts)) for name in names
    }


def counted(found: Sequence[Moment]) -> str:
    """What the moments are in the order of."""
    return "epoch or step" if all(moment.at == moment.epoch for moment in found) else "checkpoint"


@style.in_course_style
def curves(found: Sequence[Moment]) -> Figure:
    """Every number against the epoch, those of one kind in a panel."""
    panels = {
        title: there
        for title, names in DRAWN.items()
        if (there := [n for n in names if any(n in moment.numbers for moment in found)])
    }
    rows = math.ceil(len(panels) / ACROSS)
    figure, axes = new(12.4, 2.5 * rows, rows, ACROSS, squeeze=False)
    said = []
    for ax, (title, names) in zip(axes.flat, panels.items(), strict=False):
        for name, look in zip(names, style.series(len(names), ordered=False), strict=True):
            at, values = zip(*((m.at, m.numbers[name]) for m in found if name in m.numbers), strict=True)
            label_of = CALLED.get(name, name.removeprefix("kept_"))
            ax.plot(at, values, markersize=5, label=label_of, **look)
            said.append(f"{title}, {label_of} from {values[0]:.3g} to {values[-1]:.3g}")
        ax.set_title(title, fontsize=10.5)
        low, high = ax.get_ylim()
        above = 0.1 + 0.15 * math.ceil(len(names) / 2)  # room for the legend
        ax.set_ylim(low, high + above * (high - low))
        ax.xaxis.get_major_locator().set_params(integer=all(m.at == int(m.at) for m in found))
        ax.legend(fontsize=8, loc="upper left", ncols=2)
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    for ax in axes.flat[max(0, len(panels) - ACROSS) : len(panels)]:  # the lowest of each column
        ax.set_xlabel(counted(found))
    return describe(figure, f"Numbers of {len(found)} checkpoints: {', '.join(said)}.")


def held(found: Sequence[Moment]) -> str:
    """Every number of every checkpoint as JSON."""
    return as_json([vars(m) for m in found])
