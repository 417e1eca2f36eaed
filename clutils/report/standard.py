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


def measure(found: Examination, further: Sequence[str] = ()) -> dict[str, float]:
    """Those that are usual, and further ones of `BY_NAME`; `each` gets what they are the mean of."""
    n, made = found.numbers, dict[str, float]()
    if not found.has_directions:
        return made
    seen = measures.Features(found.z, values=found.spectrum, views=torch.stack(found.views, dim=1))
    if found.found.knn is not None:
        seen = replace(seen, y=found.judged.labels, neighbours=found.found.neighbours or 1)
        seen = replace(seen, gallery_z=found.gallery_z, gallery_y=found.gallery.labels)
    for key in dict.fromkeys((*USUAL, *further)):
        number = BY_NAME[key]
        if key in n or (number.needs == "labels" and found.found.knn is None):
            continue
        try:
            value = number.measure(seen)
        except (ValueError, torch.linalg.LinAlgError) as error:  # too low a rank, fewer images than k
            found.unknown[key] = str(error)
            continue
        if isinstance(value, Tensor):
            found.each[key] = value
        made[key] = value.mean().item() if isinstance(value, Tensor) else value
    return made


def measured(found: Examination) -> list[str]:
    """Names of those that were measured, in the order of `BY_NAME`."""
    return [key for key in BY_NAME if math.isfinite(found.numbers.get(key, math.nan))]


def intervals(found: Examination) -> dict[str, tuple[float, float]]:
    """Name -> 95 % interval by bootstrap, of those that are a mean over images."""
    return {key: measures.bootstrap(found.each[key]) for key in measured(found) if key in found.each}


# ---- two encoders ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """B less A of one number.

    - interval: 95 % by the paired bootstrap, None where the number has none
    - better: 1 where higher is better, 0 where neither is by itself
    """

    name: str
    a: float
    b: float
    interval: tuple[float, float] | None
    better: int

    @property
    def certain(self) -> bool:
        """True where the interval leaves 0 out."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


def differences(a: Examination, b: Examination) -> list[Difference]:
    """Difference of each number that both have. Only shares of test images have an interval.

    Raises ValueError where the two did not judge the same images, in the same order.
    """
    if not torch.equal(a.judged.images, b.judged.images):
        raise ValueError(
            f"check: A was evaluated on {len(a.judged)} images and B on {len(b.judged)}, but both need "
            "the same test images"
        )
    found = []
    for key in measured(a):
        if key not in b.numbers:
            continue
        interval, (first, second) = None, (e.each.get(key) for e in (a, b))
        if first is not None and second is not None and len(first) == len(second):
            interval = measures.bootstrap(second - first)
        metric = BY_NAME[key]
        share = int(metric.unit == "share")
        found.append(Difference(metric.label, a.numbers[key], b.numbers[key], interval, share))
    return found


def better(reports: Sequence[Any], found: Sequence[Difference]) -> str:
    """The level of each, and what it is better at by more than luck, if both are fed as in training."""
    both = list(zip(LETTERS, reports, strict=True))
    said = [f"{letter}: {report.diagnosis.badge}." for letter, report in both]
    fed = [letter for letter, report in both if report.diagnosis.name == FED]
    said += [f"{letter} may be fed wrongly: see to that before you compare." for letter in fed]
    certain = [d for d in found if d.better and d.certain]
    for letter, sign in zip(LETTERS, (-1, 1), strict=True):
        ahead = [d for d in certain if (d.b - d.a) * sign > 0]
        if ahead:
            listed = ", ".join(f"{d.name} (by {abs(d.b - d.a) * 100:.1f} points)" for d in ahead)
            said.append(f"{letter} is better at {listed}.")
    if not found:  # as of a collapsed encoder
        return " ".join([*said, "No number could be measured for both."])
    if all(d.a == d.b for d in found):
        once = "A and B agree in every number: this seems to be one encoder twice"
        return " ".join([*said, f"{once} (a head that was left out may differ)."])
    luck = "(On these images, these two files: runs with other seeds may differ by as much.)"
    said.append(luck if certain else "On no share of these images is one certainly better than the other.")
    return " ".join(said)
