"""Series of checkpoints of one run: its main numbers against the epoch, on one page."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from clutils.figures import describe, new, style
from clutils.report import screen

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

    Each: at (where it stands), name, level, sentence, numbers, facts (as `provenance.facts`), epoch; and
    shown, of all the same: kNN and probe, or without labels how often views are nearer.
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
            "shown": _shown(*screen.table(r.examination.found)[:2]),
        }
        for place, r in enumerate(reports, 1)
    ]
    return sorted(found, key=lambda moment: moment["at"])


def _shown(heading: tuple[str, ...], row: tuple[str, ...]) -> dict[str, str]:
    return {
        f"{name} {heading[0]}".rstrip(): cell for name, cell in zip(heading[1:], row[1:], strict=True) if cell
    }


def columns(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Headings of what is shown of any moment."""
    return list(dict.fromkeys(name for moment in found for name in moment["shown"]))


def text(found: Sequence[Mapping[str, Any]]) -> str:
    """The series as lines: a checkpoint each, by the same measures."""
    told = [f"{len(found)} checkpoints: {', '.join(columns(found))}"]
    for m in found:
        cells = [m["shown"].get(name, "-").rjust(6) for name in columns(found)]
        told.append(f"  {screen.LEVEL_LOOKS[m['level']][0]} {''.join(cells)}  {m['name']}")
    return "\n".join(told)


def counted(found: Sequence[Mapping[str, Any]]) -> str:
    """Unit of the order: epoch or step, or the number of the checkpoint."""
    return "epoch or step" if all(moment["at"] == moment["epoch"] for moment in found) else "checkpoint"


def provenance(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Facts of all moments, as how they were fed; a file's own stand in the table."""
    names = [name for name in found[-1]["facts"] if name not in OF_A_FILE]
    return {n: " or ".join(dict.fromkeys(m["facts"][n] for m in found if n in m["facts"])) for n in names}


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
