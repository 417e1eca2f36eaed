"""Standard numbers of the literature: RankMe, LiDAR, kNN by DINO's protocol, mAP, few labels.

One name means several computations in the wild, so each stands with its settings (`how`) and with when it
misleads. Intervals are bootstraps over the test images, where a number is a share of them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from clutils import measures
from clutils.data import ImageSet
from clutils.measures import BY_NAME, DRAWS, PROBED
from clutils.report.facts import Examination

USUAL = ("rankme", "effective_rank", "lidar", "knn", "knn_dino_20", "map", "probe", "few")


@dataclass(frozen=True)
class Number:
    """A number as the page shows it.

    - interval: 95 % by bootstrap, or the range of the draws; None where it has none
    - better: 1 where higher is better, -1 where lower is, 0 where neither is by itself
    """

    key: str
    name: str
    value: float
    how: str
    misleads: str
    interval: tuple[float, float] | None = None
    better: int = 0


def measure(
    found: Examination, gallery: ImageSet, gallery_z: Tensor, further: Sequence[str] = ()
) -> dict[str, float]:
    """Those that are usual, and further ones of `BY_NAME`; `each` gets what they are the mean of."""
    n, z, y, made = found.numbers, found.z, found.judged.labels, dict[str, float]()
    if not found.has_directions:
        return made
    seen = measures.Features(z, values=found.spectrum, views=torch.stack(found.views, dim=1))
    if found.predicted is not None:
        k = found.found.neighbours or 1
        seen = replace(seen, y=y, gallery_z=gallery_z, gallery_y=gallery.labels, neighbours=k)
    for key in dict.fromkeys((*USUAL, *further)):
        number = BY_NAME[key]
        if key in n or key == "few" or (number.needs == "labels" and found.predicted is None):
            continue
        try:
            value = number.measure(seen)
        except ValueError as error:  # too few eigenvalues above rounding, fewer images than k
            found.unknown[key] = str(error)
            continue
        if isinstance(value, Tensor):
            found.each[key] = value
        made[key] = value.mean().item() if isinstance(value, Tensor) else value
    if found.predicted is not None and len(gallery.labels.unique()) > 1:
        few = measures.few_labels(seen)
        made |= {"few": few.mean, "few_low": min(few.accuracies), "few_high": max(few.accuracies)}
        made["few_labels"] = few.labels
    return made


def numbers(found: Examination) -> list[Number]:
    """Those that were measured, each with its settings."""
    n = found.numbers
    count, wide, lent = int(n["pictures"]), int(n["dimensions"]), int(n["gallery"])
    of, most = f"N = {count} images", min(count - 1, wide)
    probed = min(PROBED, lent)
    notes = {
        "rankme": (
            f"{of}, {{}}; at most {min(count, wide)} (Garrido 2023)",
            "An offset that all features share lowers it, and noise raises it; it grows with N.",
        ),
        "effective_rank": (
            f"{of}, {{}}; at most {most} (Roy & Vetterli 2007)",
            "Noise fills dimensions, too: high is not good by itself.",
        ),
        "alpha_req": (
            f"{of}, {{}} (Agrawal 2022)",
            "The tail is not straight: another range or N gives another α. The paper's good sign is near 1.",
        ),
        "nesum": (
            f"{of}, {{}}; at most {most} (He & Ozay 2022)",
            "One strong direction lowers it, even if harmless.",
        ),
        "lidar": (
            f"N = {int(n['views'])} images, {{}} (Thilak 2024)",
            "Two views measure their scatter poorly (the paper draws 50), and an ill encoder may be above "
            "a healthy one; for small features, δ decides.",
        ),
        "knn": (
            f"k = {int(n.get('neighbours', 0))}, T = 0.1, {lent} labelled images",
            "It grows with the number of labelled images, and measures only these classes.",
        ),
        **{
            f"knn_dino_{k}": (
                f"{{}}, {lent} labelled images (DINO's eval_knn.py)",
                "With few labelled images, a large k votes for the largest class.",
            )
            for k in measures.DINO[0]
        },
        "map": (
            f"all {lent} labelled images ranked {{}}",
            "It measures whole classes: a class in two distant pure clusters scores low.",
        ),
        "probe": (
            f"{{}}, {probed} labels",
            "It finds classes that neighbours do not show; another penalty changes it by points.",
        ),
        "few": (
            f"the same on {int(n.get('few_labels', 0))} labels, mean and range of {DRAWS} draws",
            "It varies more between draws than between most encoders.",
        ),
    }
    made = []
    for key, (how, misleads) in notes.items():
        if key in n and math.isfinite(n[key]):
            number, interval = BY_NAME[key], (n["few_low"], n["few_high"]) if key == "few" else None
            if key in found.each:
                interval = measures.bootstrap(found.each[key])
            how, better = how.format(number.settings), int(number.unit == "share")
            made.append(Number(key, number.label, n[key], how, misleads, interval, better))
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


def likeness(a: Examination, b: Examination, k: int = 10) -> dict[str, float]:
    """Linear CKA and neighbour overlap of the test images' features.

    Raises ValueError where the two did not judge the same images, in the same order.
    """
    if not torch.equal(a.judged.images, b.judged.images):
        raise ValueError(
            f"check: A was evaluated on {len(a.judged)} images and B on {len(b.judged)}, but both need "
            "the same test images"
        )
    if not (a.has_directions and b.has_directions):
        return {}
    k = min(k, len(a.z) - 1)
    return {"cka": measures.cka(a.z, b.z), "overlap": measures.neighbour_overlap(a.z, b.z, k), "k": k}


def differences(a: Examination, b: Examination) -> list[Difference]:
    """Of each number that both have. Only shares of the same test images have an interval."""
    theirs, found = {number.key: number for number in numbers(b)}, []
    for one in numbers(a):
        if one.key not in theirs:
            continue
        other, interval, (first, second) = theirs[one.key], None, (e.each.get(one.key) for e in (a, b))
        if first is not None and second is not None and len(first) == len(second):
            interval = measures.bootstrap(second - first)
        found.append(Difference(one.name, one.value, other.value, interval, one.better))
    return found


def which_is_better(found: list[Difference]) -> str:
    """One line: what each is better at by more than luck."""
    said = []
    for letter, sign in (("A", -1), ("B", 1)):
        better = [d for d in found if d.better and d.certain and (d.b - d.a) * d.better * sign > 0]
        if better:
            listed = ", ".join(f"{d.name} (by {abs(d.b - d.a) * 100:.1f} points)" for d in better)
            said.append(f"{letter} is better at {listed}.")
    if said:
        said.append("(On these images, these two files: runs with other seeds may differ by as much.)")
    return " ".join(said) or "On no share of these images is one certainly better than the other."
