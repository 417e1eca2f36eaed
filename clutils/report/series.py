"""Series of checkpoints of one run: its main numbers against the epoch, on one page."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from clutils.figures import describe, new, style

OF_A_FILE = ("file", "encoder", "read as", "SHA-256", "epoch or step")
ROWS = {"this encoder": "{}_beside_untrained", "fresh weights": "{}_untrained", "raw pixels": "{}_raw"}
DRAWN: dict[str, dict[str, str]] = {  # title of a panel -> label -> the number that is drawn
    "kNN": {label: name.format("knn") for label, name in ROWS.items()} | {"chance": "chance"},
    "linear probe": {label: name.format("probe") for label, name in ROWS.items()},
    "effective rank": {"encoder": "effective_rank"},
    "uniformity": {"encoder": "uniformity", "after the head": "head_uniformity"},
}


def moments(reports: Sequence[Any]) -> list[dict[str, Any]]:
    """Reports in the order of their epochs; of their places where a file has none, or two have the same.

    Each: at (where it stands), name, level, sentence, numbers, facts (as `provenance.facts`) and epoch.
    """
    epochs = [r.epoch for r in reports]
    known = None not in epochs and len(set(epochs)) == len(epochs)
    found = [
        {
            "at": float(r.epoch if known else place),
            "name": r.title.partition(" on ")[0],
            "level": r.level,
            "sentence": r.diagnosis.says,
            "numbers": r.examination.numbers,
            "facts": r.examination.facts,
            "epoch": r.epoch,
        }
        for place, r in enumerate(reports, 1)
    ]
    return sorted(found, key=lambda moment: moment["at"])


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """Unit of the order: epoch or step, or the number of the checkpoint."""
    return "epoch or step" if all(moment["at"] == moment["epoch"] for moment in found) else "checkpoint"


def provenance(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Facts that the moments share, by the last one: a file's own stand in the table."""
    return {name: said for name, said in found[-1]["facts"].items() if name not in OF_A_FILE}


@style.in_course_style
def curves(found: Sequence[Mapping[str, Any]]) -> Figure:
    """The main numbers against the epoch, those of one kind in a panel."""
    figure, axes = new(12.4, 5.0, 2, 2)
    said = []
    for ax, (title, names) in zip(axes.flat, DRAWN.items(), strict=True):
        for (label, name), look in zip(names.items(), style.series(len(names), ordered=False), strict=True):
            drawn = {m["at"]: m["numbers"][name] for m in found if name in m["numbers"]}
            if drawn:
                ax.plot(drawn.keys(), drawn.values(), markersize=5, label=label, **look)
                values = [*drawn.values()]
                said.append(f"{title}, {label} from {values[0]:.3g} to {values[-1]:.3g}")
        ax.set(title=title, xlabel=counted(found))
        ax.xaxis.get_major_locator().set_params(integer=True)
        if ax.lines:
            style.legend_outside(ax, fontsize=8)
        else:
            ax.set_axis_off()
    return describe(figure, f"Numbers of {len(found)} checkpoints: {', '.join(said)}.")
