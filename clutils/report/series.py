"""Series of checkpoints of one run: its main numbers against the epoch, on one page."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from clutils.figures import describe, new, style

ACROSS = 3  # panels in a row
ROWS = {"this encoder": "{}_beside_untrained", "fresh weights": "{}_untrained", "raw pixels": "{}_raw"}
DRAWN: dict[str, Mapping[str, str]] = {  # title of a panel -> label -> the number that is drawn
    "kNN": {label: name.format("knn") for label, name in ROWS.items()} | {"chance": "chance"},
    "linear probe": {label: name.format("probe") for label, name in ROWS.items()},
    "cosine similarity, means": {"positives": "positive_similarity", "negatives": "negative_similarity"},
    "effective rank": {"encoder": "effective_rank"},
    "uniformity": {"encoder": "uniformity", "after the head": "head_uniformity"},
    "spread": {"encoder": "spread"},
}
OF_A_FILE = ("file", "read as", "SHA-256", "epoch or step")


def moments(reports: Sequence[Any]) -> list[dict[str, Any]]:
    """Of reports, by their epochs; by their places where a file has none, or two have the same.

    Each: at (where it stands), name, level, sentence, numbers, facts (as `provenance.facts`) and epoch.
    """
    epochs = [r.epoch for r in reports]
    known = None not in epochs and len(set(epochs)) == len(epochs)
    found = [
        {
            "at": float(r.epoch if known else place),
            "name": r.title.partition(" on ")[0],
            "level": r.level,
            "sentence": r.summary_text,
            "numbers": r.examination.numbers,
            "facts": r.examination.facts,
            "epoch": r.epoch,
        }
        for place, r in enumerate(reports, 1)
    ]
    return sorted(found, key=lambda moment: moment["at"])


def provenance(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Where the series comes from, by its last file; what is a file's own stands with it."""
    return {name: said for name, said in found[-1]["facts"].items() if name not in OF_A_FILE}


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """What the moments are in the order of."""
    return "epoch or step" if all(moment["at"] == moment["epoch"] for moment in found) else "checkpoint"


@style.in_course_style
def curves(found: Sequence[Mapping[str, Any]]) -> Figure:
    """The main numbers against the epoch, those of one kind in a panel."""
    known = set[str]().union(*(moment["numbers"] for moment in found))
    panels = {title: there for title, names in DRAWN.items() if (there := known & {*names.values()})}
    rows = math.ceil(len(panels) / ACROSS)
    figure, axes = new(12.4, 2.5 * rows, rows, ACROSS, squeeze=False)
    said = []
    for ax, title in zip(axes.flat, panels, strict=False):
        names = {label: name for label, name in DRAWN[title].items() if name in known}
        for (label, name), look in zip(names.items(), style.series(len(names), ordered=False), strict=True):
            drawn = [(m["at"], m["numbers"][name]) for m in found if name in m["numbers"]]
            at, values = zip(*drawn, strict=True)
            ax.plot(at, values, markersize=5, label=label, **look)
            said.append(f"{title}, {label} from {values[0]:.3g} to {values[-1]:.3g}")
        ax.set_title(title, fontsize=10.5)
        ax.margins(y=0.3)  # room for the legend
        ax.xaxis.get_major_locator().set_params(integer=all(m["at"] == int(m["at"]) for m in found))
        ax.legend(fontsize=8, loc="upper left", ncols=2)
        ax.set_xlabel(counted(found))
    for ax in axes.flat[len(panels) :]:
        ax.set_axis_off()
    return describe(figure, f"Numbers of {len(found)} checkpoints: {', '.join(said)}.")
