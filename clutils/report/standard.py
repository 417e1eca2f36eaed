"""Standard numbers of the literature: RankMe, LiDAR, kNN by DINO's protocol, mAP, few labels.

One name means several computations in the wild, so each stands with its settings. Intervals are bootstraps
over the test images, where a number is a share of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from clutils import measures
from clutils.measures import BY_NAME
from clutils.report.diagnosis import FED
from clutils.report.facts import Examination

LETTERS = "AB"  # of two files side by side
USUAL = ("rankme", "effective_rank", "lidar", "knn", "knn_dino_20", "map", "probe", "few")


@dataclass(frozen=True)
class Number:
    """A number as the page shows it.

    - interval: 95 % by bootstrap; None where it has none
    - better: 1 where higher is better, 0 where neither is by itself
    """

    name: str
    value: float
    settings: str
    interval: tuple[float, float] | None
    better: int
    key: str


def measure(found: Examination, further: Sequence[str] = ()) -> dict[str, float]:
    """Those that are usual, and further ones of `BY_NAME`; `each` gets what they are the mean of."""
    n, made = found.numbers, dict[str, float]()
    if not found.has_directions:
        return made
    seen = measures.Features(found.z, values=found.spectrum, views=torch.stack(found.views, dim=1))
    if found.predicted is not None:
        seen = replace(seen, y=found.judged.labels, neighbours=found.found.neighbours or 1)
        seen = replace(seen, gallery_z=found.gallery_z, gallery_y=found.gallery.labels)
    for key in dict.fromkeys((*USUAL, *further)):
        number = BY_NAME[key]
        if key in n or (number.needs == "labels" and found.predicted is None):
            continue
        try:
            value = number.measure(seen)
        except ValueError as error:  # too few eigenvalues above rounding, fewer images than k, one class
            found.unknown[key] = str(error)
            continue
        if isinstance(value, Tensor):
            found.each[key] = value
        made[key] = value.mean().item() if isinstance(value, Tensor) else value
    return made


def numbers(found: Examination) -> list[Number]:
    """Those that were measured, with their settings, in the order of `BY_NAME`."""
    n, made = found.numbers, []
    for key, metric in BY_NAME.items():
        if not math.isfinite(n.get(key, math.nan)):
            continue
        interval = measures.bootstrap(found.each[key]) if key in found.each else None
        made.append(Number(metric.label, n[key], metric.settings, interval, int(metric.unit == "share"), key))
    return made


# ---- two encoders ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """B less A of one number.

    - interval: 95 % by the paired bootstrap, None where the number has none; better: as a `Number` has it
    """

    name: str
    a: float
    b: float
    interval: tuple[float, float] | None
    better: int

    @property
    def certain(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


def differences(a: Examination, b: Examination) -> list[Difference]:
    """Of each number that both have. Only shares of test images have an interval.

    Raises ValueError where the two did not judge the same images, in the same order.
    """
    if not torch.equal(a.judged.images, b.judged.images):
        raise ValueError(
            f"check: A was evaluated on {len(a.judged)} images and B on {len(b.judged)}, but both need "
            "the same test images"
        )
    theirs, found = {number.key: number for number in numbers(b)}, []
    for one in numbers(a):
        if one.key not in theirs:
            continue
        other, interval, (first, second) = theirs[one.key], None, (e.each.get(one.key) for e in (a, b))
        if first is not None and second is not None and len(first) == len(second):
            interval = measures.bootstrap(second - first)
        found.append(Difference(one.name, one.value, other.value, interval, one.better))
    return found


def better(reports: Sequence[Any], found: Sequence[Difference]) -> str:
    """The level of each, and what it is better at by more than luck, if both are fed as in training."""
    both = list(zip(LETTERS, reports, strict=True))
    said = [f"{letter}: {report.diagnosis.badge}." for letter, report in both]
    for letter, report in both:
        if report.diagnosis.name == FED:
            said.append(f"{letter} may be fed wrongly: see to that before you compare.")
    certain = [d for d in found if d.better and d.certain]
    for letter, sign in zip(LETTERS, (-1, 1), strict=True):
        ahead = [d for d in certain if (d.b - d.a) * sign > 0]
        if ahead:
            listed = ", ".join(f"{d.name} (by {abs(d.b - d.a) * 100:.1f} points)" for d in ahead)
            said.append(f"{letter} is better at {listed}.")
    luck = "(On these images, these two files: runs with other seeds may differ by as much.)"
    said.append(luck if certain else "On no share of these images is one certainly better than the other.")
    return " ".join(said)
