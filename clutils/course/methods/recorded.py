"""Results of the recorded runs of notebook 11: lines to print, and what decides each sentence's verdict.

The runs are those of `benchmarks/evidence.py`: methods, batch, augmentations, further_methods, neighbours.
Each `verdict_...` returns the keywords of `claims.test`. A sentence is supported where the 95 % interval of a
difference lies above zero. Methods are compared only where none of them is still learning.
"""

from itertools import combinations, pairwise
from typing import Any

from clutils.course import evidence
from clutils.course.evidence import Difference, difference, has_learned, learning_phase, paired, results
from clutils.course.methods.figures import FURTHER, spread

METHODS = ("SimCLR", "MoCo", "BYOL", "SimSiam")
BOTH = ("SimCLR", "BYOL")  # of the lecture's table
SETS = ("no grayscale", "no colour")  # augmentations left out
NEIGHBOURS = ("NNCLR", "SwAV", "NPID", "SimCo", "DACL", "SDMP", "MODALS")
REAL = "real_images"
CONTROL = "SimCLR and BYOL with 128 at a time, untrained encoders, and SupCon: section 6, A"

# ---- the lines ---------------------------------------------------------------------------------------------


def at_the_end() -> str:
    """A line for each method of section 6: its kNN accuracy over seeds, its phase, its untrained encoder."""
    return "\n".join(
        f"{name:26} {_percent(ends)}, {learning_phase('methods', name)}; "
        f"untrained {_percent(_untrained()[name])}"
        for name, ends in results("methods").items()
    )


def compared() -> str:
    """The setting that each method's grid chose, and each two methods' difference at the end."""
    ends = results("methods")
    lines = [f"{name:8} best of its grid: {_chosen('methods', name)}" for name in METHODS]
    for a, b in combinations(METHODS, 2):
        early = [name for name in (a, b) if not has_learned("methods", name)]
        said = f"; too early for {' and '.join(early)}" if early else ""
        lines.append(f"{f'{a} minus {b}:':22} {difference(ends[a], ends[b])}{said}")
    return "\n".join(lines)


def small_batches() -> str:
    """SimCLR and BYOL with 16 and 64 images at a time, and what each loses from 128 to 16."""
    lines = []
    for method in BOTH:
        for size in (16, 64):
            name = f"{method}, {size} at a time"
            lines.append(f"{name:21} {_percent(results('batch')[name])} ({learning_phase('batch', name)})")
        lines.append(
            f"{f'{method}, 128 minus 16':21} {difference(_of_size(method, 128), _of_size(method, 16))}"
        )
    return "\n".join(lines)


def fewer_augmentations() -> str:
    """Losses of SimCLR and BYOL without grayscale, and without any change of colour."""
    lines = []
    for name in SETS:
        for method in BOTH:
            ends, lost = results("augmentations")[f"{method}, {name}"], _lost(method, name)
            points = spread((100 * value for value in lost), " points")
            lines.append(f"{name:13} {method:7} {_percent(ends)}: loses {points}")
        lines.append(f"{name:13} what SimCLR loses more than BYOL: {_spared(name)}")
        lines.append(f"{name:13} untrained {_percent(_untrained()['BYOL'])}")
    return "\n".join(lines)


def further_methods() -> str:
    """Each method of section 8: its seeds, phase and setting, and what it gains over untrained and SimCLR."""
    subjects = dict.fromkeys(FURTHER.values(), "further_methods") | dict.fromkeys(NEIGHBOURS, "neighbours")
    lines = []
    for name, subject in subjects.items():
        ends = results(subject)[name]
        lines.append(
            f"{name:13} {len(ends)} seeds: {_percent(ends)}, {learning_phase(subject, name)}; "
            f"{_chosen(subject, name)}"
        )
        lines.append(f"{'':13} minus untrained {difference(ends, results(subject, step=0)[name])}")
        if has_learned(subject, name):
            lines.append(f"{'':13} minus SimCLR    {difference(ends, results('methods')['SimCLR'])}")
        else:
            lines.append(f"{'':13} still learning, so it is compared with no other method")
    return "\n".join(lines)


def real_images() -> str:
    """CIFAR-10's images: accuracy with all labels, with 5 and 1 a class; settings; each minus the next."""
    by = [results(REAL, column) for column in ("knn", "knn_5_a_class", "knn_1_a_class")]
    before = [results(REAL, column, step=0) for column in ("knn", "knn_5_a_class", "knn_1_a_class")]
    ends = by[0]
    order = sorted(ends, key=lambda name: -sum(ends[name]))
    lines = [f"{'kNN, with the labels of':33} {'all images':22} {'5 a class':22} {'1 a class':22}"]
    for name in order:
        said = " ".join(f"{_percent(found[name]):22}" for found in by)
        lines.append(f"{name:33} {said} {learning_phase(REAL, name)}")
    fresh = " ".join(f"{_percent(found['SimCLR']):22}" for found in before)
    lines.append(f"{'untrained':33} {fresh}")
    for name in order:
        if name != evidence.CEILING[1]:
            lines.append(f"{name:33} best of its grid: {_chosen(REAL, name)}")
    for name, below in pairwise(order):
        lines.append(f"{name} minus {below}: {difference(ends[name], ends[below])}")
    return "\n".join(lines)


# ---- the verdicts ------------------------------------------------------------------------------------------


def learned() -> Difference:
    """BYOL minus its untrained encoder, in kNN accuracy."""
    return difference(results("methods")["BYOL"], _untrained()["BYOL"])


def verdict_on_negatives() -> dict[str, Any]:
    """A: BYOL learns without negatives, if it ends above its untrained encoder."""
    ceiling = results("methods")[evidence.CEILING[1]]
    return {
        "always": learned().low > 0,
        "shown_by": f"recorded, five seeds of 3,000 steps: {learned()} above the untrained encoder in kNN",
        "control": f"SupCon, told the classes, reaches {_percent(ceiling)}; the untrained encoder "
        f"{_percent(_untrained()['BYOL'])}",
    }


def verdict_on_need_of_large_batches() -> dict[str, Any]:
    """C: SimCLR needs large batches, if it is worse with 16 at a time and no better than untrained there."""
    worse, learns = _large_batches()
    return _of_16(worse.low > 0 and learns.high <= 0, _with_16())


def verdict_on_gain_from_large_batches() -> dict[str, Any]:
    """C: SimCLR gains from large batches, if it is worse with 16 at a time than with 128."""
    return _of_16(_large_batches()[0].low > 0, f"{_with_16()}; nothing here comes near a batch of 4096")


def verdict_on_byol_with_64() -> dict[str, Any]:
    """C: BYOL works with 64, if it ends above its untrained encoder; such a run may still be learning."""
    works = difference(_of_size("BYOL", 64), _untrained()["BYOL"])
    return {
        "always": None,
        "when": "64 images meet at a time and an update still has 128",
        "holds_when": works.low > 0,
        "shown_by": f"recorded, BYOL's kNN at 64 at a time minus untrained: {works}; "
        "no update of 64 was tried",
        "control": CONTROL,
    }


def verdict_on_robustness_to_batches() -> dict[str, Any]:
    """E: BYOL is more robust to the batch size, if SimCLR loses more from 128 to 16, seed by seed."""
    lost = [
        [a - b for a, b in zip(_of_size(method, 128), _of_size(method, 16), strict=True)] for method in BOTH
    ]
    more = paired(*lost)
    return _of_16(more.low > 0, f"recorded, what SimCLR loses more from 128 to 16: {more}")


def verdict_on_robustness_to_augmentations() -> dict[str, Any]:
    """E: BYOL is more robust to augmentations, if SimCLR loses more without each set, seed by seed."""
    spared = {name: _spared(name) for name in SETS}
    named = [f"{method}, {name}" for method in BOTH for name in SETS]
    settled = has_learned("methods", *BOTH) and has_learned("augmentations", *named)
    return {
        "always": all(more.low > 0 for more in spared.values()) if settled else None,
        "shown_by": "recorded; what SimCLR loses more than BYOL: "
        + "; ".join(f"{name}: {more}" for name, more in spared.items()),
        "control": "both methods with the full set, untrained encoders, and SupCon: section 6, A",
    }


# ---- what both are made of ---------------------------------------------------------------------------------


def _percent(values: list[float]) -> str:
    return spread((100 * value for value in values), " %")


def _chosen(subject: str, name: str) -> str:
    best = evidence.chosen(subject, name)
    best |= best.get("loss", ["", {}])[1] | best.get("method_settings", {})
    return ", ".join(f"{key} {value:.3g}" for key, value in best.items() if isinstance(value, float))


def _untrained() -> dict[str, list[float]]:
    return results("methods", step=0)


def _of_size(method: str, size: int) -> list[float]:
    """kNN at the end with so many images at a time; 128 with the first three seeds, those of the others."""
    return results("methods")[method][:3] if size == 128 else results("batch")[f"{method}, {size} at a time"]


def _large_batches() -> tuple[Difference, Difference]:
    """SimCLR: 128 minus 16 at a time; 16 at a time minus untrained."""
    ends = _of_size("SimCLR", 16)
    return difference(_of_size("SimCLR", 128), ends), difference(ends, _untrained()["SimCLR"])


def _with_16() -> str:
    worse, learns = _large_batches()
    said = f"recorded, SimCLR's kNN at 16 at a time (updates of 128) minus untrained: {learns}"
    return f"{said}; 128 minus 16: {worse}"


def _of_16(supported: bool, shown_by: str) -> dict[str, Any]:
    """A verdict on runs of 16 at a time: undecided while one that is compared is still learning."""
    settled = has_learned("methods", *BOTH)
    settled = settled and has_learned("batch", *(f"{method}, 16 at a time" for method in BOTH))
    return {"always": supported if settled else None, "shown_by": shown_by, "control": CONTROL}


def _lost(method: str, name: str) -> list[float]:
    """Accuracy that a method loses without some augmentations, seed by seed."""
    full, fewer = results("methods")[method], results("augmentations")[f"{method}, {name}"]
    return [a - b for a, b in zip(full, fewer, strict=False)]


def _spared(name: str) -> Difference:
    """Accuracy that SimCLR loses more than BYOL without some augmentations."""
    return paired(*(_lost(method, name) for method in BOTH))
