"""The tuned comparison of losses on real images, as `benchmarks/evidence.py real_losses` recorded it.

Every sentence follows from the rows on record, so a recording that goes on changes the words.
"""

import json
import statistics
from typing import NamedTuple

from matplotlib.figure import Figure

from clutils.course import evidence, records
from clutils.course.evidence import ADAPTIVE, FIXED, HARD, MISPAIRED, PLAIN
from clutils.figures import describe, new, style

SUBJECT = "real_losses"
CONTENDERS = (PLAIN, ADAPTIVE, FIXED, HARD, MISPAIRED)
LOOKS = {
    PLAIN: style.loss("NTXent"),
    ADAPTIVE: style.loss("MACL"),
    FIXED: style.loss("NTXent") | {"marker": "s", "markerfacecolor": "none"},
    HARD: style.loss("HardNegative"),
    MISPAIRED: {"color": style.GREY, "marker": "x"},
}
PLANNED, OF_THE_CONTROL, LEAST = 8, 3, 3  # seeds; fewer than the last decide nothing


class Promise(NamedTuple):
    """Evidence on the sentence that one loss is better than another, for `claims.test`.

    - holds: True where the difference is `decided`, above 0, and the mispaired views lost; else None, for
      runs refute nothing
    - shown_by: the difference in words; control: what the mispaired views lost, in words
    """

    holds: bool | None
    shown_by: str
    control: str


def ends(contender: str) -> dict[int, float]:
    """Seed -> kNN accuracy at the end of a contender's finished runs at its best setting; {} without any."""
    runs = evidence.finished(SUBJECT, least=1)
    runs = runs[(runs["step"] == runs["steps"]) & (runs["contender"] == contender)]
    if contender == MISPAIRED:
        runs = evidence.at_best(SUBJECT, PLAIN, runs, augmentation="mispaired")
    else:
        runs = evidence.at_best(SUBJECT, contender, runs)
    return {int(seed): float(knn) for seed, knn in zip(runs["seed"], runs.get("knn", ()), strict=True)}


def gaps(contender: str, reference: str = PLAIN) -> dict[int, float]:
    """Seed -> difference of kNN accuracy to the reference, of the seeds that both have finished."""
    own, other = ends(contender), ends(reference)
    return {seed: own[seed] - other[seed] for seed in sorted(own.keys() & other.keys())}


def interval(contender: str, reference: str = PLAIN) -> evidence.Difference | None:
    """Paired difference to the reference and its interval; None with fewer than two seeds of both."""
    found = list(gaps(contender, reference).values())
    return evidence.paired(found, [0.0] * len(found)) if len(found) > 1 else None


def unsettled(*contenders: str) -> list[str]:
    """Reasons against a verdict: runs still learning, or a best temperature at the edge of the grid."""
    return [
        *(
            f"{name} is {evidence.learning_phase(SUBJECT, name)}"
            for name in contenders
            if not evidence.has_learned(SUBJECT, name)
        ),
        *(f"{name}'s best temperature lies at the edge of its grid" for name in contenders if at_edge(name)),
    ]


def at_edge(contender: str) -> bool:
    """True where the grid's best temperature is the coldest or the hottest of several that were tried."""
    grid = records.read(evidence.record_of(SUBJECT)).query("stage == 'grid'")
    settings = map(json.loads, grid.loc[grid["contender"] == contender, "settings"])
    tried = {given["loss"][1]["temperature"] for given in settings}
    return len(tried) > 1 and _temperature(contender) in (min(tried), max(tried))


def decided(contender: str, reference: str = PLAIN) -> bool:
    """True where the interval of three seeds or more leaves 0 out and nothing is `unsettled` of both."""
    found = interval(contender, reference)
    enough = len(gaps(contender, reference)) >= LEAST
    return bool(found and found.decided and enough and not unsettled(contender, reference))


def in_words(contender: str, reference: str = PLAIN) -> str:
    """The paired difference in a sentence, with the difference that these seeds can detect."""
    apart = gaps(contender, reference)
    said = f"{contender} minus {reference}"
    if not apart:
        return f"{said}: no finished pair of runs is on record, so not decided here"
    found = interval(contender, reference)
    if found is None:
        only = next(iter(apart.values()))
        return (
            f"{said}: {100 * only:+.1f} points in one pair of runs, which has no interval: not decided here"
        )
    planned = OF_THE_CONTROL if MISPAIRED in (contender, reference) else PLANNED
    said += f", {len(apart)} paired seeds of {planned} planned: {found}"
    if len(apart) < LEAST:
        return f"{said}; fewer than {LEAST} seeds, so not decided here"
    missing = unsettled(contender, reference)
    return f"{said}; {', '.join(missing)}, so not decided here" if missing else said


def promise(contender: str, reference: str = PLAIN) -> Promise:
    """Evidence on the sentence that the contender is better than the reference."""
    found = interval(contender, reference)
    lost = interval(MISPAIRED)
    controlled = lost is not None and lost.decided and lost.mean < 0
    holds = True if found and found.mean > 0 and controlled and decided(contender, reference) else None
    return Promise(holds, in_words(contender, reference), in_words(MISPAIRED))


def tuned() -> list[str]:
    """A line for each contender: what the grid chose, its accuracy, and its difference to NT-Xent."""
    lines = []
    for name in CONTENDERS:
        own = ends(name)
        if not own:
            lines.append(f"{name}: no finished runs on record yet")
            continue
        lines.append(f"{name}{_chosen(name)}: {statistics.fmean(own.values()):.3f} ({_seeds(len(own))})")
        if name != PLAIN:
            lines.append(in_words(name))
    return [*lines, in_words(ADAPTIVE, FIXED)]


def _chosen(name: str) -> str:
    if name == MISPAIRED:  # as NT-Xent's
        return ""
    edge = ", the edge of its grid" if at_edge(name) else ""
    return f", τ = {_temperature(name):g}{edge}, rate {evidence.chosen(SUBJECT, name)['learning_rate']:g}"


def _temperature(name: str) -> float:
    return float(evidence.chosen(SUBJECT, name)["loss"][1]["temperature"])


def _seeds(count: int) -> str:
    return f"{count} seed{'s' * (count != 1)}"


@style.in_course_style
def tuned_figure() -> Figure:
    """Losses at their best settings: a line a loss; its seeds, and its paired difference to NT-Xent.

    A bar is a 95 % interval; two seeds or more have one. An empty row has no finished runs on record.
    """
    figure, (left, right) = new(9.6, 3.2, 1, 2, sharey=True)
    for row, name in enumerate(CONTENDERS):
        look = {key: value for key, value in LOOKS[name].items() if key != "linestyle"}
        values, found = list(ends(name).values()), interval(name)
        left.plot([100 * value for value in values], [row] * len(values), linestyle="", **look)
        if not values:
            left.text(0.5, row, "no finished runs yet", transform=left.get_yaxis_transform(), ha="center")
        if name == PLAIN:
            continue
        for value in gaps(name).values():
            right.plot(100 * value, row, "|", color=style.GREY)
        if found is not None:
            reach = [[100 * found.half]] * 2
            right.errorbar(100 * found.mean, row, xerr=reach, linestyle="", capsize=3, **look)
    right.axvline(0, color=style.GREY, linewidth=1)
    left.set(xlabel="kNN accuracy (%), a point a seed")
    left.set_yticks(range(len(CONTENDERS)), CONTENDERS)
    left.set_ylim(len(CONTENDERS) - 0.5, -0.5)
    right.set(xlabel="minus NT-Xent, same seed (points)")
    said = "; ".join(in_words(name) for name in CONTENDERS[1:])
    return describe(figure, f"Losses on real images, each at its best of eight settings. {said}.")
