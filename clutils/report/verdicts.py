"""Verdicts of a report: all rules applied, what holds between them, and a sentence on the whole."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from clutils.checkpoints.layouts import with_prefix
from clutils.report import rules
from clutils.report.rules import BROKEN, CONSTANT, GOOD, INPUT, LOOK, OTHER_KIND, OTHER_WAY, UNKNOWN, Verdict

LEVELS = (UNKNOWN, GOOD, LOOK, BROKEN)  # from least to worst
GEOMETRY = ("spread", "dimensions in use", "dead units", "length", "views of a picture", "robustness")
FEWEST = 20  # test images below which only a constant, or how images are fed, is certain
HERE = "on these pictures"
SETTLING = "with batch statistics that had not settled"
UNSETTLED = "batch statistics that had not settled: with those of more pictures it may be good"


def judge(numbers: Mapping[str, float], unknown: Mapping[str, str], layer: str = "encoder") -> list[Verdict]:
    """A verdict on each thing that could be measured, and one of level not known for each that could not."""
    found = [line(numbers, unknown, layer) for line in rules.LINES] + rules.maps(numbers, unknown)
    if layer not in ("encoder", "head"):
        found = [_without_range(v, numbers, layer) for v in found]
    found = _related(found, numbers)
    few = f"{numbers['pictures']:.0f} test images are too few to judge it by."
    if numbers["pictures"] < FEWEST:
        sure = [
            v.level == UNKNOWN or v.name == INPUT or (v.name, v.level) == ("spread", BROKEN) for v in found
        ]
        unsure = [replace(v, level=UNKNOWN, says=few, causes=()) for v in found]
        found = [v if certain else other for v, certain, other in zip(found, sure, unsure, strict=True)]
    return found


def summary(verdicts: Sequence[Verdict]) -> str:
    """All of it in a sentence or three."""
    own = [v for v in verdicts if not v.remark.startswith("follows")]
    named = {level: [v.name for v in own if v.level == level] for level in LEVELS}
    follow, unknown = len(verdicts) - len(own), len(named[UNKNOWN])
    of_input = next((v for v in own if v.name == INPUT), None)
    said = []
    if of_input is not None and any(v.remark == HERE for v in own):
        said.append(
            f"{of_input.opens} all else holds on these pictures alone and says little about its training."
        )
        for level in (LOOK, BROKEN):
            named[level] = [name for name in named[level] if name != INPUT]
    if named[BROKEN]:
        said.append(f"Broken: {', '.join(named[BROKEN])}.")
    if follow:
        said.append(f"{_lines(follow)} more follow{'s' if follow == 1 else ''} from that.")
    if named[BROKEN]:
        said.append(next(v.says for v in own if v.name == named[BROKEN][0]))
    if named[LOOK]:
        alone = not said
        said.append(f"Worth a look: {', '.join(named[LOOK])}.")
        if alone:
            said.append(_worst(v for v in own if v.name in named[LOOK]))
            lost = [v.says for v in own if v.name == "the space of the loss" and v.level == UNKNOWN]
            said += [f"Whether the space of the loss has collapsed can't be told: {why}." for why in lost]
    if not said:
        judged = len(verdicts) - unknown
        said.append("Healthy on every line that could be judged." if judged else "Nothing could be judged.")
    if unknown:
        weighty = [name for name in named[UNKNOWN] if name in (rules.TRAINED, rules.CLASSES)]
        among = f", among them whether it learned anything: {', '.join(weighty)}" if weighty else ""
        said.append(f"{_lines(unknown)} could not be judged{among}.")
    return " ".join(said)


def _worst(looks: Iterable[Verdict]) -> str:
    """A collapse before what follows from it; otherwise the first: its first sentence and its numbers."""
    v = min(looks, key=lambda v: v.name not in ("spread", "dimensions in use"))
    numbers = re.sub(r" \([^)]*\)", "", v.value)
    return f"{v.says.partition('. ')[0].rstrip('.')} ({numbers})."


def _lines(count: int) -> str:
    return f"{count} line{'' if count == 1 else 's'}"


def worst(verdicts: list[Verdict]) -> str:
    """The level that the whole report opens with."""
    return max((v.level for v in verdicts), key=LEVELS.index)


# ---- what holds between verdicts ---------------------------------------------------------------------------


def _related(found: list[Verdict], n: Mapping[str, float]) -> list[Verdict]:
    """One fault once: what follows from it, or holds on these pictures alone, says so and is not red."""
    if n.get("weights_zero") == 1 or rules.looks_fresh(n):
        remark, faults = f"follows from '{rules.TRAINED}'", _faults_of_fresh(found, n)
        return [replace(v, level=LOOK, remark=remark) if v.name in faults else v for v in found]
    of_input = next(v for v in found if v.name == INPUT)
    if of_input.level == UNKNOWN:
        return [_doubtful(v) for v in found]
    if of_input.level == GOOD:
        return [_fed_well(v) for v in found]
    cause, remark = OTHER_WAY if of_input.level == BROKEN or of_input.mean else OTHER_KIND, HERE
    if of_input.level == LOOK and 0 < n.get("batches_seen", 0) < rules.SETTLED:
        cause, remark = UNSETTLED, SETTLING
    return [v if v is of_input or v.level == UNKNOWN else _conditional(v, cause, remark, n) for v in found]


def _faults_of_fresh(found: Sequence[Verdict], n: Mapping[str, float]) -> set[str]:
    """Lines that are not good and need no other cause than weights that are fresh, or all 0.

    Fresh weights of that shape must show such a line too; a constant is no fresh network, nor are classes
    that were lost.
    """
    faults = {v.name for v in found if v.level in (LOOK, BROKEN)} - {rules.TRAINED, "class names"}
    faults -= {v.name for v in found if v.name == "classes" and v.level == BROKEN}
    if n["spread"] < CONSTANT <= n.get("fresh_spread", 1.0):
        faults -= {"spread", "dimensions in use", "dead units"}
    if n.get("weights_zero") == 1:
        return faults
    fresh = with_prefix("fresh_", n)
    if not fresh:
        return set()
    fresh |= {k: v for k, v in n.items() if k.startswith("usual_") or k == "pictures"}
    shown = [line(fresh, {}) for line in (*rules.GEOMETRY, *rules.LOSS, rules.robust)]
    loud = {v.name for v in found if v.level == BROKEN}  # a mild line needs no other cause
    return faults - {v.name for v in shown if v.level not in (LOOK, BROKEN) and v.name in loud}


def _fed_well(v: Verdict) -> Verdict:
    """Where pictures arrive as in training, all that is left of that cause is what statistics can't show."""
    order = "colour channels in another order, which the first layer's statistics can't tell"
    return replace(v, causes=tuple(order if cause == OTHER_WAY else cause for cause in v.causes))


def _conditional(v: Verdict, cause: str, remark: str, n: Mapping[str, float]) -> Verdict:
    """A constant stays one on any pictures; all else may be good again on those that it knows."""
    level = LOOK if v.level == BROKEN and n["spread"] >= CONSTANT else v.level
    causes = (cause, *(c for c in v.causes if c not in (cause, OTHER_WAY))) if v.causes else ()
    return replace(v, level=level, causes=causes, remark=remark)


def _doubtful(v: Verdict) -> Verdict:
    """Where nothing remembers the pictures of its training, that these are others can't be excluded."""
    doubtful = (*GEOMETRY, rules.TRAINED, rules.CLASSES, "the space of the loss")
    if v.level not in (LOOK, BROKEN) or v.name not in doubtful:
        return v
    return replace(v, causes=(*v.causes, f"{OTHER_KIND}, which can't be seen here"))


def _without_range(v: Verdict, n: Mapping[str, float], layer: str) -> Verdict:
    """Ranges of geometry were set for the last features: an inner layer's value gets no verdict."""
    if v.name not in GEOMETRY or n["spread"] == 0:
        return v
    says = f"How {layer} should be is not known: ranges were set for the last features."
    return Verdict(UNKNOWN, v.value, says, name=v.name, expected="range not known for an inner layer")
