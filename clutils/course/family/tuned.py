"""The tuned comparison of losses on real images, as `benchmarks/evidence.py real_losses` recorded it.

Every sentence follows from the rows on record, so a recording that goes on changes the words.
"""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, NamedTuple

from matplotlib.figure import Figure

from clutils.course import evidence, records
from clutils.course.evidence import ADAPTIVE, ATTENTION, FIXED, FLAT, HARD, MISPAIRED, PLAIN, VIEWS
from clutils.figures import describe, new, style

if TYPE_CHECKING:
    import pandas

SUBJECT = "real_losses"
CONTENDERS = (PLAIN, ADAPTIVE, FIXED, HARD, MISPAIRED, VIEWS, FLAT, ATTENTION)
SAME_VIEWS = (FLAT, ATTENTION)  # compared with NT-Xent that sees as many views
LOOKS = {
    PLAIN: style.loss("NTXent"),
    ADAPTIVE: style.loss("MACL"),
    FIXED: style.loss("NTXent") | {"marker": "s", "markerfacecolor": "none"},
    HARD: style.loss("HardNegative"),
    MISPAIRED: {"color": style.GREY, "marker": "x"},
    VIEWS: style.loss("NTXent") | {"marker": "D"},
    FLAT: style.loss("AttentionNCE") | {"markerfacecolor": "none"},
    ATTENTION: style.loss("AttentionNCE"),
}
PLANNED = {name: 3 for name in (MISPAIRED, VIEWS, FLAT, ATTENTION)}  # seeds; of the others `MOST`
MOST, LEAST = 8, 3  # fewer than the last decide nothing


class Promise(NamedTuple):
    """Evidence on the sentence that one loss is better than another, for `claims.test`.

    - holds: True where the difference is `decided`, above 0, and the mispaired views lost; else None, for
      runs refute nothing
    - shown_by: the difference in words; control: what the mispaired views lost, in words
    """

    holds: bool | None
    shown_by: str
    control: str


def at_best(contender: str) -> pandas.DataFrame:
    """Rows, a look each, of a contender's runs at the setting that its grid chooses now; none without any."""
    runs = evidence.finished(SUBJECT, least=1)
    runs = runs[runs["contender"] == contender]
    if contender == MISPAIRED:
        return evidence.at_best(SUBJECT, PLAIN, runs, augmentation="mispaired")
    return evidence.at_best(SUBJECT, contender, runs)


def ends(contender: str) -> dict[int, float]:
    """Seed -> kNN accuracy at the end of a contender's finished runs at its best setting; {} without any."""
    runs = at_best(contender)
    runs = runs[runs["step"] == runs["steps"]]
    return {int(seed): float(knn) for seed, knn in zip(runs["seed"], runs.get("knn", ()), strict=True)}


def gaps(contender: str, reference: str | None = None) -> dict[int, float]:
    """Seed -> difference of kNN accuracy to the reference, of the seeds that both have finished.

    reference: None = NT-Xent; of AttentionNCE, NT-Xent with the same four views
    """
    own, other = ends(contender), ends(reference or reference_of(contender))
    return {seed: own[seed] - other[seed] for seed in sorted(own.keys() & other.keys())}


def reference_of(contender: str) -> str:
    """Contender that another is compared with: NT-Xent, with four further views where the other has them."""
    return VIEWS if contender in SAME_VIEWS else PLAIN


def interval(contender: str, reference: str | None = None) -> evidence.Difference | None:
    """Paired difference to the reference and its interval; None with fewer than two seeds of both."""
    found = list(gaps(contender, reference).values())
    return evidence.paired(found, [0.0] * len(found)) if len(found) > 1 else None


def unsettled(*contenders: str) -> list[str]:
    """Reasons against a verdict: runs still learning, a best setting at the edge of the grid, a control that
    is not at the temperature at which MACL ends."""
    reasons = []
    for name in contenders:
        if (phase := _phase(name)) != evidence.SETTLED:
            reasons.append(f"{name} is {phase}")
    for name in contenders:
        if edge := at_edge(name):
            reasons.append(f"{name}'s best {edge} lies at the edge of its grid")
    if FIXED in contenders and not _where_macl_ends():
        reasons.append(f"{FIXED} is not at the temperature at which MACL's chosen run ends")
    return reasons


def _phase(contender: str) -> str:
    return evidence.trend(at_best(contender).pivot(index="seed", columns="step", values="knn"))


def _where_macl_ends() -> bool:
    try:
        return _temperature(FIXED) == evidence.temperature_at_the_end(SUBJECT, ADAPTIVE)
    except ValueError:
        return False


def at_edge(contender: str) -> str:
    """Name of the setting whose best value is the lowest or highest that was tried; "" where none is.

    The setting is the temperature; where one temperature alone was tried, the learning rate.
    """
    grid = records.read(evidence.record_of(SUBJECT)).query("stage == 'grid'")
    settings = [json.loads(given) for given in grid.loc[grid["contender"] == contender, "settings"]]
    tried = {given["loss"][1]["temperature"] for given in settings}
    if len(tried) > 1:
        return "temperature" if _temperature(contender) in (min(tried), max(tried)) else ""
    rates = {given["learning_rate"] for given in settings}
    best = evidence.chosen(SUBJECT, contender)["learning_rate"]
    return "learning rate" if len(rates) > 1 and best in (min(rates), max(rates)) else ""


def decided(contender: str, reference: str | None = None) -> bool:
    """True where the interval of three seeds or more leaves 0 out and nothing is `unsettled` of both.

    Of the mispaired views, which must only lose, the second is not asked.
    """
    found = interval(contender, reference)
    enough = len(gaps(contender, reference)) >= LEAST
    return bool(found and found.decided and enough and not missing(contender, reference))


def missing(contender: str, reference: str | None = None) -> list[str]:
    """Reasons against a verdict on two contenders with `LEAST` seeds or more; none of the mispaired views."""
    return [] if contender == MISPAIRED else unsettled(contender, reference or reference_of(contender))


def in_words(contender: str, reference: str | None = None) -> str:
    """The paired difference in a sentence, with the difference that these seeds can detect."""
    reference = reference or reference_of(contender)
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
    planned = PLANNED.get(contender, MOST)
    of_planned = f" of {planned} planned" if len(apart) < planned else ""
    said += f", {len(apart)} paired seeds{of_planned}: {found}"
    if len(apart) < LEAST:
        return f"{said}; fewer than {LEAST} seeds, so not decided here"
    reasons = missing(contender, reference)
    return f"{said}; {', '.join(reasons)}, so not decided here" if reasons else said


def promise(contender: str, reference: str | None = None) -> Promise:
    """Evidence on the sentence that the contender is better than the reference."""
    found = interval(contender, reference)
    lost = interval(MISPAIRED)
    controlled = lost is not None and lost.mean < 0 and decided(MISPAIRED)
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
        phase = f", {_phase(name)}" if len(own) >= LEAST else ""
        lines.append(f"{name}{_chosen(name)}: {statistics.fmean(own.values()):.3f} ({len(own)} seeds{phase})")
        if name != PLAIN:
            lines.append(in_words(name))
    return [*lines, in_words(ADAPTIVE, FIXED), in_words(ATTENTION, FLAT)]


def _chosen(name: str) -> str:
    if name == MISPAIRED:  # as NT-Xent's
        return ""
    edge = f" (best {at_edge(name)} at the edge of its grid)" if at_edge(name) else ""
    rate = evidence.chosen(SUBJECT, name)["learning_rate"]
    return f", τ = {_temperature(name):g}, rate {rate:g}{edge}"


def _temperature(name: str) -> float:
    return float(evidence.chosen(SUBJECT, name)["loss"][1]["temperature"])


@style.in_course_style
def tuned_figure() -> Figure:
    """Losses at their best settings: a line a loss; its seeds, and its paired difference to NT-Xent.

    A bar is a 95 % interval; two seeds or more have one. Losses without a finished run have no row.
    """
    shown = [name for name in CONTENDERS if ends(name)] or [PLAIN]
    figure, (left, right) = new(9.6, 1.4 + 0.36 * len(shown), 1, 2, sharey=True)
    for row, name in enumerate(shown):
        look = {key: value for key, value in LOOKS[name].items() if key != "linestyle"}
        values, found = list(ends(name).values()), interval(name)
        left.plot([100 * value for value in values], [row] * len(values), linestyle="", **look)
        if name == PLAIN:
            continue
        if name == MISPAIRED:  # so far below that its marks would hide the others' differences
            lost = 100 * statistics.fmean(gaps(name).values() or [float("nan")])
            at = right.get_yaxis_transform()
            right.text(0.97, row, f"{lost:+.1f} points, not drawn", transform=at, ha="right", va="center")
            continue
        for value in gaps(name).values():
            right.plot(100 * value, row, "|", color=style.GREY)
        if found is not None:
            reach = [[100 * found.half]] * 2
            right.errorbar(100 * found.mean, row, xerr=reach, linestyle="", capsize=3, **look)
    right.axvline(0, color=style.GREY, linewidth=1)
    left.set(xlabel="kNN accuracy\n(%, a point a seed)")
    left.set_yticks(range(len(shown)), shown)
    left.set_ylim(len(shown) - 0.5, -0.5)
    label = "minus NT-Xent\n(points, same seed)"
    if {*SAME_VIEWS} & {*shown}:
        label = "minus NT-Xent of as many views\n(itself: of two; points, same seed)"
    right.set(xlabel=label)
    said = "; ".join(in_words(name) for name in CONTENDERS[1:])
    return describe(figure, f"Losses on real images, each at its best of a grid. {said}.")
