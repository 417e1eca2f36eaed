"""Recorded comparisons of losses, in lines: nothing, while there are no runs."""

import statistics

from clutils.course import evidence
from clutils.figures import style


def compared(subject: str, reference: str) -> list[str]:
    """A line for each contender of a subject of `evidence`: its setting, its seeds, how it stands to one.

    - subject: "losses" or "views"; reference: the contender that the others are compared with

    Along the run are the means at the record's looks, the first of them untrained.

    A difference is decided where its interval leaves 0 out and both are past their learning phase. One line
    alone while the reference has no three seeds on record.
    """
    ends = evidence.results(subject)
    if reference not in ends:
        return [f"{subject}: no finished runs on record yet, so not decided here"]
    silent, along, lines = evidence.results(subject, "silent"), evidence.curves(subject), []
    learning = {name for name in ends if not evidence.has_learned(subject, name)}
    for name, values in ends.items():
        temperature = evidence.chosen(subject, name)["loss"][1]["temperature"]
        shut = statistics.fmean(silent[name])
        said = f"{style.title(name)}, τ = {temperature:g}: {statistics.fmean(values):.3f}"
        said += f" ({len(values)} seeds"
        said += f"; {shut:.0%} of the anchors push nothing)" if shut == shut else ")"
        means = along[along["contender"] == name].sort_values("step")["mean"]
        said += f"; along the run {', '.join(f'{mean:.3f}' for mean in means)}"
        if name != reference:
            said += f"; minus {style.title(reference)}: {evidence.difference(values, ends[reference])}"
        if name in learning or (reference in learning and name != reference):
            said += "; still learning, so not decided here"
        lines.append(said)
    return lines
