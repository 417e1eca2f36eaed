"""Long runs that verdicts stand on: settings chosen on a grid, then five seeds past their learning phase.

    python benchmarks/evidence.py methods --record           SimCLR, MoCo, BYOL, SimSiam; a ceiling
    python benchmarks/evidence.py neighbours --record        NNCLR, SwAV, NPID, SimCo; DACL, SDMP, MODALS
    python benchmarks/evidence.py losses --record            the family of losses, in SimCLR
    python benchmarks/evidence.py views --record             four further views, with and without attention
    python benchmarks/evidence.py temperature --record       NT-Xent from cold to hot
    python benchmarks/evidence.py augmentations --record     SimCLR and BYOL, parts of the set left out
    python benchmarks/evidence.py batch --record            SimCLR and BYOL, fewer images compared at a time
    python benchmarks/evidence.py further_methods --record   Barlow Twins, VICReg, MoCo v3, LeJEPA
    python benchmarks/evidence.py all --record               all of these, one after another
    python benchmarks/evidence.py real_images --images folder:PATH --record     six methods, CIFAR-10's images
    python benchmarks/evidence.py real_losses --images folder:PATH --record     NT-Xent, MACL, HCL, paired

Every contender is tried on a grid of its own, learning rate by one setting, as large as the others': seed 0,
1,000 steps, judged on validation images. What did best there is run with five seeds for 3,000 steps and
looked at along the way (steps 0, 300, 1,000, 2,000 and 3,000 of one run; step 0 is the untrained encoder).
Batches of 128, conv16, generated scenes: 4,000 to train on, 1,500 to choose by, 2,000 to judge by.

`real_images` has its own sizes: batches of 128 of 10,000 images of CIFAR-10, 2,000 to choose by, 5,000 of the
test split to judge by; a grid of learning rates by values of its own settings, 400 steps; then three seeds of
1,500. Rates are 0.005 and 0.01, for BYOL, DINO and SimSiam 0.0025 too; of settings two pairs, of MoCo three,
the authors' among them. Beside kNN by all labels stand 1 and 5 labels a class, a mean of 20 draws.

`real_losses` has the same images, steps and looks, float32, and ten points of a grid for each loss: five
temperatures by two rates, the other settings the authors' own. "NT-Xent at MACL's temperature" is fixed at
what MACL's chosen run of seed 0 ends at, so its ten points are ten rates. Then eight seeds, paired: a
seed gives every loss the same first weights and the same order of images. Of NT-Xent with views of different
images three. Seed 0 of all comes before seed 1 of any, so a recording that was stopped has compared fairly.
Last come three losses with four further views, three seeds: NT-Xent, and AttentionNCE flat and as it is.
Their grid has six temperatures at one rate, 0.005, which did best in each of the grids before.

Prints a line a look; with --record it is added to benchmarks/records/evidence.csv (`real_images`:
evidence_real_images.csv; `real_losses`: evidence_real_losses.csv), by which the notebooks judge. What the
record holds is left out, so an interrupted recording goes on where it stopped.
"""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from clutils import data, measures, training
from clutils.course import evidence, records
from clutils.data import ImageSet

KEPT_APART = 1500  # images to choose by
GRID_STEPS, STEPS, LOOKS = 1000, 3000, (0, 300, 1000, 2000, 3000)
SEEDS = (0, 1, 2, 3, 4)
RATES = (2.5e-3, 5e-3, 1e-2)
TEMPERATURES = (0.05, 0.1, 0.2, 0.5, 1.0)
FAMILY = (
    "NTXent",
    "Decoupled",
    "MACL",
    "DualTemperature",
    "Debiased",
    "HardNegative",
    "SSCL",
    "AttentionNCE",
)
SETS: dict[str, dict[str, Any]] = {  # BYOL's figure 3b; 'full' is what a run has when it names none
    "full": {},
    "no grayscale": {"grayscale": 0.0},
    "no colour": {"grayscale": 0.0, "jitter": (0.0, 0.0, 0.0, 0.0)},
    "crop only": {"grayscale": 0.0, "jitter": (0.0, 0.0, 0.0, 0.0), "flip": 0.0},
}


REAL_IMAGES = 10_000, 2000, 5000  # to train on, to choose by, to judge by
REAL_GRID_STEPS, REAL_STEPS, REAL_LOOKS = 400, 1500, (0, 500, 1000, 1500)
LABELS, DRAWS = (1, 5), 20  # a class
PAIRED_SEEDS, CONTROL_SEEDS = 8, 3
COLD_TO_WARM = (0.025, 0.05, 0.1, 0.2, 0.5)
OF_IMAGES = ("real_images", "real_losses")  # these need --images


class Case(NamedTuple):
    """A run: settings as JSON keeps them; a loss as [name, its settings], an augmentation by its own."""

    subject: str
    stage: str
    contender: str
    settings: dict[str, Any] | None  # None: what did best on the grid, known once that is done
    seed: int
    steps: int
    looks: tuple[int, ...]


def tuned(
    subject: str,
    contender: str,
    fixed: dict[str, Any],
    grid: list[dict[str, Any]],
) -> Iterator[Case]:
    """The grid's runs, then those of what did best there."""
    for settings in grid:
        yield Case(subject, "grid", contender, fixed | settings, 0, GRID_STEPS, (GRID_STEPS,))
    for seed in SEEDS:
        yield Case(subject, "seeds", contender, None, seed, STEPS, LOOKS)


def by(rates: tuple[float, ...] = RATES, **settings: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Each learning rate with each of one setting's values."""
    ((name, values),) = settings.items()
    return [{"learning_rate": rate, name: value} for rate in rates for value in values]


def of_method(**settings: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Each learning rate with each value of a setting of the method's."""
    ((name, values),) = settings.items()
    return by(method_settings=tuple({name: value} for value in values))


def methods() -> Iterator[Case]:
    warm = tuple(["NTXent", {"temperature": t}] for t in (0.1, 0.2, 0.5))
    yield from tuned("methods", "SimCLR", {"method": "simclr"}, by(loss=warm))
    byol = {"method": "byol"}
    grid = by(method_settings=tuple({"momentum": m, "predictor_rate": 3.0} for m in (0.8, 0.95, 0.99)))
    yield from tuned("methods", "BYOL", byol, grid)
    yield from tuned("methods", "SimSiam", {"method": "simsiam"}, of_method(predictor_rate=(1.0, 3.0, 10.0)))
    yield from tuned("methods", "MoCo", {"method": "moco"}, of_method(momentum=(0.9, 0.99, 0.999)))
    for seed in SEEDS[:3]:  # the ceiling; of its settings none is tuned
        yield Case("methods", "seeds", "SupCon, told the classes", {"method": "supcon"}, seed, STEPS, LOOKS)


def neighbours() -> Iterator[Case]:
    """A queue of neighbours, prototypes, a bank, none of these; and three kinds of mixes.

    SimCLR and the ceiling to see them beside are those of "methods".
    """
    tempered = {"NNCLR": "NNCLR", "SwAV": "Decoupled", "NPID": "NTXent", "SimCo": "DualTemperature"}
    for method, name in tempered.items():
        warm = tuple([name, {"temperature": t}] for t in (0.1, 0.2, 0.5))
        yield from tuned("neighbours", method, {"method": method.lower()}, by(loss=warm))
    fixed = {"loss": ["NTXent", {"temperature": 0.2}]}
    yield from tuned("neighbours", "DACL", fixed | {"method": "dacl"}, of_method(mixed=(0.1, 0.3, 0.5)))
    yield from tuned("neighbours", "SDMP", fixed | {"method": "sdmp"}, of_method(mixing=(0.25, 0.5, 1.0)))
    yield from tuned(
        "neighbours", "MODALS", fixed | {"method": "modals"}, of_method(strength=(0.1, 0.3, 0.6))
    )


def family() -> Iterator[Case]:
    for name in FAMILY:
        warm = tuple([name, {"temperature": t}] for t in TEMPERATURES)
        yield from tuned("losses", name, {"method": "simclr"}, by((1e-2,), loss=warm))


def further_views() -> Iterator[Case]:
    """AttentionNCE with four further views an image, and each half of its attention made flat."""
    arms = {
        "flat": {"d_pos": "inf", "d_neg": "inf"},
        "on the positives": {"d_neg": "inf"},
        "on the negatives": {"d_pos": "inf"},
        "on both": {},
    }
    for name, settings in arms.items():
        warm = tuple(["AttentionNCE", {"temperature": t} | settings] for t in (0.1, 0.2, 0.5))
        fixed = {"method": "simclr", "extra_views": 4}
        for case in tuned("views", f"attention {name}", fixed, by((1e-2,), loss=warm)):
            if case.stage == "grid":
                yield case
            else:  # a step costs three times as much
                yield case._replace(steps=GRID_STEPS, looks=(0, 300, 650, GRID_STEPS))


def temperature() -> Iterator[Case]:
    """The loss apart, all as it is: what a temperature does to a run that has learned."""
    for t in (0.03, *TEMPERATURES):
        settings = {"method": "simclr", "learning_rate": 5e-3, "loss": ["NTXent", {"temperature": t}]}
        for seed in SEEDS[:3]:
            yield Case("temperature", "seeds", f"τ = {t}", settings, seed, STEPS, LOOKS)


def augmentations() -> Iterator[Case]:
    """At the settings that each method's grid chose with the full set."""
    for method in ("SimCLR", "BYOL"):
        best = evidence.chosen("methods", method)
        for name, changed in SETS.items():
            for seed in SEEDS[:3]:
                if name != "full":  # that is in "methods"
                    settings = best | {"augmentation": changed}
                    yield Case("augmentations", "seeds", f"{method}, {name}", settings, seed, STEPS, LOOKS)


def batch() -> Iterator[Case]:
    """Batches of another size: as many updates of as many images, so many at a time in network and loss.

    Gradients are averaged over the parts (BYOL's own figure 3a does so); with the updates, the decay of the
    moving average stays what it is.
    """
    for method in ("SimCLR", "BYOL"):
        best = evidence.chosen("methods", method)
        for size in (16, 32, 64):  # 128 is in "methods"
            for seed in SEEDS[:3]:
                settings = best | {"at_a_time": size}
                yield Case("batch", "seeds", f"{method}, {size} at a time", settings, seed, STEPS, LOOKS)


def further_methods() -> Iterator[Case]:
    """Methods beside those of the lecture, each with a loss of its own; to be compared with "methods"."""

    def losses_of(name: str, **settings: tuple[float, ...]) -> tuple[list[Any], ...]:
        ((setting, values),) = settings.items()
        return tuple([name, {setting: value}] for value in values)

    grid = by(loss=losses_of("BarlowTwins", off_diagonal=(0.005, 0.02, 0.1)))
    yield from tuned("further_methods", "Barlow Twins", {"method": "barlowtwins"}, grid)
    weighted = ["VICReg", {"invariance": 25 / 128, "variance": 12.5}]  # the authors' code at (25, 25, 1)
    grid = by(loss=(*losses_of("VICReg", invariance=(1.0, 5.0, 25.0)), weighted))
    yield from tuned("further_methods", "VICReg", {"method": "vicreg"}, grid)
    grid = of_method(momentum=(0.8, 0.95, 0.99))
    yield from tuned("further_methods", "MoCo v3", {"method": "mocov3"}, grid)
    grid = by(loss=losses_of("SIGReg", weight=(0.02, 0.05, 0.2)))
    yield from tuned("further_methods", "LeJEPA", {"method": "lejepa", "extra_views": 2}, grid)


def real_images() -> Iterator[Case]:
    """Six methods where no one is near a ceiling; classes told, and views of different images paired."""
    tried: dict[str, tuple[dict[str, Any], tuple[dict[str, Any], ...]]] = {
        "SimCLR": ({"method": "simclr"}, tuple({"loss": ["NTXent", {"temperature": t}]} for t in (0.2, 0.5))),
        "MoCo": (
            {"method": "moco"},
            (
                {"loss": ["NTXent", {"temperature": 0.2}], "method_settings": {"momentum": 0.99}},
                {"loss": ["NTXent", {"temperature": 0.07}], "method_settings": {"momentum": 0.999}},
                {"loss": ["NTXent", {"temperature": 0.2}], "method_settings": {"momentum": 0.999}},
            ),
        ),
        "BYOL": (
            {"method": "byol"},
            (
                {"method_settings": {"momentum": 0.8, "predictor_rate": 3.0}},
                {"method_settings": {"momentum": 0.996, "predictor_rate": 1.0}},
            ),
        ),
        "SimSiam": (
            {"method": "simsiam"},
            tuple({"method_settings": {"predictor_rate": rate}} for rate in (10.0, 1.0)),
        ),
        "VICReg": (
            {"method": "vicreg"},
            tuple({"loss": ["VICReg", {"invariance": w, "printed": False}]} for w in (10.0, 25.0)),
        ),
        "VICReg, sums as printed": (  # the paper's formula with its code's weights: notebook 08
            {"method": "vicreg"},
            tuple({"loss": ["VICReg", {"invariance": w}]} for w in (5.0, 25.0)),
        ),
        "DINO": ({"method": "dino"}, tuple({"method_settings": {"momentum": m}} for m in (0.99, 0.996))),
    }
    paired_wrongly = {"method": "simclr", "augmentation": "mispaired"}
    tried["SimCLR, views of different images"] = paired_wrongly, tried["SimCLR"][1]
    for name, (fixed, settings) in tried.items():
        rates = RATES if name in ("BYOL", "DINO", "SimSiam") else RATES[1:]  # their usual rates are lower
        grid = [{"learning_rate": rate} | one for rate in rates for one in settings]
        for case in tuned("real_images", name, fixed, grid):
            if case.stage == "grid":
                yield case._replace(steps=REAL_GRID_STEPS, looks=(REAL_GRID_STEPS,))
            elif case.seed in SEEDS[:3]:
                yield case._replace(steps=REAL_STEPS, looks=REAL_LOOKS)
    for seed in SEEDS[:3]:  # the positive control; of its settings none is tuned
        told = {"method": "supcon"}
        yield Case("real_images", "seeds", "SupCon, told the classes", told, seed, REAL_STEPS, REAL_LOOKS)


def real_losses() -> Iterator[Case]:
    """NT-Xent, MACL, HCL, and NT-Xent fixed at the temperature that MACL ends at; then AttentionNCE.

    The grids of all but the last; MACL's seed 0, which says that temperature; its grid of rates; then the
    seeds, a seed of all contenders after the other. After these, the same of three losses with four further
    views: NT-Xent, AttentionNCE with flat attention, and AttentionNCE.
    """
    fixed = {"method": "simclr", "precision": "float32"}
    tempered = {  # the authors' temperatures on CIFAR-10 are 0.5 (SimCLR), 0.1 (MACL), 0.5 (HCL)
        evidence.PLAIN: ("NTXent", COLD_TO_WARM),
        evidence.ADAPTIVE: ("MACL", COLD_TO_WARM),
        evidence.HARD: ("HardNegative", (0.05, 0.1, 0.2, 0.5, 1.0)),
    }

    several: dict[str, tuple[str, dict[str, Any]]] = {
        evidence.VIEWS: ("NTXentOfViews", {}),
        evidence.FLAT: ("AttentionNCE", {"d_pos": "inf", "d_neg": "inf"}),
        evidence.ATTENTION: ("AttentionNCE", {}),
    }

    def tried(contender: str, settings: dict[str, Any]) -> Case:
        found = fixed | settings
        return Case("real_losses", "grid", contender, found, 0, REAL_GRID_STEPS, (REAL_GRID_STEPS,))

    def paired(contender: str, seed: int, settings: dict[str, Any] | None = None) -> Case:
        return Case("real_losses", "seeds", contender, settings, seed, REAL_STEPS, REAL_LOOKS)

    for contender, (name, temperatures) in tempered.items():
        for settings in by(RATES[1:], loss=tuple([name, {"temperature": t}] for t in temperatures)):
            yield tried(contender, settings)
    yield paired(evidence.ADAPTIVE, 0)
    ended_at = evidence.temperature_at_the_end("real_losses", evidence.ADAPTIVE)
    for rate in (1.25e-3, *RATES, 3.5e-3, 7.5e-3, 1.5e-2, 2e-2, 3e-2, 4e-2):
        yield tried(evidence.FIXED, {"learning_rate": rate, "loss": ["NTXent", {"temperature": ended_at}]})
    mispaired = evidence.chosen("real_losses", evidence.PLAIN) | {"augmentation": "mispaired"}
    for seed in range(PAIRED_SEEDS):
        for contender in (evidence.PLAIN, evidence.ADAPTIVE, evidence.FIXED, evidence.HARD):
            yield paired(contender, seed)
        if seed < CONTROL_SEEDS:
            yield paired(evidence.MISPAIRED, seed, mispaired)
    further = {"extra_views": 4, "learning_rate": RATES[1]}  # those four are the positives of both views
    for contender, (name, settings) in several.items():
        for temperature in (*COLD_TO_WARM, 1.0):
            yield tried(contender, further | {"loss": [name, {"temperature": temperature} | settings]})
    for seed in range(CONTROL_SEEDS):
        for contender in several:
            yield paired(contender, seed)


def with_few_labels(run: training.Run, train: ImageSet, test: ImageSet) -> dict[str, float]:
    """Accuracy on the test images when so many training images of each class vote: mean of the draws."""
    z, test_z = run.embed(train), run.embed(test)
    found = {}
    for count in LABELS:
        each = []
        for draw in range(DRAWS):
            order = torch.randperm(len(train), generator=torch.Generator().manual_seed(draw))
            of_class = [
                order[train.labels[order] == label][:count] for label in range(len(train.class_names))
            ]
            rows = torch.cat(of_class)
            each.append(measures.knn_accuracy(z[rows], train.labels[rows], test_z, test.labels, k=count))
        found[f"knn_{count}_a_class"] = sum(each) / DRAWS
    return found


SUBJECTS = {
    "methods": methods,
    "temperature": temperature,
    "losses": family,
    "neighbours": neighbours,
    "augmentations": augmentations,
    "batch": batch,
    "views": further_views,
    "further_methods": further_methods,
    "real_images": real_images,
    "real_losses": real_losses,
}


def pictures(subject: str, source: str | None) -> tuple[ImageSet, ImageSet, ImageSet]:
    """To train on, to choose by, to judge by."""
    if subject in OF_IMAGES:
        if source is None:
            raise ValueError(f"{subject} needs --images folder:PATH, CIFAR-10 as folders train and test")
        count, apart, judged = REAL_IMAGES
        drawn, test = data.load(source, limit=count + apart), data.load(source, "test", limit=judged)
        return drawn.subset(slice(0, count)), drawn.subset(slice(count, None)), test
    count = 4000
    drawn = data.load("scenes", limit=count + KEPT_APART)
    return drawn.subset(slice(0, count)), drawn.subset(slice(count, None)), data.load("scenes", "test")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("subject", choices=("all", *SUBJECTS))
    parser.add_argument("--contender", help="this one alone, so that two can run at a time")
    parser.add_argument("--seeds", type=int, default=PAIRED_SEEDS, help="only the first so many")
    parser.add_argument("--images", metavar="folder:PATH", help="CIFAR-10's images, for real_*")
    parser.add_argument("--threads", type=int, help="of torch, in a step")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    of_scenes = [name for name in SUBJECTS if name not in OF_IMAGES]
    try:
        drawn = pictures(options.subject, options.images)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    train, _, test = drawn
    for subject in of_scenes if options.subject == "all" else (options.subject,):
        for case in SUBJECTS[subject]():
            if options.contender not in (None, case.contender) or case.seed >= options.seeds:
                continue
            chosen = case.settings or evidence.chosen(case.subject, case.contender)
            settings = json.dumps(chosen, sort_keys=True, ensure_ascii=False)
            about = {
                "subject": case.subject,
                "stage": case.stage,
                "contender": case.contender,
                "settings": settings,
                "seed": case.seed,
                "steps": case.steps,
            }
            name = evidence.record_of(subject)
            if options.record and tuple(about.values()) in records.known(name, *about):
                continue
            given = evidence.run_arguments(chosen) | {"seed": case.seed, "threads": options.threads}
            command, also = f"python benchmarks/evidence.py {subject}", None
            if subject in OF_IMAGES:
                command += " --images folder:PATH"
                also = functools.partial(with_few_labels, train=train, test=test)
            if subject == "real_losses":
                also = evidence.mean_temperature
            rows = evidence.train_and_evaluate(given, *drawn, case.steps, case.looks, also=also)
            for row in rows:
                records.keep(name, {"command": f"{command} --record"} | about | row, options.record)


if __name__ == "__main__":
    main()
