"""Tables of the recorded runs of notebook 11, as lines to print.

The runs are those of `benchmarks/evidence.py`: methods, further_methods, neighbours and real_images. Methods
are compared only where none of them is still learning.
"""

from itertools import combinations, pairwise

from clutils.course import evidence
from clutils.course.evidence import difference, has_learned, learning_phase, results
from clutils.course.methods.figures import FURTHER, spread

METHODS = ("SimCLR", "MoCo", "BYOL", "SimSiam")
NEIGHBOURS = ("NNCLR", "SwAV", "NPID", "SimCo", "DACL", "SDMP", "MODALS")
REAL = "real_images"


def compared() -> str:
    """The setting that each method's grid chose, and each two methods' difference at the end."""
    ends = results("methods")
    lines = [f"{name:8} best of its grid: {_chosen('methods', name)}" for name in METHODS]
    for a, b in combinations(METHODS, 2):
        early = [name for name in (a, b) if not has_learned("methods", name)]
        said = f"; too early for {' and '.join(early)}" if early else ""
        lines.append(f"{f'{a} minus {b}:':22} {difference(ends[a], ends[b])}{said}")
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


def _percent(values: list[float]) -> str:
    return spread((100 * value for value in values), " %")


def _chosen(subject: str, name: str) -> str:
    best = evidence.chosen(subject, name)
    best |= best.get("loss", ["", {}])[1] | best.get("method_settings", {})
    return ", ".join(f"{key} {value:.3g}" for key, value in best.items() if isinstance(value, float))
