"""Encoders made healthy and ill on purpose, and what `check` says of each: how often its diagnosis is right.

    python benchmarks/calibration.py make fresh3 FOLDER --cifar folder:PATH      those that no rule has seen
    python benchmarks/calibration.py measure fresh3 FOLDER --cifar folder:PATH --record
    python benchmarks/calibration.py judge fresh3 FOLDER --cifar folder:PATH --record
    python benchmarks/calibration.py make recipes FOLDER --cifar folder:PATH --kinds digits cifar
    python benchmarks/calibration.py rank recipes FOLDER --cifar folder:PATH --kinds digits cifar --record

Generated scenes, digits, and 10,000 of CIFAR-10's images (as folders of train and test). The limits were set
by the groups tune, second and test; then the rules were frozen, and the group fresh was made and judged once.
It showed that a training by a good recipe may fail. So a definition of "healthy" was added, and two rules and
three limits were changed by these groups and the group more, which is not on record. The rules were frozen
again, and the group fresh2 was made and judged once. It showed that a healthy encoder may be called
half-trained where the measures disagree. So "half-trained" needs their agreement now. The rules were frozen a
third time. The group fresh3, by the design of fresh2 with other seeds, was made and judged once: its table
stands on every page's foot. After that, a lead that may be luck is not called healthy at chance, and a search
for renamed classes went; the rules say the same of every encoder on record.

What an encoder should be called follows from how it was made. Of the groups more, fresh2 and fresh3, what was
made to be healthy or half-trained is measured beforehand, without any rule, on images that `check` does not
see (`measure`): accuracy of kNN, and of a probe of two labels a class. What is not better than fresh weights
and raw pixels, in one of them, is half-trained. So is what was stopped early, if it is worse than the healthy
one of its kind. What is better and was not stopped early is healthy.

The group recipes is none of these: twelve encoders of a kind of images, all fed rightly, that differ in what
one tunes (temperature, loss, learning rate, steps, augmentation). `rank` measures them with and without
labels, on more images than the check's, since their accuracies differ little. No rule comes from them.

`make` leaves files that are there alone; with --record, `measure`, `judge` and `rank` add a line an encoder
to benchmarks/records/calibration_elsewhere.csv, calibration.csv and without_labels.csv.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from clutils import checkpoints, data, encoders, files, losses, measures, report, training, views
from clutils.course import experiments, records
from clutils.data import ImageSet
from clutils.report import page

NAME, ELSEWHERE, UNLABELLED = "calibration", "calibration_elsewhere", "without_labels"
KINDS = ("scenes", "digits", "cifar")
SEED = {"tune": 21, "second": 41, "test": 61, "fresh": 83, "more": 103, "fresh2": 127, "fresh3": 149}
SEED["recipes"] = 173
MEASURED_BEFORE = ("more", "fresh2", "fresh3")  # groups of which "healthy" is measured elsewhere
VIEWS = 8  # of an image, for LiDAR
LABELS, DRAWS, CONFIDENCE = 2, 40, 0.98  # labelled images of a class, drawn so often; of each interval
MEASURED = ("healthy",), ("half-trained",)
COLLAPSE = ("collapsed", "collapsed behind the head")


class Case(NamedTuple):
    """An encoder to be made.

    - called: in the file's name; expected: the diagnoses that are right of it
    - settings: of `training.Run`; steps: how many; of: the case whose file is read instead of a new one
    - reads: options of `report.check`, for one that is read wrongly
    """

    called: str
    expected: tuple[str, ...]
    settings: dict[str, Any]
    steps: int
    of: str = ""
    reads: tuple[tuple[str, Any], ...] = ()


def cases(kind: str, group: str) -> Iterator[Case]:
    """Those of one kind of images; each group has other seeds, steps, temperatures, losses and methods."""
    if group in (*MEASURED_BEFORE, "recipes"):
        yield from {"more": more, "recipes": recipes}.get(group, eight)(kind)
        return
    at = tuple(SEED).index(group)
    long = {"scenes": (800, 850, 400, 450), "digits": (200, 250, 220, 240), "cifar": (600, 650, 700, 550)}
    short = {"scenes": (100, 100, 120, 90), "digits": (100, 100, 120, 90), "cifar": (200, 200, 150, 110)}
    longest, shorter = long[kind][at], short[kind][at]
    tau, warm = (0.2, 0.3, 0.15, 0.1)[at], (0.5, 0.5, 0.4, 0.6)[at]
    plain: dict[str, Any] = {"loss": losses.NTXent(tau)}
    yield Case("healthy", ("healthy",), plain, longest)
    if kind != "cifar" or group in ("tune", "test"):  # the longest
        yield Case("healthy-warm", ("healthy",), {"loss": losses.NTXent(warm)}, longest)
    if kind != "cifar" or group in ("test", "fresh"):
        debiased = losses.Debiased(0.3, 0.1)
        other = (losses.Decoupled(0.2), losses.MACL(), losses.HardNegative(0.5, 0.1, 1.0), debiased)[at]
        yield Case("healthy-other", ("healthy",), {"loss": other}, longest)
    if group == "test" and kind == "scenes":
        queue = {"method": "moco", "method_settings": {"queue_size": 1024}}
        yield Case("healthy-moco", ("healthy",), {"loss": losses.NTXent(0.2)} | queue, longest)
    if group == "fresh" and kind == "scenes":
        yield Case("healthy-vicreg", ("healthy",), {"method": "vicreg"}, longest)
    yield Case("never", ("never trained",), plain, 0)
    for n, (of, way) in enumerate(misfed(kind)[at]):
        reads = tuple(zip(("mean", "std"), way, strict=False))
        yield Case(f"fed{f'-{n}' * (n > 0)}", ("fed wrongly",), {}, longest, of, reads)
    yield Case("collapsed", COLLAPSE, {"loss": experiments.PullOnly()}, shorter)
    alone: dict[str, Any] = {"method": "simsiam", "method_settings": {"stop_gradient": False}}
    weighted = {"method": "vicreg", "loss": printed()}
    behind = (alone, weighted, alone | {"learning_rate": 3e-2}, weighted if kind == "cifar" else alone)[at]
    yield Case("behind", COLLAPSE, behind, shorter)
    for steps in ((12,), (40,), (20, 60), (15, 30) if kind == "digits" else (15, 45))[at]:
        yield Case(f"half{f'-{steps}' * (at > 1)}", ("half-trained",), plain, steps)
    both = kind == "scenes"
    for called, taus in (
        ("cold", ((0.01,), (0.007,), (0.004, 0.008), (0.005, 0.009) if both else (0.006,))[at]),
        ("hot", ((10,), (5,), (3, 20), (4, 30) if both else (8,))[at]),
    ):
        for given in taus:
            name = f"{called}{f'-{given:g}' * (at > 1)}"
            yield Case(name, ("too cold or too hot",), {"loss": losses.NTXent(float(given))}, shorter)
    for of in ("healthy", "healthy-other")[: 1 + (group == "fresh" and both)]:
        name = f"classes{of.removeprefix('healthy')}"
        learned = ("learned but not these classes",)
        yield Case(name, learned, {}, longest, of, (("labels", "brightness"),))


def more(kind: str) -> Iterator[Case]:
    """Half-trained without a small count of batches, and other methods that are healthy."""
    for called, settings, steps in {
        "scenes": (("slow", slow(1e-5), 300), ("moco", queued(0.2), 200)),
        "digits": (("slow", slow(1e-5), 200), ("moco", queued(0.2), 100), ("vicreg", VICREG, 100)),
        "cifar": (("slow", slow(1e-5), 300), ("moco", queued(0.2), 120), ("vicreg", VICREG, 150)),
    }[kind]:
        yield Case(f"half-{called}-{steps}", ("half-trained",), settings, steps)
    if kind == "digits":
        yield Case("healthy-vicreg", ("healthy",), VICREG, 400)
        yield Case("healthy-moco", ("healthy",), queued(0.2), 400)


def eight(kind: str) -> Iterator[Case]:
    """The eight ways once more: five of eight half-trained ones have counted more than 100 batches."""
    longest, shorter = {"scenes": (420, 95), "digits": (230, 95), "cifar": (580, 120)}[kind]
    plain, cold, hot, fed, early = {
        "scenes": (0.25, 0.006, 6.0, (("healthy", "cifar10"), ("healthy-warm", "bytes")), 25),
        "digits": (0.25, 0.008, 25.0, (("healthy", "half"),), 35),
        "cifar": (0.25, 0.005, 12.0, (("healthy", "half"),), 35),
    }[kind]
    usual: dict[str, Any] = {"loss": losses.NTXent(plain)}
    yield Case("healthy", ("healthy",), usual, longest)
    others: dict[str, tuple[tuple[str, dict[str, Any], int], ...]] = {
        "scenes": (
            ("warm", {"loss": losses.NTXent(0.45)}, longest),
            ("other", {"loss": losses.FlatNCE(0.25)}, longest),
            ("vicreg", VICREG, 900),
        ),
        "digits": (("warm", {"loss": losses.NTXent(0.45)}, longest), ("vicreg", VICREG, 350)),
        "cifar": (
            ("other", {"loss": losses.HardNegative(0.4, 0.1, 0.5)}, longest),
            ("moco", queued(0.25), 700),
        ),
    }
    for called, settings, steps in others[kind]:
        yield Case(f"healthy-{called}", ("healthy",), settings, steps)
    yield Case("never", ("never trained",), usual, 0)
    for n, (of, way) in enumerate(fed):
        yield Case(f"fed{f'-{n}' * (n > 0)}", ("fed wrongly",), {}, longest, of, (("mean", way),))
    yield Case("collapsed", COLLAPSE, {"loss": experiments.PullOnly()}, shorter)
    alone: dict[str, Any] = {"method": "simsiam", "method_settings": {"stop_gradient": False}}
    behind = {
        "scenes": alone,
        "digits": {"method": "vicreg", "loss": printed()},
        "cifar": alone | {"learning_rate": 2e-2},
    }
    yield Case("behind", COLLAPSE, behind[kind], shorter)
    half: list[tuple[str, dict[str, Any], int]] = [(f"{early}", usual, early)]
    half.append(("slow", slow(2e-5), {"scenes": 280, "digits": 220, "cifar": 260}[kind]))
    if kind != "digits":
        half.append(("moco", queued(0.25), {"scenes": 180, "cifar": 130}[kind]))
    for called, settings, steps in half:
        yield Case(f"half-{called}", ("half-trained",), settings, steps)
    for called, tau in (("cold", cold), ("hot", hot)):
        yield Case(called, ("too cold or too hot",), {"loss": losses.NTXent(tau)}, shorter)
    yield Case(
        "classes", ("learned but not these classes",), {}, longest, "healthy", (("labels", "brightness"),)
    )


def recipes(kind: str) -> Iterator[Case]:
    """Twelve that somebody could choose among: each differs from the first in one thing."""
    usual, steps = {"loss": losses.NTXent(0.2)}, 160 if kind == "digits" else 80
    for called, settings, of_steps in (
        ("tau-0.2", usual, 1.0),
        *((f"tau-{tau}", {"loss": losses.NTXent(tau)}, 1.0) for tau in (0.05, 0.1, 0.5, 1.0)),
        ("quarter", usual, 0.25),
        ("half", usual, 0.5),
        ("rate-0.001", usual | {"learning_rate": 1e-3}, 1.0),
        ("no-colour", usual | {"augmentation": views.Augmentation(grayscale=0, jitter=(0, 0, 0, 0))}, 1.0),
        ("no-crop", usual | {"augmentation": views.Augmentation(crop_scale=(1, 1))}, 1.0),
        ("hcl", {"loss": losses.HardNegative(0.5)}, 1.0),
        ("vicreg", VICREG, 1.0),
    ):
        yield Case(called, ("trained",), settings, round(of_steps * steps))


VICREG: dict[str, Any] = {"method": "vicreg"}


def slow(learning_rate: float) -> dict[str, Any]:
    """At a hundredth of the learning rate or less, it has hardly begun when its steps are over."""
    return {"loss": losses.NTXent(0.2), "learning_rate": learning_rate}


def queued(temperature: float) -> dict[str, Any]:
    settings = {"method": "moco", "method_settings": {"queue_size": 1024}}
    return settings | {"loss": losses.NTXent(temperature)}


def misfed(kind: str) -> tuple[tuple[tuple[str, tuple[Any, ...]], ...], ...]:
    """By group, (the case that is read, wrong mean and std): MNIST's for digits, and the usual ones."""
    grey = kind == "digits"
    mnist, usual = ("healthy", ((0.1307,), (0.3081,))), ("healthy", ("imagenet",))
    fresh = {"digits": (mnist,), "cifar": (usual,)}
    both = (("healthy", ("cifar10",)), ("healthy-warm", ("half",)))
    return (
        (("healthy", ("half" if grey else "imagenet",)),),
        (("healthy", ("bytes",)),),
        (("healthy", ("bytes" if grey else "half",)),),
        fresh.get(kind, both),
    )


def printed() -> losses.VICReg:
    """With 25, 25 and 1 before the sums that the paper prints, it collapses."""
    return losses.VICReg(25, 25, 1, printed=True)


@cache
def images(kind: str, cifar: str) -> ImageSet:
    if kind == "cifar":
        return data.load(cifar, limit=10_000)
    return data.load(kind, limit=4000 if kind == "scenes" else 1350)


def make(group: str, folder: Path, cifar: str, kinds: list[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for kind in kinds:
        for number, case in enumerate(cases(kind, group)):
            file = folder / f"{group}-{kind}-{case.called}.pt"
            if file.exists() or case.of:
                continue
            settings, given = dict(case.settings), images(kind, cifar)
            seed = SEED[group] + number
            usual = {"steps": max(case.steps, 1), "batch_size": 64, "learning_rate": 1e-2, "seed": seed}
            run = training.Run(data=given, threads=1, **(usual | settings))
            if case.steps:
                run.finish(progress=False)
            run.save(file)
            last = run.rows[-1] if run.rows else {}
            told = (f"{name} {last[name]:.3g}" for name in ("loss", "uniformity", "seconds") if name in last)
            print(file.name, *told, flush=True)


def measure(group: str, folder: Path, cifar: str, kinds: list[str], record: bool) -> None:
    """Accuracy of encoders made healthy or half-trained on images that `check` does not see."""
    for kind in kinds:
        labelled, asked = elsewhere(kind, cifar)
        made = training.Run(data=labelled, steps=1, batch_size=64, seed=0, threads=1).method.encoder.eval()
        fresh = [made, encoders.settled(made, labelled.images[:128])]
        base = {"raw": right(*map(measures.raw_inputs, (labelled, asked)), labelled.labels, asked.labels)}
        base |= {
            name: by(one, labelled, asked) for name, one in zip(("fresh", "settled"), fresh, strict=True)
        }
        finished: dict[str, Tensor] = {}
        for case in cases(kind, group):
            if case.expected not in MEASURED or case.of:
                continue
            file = folder / f"{group}-{kind}-{case.called}.pt"
            own = by(checkpoints.open(file).encoder.eval(), labelled, asked)
            finished = finished or own  # the first of its kind
            above = any(all(certain(own[how] - one[how]) for one in base.values()) for how in own)
            below = any(certain(finished[how] - own[how]) for how in own)
            row: dict[str, Any] = {"group": group, "images": kind, "made": case.called}
            row |= {"expected": " or ".join(case.expected), "above": above, "below_finished": below}
            rows = {"own": own} | base
            row |= {f"{how}_{name}": one[how].mean().item() for name, one in rows.items() for how in one}
            records.keep(ELSEWHERE, row, record)


def rank(group: str, folder: Path, cifar: str, kinds: list[str], record: bool) -> None:
    """Measures of a group's features without labels, beside kNN and the linear probe with labels."""
    for kind in kinds:
        labelled, asked = report.load(cifar if kind == "cifar" else kind, 6000)
        dice, some_images = torch.Generator().manual_seed(SEED[group]), asked.images[:500]
        augment = views.suiting(some_images)
        seen = [augment(some_images, generator=dice) for _ in range(VIEWS)]
        for case in cases(kind, group):
            encoder = checkpoints.open(folder / f"{group}-{kind}-{case.called}.pt").encoder.eval()
            z, given = (encoders.embed(encoder, some.images) for some in (asked, labelled))
            of_views = torch.stack([encoders.embed(encoder, some) for some in seen], dim=1)
            found = {
                "alignment": measures.alignment(of_views[:, 0], of_views[:, 1]),
                "uniformity": measures.uniformity(z),
                "effective_rank": measures.effective_rank(z),
                "alpha_req": measures.alpha_req(z),
                "alpha_req_4_to_50": measures.alpha_req(z, 4, 50),
                "lidar": measures.lidar(of_views),
                "knn": measures.knn_accuracy(given, labelled.labels, z, asked.labels),
                "probe": measures.linear_probe(given, labelled.labels, z, asked.labels),
            }
            row = {"command": f"python benchmarks/calibration.py rank {group} FOLDER --record"}
            row |= {"images": kind, "made": case.called, "steps": case.steps}
            row |= {"labelled": len(labelled), "asked": len(asked)}
            records.keep(UNLABELLED, row | {name: float(f"{x:.6g}") for name, x in found.items()}, record)


def elsewhere(kind: str, cifar: str) -> tuple[ImageSet, ImageSet]:
    """Labelled and test images that `check` does not see, as it is called here."""
    if kind == "scenes":
        some = data.load(kind, split="test", limit=2000, seed=977)
        return some.subset(slice(0, 1000)), some.subset(slice(1000, 2000))
    name = cifar if kind == "cifar" else kind
    seen = {one.numpy().tobytes() for part in loaded(kind, cifar) for one in part.images}

    def others(some: ImageSet) -> ImageSet:
        return some.subset(torch.tensor([one.numpy().tobytes() not in seen for one in some.images]))

    asked = others(data.load(name, split="test", limit=4000 if kind == "cifar" else None))
    if kind == "cifar":
        return asked.subset(slice(0, 1000)), asked.subset(slice(1000, 3000))
    return others(images(kind, cifar)), asked


def by(encoder: nn.Module, labelled: ImageSet, asked: ImageSet) -> dict[str, Tensor]:
    z = (encoders.embed(encoder, some.images, batch_size=64) for some in (labelled, asked))
    return right(*z, labelled.labels, asked.labels)


def right(z: Tensor, asked: Tensor, y: Tensor, asked_y: Tensor) -> dict[str, Tensor]:
    """kNN right or wrong for each test image, and how often a probe of two labels a class is right: (M,)."""
    unit = [torch.nn.functional.normalize(one, dim=1) for one in (z, asked)]
    voted = measures.knn_vote(unit[1] @ unit[0].T, y, measures.neighbours_for(y, asked_y))
    dice, few = torch.Generator().manual_seed(0), torch.zeros(len(asked), dtype=torch.float64)
    for _ in range(DRAWS):
        own = [(y == c).nonzero()[:, 0] for c in y.unique()]
        drawn = torch.cat([at[torch.randperm(len(at), generator=dice)[:LABELS]] for at in own])
        few += (measures.probed(z[drawn], y[drawn], asked) == asked_y).double() / DRAWS
    return {"knn": (voted == asked_y).double(), "few": few}


def certain(difference: Tensor) -> bool:
    """True where a paired difference (M,) is above 0 by more than the images' luck."""
    return measures.bootstrap(difference, confidence=CONFIDENCE)[0] > 0


def expected(case: Case, kind: str, group: str) -> tuple[str, ...]:
    """The diagnoses that are right, of healthy and half-trained ones by what was measured elsewhere."""
    if group not in MEASURED_BEFORE or case.of or case.expected not in MEASURED:
        return case.expected
    table = records.read(ELSEWHERE)
    own = table[(table["group"] == group) & (table["images"] == kind) & (table["made"] == case.called)]
    if not bool(own["above"].item()):
        return ("half-trained",)
    return case.expected if case.expected == ("healthy",) or own["below_finished"].item() else ("healthy",)


@cache
def loaded(kind: str, cifar: str) -> tuple[ImageSet, ImageSet]:
    """Labelled neighbours and test images of the check."""
    return report.load(cifar if kind == "cifar" else kind, 2000 if kind == "cifar" else 1000)


def judge(group: str, folder: Path, cifar: str, kinds: list[str], record: bool) -> None:
    """Check every encoder of a group, read as its case says, and print or record what is said of it."""
    for kind in kinds:
        given = loaded(kind, cifar)
        for case in cases(kind, group):
            file = folder / f"{group}-{kind}-{case.of or case.called}.pt"
            if not file.exists():
                continue
            reads, some = dict(case.reads), given
            if reads.pop("labels", "") == "brightness":
                some = tuple(replace(one, labels=brightness(one, given[0])) for one in given)
            found = report.check(file, some, quick=True, **reads)
            diagnosis, names = found.diagnosis, expected(case, kind, group)
            hit = diagnosis.name in names
            print("right" if hit else "WRONG", group, kind, case.called, "|", diagnosis.says, flush=True)
            if record:
                numbers = {k: float(f"{v:.6g}") for k, v in found.examination.numbers.items()}
                row = {"command": f"python benchmarks/calibration.py judge {group} FOLDER --record"}
                row |= {"group": group, "images": kind, "made": case.called, "steps": case.steps}
                row |= {"expected": " or ".join(names), "found": diagnosis.name, "right": hit}
                row |= {"level": found.level, "says": diagnosis.says, "numbers": json.dumps(numbers)}
                records.append(NAME, row)


def brightness(images: ImageSet, of: ImageSet) -> Tensor:
    """Quarters by mean brightness, which jitter takes away: labels that nobody trained for."""
    means = [one.images.float().mean(dim=(1, 2, 3)) for one in (images, of)]
    return torch.bucketize(means[0], means[1].quantile(torch.tensor([0.25, 0.5, 0.75])))


def summary(rows: Sequence[dict[str, Any]], tuned: int) -> dict[str, Any]:
    """Counts for the page's foot, of the encoders that no rule has seen.

    - rows: of the record: made, expected (diagnoses with " or " between), found, right; tuned: encoders that
      limits were set on
    """
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_kind.setdefault(row["expected"], []).append(row)
    told = []
    for expected, own in by_kind.items():
        others = Counter(row["found"] for row in own if not row["right"])
        said = ", ".join(f"{name} ({count})" for name, count in others.items())
        told.append([expected, len(own), sum(row["right"] for row in own), said])
    right, healthy = sum(row["right"] for row in rows), by_kind.get("healthy", [])
    alarms = [row for row in healthy if row["level"] in ("worth a look", "broken")]
    called = "; ".join(
        f"of {row['images'].replace('cifar', 'CIFAR-10')}, {row['steps']} steps: {row['found']}"
        for row in alarms
    )
    says = f"{len(alarms)} of {len(healthy)} healthy ones {'was' if len(alarms) == 1 else 'were'} called ill"
    says += f": {called}." if called else "."
    return {"encoders": len(rows), "right": right, "tuned": tuned, "says": says, "rows": told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("make", "measure", "judge", "rank"))
    parser.add_argument("group", choices=tuple(SEED))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cifar", default="folder:cifar10", help="CIFAR-10 as folders of train and test")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.what == "make":
        make(options.group, options.folder, options.cifar, options.kinds)
        return
    if options.what == "measure":
        measure(options.group, options.folder, options.cifar, options.kinds, options.record)
        return
    if options.what == "rank":
        rank(options.group, options.folder, options.cifar, options.kinds, options.record)
        return
    judge(options.group, options.folder, options.cifar, options.kinds, options.record)
    if options.record and options.group == "fresh3":
        table = records.read(NAME)
        unseen = table["group"] == "fresh3"
        kept = summary(table[unseen].to_dict("records"), int((~unseen).sum()))
        files.write_atomically(page.TRUST, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
