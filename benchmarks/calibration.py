"""Encoders made healthy and ill on purpose, and what `check` says of each: how often its diagnosis is right.

    python benchmarks/calibration.py make fresh FOLDER --cifar folder:PATH    those that no rule has seen
    python benchmarks/calibration.py judge fresh FOLDER --cifar folder:PATH --record

By the groups tune, second and test the limits were set: the second and the third were held out at first, and
some limits were moved after each was judged. The group fresh was made after the last change of a rule, and
judged once: its table stands on every page's foot.

Generated scenes, digits, and 10,000 of CIFAR-10's images (as folders of train and test). What an encoder
should be called follows from how it was made, never from what is measured. `make` leaves files that are there
alone; `judge` prints a line an encoder and, with --record, writes benchmarks/records/calibration.csv.
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
from torch import Tensor

from clutils import data, files, losses, report, training
from clutils.course import experiments, records
from clutils.data import ImageSet
from clutils.report import page

NAME = "calibration"
KINDS = ("scenes", "digits", "cifar")
SEED = {"tune": 21, "second": 41, "test": 61, "fresh": 83}
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


def judge(group: str, folder: Path, cifar: str, kinds: list[str], record: bool) -> None:
    """Check every encoder of a group, read as its case says, and print or record what is said of it."""
    for kind in kinds:
        given = report.load(cifar if kind == "cifar" else kind, 2000 if kind == "cifar" else 1000)
        for case in cases(kind, group):
            file = folder / f"{group}-{kind}-{case.of or case.called}.pt"
            if not file.exists():
                continue
            reads, some = dict(case.reads), given
            if reads.pop("labels", "") == "brightness":
                some = tuple(replace(one, labels=brightness(one, given[0])) for one in given)
            found = report.check(file, some, map_names=(), quick=True, **reads)
            diagnosis, right = found.diagnosis, found.diagnosis.name in case.expected
            print("right" if right else "WRONG", group, kind, case.called, "|", diagnosis.says, flush=True)
            if record:
                numbers = {k: float(f"{v:.6g}") for k, v in found.examination.numbers.items()}
                row = {"command": f"python benchmarks/calibration.py judge {group} FOLDER --record"}
                row |= {"group": group, "images": kind, "made": case.called, "steps": case.steps}
                row |= {"expected": " or ".join(case.expected), "found": diagnosis.name, "right": right}
                row |= {"level": found.level, "says": diagnosis.says, "numbers": json.dumps(numbers)}
                records.append(NAME, row)


def brightness(images: ImageSet, of: ImageSet) -> Tensor:
    """Quarters by mean brightness, which jitter takes away: labels that nobody trained for."""
    means = [one.images.float().mean(dim=(1, 2, 3)) for one in (images, of)]
    return torch.bucketize(means[0], means[1].quantile(torch.tensor([0.25, 0.5, 0.75])))


def summary(rows: Sequence[dict[str, Any]], tuned: int) -> dict[str, Any]:
    """What the page's foot shows of the encoders that no rule has seen.

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
    called = ", ".join(f"{row['made']} on {row['images']} ({row['found']})" for row in alarms)
    says = f"{len(alarms)} of {len(healthy)} healthy ones {'was' if len(alarms) == 1 else 'were'} called ill"
    says += f": {called}." if called else "."
    return {"encoders": len(rows), "right": right, "tuned": tuned, "says": says, "rows": told}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("make", "judge"))
    parser.add_argument("group", choices=tuple(SEED))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cifar", default="folder:cifar10", help="CIFAR-10 as folders of train and test")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.what == "make":
        make(options.group, options.folder, options.cifar, options.kinds)
        return
    judge(options.group, options.folder, options.cifar, options.kinds, options.record)
    if options.record and options.group == "fresh":
        table = records.read(NAME)
        tuned = int((table["group"] != "fresh").sum())
        kept = summary(table[table["group"] == "fresh"].to_dict("records"), tuned)
        files.write_atomically(page.TRUST, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")


if __name__ == "__main__":
    main()
